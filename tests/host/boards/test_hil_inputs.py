"""The observations that boards are compared on: the same everywhere, and what they say they are."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from rltools_host.boards.hil_inputs import make_inputs, make_not_finite
from rltools_host.build.description import Channel
from rltools_host.policies.image import Float32Array

LARGEST = float(np.finfo(np.float32).max)
SMALLEST_NORMAL = float(np.finfo(np.float32).tiny)
CHANNELS = (Channel("angle", "rad", -1.0, 1.0), Channel("speed", "rad/s", -8.0, 8.0))


def rows_of(kind: str, count: int = 1200) -> Float32Array:
    inputs = make_inputs(CHANNELS, count)
    return inputs.values[[name == kind for name in inputs.kinds]]


def test_they_are_the_same_on_every_machine() -> None:
    """Made once by this code; another version of NumPy must not change them."""
    values = make_inputs(CHANNELS, 1000).values
    assert values.dtype == np.float32
    digest = hashlib.sha256(values.astype("<f4").tobytes()).hexdigest()
    assert digest == "ee8470e4509a434745854c1b8da6b5e977c5e841936429d47cca4aac5544d5e3"


def test_each_kind_is_what_it_is_called() -> None:
    low, high = np.array([-1, -8], np.float32), np.array([1, 8], np.float32)
    values = rows_of("within its range")
    assert ((low <= values) & (values <= high)).all()
    assert ((values.max(axis=0) - values.min(axis=0)) > 0.98 * (high - low)).all()
    ends = rows_of("at the ends of its range")
    for place in range(2):
        for end in (low[place], high[place]):
            near = {float(end), *(float(np.nextafter(end, np.float32(to))) for to in (-9e9, 9e9))}
            assert near <= {*map(float, ends[:, place])}
        assert len({*map(float, ends[:, place])}) == 6
    subnormal = rows_of("subnormal")
    assert (np.abs(subnormal) < SMALLEST_NORMAL).all()
    assert (np.abs(subnormal) > 0).mean() > 0.99
    zeros = rows_of("zero")
    assert (zeros == 0).all()
    huge = rows_of("huge")
    assert (np.abs(huge) > 1e33).all()
    assert np.abs(huge).max() > LARGEST / 2
    largest = rows_of("largest")
    assert (np.abs(largest) == LARGEST).all()
    for of_either_sign in (subnormal, zeros, huge, largest, rows_of("any finite number")):
        assert 0.3 < np.signbit(of_either_sign).mean() < 0.7
    magnitudes = np.log10(np.abs(rows_of("any finite number")))
    assert magnitudes.min() < -20
    assert magnitudes.max() > 20


@pytest.mark.filterwarnings("error")
def test_a_range_may_end_with_the_largest_number() -> None:
    values = make_inputs([Channel("x", "1", -LARGEST / 2, LARGEST / 2)], 500).values
    assert np.isfinite(values).all()
    assert np.isfinite(make_inputs([Channel("x", "1", 0.0, LARGEST)], 500).values).all()


def test_what_is_not_finite_stands_in_each_place() -> None:
    inputs = make_not_finite(CHANNELS)
    assert len(inputs.kinds) == len({*inputs.kinds}) == 6
    assert inputs.values.shape == (6, 2)
    for place in range(2):
        odd = inputs.values[3 * place : 3 * place + 3]
        assert np.isnan(odd[0, place])
        assert odd[1, place] == np.inf
        assert odd[2, place] == -np.inf
        assert np.isfinite(np.delete(odd, place, axis=1)).all()
