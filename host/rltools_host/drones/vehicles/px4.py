"""A PX4 over MAVLink: its state, commands that it acknowledges, its parameters.

Nothing here decides anything. While a call waits, a heartbeat goes out each second, as that of a
ground station; they stop with this program, so that PX4's own failsafe for a lost ground station
acts (NAV_DLL_ACT).
"""

from __future__ import annotations

import math
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rltools_host.boards.connection import Address, Connection, sender_of
from rltools_host.boards.framing import (
    SEVERITY_WARNING,
    FrameDecoder,
    Message,
    StatusText,
    payload_of,
)
from rltools_host.boards.messages import text_of
from rltools_host.boards.transport import Link
from rltools_host.drones.vehicles.px4_state import TERMINATION, GlobalPosition, Mode, Sample
from rltools_host.errors import BoardMismatchError, LinkLostError, PortError, RefusedError

NAN = math.nan
AUTOPILOT = 1  # component id of the flight controller
FIND_TIMEOUT_S = 10.0
OTHERS_S = 1.2  # for which other vehicles are listened for; each sends a heartbeat a second
HEARTBEAT_S = 1.0
POLL_S = 0.05
START_IT = "start PX4 (again if another program spoke to it first), and name its MAVLink's address"
ACK_TIMEOUT_S = 1.0  # then a command is sent again
COMMAND_ATTEMPTS = 6
UNSUPPORTED_FRAME = 9  # MAV_RESULT_COMMAND_UNSUPPORTED_MAV_FRAME, newer than pymavlink
PARAMETER_TIMEOUT_S = 0.6
PARAMETER_ATTEMPTS = 4
MAX_ATTITUDE_AGE_MS = 250  # beside a position
TEXTS_KEPT = 32
RECENT_S = 5.0
# Messages a second, where the link takes them; PX4's heartbeat stays at one.
STREAMS: Mapping[str, float] = {
    "LOCAL_POSITION_NED": 50.0,
    "ATTITUDE_QUATERNION": 50.0,
    "GLOBAL_POSITION_INT": 5.0,
    "EXTENDED_SYS_STATE": 5.0,
    "CURRENT_MODE": 50.0,
    "ACTUATOR_OUTPUT_STATUS": 50.0,
}
# Of a motor's output, where PX4 drives simulated ones: pwm_out_sim.
PWM_MIN_US, PWM_SPAN_US, MOTORS = 1000.0, 1000.0, 4
Parameter = int | float


