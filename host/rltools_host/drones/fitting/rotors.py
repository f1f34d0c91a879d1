"""The motion of the rotors as a function of the commands and of parameters.

A rotor's speed w (a fraction of its maximum) follows its set point by w' = (set - w) / lag, with
one lag for faster and one for slower. Its thrust, as a fraction of the maximum, is c0 + c1 w + (1 -
c0 - c1) w^2. The commands arrive `latency_s` late and hold until the next one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

SHORTEST_LAG_S = 1e-7  # in place of none
CLOSE = 1e-13  # of rotor speeds: the same


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
    """The motion of the rotors: arrays [row, 4], and [row - 1, 4] from row to row; fractions of the
    maximum."""

    thrust: Array  # at the rows' times
    impulse: Array  # its integral from row to row, s
    speed: Array  # at the rows' times


def set_points(fractions: Array, p: RotorParameters) -> Array:
    """Return the rotor speeds at which thrust is this fraction of the maximum."""
    over = np.maximum(fractions - p.shape_0, 0.0)
    root = np.sqrt(np.maximum(p.shape_1**2 + 4.0 * p.shape_2 * over, 0.0))
    return 2.0 * over / np.maximum(p.shape_1 + root, 1e-9)


def motions(
    time_s: Array, commands: Array, are_thrust: bool, sets: Sequence[RotorParameters]
) -> list[RotorMotion]:
    """Return the motion for each set of parameters; the rotors begin at rest with the first
    command."""
    dt = np.diff(time_s)
    result: list[RotorMotion] = []
    rising: Flags | None = None
    for p in sets:
        targets = set_points(commands, p) if are_thrust else commands
        arriving = time_s - p.latency_s
        command = np.searchsorted(time_s, arriving + 1e-9, side="right") - 1
        ended = np.searchsorted(time_s, arriving[1:] - 1e-9, side="right") - 1
        old = np.maximum(command[:-1], 0)
        new = np.maximum(ended, 0)
        switch = time_s[new] + p.latency_s - time_s[:-1]
        before = np.where(new > old, np.clip(switch, 0.0, dt), dt)
        # Each step in two parts: with the old, with the new command.
        durations = np.stack([before, dt - before], axis=1).ravel()
        target = np.stack([targets[old], targets[new]], axis=1).reshape(-1, 4)
        lags = np.maximum([p.lag_up_s, p.lag_down_s], SHORTEST_LAG_S)
        gone = -np.expm1(-durations[:, None] / lags)
        w, rising = speeds(target[0], target, 1.0 - gone, rising)
        impulse = part_impulse(w[:-1], target, durations[:, None], gone, lags, p)
        impulse = impulse.reshape(-1, 2, 4).sum(axis=1)
        result.append(RotorMotion(shape(w[::2], p), impulse, w[::2]))
    return result


def measured_motion(time_s: Array, measured: Array, p: RotorParameters) -> RotorMotion:
    """Return the motion of rotors whose speeds were measured [row, 4], as fractions; between rows
    they lie on a line."""
    w = delayed(measured, time_s, p.latency_s)
    dt = np.diff(time_s)[:, None]
    sums = w[1:] + w[:-1]
    squares = (sums**2 - w[1:] * w[:-1]) / 3.0
    impulse = dt * (p.shape_0 + 0.5 * p.shape_1 * sums + p.shape_2 * squares)
    return RotorMotion(shape(w, p), impulse, w)


def delayed(values: Array, time_s: Array, delay_s: float) -> Array:
    """Return [row, n] values as they are after a delay, by a Fourier transform: all frequencies
    keep their size.

    Values on lines between the rows have less noise in the middle than at the rows, so that a fit
    would find a delay there. Where steps differ, the slope leads to the row's own time.
    """
    count = len(values)
    rows = delay_s * (count - 1) / float(time_s[-1] - time_s[0])
    turns = np.exp(-1j * np.pi * rows / count * np.arange(count + 1))
    mirrored = np.concatenate([values, values[::-1]])  # whose ends meet without a jump
    spectrum = np.fft.rfft(mirrored, axis=0) * turns[:, None]
    result: Array = np.fft.irfft(spectrum, len(mirrored), axis=0)[:count]
    index = np.arange(count)
    off = np.interp(time_s - delay_s, time_s, index) - np.clip(index - rows, 0, count - 1)
    result += off[:, None] * np.gradient(result, axis=0)
    return result


def speeds(first: Array, target: Array, kept: Array, rising: Flags | None) -> tuple[Array, Flags]:
    """Return rotor speeds before and after each part of time, [part + 1, 4], and where they rise.

    In a part a speed approaches its target; the fraction of the distance that is `kept`, [part, up
    or down], depends on the direction. With known directions all speeds are linear in the first
    ones. The assumed directions are compared with those that follow, until they are the same: after
    at most as many times as there are parts, since each time at least one more of the first parts
    is right. `rising` has the directions to begin with.
    """
    count = len(target)
    length = math.isqrt(count - 1) + 1
    pieces = -(-count // length)

    def in_pieces(values: Array) -> Array:  # [place in its piece, piece, ...], the last one padded
        padding = np.repeat(values[-1:], pieces * length - count, axis=0)
        whole = np.concatenate([values, padding]).reshape(pieces, length, -1)
        return np.ascontiguousarray(whole.transpose(1, 0, 2))

    targets, up, down = in_pieces(target), in_pieces(kept[:, :1]), in_pieces(kept[:, 1:])
    if rising is None or rising.shape != targets.shape:
        rising = targets >= in_pieces(np.concatenate([target[:1], target[:-1]]))
    before, last = np.empty_like(targets), np.full_like(targets, np.inf)
    while True:
        before[0], after = chained(first, np.where(rising, up, down), targets)
        before[1:] = after[:-1]
        assumed, rising = rising, before < targets
        # The same speeds, too: beside a target rounding may change directions. And not once more
        # where something is no number.
        if np.array_equal(assumed, rising) or not np.abs(before - last).max() >= CLOSE:
            rows = after.transpose(1, 0, 2).reshape(-1, after.shape[2])[:count]
            return np.concatenate([first[None], rows]), rising
        last = before.copy()


def chained(first: Array, kept: Array, targets: Array) -> tuple[Array, Array]:
    """Return speeds before each piece and after each of its parts; the pieces are computed side by
    side."""
    after = targets * (1.0 - kept)
    for k in range(1, len(after)):
        after[k] += kept[k] * after[k - 1]
    whole: Array = np.multiply.accumulate(kept, axis=0)
    starts: Array = np.empty(targets.shape[1:])
    starts[0] = first
    for piece in range(1, len(starts)):
        starts[piece] = after[-1, piece - 1] + whole[-1, piece - 1] * starts[piece - 1]
    return starts, after + whole * starts


def shape(w: Array, p: RotorParameters) -> Array:
    return p.shape_0 + p.shape_1 * w + p.shape_2 * w**2


def part_impulse(
    w: Array, target: Array, h: Array, gone: Array, lags: Array, p: RotorParameters
) -> Array:
    """Return the integral of the thrust while a speed approaches a set point, in closed form.
    `gone` is the fraction of the distance that is covered, [part, up or down]."""
    rises = w < target
    lag = np.where(rises, lags[0], lags[1])
    passed = np.where(rises, gone[:, :1], gone[:, 1:])
    off = w - target
    once = off * lag * passed
    twice = 0.5 * off * once * (2.0 - passed)
    of_w = target * h + once
    of_w2 = target * (of_w + once) + twice
    result: Array = p.shape_0 * h + p.shape_1 * of_w + p.shape_2 * of_w2
    return result
