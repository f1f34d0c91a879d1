"""The Crazyflie's own firmware on this machine, where RLT_CRAZYFLIE_FIRMWARE names its tree:
bitcraze/crazyflie-firmware with its submodules, after `make defconfig` and `make silentoldconfig`.

Its estimator gives the simulator's states out, its mixer has the motors, and its stock controller
flies where the policy does not; the app is compiled against its headers."""

from __future__ import annotations

import ctypes
import os
import re
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest

from firmware_frames import (
    CRAZYFLIE_MOTORS,
    Array,
    Floats,
    State,
    Target,
    crazyflie_measured,
    rotation,
    simulated_thrusts,
    wrench,
)
from firmware_vehicles import Crazyflie, build_crazyflie
from quadrotor_policies import controller
from rltools_host.drones.flight.loop import HostPilot
from rltools_host.drones.flight.simulator import Flight
from rltools_host.policies.image import parse_policy

FOLDER = os.environ.get("RLT_CRAZYFLIE_FIRMWARE", "")
pytestmark = pytest.mark.skipif(
    not FOLDER, reason="RLT_CRAZYFLIE_FIRMWARE names no tree of the Crazyflie's firmware"
)
# What crazyflie_os.c and its headers need of FreeRTOS, whose port is not for this machine.
FREERTOS = """#pragma once
#include <stdint.h>
typedef struct tskTaskControlBlock* TaskHandle_t;
TaskHandle_t xTaskGetCurrentTaskHandle(void);
unsigned long uxTaskGetStackHighWaterMark(TaskHandle_t task);
void vTaskDelay(uint32_t ticks);
#define M2T(X) ((unsigned int)(X))
"""


