"""+ frames: what a drone does whose rotors stand on the axes of its inertia, seen by a policy that
takes the direction between two arms for forward."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from quadrotor_policies import controller
from rltools_host.drones.flight.simulator import Flight, Rule, fly
from rltools_host.policies.image import parse_policy

TICKS = 25
ARM_M, THRUST_N, TORQUE_N_M = 0.1, 3.0, 0.03  # of a rotor: its distances from the axes, at most
INERTIA = 1e-6 * np.array([3000.0, 5000.0, 7000.0])  # about the arms, and z
DRONE = {
    "airframe": 0,
    "start_share": 0,
    "limit_rate": 100,
    "mass_kg": 0.5,
    **{f"inertia_{axis}": 1e6 * value for axis, value in zip("xyz", INERTIA, strict=True)},
    "rotor_x_m": ARM_M,
    "rotor_y_m": ARM_M,
    "lag_up_s": 0,
    "lag_down_s": 0,
    "thrust_2": THRUST_N,
    "torque_2": 1e3 * TORQUE_N_M,
}
THRUSTS = np.array([0.3, 0.5, 0.45, 0.35])
ATTITUDE = np.array([0.8, 0.3, -0.4, 0.3]) / np.linalg.norm([0.8, 0.3, -0.4, 0.3])
RATE = np.array([4.0, -6.0, 3.0])


def flown(plus_frame: int) -> Any:
    """Attitude and angular velocity after TICKS ticks with these thrusts."""
    flight = Flight(0, 0, {**DRONE, "plus_frame": plus_frame})
    flight.step(THRUSTS)  # the rotors are without lag
    flight.set_state([*np.zeros(6), *ATTITUDE, *RATE])
    for _ in range(TICKS):
        assert flight.step(THRUSTS) is None
    reading = flight.read()
    return np.concatenate([reading["attitude"], reading["angular_velocity_rad_s"]])


def rigid_body() -> Any:
    """The same, in double precision, about the axes between the arms: with products of inertia."""
    turn = np.sqrt(0.5) * np.array([[1, -1, 0], [1, 1, 0], [0, 0, np.sqrt(2)]])
    inertia = turn @ np.diag(INERTIA) @ turn.T  # the arm ahead lies to the left of forward
    x, y = ARM_M * np.array([[1, -1, -1, 1], [-1, -1, 1, 1]])
    forces = THRUST_N * THRUSTS
    reaction = TORQUE_N_M * (THRUSTS @ [-1, 1, -1, 1])
    torque = np.array([y @ forces, -x @ forces, reaction])

    def derivative(motion: Any) -> Any:
        w, v, rate = motion[0], motion[1:4], motion[4:]
        turning = np.linalg.solve(inertia, torque - np.cross(rate, inertia @ rate))
        return np.concatenate([[-0.5 * v @ rate], 0.5 * (w * rate + np.cross(v, rate)), turning])

    motion, step = np.concatenate([ATTITUDE, RATE]), 0.001
    for _ in range(2 * TICKS):
        first = derivative(motion)
        second = derivative(motion + step / 2 * first)
        third = derivative(motion + step / 2 * second)
        last = derivative(motion + step * third)
        motion = motion + step / 6 * (first + 2 * second + 2 * third + last)
    return motion


def test_it_turns_as_a_rigid_body_with_products_of_inertia() -> None:
    expected = rigid_body()
    np.testing.assert_allclose(flown(1), expected, atol=1e-4)
    assert np.abs(flown(0) - expected).max() > 0.2


# All that a flight has: what a tick does to an X frame it does to a + frame, by other code.
ROUGH = {
    "airframe": 1,
    "start_share": 1,
    "start_tilt": 30,
    "start_velocity": 0.5,
    "latency_ms": 6,
    "loss": 0.1,
    "noise": 0.5,
    "gust_m_s2": 0.2,
    "wind_m_s2": 0.3,
    "push_m_s": 0.2,
    "task": 1,
    "target_m": 0.3,
    "target_s": 1,
    "rotor_spread": 0.02,
    "drag_rotation": 0.01,
}


def test_the_bits_are_those_of_other_compilers() -> None:
    """GCC 14.2's; GCC 12 joined products and sums to vfmaddsub, against -ffp-contract=off."""
    rule = Rule(seconds=4, last_seconds=1, radius_m=2)
    pilot = parse_policy(controller())
    outcomes, _ = fly(pilot, rule, {**ROUGH, "plus_frame": 1}, 7, count=20, threads=1)
    assert hashlib.sha256(outcomes.tobytes()).hexdigest()[:12] == "3d125383b8f6"


def test_where_inertias_are_equal_it_is_an_x_frame() -> None:
    rule = Rule(seconds=4, last_seconds=1, radius_m=2)
    pilot = parse_policy(controller())
    of_x, of_plus = (
        fly(pilot, rule, {**ROUGH, "plus_frame": plus}, 7, count=20, threads=2)[0]
        for plus in (0, 1)
    )
    assert of_plus["cause"].tolist() == of_x["cause"].tolist() == [0] * 20
    assert len({*of_x["latency"]}) > 2
    np.testing.assert_allclose(of_plus["error_m"], of_x["error_m"], atol=1e-4)
    np.testing.assert_allclose(of_plus["episode_return"], of_x["episode_return"], rtol=5e-5)
    assert of_plus["error_m"].tobytes() != of_x["error_m"].tobytes()
