"""A PX4 with our module, scripted: MAVLink in and out, over memory in its own time or over UDP.

What it answers is what PX4 answers: acknowledgements, parameters as bits, one file session, a shell
that echoes, modes that a module has registered.
"""

from __future__ import annotations

import math
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pymavlink.dialects.v20 import development as d

from fake_files import FakeFileServer
from px4_model import GROUND, POLICY, STEP_S, Model, Wrong
from rltools_host.boards.framing import FrameDecoder, FrameEncoder, payload_of
from rltools_host.boards.messages import PACKET_BYTES, Opcode
from rltools_host.boards.transport import Link, UdpLink
from rltools_host.drones.vehicles.px4_state import HOLD, LAND, TAKE_OFF, TERMINATION, Mode
from rltools_host.errors import DamagedFileError
from rltools_host.policies.contract import ENTRY_AT_REST, EntryEnvelope
from rltools_host.policies.image import parse_policy

HOST = (255, 190)
SITL_UID = 5283920058631409231  # as PX4's program for a PC says it, with the system id 1
LATITUDE, LONGITUDE, ALTITUDE_M = 47.3977, 8.5456, 488.0
METERS_PER_DEGREE = math.pi / 180.0 * 6371000.0
# Its simulator's, src/modules/simulation/simulator_sih/sih_params.yaml
SIH: dict[str, int | float] = {
    "SIH_MASS": 1.0,
    "SIH_IXX": 0.025,
    "SIH_IYY": 0.025,
    "SIH_IZZ": 0.03,
    "SIH_L_ROLL": 0.2,
    "SIH_L_PITCH": 0.2,
    "SIH_T_MAX": 5.0,
    "SIH_Q_MAX": 0.1,
    "SIH_T_TAU": 0.05,
    "SIH_KDV": 1.0,
    "SIH_KDW": 0.025,
}
PARAMETERS: dict[str, int | float] = {
    "SYS_HITL": 0,
    "RLT_TRIAL": 300,
    "RLT_SAFE_THR": 0.4,
    "NAV_DLL_ACT": 2,
    "PWM_MAIN_FUNC1": 0,
    "PWM_MAIN_FUNC2": 0,
    **SIH,
    "IMU_GYRO_RATEMAX": 1000,
    "THR_MDL_FAC": 0.0,
}
LEAD_S = 0.1  # that a vehicle on UDP may be ahead of the host
TELLS_MODES_S = 0.4  # after it acknowledged that it was asked
ACCEPTED, DENIED, UNSUPPORTED, UNSUPPORTED_FRAME = 0, 2, 3, 9


@dataclass
class Script:
    """What it says of itself, and what it does wrong besides flying."""

    uid: int = SITL_UID
    hil_flag: bool = False
    parameters: dict[str, int | float] = field(default_factory=dict)
    system: int = 1
    autopilot: int = d.MAV_AUTOPILOT_PX4
    has_module: bool = True
    arming_refusal: str = ""
    policy_refusal: str = ""
    refuses_mode: str = ""  # the module, with this reason
    refuses_from: float = -math.inf
    frames: tuple[int, ...] = (d.MAV_FRAME_GLOBAL_INT,)  # of a place, as PX4 1.17
    knows_offset: bool = True
    drops_acks: int = 0  # the first so many of each command
    drops_shell: int = 0  # the first so many answers
    # From its first line on, in which it answers nothing; then one command after the other.
    shell_busy_s: float = 0.0
    drops_parameters: int = 0  # the first so many answers
    drops_verb: str = ""  # the first answer to this command of the module
    fastest_s: float = 4 * STEP_S  # that it reports something; 0.1 s is the most that will do
    tried_before: bytes = b""  # this policy is on trial when it is found
    loses: float = 0.0  # this part of the frames to the host
    silent_at: float = math.inf  # after the policy took over
    silent_s: float = 0.0
    armed: bool = False
    mode: Mode = HOLD
    wrong_crc32: bool = False
    longer_frames: bool = False  # as of a later version of MAVLink
    wrong: Wrong = field(default_factory=Wrong)


def custom_mode(mode: Mode) -> int:
    return mode.main << 16 | mode.sub << 24


