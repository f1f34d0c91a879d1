"""What gusts leave in a log's sensors, made white, so that least squares are as sure as they say.

A gust is taken as an acceleration of the first order: it is forgotten within its duration. An
accelerometer shows it beside its white noise; a gyroscope (and a velocity) shows its integral. A
Kalman filter of that predicts each row from those before it; what it does not predict is white
where the noise is as taken, and what a controller did by then cannot be correlated with it. Sizes
and durations are the most likely ones of the differences at hand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Where the search begins, how far it goes: size over the sensor's noise (per second, for what is
# integrated), duration in seconds.
FIRST, FIRST_INTEGRATED = (0.5, 0.3), (10.0, 0.3)
SIZES, DURATIONS_S = (1e-3, 1e4), (0.02, 10.0)
WIDEST_STEP, SMALLEST_STEP = 1.4, 0.05  # of the logarithms
MOST_DOUBLINGS = 40
FORGOTTEN = 1e-9  # of a filter's answer to one row


@dataclass(frozen=True)
class Gusts:
    """In one channel."""

    size: float  # standard deviation over that of the sensor's noise, in a row
    duration_s: float
    integrated: bool  # the channel shows the integral of the gusts' acceleration

    def answer(self, step_s: float, rows: int) -> Array:
        """Of the filter: what one row is in what is not predicted of it and of later rows."""
        kept = np.exp(-step_s / self.duration_s)
        change = np.array([[1.0, step_s], [0.0, kept]])
        shown = np.array([1.0, 0.0]) if self.integrated else np.array([0.0, 1.0])
        if not self.integrated:
            change[0, :] = 0.0
        pushed = np.diag([0.0, self.size**2 * (1.0 - kept**2)])
        covariance = steady_covariance(change, shown, pushed)
        gain = change @ covariance @ shown / (shown @ covariance @ shown + 1.0)
        left = change - np.outer(gain, shown)
        states = gain[:, None]
        power = left
        while states.shape[1] < rows - 1:
            states = np.concatenate([states, power @ states], axis=1)
            power = power @ power
            if np.abs(states[:, -1]).max() < FORGOTTEN:
                break
        result: Array = np.concatenate([[1.0], -(shown @ states)])[:rows]
        return result


def steady_covariance(change: Array, shown: Array, pushed: Array) -> Array:
    """Of a Kalman filter's predicted state, where the sensor's noise is 1, by doubling (Chu, Fan
    and Lin 2005, of the discrete algebraic Riccati equation)."""
    a, g, h = change.T, np.outer(shown, shown), pushed
    for _ in range(MOST_DOUBLINGS):
        solved = np.linalg.solve(np.eye(2) + g @ h, np.concatenate([a, g], axis=1))
        b, c = solved[:, :2], solved[:, 2:]
        more = a.T @ h @ b
        a, g, h = a @ b, g + a @ c @ a.T, h + more
        if np.abs(more).max() <= 1e-12 * np.abs(h).max():
            break
    result: Array = h
    return result


def quick_length(least: int) -> int:
    """Of a Fourier transform: 2, 3 or 5 times a power of two."""
    return min(part << max(-(-least // part) - 1, 0).bit_length() for part in (2, 3, 5))


class Filter:
    """Of [channel, row] differences: what is not predicted of each row by those before it."""

    def __init__(self, gusts: list[Gusts], step_s: float, rows: int) -> None:
        self.gusts = gusts
        answers = [each.answer(step_s, rows) for each in gusts]
        self._length = quick_length(rows + max(map(len, answers)) - 1)
        self._spectra = np.stack([np.fft.rfft(answer, self._length) for answer in answers])
        integrated = np.array([each.integrated for each in gusts])
        starts = self._filtered(np.ones((len(gusts), rows)) * integrated[:, None])
        lengths = np.linalg.norm(starts, axis=1, keepdims=True)
        self._starts = starts / np.where(integrated[:, None], lengths, 1.0)

    def _filtered(self, values: Array) -> Array:
        result = np.zeros_like(values)
        there = values.any(axis=1)
        spectrum = np.fft.rfft(values[there], self._length, axis=1) * self._spectra[there]
        result[there] = np.fft.irfft(spectrum, self._length, axis=1)[:, : values.shape[1]]
        return result

    def __call__(self, values: Array) -> Array:
        """The start of what is integrated is free."""
        filtered = self._filtered(values)
        result: Array = filtered - (filtered * self._starts).sum(axis=1, keepdims=True) * (
            self._starts
        )
        return result


def most_likely(
    differences: Array, integrated: list[bool], step_s: float, duration_s: float
) -> Filter:
    """The filter of the gusts of which [channel, row] differences are the most likely ones, where
    those of what is integrated have a duration that is given."""
    gusts = [
        most_likely_gusts(values, each, step_s, duration_s if each else None)
        for values, each in zip(differences, integrated, strict=True)
    ]
    return Filter(gusts, step_s, differences.shape[1])


def most_likely_gusts(
    values: Array, integrated: bool, step_s: float, duration_s: float | None = None
) -> Gusts:
    """By a search along the logarithms of size and, if it is not given, duration."""
    lowest, highest = np.log([SIZES, DURATIONS_S]).T

    def of(place: Array) -> Gusts:
        size, duration = np.exp(place)
        return Gusts(float(size), float(duration), integrated)

    def unlikely(place: Array) -> float:
        left = Filter([of(place)], step_s, len(values))(values[None])
        return float((left**2).sum())

    best = np.log(FIRST_INTEGRATED if integrated else FIRST)
    directions = np.array([(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)])
    if duration_s is not None:
        best[1], directions = np.log(duration_s), directions[:2]
    least, step = unlikely(best), WIDEST_STEP
    while step > SMALLEST_STEP:
        moved = False
        for direction in directions:
            trial = best + step * direction
            if np.any(trial < lowest) or np.any(trial > highest):
                continue
            value = unlikely(trial)
            if value < least:
                best, least, moved = trial, value, True
        if not moved:
            step *= 0.5
    return of(best)
