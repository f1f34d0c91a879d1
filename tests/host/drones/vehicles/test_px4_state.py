"""What PX4 tells, in the contract's frames; its simulator in hardware, as ours."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

import px4_vehicle
from quadrotor_policies import constant_policy
from rltools_host.drones.flight.result import predictor
from rltools_host.drones.flight.simulator import flight_library
from rltools_host.drones.vehicles.px4_state import (
    SIH_PARAMETERS,
    SIH_RATE,
    SIH_TABLE,
    FloatArray,
    Mode,
    Sample,
    TargetFrame,
    enu_flu,
    motor_signals,
    settings_of_sih,
)
from rltools_host.policies.image import parse_policy

ENU_OF_NED = np.array(((0, 1, 0), (1, 0, 0), (0, 0, -1.0)))
FLU_OF_FRD = np.diag((1.0, -1.0, -1.0))


def matrix(q: FloatArray) -> FloatArray:
    """Of a rotation, by its definition: v' = q v q*."""
    w, x, y, z = q
    columns = []
    for v in np.eye(3):
        t = 2.0 * np.cross((x, y, z), v)
        columns.append(v + w * t + np.cross((x, y, z), t))
    return np.array(columns).T


def rotations(count: int) -> FloatArray:
    values = np.random.default_rng(1).normal(size=(count, 4))
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True))


def test_an_attitude_turns_the_body_into_the_world_in_both_pairs_of_frames() -> None:
    for q in rotations(200):
        np.testing.assert_allclose(
            matrix(enu_flu(q)), ENU_OF_NED @ matrix(q) @ FLU_OF_FRD, atol=1e-12
        )


def test_a_row_is_what_the_policy_sees() -> None:
    random = np.random.default_rng(2)
    for q in rotations(200):
        yaw = random.uniform(-4.0, 4.0)
        target, position, velocity, rates = random.normal(size=(4, 3))
        frame = TargetFrame(tuple(target), yaw)
        row = frame.row(Sample(1.0, tuple(position), tuple(velocity), tuple(q), tuple(rates)))
        cosine, sine = math.cos(yaw), math.sin(yaw)
        from_enu = np.array(((cosine, sine, 0), (-sine, cosine, 0), (0, 0, 1)))
        world = from_enu @ ENU_OF_NED
        np.testing.assert_allclose(row[:3], world @ (position - target), atol=1e-12)
        np.testing.assert_allclose(row[3:6], world @ velocity, atol=1e-12)
        np.testing.assert_allclose(matrix(row[6:10]), world @ matrix(q) @ FLU_OF_FRD, atol=1e-12)
        assert row[6] >= 0.0
        np.testing.assert_allclose(row[10:], FLU_OF_FRD @ rates)
        np.testing.assert_allclose(frame.world(frame.vector(velocity)), velocity, atol=1e-12)


# -- PX4's simulator in hardware -------------------------------------------------------------------

SIH = {**px4_vehicle.SIH, SIH_RATE: 500}
TIMES = np.arange(0.0, 1.2, 0.02)


def test_the_parameters_that_sih_has_at_first_are_the_published_table() -> None:
    assert set(SIH) == set(SIH_PARAMETERS)
    table = float(flight_library().tables.index(SIH_TABLE) + 1)
    image = parse_policy(constant_policy(0.5, 0.48, 0.52, 0.47))
    first = np.array((0.5, -0.3, 0.2, 1, -2, 0, 0.8, 0.0, 0.6, 0.0, 0.5, -1, 0.3), float)
    rows = [
        predictor(image, settings)(first, TIMES)
        for settings in (settings_of_sih(SIH), {"airframe": table})
    ]
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-4)
    assert settings_of_sih({name: SIH[name] for name in list(SIH)[1:]}) == {"airframe": table}


def test_sih_takes_an_output_into_its_rotors_once() -> None:
    for rate, factor in ((250, 1.0), (500, 1.0), (1000, 2.0), (2000, 4.0)):
        settings = settings_of_sih({**SIH, SIH_RATE: rate})
        assert settings["lag_up_s"] == settings["lag_down_s"] == pytest.approx(0.05 * factor)


def test_a_motor_gets_the_signal_that_px4_makes_of_a_thrust() -> None:
    """`factor` u^2 + (1 - `factor`) u is the thrust again; none is nothing but the thrust."""
    thrusts = np.linspace(0.0, 1.0, 101)
    for factor in (0.1, 0.3, 1.0):
        u = motor_signals(thrusts, factor)
        np.testing.assert_allclose(factor * u**2 + (1.0 - factor) * u, thrusts, atol=1e-15)
    for factor in (0.0, -1.0, 2.0):  # as PX4 takes them
        assert (motor_signals(thrusts, factor) == thrusts).all()


def test_signals_are_thrusts_of_the_vehicle_that_flies() -> None:
    """SIH's thrust is proportional to the signal; with a signal that is another number, it is not
    the policy's. Where PX4's curve is the rotors' own, it is."""
    first = np.array((0.5, -0.3, 0.2, 1, -2, 1, 0.8, 0.0, 0.6, 0.0, 0.5, -1, 0.3), float)

    def flown(factor: float | None, thrusts: tuple[float, ...], **settings: float) -> FloatArray:
        signals = None if factor is None else partial(motor_signals, factor=factor)
        image = parse_policy(constant_policy(*thrusts))
        return predictor(image, {**settings_of_sih(SIH), **settings}, signals)(first, TIMES[:30])

    wanted = (0.5, 0.48, 0.53, 0.47)
    np.testing.assert_array_equal(flown(0.0, wanted), flown(None, wanted))
    signals = motor_signals(np.array(wanted, np.float32), 0.3)
    np.testing.assert_allclose(flown(0.3, wanted), flown(None, tuple(signals)), atol=1e-5)
    assert np.abs(flown(0.3, wanted) - flown(None, wanted)).max() > 0.1
    curve = {"thrust_1": 3.5, "thrust_2": 1.5}
    np.testing.assert_allclose(flown(0.3, wanted, **curve), flown(None, wanted, **curve), atol=1e-5)


# -- flight modes ----------------------------------------------------------------------------------


def test_a_mode_is_two_bytes_of_the_heartbeat() -> None:
    """custom_mode: main in bits 16 to 23, sub in bits 24 to 31."""
    assert Mode.of(0x06_04_00_00) == Mode(4, 6)
    assert Mode.of(0xFF_FE_12_34) == Mode(0xFE, 0xFF)
    for mode, name in (
        *((Mode(1), "Manual"), (Mode(4, 2), "Takeoff"), (Mode(4, 3), "Hold"), (Mode(4, 6), "Land")),
        *((Mode(4, 5), "Return"), (Mode(4, 20), "Descend"), (Mode(6), "Offboard")),
        *((Mode(4, 11), "External 1"), (Mode(4, 18), "External 8"), (Mode(4, 19), "4.19")),
        *((Mode(10), "Termination"), (Mode(12, 3), "12.3")),
    ):
        assert str(mode) == name
    piloted = [main for main in range(13) if Mode(main).is_piloted]
    assert piloted == [1, 2, 3, 5, 7, 11]
