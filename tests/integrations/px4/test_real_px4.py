"""PX4's own program for a PC with the module, where RLT_PX4_SITL names its build folder: a build of
px4_sitl_nolockstep with EXTERNAL_MODULES_LOCATION (integrations/px4/README.md)."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from policy_run import make_policy_run
from quadrotor_policies import Array, image_of
from rltools_host.flight.px4_flight import Px4Request, fly

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
}
STARTS_BY_S = 60.0


def sih_policy() -> bytes:
    """A linear controller of the SIH quadrotor (1 kg, rotors of 5 N, 0.2 m from the axes)."""
    hover, gravity = 0.4905, 9.81
    place, speed, tilt, rate = 1.6, 2.2, 40.0, 9.0  # m/s^2 a metre ..., rad/s^2 a radian ...
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
    return image_of([("identity", np.float32(2.0) * weights, bias)])


@pytest.fixture
def px4(tmp_path: Path) -> Iterator[str]:
    """The address of a vehicle that is ready for take-off."""
    build, log = Path(BUILD).resolve(), tmp_path / "px4.log"
    environment = {
        **os.environ,
        "PX4_SYS_AUTOSTART": "10040",
        "PX4_SIMULATOR": "sihsim",
        "PX4_SIM_MODEL": "sihsim_quadx",
        **{f"PX4_PARAM_{name}": str(value) for name, value in PARAMETERS.items()},
    }
    work = tmp_path / "work"
    work.mkdir()
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
            start = [str(build / "bin/px4-rlt_policy"), "--instance", str(INSTANCE), "start"]
            subprocess.run(start, check=True, timeout=30)
            yield f"udp:127.0.0.1:{GROUND_PORT}"
        finally:
            vehicle.terminate()


def test_the_policy_flies_it(px4: str, tmp_path: Path) -> None:
    run = make_policy_run(tmp_path / "run", sih_policy())
    result = fly(Px4Request(str(run), px4, starts=2), print)
    assert result.all_succeeded
    assert result.kept
