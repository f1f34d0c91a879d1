"""The quadrotor's dynamics against SciPy's: the same equations, written with vectors and matrices
here, and integrated by the Runge-Kutta method of order 8 (DOP853) in double."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from rltools_host.build import cmake
from rltools_host.build.boards import load_board
from rltools_host.tree import TREE

AIRFRAME = TREE.root / "lib/rltools/include/rltools/rl/environments/quadrotor/airframe.h"
NAMES = re.findall(r"^  X\(float, (\w+), ", AIRFRAME.read_text(), re.MULTILINE)
GRAVITY = np.array([0.0, 0.0, -9.81])
# Rotors 0 front right, 1 rear right, 2 rear left, 3 front left, in the body's axes: x forward, y
# left. 0 and 2 turn counter-clockwise, seen from above, which turns the body the other way.
FORWARD = np.array([1.0, -1.0, -1.0, 1.0])
LEFT = np.array([-1.0, -1.0, 1.0, 1.0])
TURN = np.array([-1.0, 1.0, -1.0, 1.0])
Array = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def program() -> Path:
    """quadrotor_flights.cpp, beside this file."""
    return cmake.build_targets(load_board("host"), ["quadrotor_flights"]) / "quadrotor_flights"


@dataclass(frozen=True)
class Flight:
    """Position, velocity, attitude (w first), rates, rotor speeds, charge: 18 numbers."""

    airframe: dict[str, float]
    step_s: float
    start: Array
    force: Array
    torque: Array
    fractions: Array  # of the greatest thrust (step, rotor)


def cf21() -> dict[str, float]:
    """Numbers like those of a Crazyflie 2.1, each different, every effect there."""
    values = {
        "mass_kg": 0.0319, "inertia_x": 16.8, "inertia_y": 14.2, "inertia_z": 29.8,
        "rotor_x_m": 0.023, "rotor_y_m": 0.027, "thrust_0": 0.001, "thrust_1": -0.0125,
        "thrust_2": 0.1325, "torque_0": 0.01, "torque_1": 0.03, "torque_2": 0.79,
        "lag_up_s": 0.06, "lag_down_s": 0.11, "drag_x": 0.0147, "drag_y": 0.0213,
        "drag_z": 0.0128, "drag_rotation": 0.003, "sag_load": 0.0, "sag_per_min": 0.0,
    }  # fmt: skip
    assert list(values) == NAMES
    return values


def a_flight(seed: int, step_s: float, steps: int, hold: int, **changed: float) -> Flight:
    """From a random state; each command is held for a number of steps."""
    random = np.random.default_rng(seed)
    attitude = random.normal(size=4)
    start = np.concatenate(
        [
            random.normal(size=3),
            2 * random.normal(size=3),
            attitude / np.linalg.norm(attitude),
            8 * random.normal(size=3),
            random.uniform(0.2, 0.9, 4),
            [0.7],
        ]
    )
    commands = random.uniform(0.0, 1.0, (-(-steps // hold), 4))
    commands[0, :2] = 0.0, 1.0
    return Flight(
        {**cf21(), **changed},
        step_s,
        start,
        0.03 * random.normal(size=3),
        1e-4 * random.normal(size=3),
        np.repeat(commands, hold, axis=0)[:steps],
    )


def flown(program: Path, flight: Flight) -> Array:
    """States after each step, the core's."""
    numbers = [[*flight.airframe.values(), flight.step_s], flight.start, flight.force]
    numbers += [flight.torque, flight.fractions.ravel()]
    written = np.concatenate([np.asarray(part, dtype=np.float64) for part in numbers]).tobytes()
    command = [str(program), str(len(flight.fractions))]
    result = subprocess.run(command, input=written, capture_output=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return np.frombuffer(result.stdout).reshape(len(flight.fractions), 18)


def setpoints(a: dict[str, float], fractions: Array) -> Array:
    """The rotor speeds at which the thrusts are what was commanded: the greater root."""
    curve = np.array([a["thrust_2"], a["thrust_1"], a["thrust_0"]])
    greatest, least = np.polyval(curve, 1.0), a["thrust_0"]
    speeds = [
        max(np.roots(curve - [0, 0, part * greatest])) if part * greatest > least else 0.0
        for part in fractions
    ]
    return np.array(speeds)


def derivative(flight: Flight, commanded: Array, state: Array) -> Array:
    a = flight.airframe
    velocity, attitude, rate, speed = state[3:6], state[6:10], state[10:13], state[13:17]
    thrusts = a["thrust_0"] + a["thrust_1"] * speed + a["thrust_2"] * speed**2
    torques = 1e-3 * (a["torque_0"] + a["torque_1"] * speed + a["torque_2"] * speed**2)
    inertia = 1e-6 * np.array([a["inertia_x"], a["inertia_y"], a["inertia_z"]])
    into_world = Rotation.from_quat(np.roll(attitude, -1)).as_matrix()
    drag = np.diag([a["drag_x"], a["drag_y"], a["drag_z"]])
    force = into_world @ (np.array([0, 0, thrusts.sum()]) - drag @ into_world.T @ velocity)
    positions = np.stack([FORWARD * a["rotor_x_m"], LEFT * a["rotor_y_m"], np.zeros(4)], axis=1)
    lifts = np.stack([np.zeros(4), np.zeros(4), thrusts], axis=1)
    torque = np.cross(positions, lifts).sum(axis=0) + np.array([0, 0, TURN @ torques])
    torque += flight.torque - 1e-3 * a["drag_rotation"] * rate - np.cross(rate, inertia * rate)
    w, vector = attitude[0], attitude[1:]
    turning = 0.5 * np.concatenate([[-vector @ rate], w * rate + np.cross(vector, rate)])
    lag = np.where(commanded > speed, a["lag_up_s"], a["lag_down_s"])
    return np.concatenate(
        [
            velocity,
            GRAVITY + (force + flight.force) / a["mass_kg"],
            turning,
            torque / inertia,
            (commanded - speed) / lag,
            [np.mean(speed**2) / 60],
        ]
    )


def integrated(flight: Flight, hold: int) -> Array:
    """States after each `hold` steps: SciPy's. The sag is that at the begin of each of them."""
    state, states = flight.start, []
    a = flight.airframe
    for fractions in flight.fractions[::hold]:
        load = np.mean(state[13:17] ** 2)
        voltage = 1 - a["sag_load"] * load - a["sag_per_min"] * state[17]
        commanded = voltage * setpoints(a, fractions)
        solution = solve_ivp(
            lambda _, y, commanded=commanded: derivative(flight, commanded, y),
            (0, hold * flight.step_s),
            state,
            method="DOP853",
            rtol=1e-12,
            atol=1e-12,
        )
        assert solution.success
        state = solution.y[:, -1].copy()
        states.append(state)
    return np.array(states)


def largest_difference(actual: Array, expected: Array) -> float:
    """Relative beyond 1; the charge apart, which is drawn by the load at a step's begin."""
    assert actual.shape == expected.shape
    assert np.isfinite(actual).all()
    difference = np.abs(actual - expected) / np.maximum(1.0, np.abs(expected))
    return float(difference[:, :17].max())


@pytest.mark.parametrize("seed", range(4))
def test_half_a_second_of_flight_agrees_to_1e_8(program: Path, seed: int) -> None:
    flight = a_flight(seed, 5e-4, 1000, 20)
    actual, expected = flown(program, flight)[19::20], integrated(flight, 20)
    assert np.ptp(expected[:, :3]) > 0.5
    assert np.abs(expected[:, 10:13]).max() > 5
    assert largest_difference(actual, expected) < 1e-8
    assert np.abs(actual[:, 17] - expected[:, 17]).max() < 1e-5


def test_the_training_step_of_5_ms_stays_within_1e_4(program: Path) -> None:
    flight = a_flight(7, 5e-3, 200, 2)
    assert largest_difference(flown(program, flight)[1::2], integrated(flight, 2)) < 1e-4


def test_a_sagging_battery_agrees(program: Path) -> None:
    flight = a_flight(5, 1e-3, 150, 1, sag_load=0.12, sag_per_min=0.2)
    actual, expected = flown(program, flight), integrated(flight, 1)
    without = flown(program, a_flight(5, 1e-3, 150, 1))
    assert np.abs(actual - without).max() > 1e-2
    assert largest_difference(actual, expected) < 1e-6
