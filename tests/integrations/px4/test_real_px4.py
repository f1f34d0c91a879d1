"""PX4's own program for a PC with the module, where RLT_PX4_SITL names its build folder: a build of
px4_sitl_nolockstep with EXTERNAL_MODULES_LOCATION (integrations/px4/README.md)."""

from __future__ import annotations

import math
import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from pymavlink.dialects.v20 import development as d

from policy_run import make_policy_run
from quadrotor_policies import Array, image_of, through_gru, with_wide_entry
from rltools_host.drones.vehicles.px4_flight import Px4Request, fly

BUILD = os.environ.get("RLT_PX4_SITL", "")
pytestmark = pytest.mark.skipif(
    not BUILD, reason="RLT_PX4_SITL names no build of PX4's program for a PC with the module"
)
INSTANCE = 3  # of PX4: of 0 to 2 somebody may have one
GROUND_PORT = 18570 + INSTANCE
PARAMETERS = {
    "IMU_GYRO_RATEMAX": 1000,
    "IMU_INTEG_RATE": 1000,  # what the simulation runs at is the lower of the two
    "RLT_AGE_RATES": 100,  # milliseconds: a busy PC is late at times
    "RLT_AGE_ATT": 200,
    "RLT_TRIAL": 600,
    "SYS_FAILURE_EN": 1,
    # The simulator's sensors are noisier than PX4's estimator believes: its velocity would be off
    # by up to 0.4 m/s.
    "EKF2_GYR_NOISE": 0.08,
    "EKF2_ACC_NOISE": 1.0,
}
STARTS_BY_S = 60.0
DOES_IT_BY_S = 60.0
EXTERNAL_1, HOLD, POSITION, LAND = "23", "4", "2", "18"
KILL_CHANNEL = 8
REMOTE_CONTROL = {  # its channels, and that it is one's own
    **{f"RC_MAP_{name}": i for i, name in enumerate(("ROLL", "PITCH", "THROTTLE", "YAW"), 1)},
    "RC_MAP_KILL_SW": KILL_CHANNEL,
    "RC_CHAN_CNT": KILL_CHANNEL,
    "COM_RC_IN_MODE": 2,  # a remote control, or a joystick
}


def sih_policy(place: float = 1.6, is_recurrent: bool = False) -> bytes:
    """A linear controller of the SIH quadrotor (1 kg, rotors of 5 N, 0.2 m from the axes); `place`:
    m/s^2 for each meter that it is off; `is_recurrent`: its wishes go through a hidden state."""
    hover, gravity = 0.4905, 9.81
    speed, tilt, rate = 2.2, 40.0, 9.0  # m/s^2 for each m/s, rad/s^2 for each radian ...
    angular, yaw, lift = 0.00625, 0.075, hover / gravity  # parts of a thrust for one of each
    weights = np.zeros((13, 4), np.float32)
    # front right, rear right, rear left, front left; z: a clockwise rotor turns the body left
    for rotor, (x, y, z) in enumerate(((1, -1, -1), (-1, -1, 1), (-1, 1, -1), (1, 1, 1))):
        roll, pitch = angular * y, -angular * x
        weights[0:13, rotor] = np.array(
            [
                *(-tilt * place / gravity * pitch, tilt * place / gravity * roll, -4.0 * lift),
                *(-tilt * speed / gravity * pitch, tilt * speed / gravity * roll, -3.5 * lift),
                *(0.0, -2.0 * tilt * roll, -2.0 * tilt * pitch, -6.0 * yaw * z),
                *(-rate * roll, -rate * pitch, -2.0 * yaw * z),
            ]
        )
    bias: Array = np.full(4, 2.0 * hover - 1.0, np.float32)
    if is_recurrent:
        return through_gru([], np.float32(2.0) * weights, bias)
    return image_of([("identity", np.float32(2.0) * weights, bias)])