def listed(text: str, name: str) -> list[str]:
    """The strings of a list of bindings/setup.py; those behind a # are left out."""
    (block,) = re.findall(rf"^{name} = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    return re.findall(r"^ +['\"](.+?)['\"],", block, re.MULTILINE)


@pytest.fixture(scope="module")
def crazyflie(tmp_path_factory: pytest.TempPathFactory) -> Crazyflie:
    tree = Path(FOLDER).resolve()
    setup = (tree / "bindings/setup.py").read_text()
    sources = [tree / name for name in listed(setup, "fw_sources")]
    needed = [*sources, tree / "build/include/generated/autoconf.h"]
    if missing := [str(path) for path in needed if not path.is_file()]:
        pytest.fail(f"{missing[0]} is missing: the tree needs its submodules and its configuration")
    folder = tmp_path_factory.mktemp("crazyflie")
    for name in ("FreeRTOS.h", "task.h"):
        (folder / name).write_text(FREERTOS)
    own = [tree / name for name in listed(setup, "include")]
    own.append(tree / "vendor/CMSIS/CMSIS/DSP/PrivateInclude")
    flags = ["-DUNIT_TEST_MODE", "-D__GNUC_PYTHON__", "-DRLT_CRAZYFLIE_TREE"]
    flags.append("-fno-strict-aliasing")  # as the firmware itself
    if "CONFIG_CONTROLLER_OOT" not in needed[-1].read_text():
        flags.append("-DCONFIG_CONTROLLER_OOT=1")
    headers = [*flags, f"-I{folder}", *(f"-I{path}" for path in own)]
    library = build_crazyflie(folder, headers, sources)
    return Crazyflie.boot(library, Target((1.5, -0.75, 0.6), np.radians(70.0)))


def mix(vehicle: Crazyflie, lift_n: float, torque_nm: Array) -> Floats:
    values, motors = np.array(torque_nm, np.float32), np.empty(4, np.float32)
    vehicle.library.flight_mix(
        ctypes.c_float(lift_n),
        ctypes.c_void_p(values.ctypes.data),
        ctypes.c_void_p(motors.ctypes.data),
    )
    return motors


def test_its_mixer_turns_the_body_as_the_motors_are_said_to_be(crazyflie: Crazyflie) -> None:
    for axis, sign in product(range(3), (1.0, -1.0)):
        torque = np.zeros(3)
        torque[axis] = sign * 2e-5
        change = mix(crazyflie, 0.3, torque) - mix(crazyflie, 0.3, np.zeros(3))
        lift, *turned = wrench(CRAZYFLIE_MOTORS, change, 1.0, 1.0, 1.0)
        assert sign * turned[axis] > 4e-3
        others = [lift, *np.delete(turned, axis)]
        assert np.abs(others).max() < 1.5e-4  # the motors' 16 bits


UPWARDS = np.array([0.0, 0.0, 9.81])  # what an accelerometer feels at rest, m/s^2
CF2X = 5.0  # the airframe crazyflie-cf2x, whose rotors have no lag
HOLDS_BY = 3000  # ticks: the stock controller's integrators take their time


def flight_of(episode: int = 1, **settings: float) -> Flight:
    start = {"start_share": 1.0, "start_position": 0.4, "start_velocity": 0.5, "start_rate": 1.0}
    return Flight(3, episode, {**start, "limit_position": 3.0, "noise": 0.0, **settings})


def test_what_its_estimator_gives_out_is_what_the_policy_sees_in_the_simulator(
    crazyflie: Crazyflie,
) -> None:
    for episode in range(20):
        flight = flight_of(episode, start_tilt=180.0, start_velocity=5.0, start_rate=20.0)
        crazyflie.turn(crazyflie_measured(State.of(flight.read()), crazyflie.target))
        assert np.abs(crazyflie.observation() - flight.observe()).max() < 5e-6


def test_the_policy_flies_it_with_this_machines_thrusts(crazyflie: Crazyflie) -> None:
    flight = flight_of(start_tilt=70.0)
    pilot = HostPilot(parse_policy(controller()), in_trial=False)
    crazyflie.take_off(controller())
    for tick in range(2000):
        motors = crazyflie.tick(State.of(flight.read()))
        assert motors is not None
        thrusts = simulated_thrusts(crazyflie.motors, motors)
        ours = pilot.act(2000 * tick, 2000 * tick, crazyflie.observation()).action
        assert np.abs(thrusts - ours).max() <= 1.0 / 65535.0  # the motors' 16 bits
        assert flight.step(thrusts) is None
    assert np.linalg.norm(flight.read()["position_m"]) < 0.1


def test_the_policy_flies_by_the_firmwares_estimator(crazyflie: Crazyflie) -> None:
    """It has the gyroscope, the accelerometer and, 100 times a second, a pose from outside."""
    flight, tick_s = flight_of(start_tilt=50.0), 0.002
    crazyflie.take_off(controller())
    library, state = crazyflie.library, State.of(flight.read())
    measured = crazyflie_measured(state, crazyflie.target)
    library.flight_filter(ctypes.c_void_p(measured.ctypes.data))
    apart = 0.0
    for tick in range(2000):
        motors = crazyflie.tick(state)
        assert motors is not None
        apart = max(apart, float(np.abs(crazyflie.observation() - flight.observe()).max()))
        before = state
        assert flight.step(simulated_thrusts(crazyflie.motors, motors)) is None
        state = State.of(flight.read())
        gained = (np.asarray(state.velocity, float) - before.velocity) / tick_s
        felt = rotation(state.attitude).T @ (gained + UPWARDS)
        acceleration = felt.astype(np.float32)
        measured = crazyflie_measured(state, crazyflie.target)
        library.flight_sense(
            ctypes.c_void_p(measured.ctypes.data),
            ctypes.c_void_p(acceleration.ctypes.data),
            ctypes.c_bool(tick % 5 == 0),
        )
    library.flight_boot()
    assert apart < 0.01  # m, m/s, rad/s: it knows the way up, and which way it goes
    assert np.linalg.norm(flight.read()["position_m"]) < 0.1


def fly_stock(
    crazyflie: Crazyflie, flight: Flight, ticks: int, wiring: tuple[int, ...] = (0, 1, 2, 3)
) -> list[float]:
    """Distances from the target, until a limit is broken."""
    errors = []
    for _ in range(ticks):
        measured = crazyflie_measured(State.of(flight.read()), crazyflie.target)
        crazyflie.turn(measured)
        flies, motors = crazyflie.turn(measured)
        assert not flies
        if flight.step(simulated_thrusts(crazyflie.motors, motors[list(wiring)])) is not None:
            break
        errors.append(float(np.linalg.norm(flight.read()["position_m"])))
    return errors


def test_its_own_controller_flies_what_the_tests_take_for_a_crazyflie(crazyflie: Crazyflie) -> None:
    """So frames and motors are the firmware's: it holds with this wiring, and with no other."""
    for wiring in permutations(range(4)):
        crazyflie.library.flight_enable(False)
        crazyflie.library.flight_boot()
        flight = flight_of(start_tilt=10.0, start_rate=0.1, airframe=CF2X)
        errors = fly_stock(crazyflie, flight, HOLDS_BY if wiring == (0, 1, 2, 3) else 500, wiring)
        if wiring == (0, 1, 2, 3):
            assert len(errors) == HOLDS_BY
            assert max(errors[-500:]) < 0.1
        else:
            assert len(errors) < 500, wiring


@pytest.mark.parametrize("turn", [0, 1])
def test_its_own_controller_takes_over_in_the_air(crazyflie: Crazyflie, turn: int) -> None:
    """In either of its turns: every second one is without its attitude loops."""
    flight = flight_of(start_tilt=50.0)
    crazyflie.take_off(controller())
    thrust = 0.0
    for _ in range(300):
        motors = crazyflie.tick(State.of(flight.read()))
        assert motors is not None
        thrust = float(motors.mean())
        assert flight.step(simulated_thrusts(crazyflie.motors, motors)) is None
    assert np.linalg.norm(flight.read()["position_m"]) > 0.5
    measured = crazyflie_measured(State.of(flight.read()), crazyflie.target)
    for _ in range(turn):
        assert crazyflie.turn(measured)[0]
    crazyflie.library.flight_enable(False)
    flies, stock = crazyflie.turn(measured)
    assert not flies
    # No kick: another turn of the same measurements gives nearly the same.
    assert np.abs(crazyflie.turn(measured)[1] - stock).max() < 0.02
    assert abs(float(stock.mean()) - thrust) < 0.01  # it begins with the policy's
    errors = fly_stock(crazyflie, flight, HOLDS_BY)
    assert len(errors) == HOLDS_BY
    assert max(errors) < 1.0
    assert max(errors[-500:]) < 0.1