class ScriptedPx4:
    def __init__(self, script: Script | None = None) -> None:
        self.script = script = script or Script()
        self.model = Model(
            script.wrong, armed=script.armed, mode=script.mode, hil_flag=script.hil_flag
        )
        self.parameters = {**PARAMETERS, **script.parameters}
        self.files: dict[str, bytes] = {"policy.rltp": b"old", "previous.rltp": b"older"}
        self.on_trial = bool(script.tried_before)
        if script.tried_before:
            self.files["candidate.rltp"] = script.tried_before
        self.commands: list[tuple[int, int]] = []  # number, confirmation
        self.shell_lines: list[str] = []
        self.out: list[bytes] = []
        self.heartbeats_heard = 0
        self._chance = random.Random(1)
        self._acks: Counter[int] = Counter()
        self._shell_answers = 0
        self._shell_idle_at: float | None = None
        self._parameters_asked = 0
        self._shell_text = ""
        self._later: list[tuple[float, str]] = []  # what the shell prints, and when
        # In the order in which it tells them: a mode before what is done in it.
        self._intervals = {"HEARTBEAT": 1.0, "CURRENT_MODE": 1.0, "LOCAL_POSITION_NED": 1.0}
        self._next: dict[str, float] = {}
        self._encoder = FrameEncoder(d, script.system, 1)
        self._decoder = FrameDecoder(d)
        self._server = FakeFileServer(self._read, self._may_write, self._written)
        self._server.clock = lambda: self.model.now
        self._server.numbers = lambda: 0  # PX4 has one session
        self._server.wrong_crc32 = script.wrong_crc32
        self._upload = ""
        self._modes_at = math.inf

    # -- bytes -------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        if self._is_silent():
            return
        for message in self._decoder.feed(data):
            target = getattr(message, "target_system", self.script.system)
            if target in (0, self.script.system):
                self._take(message)

    def advance(self) -> None:
        """One step of its time, and what it tells in it."""
        self.model.step()
        for severity, text in self.model.says:
            self.say(severity, text)
            if text.endswith("trial is over"):
                self.on_trial = False
        self.model.says.clear()
        while self._later and self._later[0][0] <= self.model.now:
            self._print(self._later.pop(0)[1])
        if self.model.now >= self._modes_at:
            self._modes_at = math.inf
            self._tell_modes()
        for name, interval in self._intervals.items():
            if self.model.now >= self._next.get(name, 0.0) - 1e-9:
                self._next[name] = self.model.now + interval
                for message in self._stream(name):
                    self.send(message)

    def send(self, message: Any) -> None:
        self._put(self._encoder.encode(message))

    def _put(self, frame: bytes) -> None:
        if not self._is_silent() and self._chance.random() >= self.script.loses:
            self.out.append(frame)

    def say(self, severity: int, text: str) -> None:
        self.send(d.MAVLink_statustext_message(severity, text.encode()[:50]))

    def _is_silent(self) -> bool:
        since = self.model.now - self.model.entered_at - self.script.silent_at
        return 0.0 <= since < self.script.silent_s

    # -- what it tells -----------------------------------------------------------------------------

    def _stream(self, name: str) -> list[Any]:
        model = self.model
        ms = round(model.now * 1000)
        if name == "HEARTBEAT":
            return [self._heartbeat()]
        if name == "LOCAL_POSITION_NED":
            return [d.MAVLink_local_position_ned_message(ms, *model.position, *model.velocity)]
        if name == "ATTITUDE_QUATERNION":
            return [d.MAVLink_attitude_quaternion_message(ms, *model.attitude, 0.1, 0.2, 0.3)]
        if name == "GLOBAL_POSITION_INT":
            north, east, down = model.position - GROUND
            parallel = METERS_PER_DEGREE * math.cos(math.radians(LATITUDE))
            place = (
                round(1e7 * (LATITUDE + north / METERS_PER_DEGREE)),
                round(1e7 * (LONGITUDE + east / parallel)),
                round(1e3 * (ALTITUDE_M - down)),
            )
            return [d.MAVLink_global_position_int_message(ms, *place, 0, 0, 0, 0, 0)]
        if name == "EXTENDED_SYS_STATE":
            landed = d.MAV_LANDED_STATE_ON_GROUND if model.is_on_ground else 2
            return [d.MAVLink_extended_sys_state_message(0, landed)]
        if name == "ACTUATOR_OUTPUT_STATUS":
            signals = [1000.0 + 1000.0 * model.collective] * 4 + [0.0] * 28
            return [d.MAVLink_actuator_output_status_message(ms * 1000, 16, signals)]
        if name == "CURRENT_MODE":
            return [d.MAVLink_current_mode_message(0, custom_mode(model.mode), 0)]
        return []

    def _heartbeat(self) -> Any:
        base = d.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED
        base |= d.MAV_MODE_FLAG_SAFETY_ARMED * self.model.armed
        base |= d.MAV_MODE_FLAG_HIL_ENABLED * self.model.hil_flag
        return d.MAVLink_heartbeat_message(
            *(d.MAV_TYPE_QUADROTOR, self.script.autopilot, base, custom_mode(self.model.mode)),
            *(d.MAV_STATE_FLIGHT_TERMINATION if self.model.is_terminated else 4, 3),
        )

    # -- what it is asked --------------------------------------------------------------------------

    def _take(self, message: Any) -> None:
        kind = message.get_type()
        if kind == "HEARTBEAT":
            self.heartbeats_heard += 1
        elif kind in ("COMMAND_LONG", "COMMAND_INT"):
            self.commands.append((message.command, getattr(message, "confirmation", 0)))
            self._acknowledge(message.command, self._carry_out(message))
        elif kind == "PARAM_REQUEST_READ":
            self._parameters_asked += 1
            if self._parameters_asked > self.script.drops_parameters:
                self._parameter(message.param_id)
        elif kind == "FILE_TRANSFER_PROTOCOL":
            for answer in self._server.answer(self._noted(payload_of(message)[3:])):
                self.send(d.MAVLink_file_transfer_protocol_message(0, *HOST, answer))
        elif kind == "SERIAL_CONTROL" and message.count:
            self._shell_text += bytes(message.data[: message.count]).decode()
            while "\n" in self._shell_text:
                line, _, self._shell_text = self._shell_text.partition("\n")
                self._shell(line)

    def _acknowledge(self, command: int, result: int) -> None:
        self._acks[command] += 1
        if self._acks[command] > self.script.drops_acks:
            # Another program's command, which is not told whose it is.
            self.send(d.MAVLink_command_ack_message(command ^ 1, ACCEPTED, 0, 0, 0, 0))
            self.send(d.MAVLink_command_ack_message(command, result, 0, 0, *HOST))

    def _carry_out(self, message: Any) -> int:
        model, number = self.model, message.command
        if number == d.MAV_CMD_SET_MESSAGE_INTERVAL:
            name = d.mavlink_map[int(message.param1)].msgname
            if name == "HEARTBEAT":
                return DENIED
            self._intervals[name] = max(self.script.fastest_s, message.param2 * 1e-6)
            self._next[name] = self.model.now
        elif number == d.MAV_CMD_REQUEST_MESSAGE:
            return self._request(int(message.param1))
        elif number == d.MAV_CMD_COMPONENT_ARM_DISARM:
            return self._arm(message.param1 == 1.0, message.param2)
        elif number == d.MAV_CMD_NAV_TAKEOFF:
            model.set_mode(TAKE_OFF)
            model.setpoint = model.position.copy()
            model.setpoint[2] = GROUND[2] - (message.param7 - ALTITUDE_M)
        elif number == d.MAV_CMD_DO_REPOSITION:
            if message.frame not in self.script.frames:
                return UNSUPPORTED_FRAME
            if int(message.param2) != 1:
                return DENIED
            parallel = METERS_PER_DEGREE * math.cos(math.radians(LATITUDE))
            north = (message.x * 1e-7 - LATITUDE) * METERS_PER_DEGREE
            east = (message.y * 1e-7 - LONGITUDE) * parallel
            model.go_to(GROUND + np.array((north, east, ALTITUDE_M - message.z)))
        elif number == d.MAV_CMD_DO_SET_MODE:
            assert model.mode != TERMINATION, "it is flown no more"
            mode = Mode(int(message.param2), int(message.param3))
            if mode not in (HOLD, LAND, POLICY) or (mode == POLICY and not self.on_trial):
                return DENIED
            model.set_mode(mode)
        else:
            return UNSUPPORTED
        return ACCEPTED

    def _arm(self, arms: bool, force: float) -> int:
        assert force == 0.0, "nobody may force it"
        if arms and self.script.arming_refusal:
            self.say(2, self.script.arming_refusal)
            return DENIED
        if not arms and (self.model.wrong.refuses_to_disarm or not self.model.is_on_ground):
            return DENIED
        self.model.armed = arms
        return ACCEPTED

    def _request(self, number: int) -> int:
        script = self.script
        if number == d.MAVLINK_MSG_ID_AUTOPILOT_VERSION:
            numbers = (0, 0x01110000, 0, 0, 0)
            eight = bytes(8)
            self.send(
                d.MAVLink_autopilot_version_message(*numbers, eight, eight, eight, 0, 0, script.uid)
            )
        elif number == d.MAVLINK_MSG_ID_AVAILABLE_MODES:
            self._modes_at = self.model.now + TELLS_MODES_S
        else:
            return DENIED
        return ACCEPTED

    def _tell_modes(self) -> None:
        modes = [(HOLD, b""), (Mode(4, 11), b"Somebody's mode"), (POLICY, b"RL Policy")]
        modes = modes if self.script.has_module else modes[:2]
        for index, (mode, name) in enumerate(modes, 1):
            head = (len(modes), index, 0, custom_mode(mode))
            self.send(d.MAVLink_available_modes_message(*head, 0, name))

    def _parameter(self, name: Any) -> None:
        name = name.decode() if isinstance(name, bytes) else name
        value = self.parameters.get(name)
        if value is None:
            return
        real = isinstance(value, float)
        bits = struct.pack("<f" if real else "<i", value)
        kind = d.MAV_PARAM_TYPE_REAL32 if real else d.MAV_PARAM_TYPE_INT32
        payload = bits + struct.pack("<HH16sB", 1000, 0, name.encode(), kind)
        self._put(self._encoder.encode_payload(d.MAVLINK_MSG_ID_PARAM_VALUE, payload))

    # -- files and the shell -----------------------------------------------------------------------

    def _noted(self, payload: bytes) -> bytes:
        payload = payload.ljust(PACKET_BYTES, b"\0")
        if payload[3] == Opcode.CREATE_FILE:
            self._upload = payload[12 : 12 + payload[4]].decode()
        return payload

    def _read(self, path: str) -> bytes | None:
        return self.files.get(path.rpartition("/")[2])

    def _may_write(self, path: str) -> bool:
        folder = "/rlt" if self.script.uid >= SITL_UID else "/fs/microsd/rlt"
        return path.rpartition("/")[0] == folder

    def _written(self, content: bytes) -> None:
        self.files[self._upload.rpartition("/")[2]] = content

    def _shell(self, line: str) -> None:
        self.shell_lines.append(line)
        words = line.split()
        text = "Invalid command: " + words[0]
        if self.script.has_module and words[0] == "rlt_policy":
            level, said = self._module(words[1:])
            color = "\x1b[32m" if level == "INFO" else "\x1b[31m"
            text = f"{color}{level:<5} \x1b[37m[rlt_policy] {color}{said}\x1b[0m"
        self._shell_answers += 1
        is_dropped = len(words) > 1 and words[1] == self.script.drops_verb
        if is_dropped:
            self.script.drops_verb = ""
        if is_dropped or self._shell_answers <= self.script.drops_shell:
            return
        self._print(f"{line}\r\n")  # the echo
        if self._shell_idle_at is None:
            self._shell_idle_at = self.model.now + self.script.shell_busy_s
        answers_at = max(self.model.now, self._shell_idle_at) + 0.2
        if self._later:
            answers_at = max(answers_at, self._later[-1][0] + 0.5)
        self._later.append((answers_at, f"{text}\r\n\x1b[Kpxh> "))

    def _print(self, text: str) -> None:
        """Out of the shell, in pieces."""
        data, shell = text.encode(), d.SERIAL_CONTROL_DEV_SHELL
        for begin in range(0, len(data), 70):
            part = data[begin : begin + 70]
            fields = (shell, d.SERIAL_CONTROL_FLAG_REPLY, 0, 0, len(part))
            if self.script.longer_frames:  # with the extensions target_system, target_component
                head = struct.pack("<IHBBB", 0, 0, fields[0], fields[1], len(part))
                payload = head + part.ljust(70, b"\0") + bytes(HOST)
                self._put(self._encoder.encode_payload(d.MAVLINK_MSG_ID_SERIAL_CONTROL, payload))
            else:
                self.send(d.MAVLink_serial_control_message(*fields, list(part.ljust(70, b"\0"))))

    @property
    def _entry(self) -> EntryEnvelope:
        """What the policy that would fly may be handed."""
        name = "candidate.rltp" if self.on_trial else "policy.rltp"
        try:
            return parse_policy(self.files[name]).entry or ENTRY_AT_REST
        except DamagedFileError:  # a test's stand-in for an image
            return EntryEnvelope(5.0, 2.0, 0.37, 1.75, 0.8)  # of what is no image

    def _module(self, words: list[str]) -> tuple[str, str]:
        script, model, verb = self.script, self.model, words[0]
        if verb == "offset" and self.script.knows_offset:
            offset = np.array([float(word) for word in words[1:]])
            if not np.linalg.norm(offset) <= (most_m := np.float32(self._entry.offset_m)):
                return "ERROR", f"this policy may be handed a target at most {most_m:.2f} m away"
            model.offset, model.offset_at = offset, model.now
            return "INFO", f"next target {' '.join(words[1:])}"
        if verb == "status":
            trial = "a policy" if self.on_trial else "none"
            acts = ", acting" if model.armed and model.mode == POLICY else ""
            reason = script.refuses_mode if model.now >= script.refuses_from else ""
            said = (f"mode 23: {reason or 'ready'}{acts}", f"{trial} on trial", "ticks 1 late 0")
            return "INFO", "\nINFO  [rlt_policy] ".join(said)
        if verb not in ("try", "confirm", "rollback"):
            return "ERROR", "unknown command"
        if model.armed:
            return "ERROR", "not while the vehicle is armed"
        if verb == "try":
            if self.on_trial:
                return "WARN", "candidate.rltp: error 2 of the slots"
            if self.script.policy_refusal:
                return "WARN", self.script.policy_refusal
            self.on_trial = True
            return "INFO", "on trial for 300 s: rlt_policy confirm keeps it"
        if not self.on_trial and verb == "confirm":
            return "ERROR", "no policy is on trial"
        if not self.on_trial:  # back to the one before
            self.files["policy.rltp"] = self.files.pop("previous.rltp")
            return "INFO", "policy.rltp passed all checks"
        self.on_trial = False
        if verb == "confirm":
            self.files["previous.rltp"] = self.files["policy.rltp"]
            self.files["policy.rltp"] = self.files.pop("candidate.rltp")
            return "INFO", "kept as policy.rltp"
        return "INFO", "the policy before acts again"