@dataclass(frozen=True)
class RealPx4:
    """PX4's program, ready for take-off, with the module started."""

    build: Path
    folder: Path  # of the policies
    vehicle: subprocess.Popen[bytes]
    url = f"udp:127.0.0.1:{GROUND_PORT}"

    def run(self, line: str) -> tuple[bool, str]:
        """A command of its shell: whether it went well, and what it said."""
        name, *words = line.split()
        command = [str(self.build / f"bin/px4-{name}"), "--instance", str(INSTANCE), *words]
        result = subprocess.run(command, capture_output=True, text=True, timeout=30)
        return result.returncode == 0, result.stdout + result.stderr

    def of(self, topic: str, field: str) -> str:
        """The last value of a field of a topic; empty where there is none."""
        said = self.run(f"listener {topic} -n 1")[1]
        found = re.search(rf"^\s*{field}: (\S+)", said, re.MULTILINE)
        return found[1] if found else ""

    @property
    def is_armed(self) -> bool:
        return self.of("vehicle_status", "arming_state") == "2"

    @property
    def mode(self) -> str:
        return self.of("vehicle_status", "nav_state")

    @property
    def height(self) -> float:
        return -float(self.of("vehicle_local_position", "z") or 0.0)

    @property
    def speed(self) -> float:
        return math.hypot(
            *(float(self.of("vehicle_local_position", v) or 0.0) for v in ("vx", "vy", "vz"))
        )

    @property
    def motors(self) -> list[float]:
        said = self.run("listener actuator_motors -n 1")[1].partition("control: [")[2]
        return [float(value) for value in said.partition("]")[0].split(",")[:4]]

    @property
    def status(self) -> str:
        """Of the module: its mode, a trial, its ticks."""
        return self.run("rlt_policy status")[1]

    def is_so(self, topic: str, field: str) -> bool:
        return self.of(topic, field) == "True"

    def wait_until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DOES_IT_BY_S
        while not holds():
            assert self.vehicle.poll() is None
            assert time.monotonic() < deadline, self.run("commander status")[1]
            time.sleep(0.2)

    def is_external_1(self) -> bool:
        return "External Mode 1: nav_state: 23" in self.run("commander status")[1]

    def is_landed(self) -> bool:
        return self.is_so("vehicle_land_detected", "landed")

    def take_off(self) -> None:
        self.run("commander takeoff")
        self.wait_until(lambda: self.height > 1.5 and self.mode == HOLD)
        self.wait_until(lambda: self.speed < 0.4)

    def enter_the_policy(self) -> None:
        """Asks again, as a person does: what PX4 knows of the module is up to 0.3 s old."""

        def has_entered() -> bool:
            self.run("commander mode ext1")
            return self.mode == EXTERNAL_1

        self.wait_until(has_entered)

    def land(self) -> None:
        """Asks again: sticks that have just moved would take it back."""

        def has_landed() -> bool:
            if self.mode != LAND:
                self.run("commander land")
            return not self.is_armed

        self.wait_until(has_landed)


@pytest.fixture
def px4(tmp_path: Path) -> Iterator[RealPx4]:
    build, log = Path(BUILD).resolve(), tmp_path / "px4.log"
    environment = {
        **os.environ,
        "PX4_SYS_AUTOSTART": "10040",
        "PX4_SIMULATOR": "sihsim",
        "PX4_SIM_MODEL": "sihsim_quadx",
        **{f"PX4_PARAM_{name}": str(value) for name, value in PARAMETERS.items()},
    }
    work = tmp_path / "work"
    (work / "rlt").mkdir(parents=True)
    (work / "rlt/policy.rltp").write_bytes(sih_policy())
    server = [str(build / "bin/px4"), "-i", str(INSTANCE), "-d", str(build / "etc")]
    server += ["-w", str(work)]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            server, env=environment, cwd=work, stdout=output, stderr=output
        ) as vehicle,
    ):
        try:
            deadline = time.monotonic() + STARTS_BY_S
            while "Ready for takeoff" not in log.read_text(errors="replace"):
                assert vehicle.poll() is None, log.read_text(errors="replace")
                assert time.monotonic() < deadline, log.read_text(errors="replace")
                time.sleep(0.5)
            running = RealPx4(build, work / "rlt", vehicle)
            assert running.run("rlt_policy start")[0]
            running.wait_until(running.is_external_1)
            yield running
        finally:
            vehicle.terminate()


