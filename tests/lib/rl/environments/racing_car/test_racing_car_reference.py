"""The core's racing car against other computations in double: its motion against the equations of
Kong et al. 2015 in steps of 0.1 ms, its rays against the pieces of the borders one by one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from rltools_host.environments.library import SAME_STEP, Batch, load_library
from rltools_host.tree import TREE

Array = npt.NDArray[Any]
TRACK = TREE.root / "lib/rltools/include/rltools/rl/environments/racing_car/track.h"
RAYS_DEG = (90, 60, 35, 20, 10, 0, -10, -20, -35, -60, -90)
FRONT_M, REAR_M, GRIP_M_S2, STEERING_RAD_S = 0.16, 0.17, 6.0, 3.2
COUNT = 400


def center_line() -> Array:
    """(gates, 2), as the header has it."""
    table = TRACK.read_text().split("kCenterLine_m[kGates][2] = {")[1].split("};")[0]
    return np.array(re.findall(r"\{([-\d.]+), ([-\d.]+)\}", table), float)


def borders() -> list[Array]:
    center = center_line()
    along = np.roll(center, -1, 0) - np.roll(center, 1, 0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    to_left = np.column_stack([-along[:, 1], along[:, 0]])
    return [center + 0.7 * to_left, center - 0.7 * to_left]


def batch_of(dtype: type[np.floating[Any]]) -> Batch:
    """Cars anywhere on the track, in any direction, with any speed and steering angle."""
    random = np.random.default_rng(2)
    batch = Batch(load_library("RacingCar", double=dtype is np.float64), COUNT)
    batch.reset(1)
    angle = random.uniform(-np.pi, np.pi, COUNT)
    fields = {
        "ahead_x": np.cos(angle),
        "ahead_y": np.sin(angle),
        "speed_m_s": random.uniform(0, 6, COUNT),
        "steering_rad": random.uniform(-0.4, 0.4, COUNT),
    }
    for name, values in fields.items():
        batch.states[name] = values.astype(dtype)
    batch.actions[:] = (random.uniform(-1, 1, (COUNT, 2)) * (0.4, 5)).astype(np.float32)
    return batch


def column(batch: Batch, name: str) -> Array:
    values: Array = batch.states[name].astype(np.float64)
    return values


def integrated(batch: Batch, steps: int = 500) -> tuple[Array, Array, Array, Array, Array]:
    """x, y, psi, v, delta 50 ms later, by many short steps of Euler's method at their middles."""
    x, y, v, delta = (column(batch, name) for name in ("x_m", "y_m", "speed_m_s", "steering_rad"))
    psi = np.arctan2(column(batch, "ahead_y"), column(batch, "ahead_x"))
    target, acceleration = batch.actions.astype(float).T
    h = 0.05 / steps
    for _ in range(steps):
        delta += np.clip(target - delta, -STEERING_RAD_S * h, STEERING_RAD_S * h)
        v = np.clip(v + h * acceleration, 0, 6)
        beta = np.arctan(REAR_M / (FRONT_M + REAR_M) * np.tan(delta))
        with np.errstate(divide="ignore"):
            most = np.arcsin(np.minimum(REAR_M * GRIP_M_S2 / v**2, 1))
        beta = np.clip(beta, -most, most)
        half = 0.5 * h * v * np.sin(beta) / REAR_M
        x += h * v * np.cos(psi + half + beta)
        y += h * v * np.sin(psi + half + beta)
        psi += 2 * half
    return x, y, psi, v, delta


def apart(batch: Batch, expected: Sequence[Array]) -> Array:
    """(cars, 3): meters, radians, and of speed and steering angle the larger."""
    x, y, psi, v, delta = expected
    ahead = column(batch, "ahead_x") + 1j * column(batch, "ahead_y")
    assert np.max(np.abs(np.abs(ahead) - 1)) < 1e-6
    return np.column_stack(
        [
            np.hypot(column(batch, "x_m") - x, column(batch, "y_m") - y),
            np.abs(np.angle(ahead * np.exp(-1j * psi))),
            np.maximum(
                abs(column(batch, "speed_m_s") - v), abs(column(batch, "steering_rad") - delta)
            ),
        ]
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_motion_is_the_bicycle_s(dtype: type[np.floating[Any]]) -> None:
    batch = batch_of(dtype)
    batch.actions[::2, 0] = batch.states["steering_rad"][::2]  # every other one has steered
    expected = integrated(batch)
    batch.step()
    found = apart(batch, expected)
    assert (found[::2].max(0) < (1e-4, 5e-5, 2e-6)).all()
    # The servo stops, and the tyres begin to slip, within one of the five parts of a step, which
    # the core takes as even.
    assert (found[1::2].max(0) < (5e-4, 1e-3, 2e-6)).all()
    slips = expected[3] ** 2 * np.abs(np.tan(expected[4])) / (FRONT_M + REAR_M) > GRIP_M_S2
    assert 0.2 < slips.mean() < 0.8


def crossings(point: Array, direction: Array) -> float:
    """The nearest crossing with a piece of a border, each by its 2 x 2 equations."""
    nearest = 10.0
    for border in borders():
        for begin, end in zip(border, np.roll(border, -1, 0), strict=True):
            matrix = np.column_stack([direction, begin - end])
            distance, share = np.linalg.solve(matrix, begin - point)
            if distance >= 0 and 0 <= share <= 1:
                nearest = min(nearest, float(distance))
    return nearest


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-4)])
def test_rays_end_at_the_nearest_border(dtype: type[np.floating[Any]], tolerance: float) -> None:
    batch = batch_of(dtype)
    batch.observe()
    wrong = []
    for index in range(0, COUNT, 8):
        point = np.array([column(batch, name)[index] for name in ("x_m", "y_m")])
        psi = np.arctan2(column(batch, "ahead_y")[index], column(batch, "ahead_x")[index])
        for ray, degrees in enumerate(RAYS_DEG):
            angle = psi + np.deg2rad(degrees)
            expected = crossings(point, np.array([np.cos(angle), np.sin(angle)]))
            wrong.append(abs(float(batch.observations[index, ray]) - expected))
    assert max(wrong) <= tolerance


def test_cars_in_lanes_have_the_bits_of_cars_one_by_one() -> None:
    """A compiler that contracts products in vectors alone, as GCC 12 does, is noticed here."""
    library = load_library("RacingCar")
    random = np.random.default_rng(3)
    actions = (random.uniform(-1, 1, (60, 16, 2)) * (0.4, 5)).astype(np.float32)

    def played(count: int) -> Array:
        batch = Batch(library, count, autoreset=SAME_STEP)
        batch.reset(4)
        rows = []
        for chosen in actions[:, :count]:
            batch.actions[:] = chosen
            batch.step()
            rows.append(np.column_stack([batch.observations, batch.rewards, batch.terminated]))
        return np.stack(rows)

    together = played(16)
    assert together[..., -1].sum() > 5  # new episodes too
    np.testing.assert_array_equal(played(3), together[:, :3])