class Px4Vehicle:
    """The one PX4 behind a link, and the last state that it reported."""

    def __init__(self, link: Link, clock: Callable[[], float] = time.monotonic) -> None:
        from pymavlink.dialects.v20 import development  # PX4's own; it takes a while to import

        self.dialect: Any = development
        self.clock = clock
        self.connection = Connection(link, development, None, clock)
        self.connection.decoder = FrameDecoder(development, takes_longer=True)
        self.name = f"the vehicle on {link.description}"
        self._unheard = link.obstacle
        # The last reported values; None: none yet.
        self.base_mode = self.status = 0
        self.mode: Mode | None = None
        self.sample: Sample | None = None
        self.global_position: GlobalPosition | None = None
        self.is_on_ground: bool | None = None
        self.collective: float | None = None  # mean signal of the motors, 0 to 1
        self.texts: deque[tuple[float, StatusText]] = deque(maxlen=TEXTS_KEPT)
        self.heartbeat_at = self.sample_at = -math.inf
        self.on_sample: Callable[[Sample], None] = lambda _: None  # called with each one
        self._attitude: tuple[float, ...] | None = None
        self._attitude_ms = 0
        self._beat_at = -math.inf
        self._seen: dict[Address, Message] = {}
        self._queue = self.connection.open_queue(*STREAMS, "HEARTBEAT", "STATUSTEXT")

    def close(self) -> None:
        self.connection.close()

    # -- finding it --------------------------------------------------------------------------------

    def find(self, timeout_s: float = FIND_TIMEOUT_S) -> None:
        """Find the one vehicle by its heartbeat, and make it the target."""
        if not self.wait(lambda: bool(self._seen), timeout_s):
            raise PortError(
                f"nothing answers on {self.connection.description} within {timeout_s:g} s: "
                f"{self._unheard or START_IT}"
            )
        self.wait(lambda: False, OTHERS_S)
        if len(self._seen) > 1:
            systems = ", ".join(str(address.system) for address in sorted(self._seen))
            raise RefusedError(
                f"several vehicles answer on {self.connection.description}, with the system ids "
                f"{systems}: give the address of one"
            )
        ((address, heartbeat),) = self._seen.items()
        if heartbeat.autopilot != self.dialect.MAV_AUTOPILOT_PX4:
            raise BoardMismatchError(
                f"{self.name} is not a PX4 (its heartbeat says autopilot {heartbeat.autopilot})"
            )
        self.connection.target = address

    @property
    def target(self) -> Address:
        assert self.connection.target is not None, "find() comes first"
        return self.connection.target

    # -- hearing it --------------------------------------------------------------------------------

    def pump(self) -> None:
        """Take in the messages that have arrived; wait a moment for one where there is none."""
        if self.clock() - self._beat_at >= HEARTBEAT_S:
            self._beat_at = self.clock()
            d = self.dialect
            ours = (d.MAV_TYPE_GCS, d.MAV_AUTOPILOT_INVALID, 0, 0, d.MAV_STATE_ACTIVE)
            self.connection.send(d.MAVLink_heartbeat_message(*ours, 3))
        message = self._queue.wait(POLL_S)
        self.connection.deliver_arrived()
        while message is not None:
            self._take(message)
            message = self._queue.take()

    def wait(
        self,
        condition: Callable[[], bool],
        limit_s: float,
        guard: Callable[[], None] = lambda: None,
    ) -> bool:
        """Return whether the condition comes true in time; call the guard after each message."""
        deadline = self.clock() + limit_s
        while True:
            self.pump()
            guard()
            if condition():
                return True
            if self.clock() >= deadline:
                return False

    @property
    def silence_s(self) -> float:
        """Return the time since its last heartbeat or position."""
        return self.clock() - max(self.heartbeat_at, self.sample_at)

    @property
    def is_armed(self) -> bool:
        return bool(self.base_mode & self.dialect.MAV_MODE_FLAG_SAFETY_ARMED)

    @property
    def is_terminated(self) -> bool:
        """Return whether PX4 has terminated the flight (its failure detector), and flies it no
        more."""
        state = int(self.dialect.MAV_STATE_FLIGHT_TERMINATION)
        return self.mode == TERMINATION or self.status == state

    @property
    def says_simulated(self) -> bool:
        """Return HEARTBEAT's flag: it was started with a simulator."""
        return bool(self.base_mode & self.dialect.MAV_MODE_FLAG_HIL_ENABLED)

    def reason(self) -> str:
        """Return its last recent warning, as a clause; empty where there is none."""
        since = self.clock() - RECENT_S
        warnings = [
            text.text
            for at, text in self.texts
            if at >= since and text.severity <= SEVERITY_WARNING
        ]
        return f' (it says "{warnings[-1]}")' if warnings else ""

    def last_text(self, start: str, within_s: float) -> str | None:
        """Return the last text within this time that begins so; None where there is none."""
        since = self.clock() - within_s
        found = [
            text.text for at, text in self.texts if at >= since and text.text.startswith(start)
        ]
        return found[-1] if found else None

    def _take(self, message: Message | StatusText) -> None:
        if isinstance(message, StatusText):
            self.texts.append((self.clock(), message))
            return
        kind = message.get_type()
        if kind == "HEARTBEAT":
            if sender_of(message).component != AUTOPILOT:
                return
            if self.connection.target is None:
                self._seen[sender_of(message)] = message
            self.base_mode = message.base_mode
            self.status = message.system_status
            self.mode = Mode.of(message.custom_mode)
            self.heartbeat_at = self.clock()
        elif kind == "CURRENT_MODE":
            self.mode = Mode.of(message.custom_mode)
        elif kind == "ATTITUDE_QUATERNION":
            quaternion = (message.q1, message.q2, message.q3, message.q4)
            rates = (message.rollspeed, message.pitchspeed, message.yawspeed)
            self._attitude = (*quaternion, *rates)
            self._attitude_ms = message.time_boot_ms
        elif kind == "LOCAL_POSITION_NED":
            self._take_position(message)
        elif kind == "GLOBAL_POSITION_INT":
            self.global_position = GlobalPosition(message.lat, message.lon, message.alt * 1e-3)
        elif kind == "EXTENDED_SYS_STATE":
            self.is_on_ground = message.landed_state == self.dialect.MAV_LANDED_STATE_ON_GROUND
        elif kind == "ACTUATOR_OUTPUT_STATUS":
            signal_us = sum(message.actuator[:MOTORS]) / MOTORS
            part = (signal_us - PWM_MIN_US) / PWM_SPAN_US
            self.collective = min(max(part, 0.0), 1.0) if math.isfinite(part) else None

    def _take_position(self, message: Message) -> None:
        age_ms = message.time_boot_ms - self._attitude_ms
        if self._attitude is None or age_ms > MAX_ATTITUDE_AGE_MS:
            return
        self.sample_at = self.clock()
        w, x, y, z, *rates = self._attitude
        self.sample = Sample(
            message.time_boot_ms * 1e-3,
            (message.x, message.y, message.z),
            (message.vx, message.vy, message.vz),
            (w, x, y, z),
            (rates[0], rates[1], rates[2]),
        )
        self.on_sample(self.sample)

    # -- asking it ---------------------------------------------------------------------------------

    def command(
        self,
        name: str,
        *parameters: float,
        what: str,
        guard: Callable[[], None] = lambda: None,
    ) -> None:
        """Send a COMMAND_LONG, again until it is acknowledged; raise RefusedError where it is
        denied."""
        number: int = getattr(self.dialect, f"MAV_CMD_{name}")
        self._command(
            number,
            lambda attempt: self.send_command(name, *parameters, attempt=attempt),
            what,
            guard,
        )

    def send_command(self, name: str, *parameters: float, attempt: int = 0) -> None:
        """Send a COMMAND_LONG once, without waiting for an answer; further parameters are zero."""
        number = getattr(self.dialect, f"MAV_CMD_{name}")
        values = (*parameters, *(0.0,) * (7 - len(parameters)))
        self.connection.send(
            self.dialect.MAVLink_command_long_message(*self.target, number, attempt, *values)
        )

    def go_to(self, position: GlobalPosition, what: str, guard: Callable[[], None]) -> None:
        """Hold at a position: MAV_CMD_DO_REPOSITION, whose degrees need more digits than a float
        has."""
        d = self.dialect
        number = d.MAV_CMD_DO_REPOSITION
        changes_mode = float(d.MAV_DO_REPOSITION_FLAGS_CHANGE_MODE)
        parameters = (-1.0, changes_mode, 0.0, NAN)  # speed, flags, radius, yaw: as they are
        where = (position.latitude_1e7, position.longitude_1e7, position.altitude_m)

        def send(attempt: int) -> None:
            frames = (d.MAV_FRAME_GLOBAL_INT, d.MAV_FRAME_GLOBAL)  # some of PX4's take one only
            frame = (frames[attempt % 2], number, 0, 0)
            self.connection.send(
                d.MAVLink_command_int_message(*self.target, *frame, *parameters, *where)
            )

        self._command(number, send, what, guard)

    def _command(
        self, number: int, send: Callable[[int], None], what: str, guard: Callable[[], None]
    ) -> None:
        d = self.dialect
        with self.connection.open_queue("COMMAND_ACK") as answers:
            for attempt in range(COMMAND_ATTEMPTS):
                send(attempt)
                deadline = self.clock() + ACK_TIMEOUT_S
                while self.clock() < deadline:
                    self.pump()
                    guard()
                    while (answer := answers.take()) is not None:
                        if isinstance(answer, StatusText) or answer.command != number:
                            continue
                        if answer.result == d.MAV_RESULT_ACCEPTED:
                            return
                        if answer.result == d.MAV_RESULT_IN_PROGRESS:
                            deadline = self.clock() + ACK_TIMEOUT_S
                            continue
                        transient = (d.MAV_RESULT_TEMPORARILY_REJECTED, UNSUPPORTED_FRAME)
                        if attempt + 1 == COMMAND_ATTEMPTS or answer.result not in transient:
                            raise self._refused(what, answer.result)
        raise LinkLostError(f"{self.name} does not answer when it is asked {what}")

    def _refused(self, what: str, result: int) -> RefusedError:
        self.wait(lambda: False, 0.3)  # the reason may come behind
        names = self.dialect.enums["MAV_RESULT"]
        name = names[result].name.removeprefix("MAV_RESULT_").lower().replace("_", " ")
        return RefusedError(f"{self.name} refuses {what}: {name}{self.reason()}")

    def set_mode(self, mode: Mode, guard: Callable[[], None]) -> None:
        """Change PX4's mode, and wait until it has changed."""
        what = f"to change to the mode {mode}"
        custom = float(self.dialect.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED)
        self.command("DO_SET_MODE", custom, mode.main, mode.sub, what=what, guard=guard)
        if not self.wait(lambda: self.mode == mode, 5.0, guard):
            raise RefusedError(f"{self.name} acknowledged {what}, and is in {self.mode}")

    def ask_for_streams(self) -> None:
        for name, rate in STREAMS.items():
            number = float(getattr(self.dialect, f"MAVLINK_MSG_ID_{name}"))
            try:
                self.command(
                    "SET_MESSAGE_INTERVAL", number, 1e6 / rate, what=f"for {name} more often"
                )
            except RefusedError:  # it has its own rate, or not this one: missing() looks
                continue

    def request(self, message: str) -> Message | None:
        """Return the message, which PX4 sends once; None where it does not."""
        number = float(getattr(self.dialect, f"MAVLINK_MSG_ID_{message}"))
        with self.connection.open_queue(message) as answers:
            for _ in range(3):
                try:
                    self.command("REQUEST_MESSAGE", number, what=f"for {message}")
                except RefusedError:
                    return None
                if self.wait(lambda: len(answers) > 0, ACK_TIMEOUT_S):
                    return answers.take()
        return None

    def modes(self) -> dict[str, Mode]:
        """Return the modes with names of their own, as modules register them."""
        found: dict[str, Mode] = {}
        count = 0
        with self.connection.open_queue("AVAILABLE_MODES") as answers:
            for _ in range(3):
                number = float(self.dialect.MAVLINK_MSG_ID_AVAILABLE_MODES)
                try:
                    self.command("REQUEST_MESSAGE", number, 0.0, what="for its modes")
                except RefusedError:
                    break
                seen: set[int] = set()
                while self.wait(lambda: len(answers) > 0, 0.5):
                    message: Message = answers.take()
                    count = message.number_modes
                    seen.add(message.mode_index)
                    if name := text_of(message.mode_name):
                        found[name] = Mode.of(message.custom_mode)
                    if len(seen) == count:
                        return found
        return found

    def parameters(self, names: Iterable[str]) -> dict[str, Parameter]:
        """Return the values of the parameters that it has; PX4 does not answer for others."""
        found: dict[str, Parameter] = {}
        wanted = list(names)
        with self.connection.open_queue("PARAM_VALUE") as answers:
            for _ in range(PARAMETER_ATTEMPTS):
                for name in wanted:
                    if name not in found:
                        self._ask_parameter(name)
                deadline = self.clock() + PARAMETER_TIMEOUT_S
                while len(found) < len(wanted) and self.clock() < deadline:
                    self.pump()
                    while len(answers):
                        message: Message = answers.take()
                        if (name := text_of(message.param_id)) in wanted:
                            found[name] = self._value(message)
                if len(found) == len(wanted):
                    break
        return found

    def _ask_parameter(self, name: str) -> None:
        d = self.dialect
        self.connection.send(d.MAVLink_param_request_read_message(*self.target, name.encode(), -1))

    def _value(self, message: Message) -> Parameter:
        """Decode the value: PX4 sends the bits of a whole number in the field of a float."""
        kind = "<f" if message.param_type == self.dialect.MAV_PARAM_TYPE_REAL32 else "<i"
        value: Parameter = struct.unpack(kind, payload_of(message)[:4].ljust(4, b"\0"))[0]
        return value