class Px4Link(Link):
    """The vehicle in memory. Its time is the only one, and passes where the host waits."""

    description = "udp:script"

    def __init__(self, vehicle: ScriptedPx4) -> None:
        self.vehicle = vehicle
        self.reads = 0
        self.interrupt_when: Callable[[ScriptedPx4], bool] = lambda _: False
        self.closed = False

    def clock(self) -> float:
        return self.vehicle.model.now

    def read(self, timeout_s: float) -> bytes:
        vehicle = self.vehicle
        self.reads += 1
        until = vehicle.model.now + timeout_s
        while not vehicle.out and vehicle.model.now < until:
            vehicle.advance()
            if self.interrupt_when(vehicle):
                self.interrupt_when = lambda _: False
                raise KeyboardInterrupt
        data = b"".join(vehicle.out)
        vehicle.out.clear()
        return data

    def write(self, data: bytes) -> None:
        self.vehicle.receive(data)

    def close(self) -> None:
        self.closed = True


class UdpPx4:
    """The vehicle on a UDP port of this machine. Its time is the only one here, too, and passes
    while the host waits: however slow this machine is, nobody is late."""

    def __init__(self, vehicle: ScriptedPx4) -> None:
        self.vehicle = vehicle
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.001)
        self.url = f"udp:127.0.0.1:{self._socket.getsockname()[1]}"
        self._until = vehicle.model.now
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def clock(self) -> float:
        return self.vehicle.model.now

    def open_link(self, url: str) -> Link:
        px4 = self

        class WatchedLink(UdpLink):
            def read(self, timeout_s: float) -> bytes:
                if data := super().read(0.0):  # the host is behind
                    return data
                px4._until = px4.clock() + LEAD_S
                return super().read(min(timeout_s, 0.01))

        return WatchedLink(url)

    def _run(self) -> None:
        vehicle, host = self.vehicle, None
        while not self._ends.is_set():
            try:
                data, host = self._socket.recvfrom(65536)
                vehicle.receive(data)
            except TimeoutError:
                pass
            if vehicle.model.now < self._until:
                vehicle.advance()
            for frame in vehicle.out:
                if host is not None:
                    self._socket.sendto(frame, host)
            vehicle.out.clear()

    def __enter__(self) -> UdpPx4:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        self._socket.close()