@pytest.mark.parametrize("is_recurrent", [False, True])
def test_the_policy_flies_it(px4: RealPx4, is_recurrent: bool, tmp_path: Path) -> None:
    policy = with_wide_entry(sih_policy(is_recurrent=is_recurrent))
    run = make_policy_run(tmp_path / "run", policy)
    result = fly(Px4Request(str(run), px4.url, starts=2), print)
    assert result.all_succeeded
    assert result.kept


def test_a_stop_takes_nothing_from_px4(px4: RealPx4) -> None:
    for _ in range(2):
        px4.take_off()
        px4.enter_the_policy()
        done, said = px4.run("rlt_policy stop")
        assert not done
        assert "not while the vehicle is armed" in said
        assert px4.mode == EXTERNAL_1
        assert px4.height > 1.0
        px4.land()
        for _ in range(3):
            assert px4.run("rlt_policy stop")[0]
            assert not px4.is_external_1()
            assert px4.run("rlt_policy start")[0]
            px4.wait_until(px4.is_external_1)
        assert not px4.run("rlt_policy start")[0]
    assert px4.run("rlt_policy stop")[0]
    px4.take_off()
    px4.land()


def test_no_rotor_turns_on_the_ground(px4: RealPx4) -> None:
    px4.enter_the_policy()
    px4.run("commander arm")
    assert not px4.is_armed
    px4.run("commander arm -f")  # nevertheless
    px4.wait_until(lambda: px4.is_armed and px4.mode == HOLD)
    assert max(px4.motors) < 0.1
    px4.run("commander mode ext1")
    assert "on the ground: take off first" in px4.status
    px4.wait_until(lambda: px4.mode == HOLD)
    assert max(px4.motors) < 0.1
    assert px4.is_landed()


def test_other_rotors_are_seen_in_the_air_and_after_it(px4: RealPx4) -> None:
    px4.take_off()
    px4.enter_the_policy()
    px4.run("param set CA_ROTOR0_KM -0.05")
    assert "ready, acting" in px4.status
    # not for long: PX4's own allocation believes the parameter
    px4.run("commander mode auto:loiter")
    px4.wait_until(lambda: "rotors differ" in px4.status)
    px4.run("param set CA_ROTOR0_KM 0.05")
    px4.wait_until(lambda: "ready" in px4.status)
    px4.land()
    px4.run("param set CA_ROTOR0_KM -0.05")
    px4.wait_until(lambda: "rotors differ" in px4.status)


class RemoteControl(threading.Thread):
    """Over MAVLink, with its sticks in the middle, one that moves, and a kill switch."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.is_killing = False
        self.pitch = 1500
        self._ends = threading.Event()

    def __enter__(self) -> RemoteControl:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self.join()

    def run(self) -> None:
        mavlink = d.MAVLink(None, srcSystem=255, srcComponent=190)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as to:
            while not self._ends.wait(0.05):
                channels = [1500, self.pitch, 1500, 1500] + [1000] * 4
                channels[KILL_CHANNEL - 1] = 2000 if self.is_killing else 1000
                said = d.MAVLink_rc_channels_override_message(0, 0, *channels)
                to.sendto(said.pack(mavlink), ("127.0.0.1", GROUND_PORT))


def test_the_kill_switch_is_above_the_policy(px4: RealPx4) -> None:
    for name, value in REMOTE_CONTROL.items():
        px4.run(f"param set {name} {value}")
    with RemoteControl() as remote:
        px4.wait_until(lambda: px4.is_so("manual_control_setpoint", "valid"))
        px4.take_off()
        px4.enter_the_policy()
        remote.is_killing = True
        px4.wait_until(lambda: px4.is_so("actuator_armed", "kill"))
        px4.wait_until(lambda: px4.height < 0.5)  # it falls, whatever the policy says
        assert "ready" in px4.status
        px4.wait_until(lambda: not px4.is_armed)
        remote.is_killing = False
        px4.wait_until(lambda: not px4.is_so("actuator_armed", "kill"))
        px4.wait_until(lambda: "ready" in px4.status and "acting" not in px4.status)
        px4.take_off()
        px4.enter_the_policy()
        px4.wait_until(lambda: "acting" in px4.status)
        px4.land()


def test_moved_sticks_take_the_vehicle(px4: RealPx4) -> None:
    """As they do in PX4's own modes, where these parameters allow it."""
    for name, value in REMOTE_CONTROL.items():
        px4.run(f"param set {name} {value}")
    with RemoteControl() as remote:
        px4.wait_until(lambda: px4.is_so("manual_control_setpoint", "valid"))
        px4.take_off()
        for _ in range(2):
            px4.enter_the_policy()
            px4.wait_until(lambda: "ready, acting" in px4.status)
            for pitch in range(1500, 1100, -40):  # backwards, 1.6 of its way a second
                remote.pitch = pitch
                time.sleep(0.05)
            px4.wait_until(lambda: px4.mode == POSITION)
            remote.pitch = 1500
            px4.wait_until(lambda: px4.speed < 0.4)
        px4.land()


