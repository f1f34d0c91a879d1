"""A network as stages: what an image can hold, and that folding and trimming change nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from rltools_host.policies.activations import ACTIVATIONS
from rltools_host.policies.importing.layers import fold
from rltools_host.policies.importing.network import (
    Activate,
    Clip,
    Dense,
    Normalize,
    Recurrent,
    Stage,
    run,
    run_in,
)
from rltools_host.policies.importing.pickles import Array

RANDOM = np.random.default_rng(7)


def dense(taken: int, given: int) -> Dense:
    return Dense(RANDOM.normal(size=(taken, given)), RANDOM.normal(size=given))


def gru(taken: int, width: int) -> Recurrent:
    return Recurrent(
        *(RANDOM.normal(size=(taken, 3 * width)), RANDOM.normal(size=3 * width)),
        *(RANDOM.normal(size=(width, 3 * width)), RANDOM.normal(size=3 * width)),
    )


def ends(width: int, low: float, high: float) -> Clip:
    return Clip(np.full(width, low), np.full(width, high))


def norm(width: int, mean: float, inverse_std: float) -> Normalize:
    return Normalize(np.full(width, mean), np.full(width, inverse_std))


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("identity", {-2.0: -2.0, 3.0: 3.0}),
        ("relu", {-2.0: 0.0, 3.0: 3.0}),
        ("gelu", {0.0: 0.0, 1.0: 0.8413447, -1.0: -0.1586553}),  # x times the normal distribution
        ("tanh", {0.5: 0.4621172}),
        ("sigmoid", {0.0: 0.5, -800.0: 0.0, np.log(3.0): 0.75}),
        ("softplus", {0.0: 0.6931472, 800.0: 800.0}),
        ("elu", {-1.0: -0.6321206, 2.0: 2.0}),
        ("silu", {0.0: 0.0, np.log(3.0): 0.75 * np.log(3.0)}),
        ("hardtanh", {-7.0: -1.0, 0.25: 0.25, 7.0: 1.0}),
    ],
)
def test_activations(name: str, at: dict[float, float]) -> None:
    for x, y in at.items():
        assert ACTIVATIONS[name].value(np.array([x])) == pytest.approx([y], abs=1e-6)


def test_stages_are_computed_one_after_the_other() -> None:
    stages = [norm(1, 1.0, 2.0), ends(1, -1.0, 3.0), Dense(np.array([[2.0, -1.0]]), np.ones(2))]
    x = np.array([[0.0], [2.0], [9.0]])
    expected = [[-1.0, 2.0], [5.0, -1.0], [7.0, -2.0]]
    np.testing.assert_array_equal(run([*stages, Activate("identity")], x), expected)
    tenth = np.array([[0.1]], np.float32)
    assert run_in(np.float32, [norm(1, 0.3, 1.0)], tenth) == np.float32(0.1) - np.float32(0.3)


# -- folding ---------------------------------------------------------------------------------------

WIDE = np.full(3, -4.0), np.full(3, 4.0)
STARTS = np.arange(200) % 40 == 0
SEVERAL_ENDS = Clip(np.array([-3.0, -1.0, -np.inf]), np.array([2.0, np.inf, np.inf]))


def computed(stages: Sequence[Stage], x: Array) -> tuple[Array, list[str]]:
    """By what an image holds, and its activations."""
    folded = fold(stages, WIDE)
    if folded.normalizer is not None:
        mean, inverse_std = folded.normalizer
        x = (x - mean) * inverse_std
    for layer, activation in folded.layers:
        x = run([layer, Activate(activation)], x, STARTS)
    return x, ["gru" if isinstance(x, Recurrent) else name for x, name in folded.layers]


@pytest.mark.parametrize(
    ("stages", "has_normalizer", "names"),
    [
        ([norm(3, 0.2, 3.0), dense(3, 2), Activate("tanh")], True, ["tanh"]),
        ([Activate("tanh"), dense(3, 2)], False, ["tanh", "identity"]),
        ([dense(3, 2), Activate("tanh"), Activate("relu")], False, ["tanh", "relu"]),
        ([ends(3, -4.0, 4.0), dense(3, 2)], False, ["identity"]),  # which nothing reaches
        ([ends(3, -3.9, 4.0), dense(3, 2)], False, ["hardtanh", "identity"]),
        ([norm(3, 1.0, 0.25), ends(3, -1.0, 1.0), dense(3, 2)], True, ["hardtanh", "identity"]),
        ([dense(3, 2), norm(2, 0.3, 2.0), Activate("tanh")], False, ["tanh"]),
        ([dense(3, 2), ends(2, -0.5, np.inf)], False, ["relu", "identity"]),
        ([SEVERAL_ENDS, dense(3, 2)], False, ["hardtanh", "relu", "identity"]),
        ([norm(3, 0.2, 3.0), gru(3, 4), gru(4, 2)], True, ["gru", "gru"]),
        (
            [dense(3, 5), Activate("relu"), gru(5, 4), norm(4, 0.1, 2.0)],
            False,
            ["relu", "gru", "identity"],
        ),
        ([ends(3, -3.0, 3.0), gru(3, 2), Activate("tanh")], False, ["hardtanh", "gru", "tanh"]),
    ],
)
def test_folding_changes_nothing(
    stages: list[Stage], has_normalizer: bool, names: list[str]
) -> None:
    x = RANDOM.uniform(-4.0, 4.0, size=(200, 3))
    found, found_names = computed(stages, x)
    np.testing.assert_allclose(found, run(stages, x, STARTS), atol=1e-12)
    assert found_names == names
    assert (fold(stages, WIDE).normalizer is not None) == has_normalizer


def test_a_clip_loses_no_digits() -> None:
    """Not even of a range of a million, which an observation without bounds has here."""
    clip = Clip(np.array([-10.0, -5.0, -np.inf]), np.array([10.0, np.inf, np.inf]))
    x = np.array([[-1e6, -1e6, -1e6], [0.1, 0.1, 0.1], [1e6, 1e6, 1e6], [3.0, -7.0, 1e18]])
    folded = fold([clip, Dense(np.eye(3), np.zeros(3))], (np.full(3, -1e6), np.full(3, 1e6)))
    y = x.astype(np.float32)
    for layer, name in folded.layers:
        assert isinstance(layer, Dense)
        y = ACTIVATIONS[name].value(y @ layer.weights.astype("f4") + layer.bias)
        y = y.astype(np.float32)
    np.testing.assert_allclose(y, np.clip(x, clip.low, clip.high), rtol=2e-7, atol=5e-7)
