"""What the rotors did, given what they were told: a function of the commands and of parameters.

A rotor's speed w (a fraction of its greatest) follows its set point by w' = (set - w) / lag, with
one lag for faster and one for slower. Its thrust, as a part of the greatest, is
c0 + c1 w + (1 - c0 - c1) w^2. The commands arrive `latency_s` late and hold until the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SHORTEST_LAG_S = 1e-7  # in place of none


@dataclass(frozen=True)
class RotorParameters:
    lag_up_s: float
    lag_down_s: float
    latency_s: float
    shape_0: float = 0.0  # c0
    shape_1: float = 0.0  # c1

    @property
    def shape_2(self) -> float:
        return 1.0 - self.shape_0 - self.shape_1


@dataclass(frozen=True)
class RotorMotion:
    """Of each rotor: arrays [row, 4], and [row - 1, 4] from row to row; parts of the greatest."""

    thrust: Array  # at the rows' times
    impulse: Array  # its integral from row to row, s


def set_points(fractions: Array, p: RotorParameters) -> Array:
    """The rotor speeds at which thrust is this fraction of the greatest."""
    over = np.maximum(fractions - p.shape_0, 0.0)
    root = np.sqrt(np.maximum(p.shape_1**2 + 4.0 * p.shape_2 * over, 0.0))
    return 2.0 * over / np.maximum(p.shape_1 + root, 1e-9)


def motions(
    time_s: Array, commands: Array, are_thrust: bool, sets: Sequence[RotorParameters]
) -> list[RotorMotion]:
    """For each set of parameters; the rotors begin at rest with the first command."""
    dt = np.diff(time_s)
    first, second = [], []  # set points in the two parts of each step: the old, the new command
    before = np.empty((len(sets), len(dt)))
    for index, p in enumerate(sets):
        targets = set_points(commands, p) if are_thrust else commands
        arriving = time_s - p.latency_s
        command = np.searchsorted(time_s, arriving + 1e-9, side="right") - 1
        ended = np.searchsorted(time_s, arriving[1:] - 1e-9, side="right") - 1
        old = np.clip(command[:-1], 0, len(time_s) - 1)
        new = np.clip(ended, 0, len(time_s) - 1)
        first.append(targets[old])
        second.append(targets[new])
        switch = time_s[new] + p.latency_s - time_s[:-1]
        before[index] = np.where(new > old, np.clip(switch, 0.0, dt), dt)
    a, b = np.stack(first, axis=1), np.stack(second, axis=1)  # [step, set, 4]
    lags = np.array(
        [[max(p.lag_up_s, SHORTEST_LAG_S), max(p.lag_down_s, SHORTEST_LAG_S)] for p in sets]
    )
    parts = np.stack([before.T, dt[:, None] - before.T])  # [part, step, set]
    kept = np.exp(-parts[..., None] / lags)  # [part, step, set, up or down]
    up_kept, down_kept = kept[0, :, :, :1], kept[0, :, :, 1:]
    up_kept_2, down_kept_2 = kept[1, :, :, :1], kept[1, :, :, 1:]
    start = np.empty((len(dt) + 1, len(sets), 4))
    middle = np.empty((len(dt), len(sets), 4))
    w = a[0].copy()
    for k in range(len(dt)):
        start[k] = w
        off = w - a[k]
        w = a[k] + off * np.where(off < 0.0, up_kept[k], down_kept[k])
        middle[k] = w
        off = w - b[k]
        w = b[k] + off * np.where(off < 0.0, up_kept_2[k], down_kept_2[k])
    start[-1] = w
    result = []
    for index, p in enumerate(sets):
        w_all = start[:, index]
        impulse = part_impulse(w_all[:-1], a[:, index], parts[0, :, index], p) + part_impulse(
            middle[:, index], b[:, index], parts[1, :, index], p
        )
        result.append(RotorMotion(shape(w_all, p), impulse))
    return result


def shape(w: Array, p: RotorParameters) -> Array:
    return p.shape_0 + p.shape_1 * w + p.shape_2 * w**2


def part_impulse(w: Array, target: Array, duration: Array, p: RotorParameters) -> Array:
    """The integral of the thrust while a speed approaches a set point; in closed form."""
    lag = np.where(w < target, max(p.lag_up_s, SHORTEST_LAG_S), max(p.lag_down_s, SHORTEST_LAG_S))
    h = duration[:, None]
    off = w - target
    once = off * lag * -np.expm1(-h / lag)
    twice = off**2 * lag / 2.0 * -np.expm1(-2.0 * h / lag)
    of_w = target * h + once
    of_w2 = target**2 * h + 2.0 * target * once + twice
    result: Array = p.shape_0 * h + p.shape_1 * of_w + p.shape_2 * of_w2
    return result