def test_a_fast_vehicle_is_not_handed_over(px4: RealPx4) -> None:
    """PX4 stays in Position, and the policy gets the vehicle when it is at rest again."""
    for name, value in REMOTE_CONTROL.items():
        px4.run(f"param set {name} {value}")
    with RemoteControl() as remote:
        px4.wait_until(lambda: px4.is_so("manual_control_setpoint", "valid"))
        px4.take_off()
        px4.run("commander mode posctl")
        px4.wait_until(lambda: px4.mode == POSITION)
        remote.pitch = 1750
        px4.wait_until(lambda: px4.speed > 2.0)
        assert "too fast for this policy" in px4.status
        px4.run("commander mode ext1")
        time.sleep(1.0)
        assert px4.mode == POSITION
        assert "acting" not in px4.status
        remote.pitch = 1500
        px4.wait_until(lambda: px4.speed < 0.4)
        assert "most" not in px4.run("rlt_policy offset 0.2 0 0")[1]
        assert "at most 0.30 m away" in px4.run("rlt_policy offset 2.5 -2.5 0")[1]
        px4.enter_the_policy()
        px4.wait_until(lambda: "ready, acting" in px4.status)
        px4.land()


def test_a_trial_that_ends_in_the_air(px4: RealPx4) -> None:
    """PX4 holds, and the policy before acts when its mode is entered again."""
    (px4.folder / "candidate.rltp").write_bytes(sih_policy(place=1.7))
    px4.run("param set RLT_TRIAL 40")
    assert px4.run("rlt_policy try")[0]
    assert "a policy on trial" in px4.status
    px4.take_off()
    px4.enter_the_policy()
    px4.wait_until(lambda: "ready, acting" in px4.status)
    assert "a policy on trial" in px4.status
    px4.wait_until(lambda: px4.mode == HOLD)
    assert "none on trial" in px4.status
    assert px4.is_armed
    assert px4.height > 1.0
    px4.enter_the_policy()
    px4.wait_until(lambda: "ready, acting" in px4.status)
    assert px4.height > 1.0
    px4.land()
    assert "ready" in px4.status


def test_sensors_that_stop_in_the_air(px4: RealPx4) -> None:
    """The module gives the vehicle back by itself; PX4, which cannot fly without them either,
    terminates the flight. When they are there again, the module is ready."""
    if not (px4.build / "bin/px4-failure_injection_manager").exists():
        pytest.skip("the simulator of this PX4 lets no sensor fail")
    px4.take_off()
    px4.enter_the_policy()
    px4.wait_until(lambda: "ready, acting" in px4.status)
    px4.run("failure gyro off")
    px4.wait_until(lambda: "too old" in px4.status)
    assert "acting" not in px4.status
    px4.wait_until(lambda: px4.mode != EXTERNAL_1)
    px4.wait_until(lambda: px4.is_so("actuator_armed", "termination"))
    px4.run("failure gyro ok")
    px4.wait_until(lambda: "ready" in px4.status)
    assert "acting" not in px4.status
