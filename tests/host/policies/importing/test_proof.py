"""How far an image was proven, in words and bounds; what a file's actions are taken for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rltools_host.build.description import Channel
from rltools_host.errors import DamagedFileError, RefusedError
from rltools_host.policies.contract import Contract
from rltools_host.policies.image_writing import sampled
from rltools_host.policies.importing.network import (
    Activate,
    Clip,
    Dense,
    ForeignPolicy,
    Normalize,
    Recurrent,
    Stage,
    run,
)
from rltools_host.policies.importing.proof import (
    Proof,
    checked,
    image_of,
    prove,
    to_normalized,
    without_idle_end,
)
from rltools_host.policies.importing.reading import arrays_in_npz
from rltools_host.policies.importing.run import recorded
from rltools_host.policies.importing.target import Target

X = Channel("x", "m", -2.0, 2.0)
PUSH, PULL = Channel("push", "N", -1.0, 1.0), Channel("pull", "N", 0.0, 4.0)
GEAR = Channel("gear", "low|middle|high", 0, 2)
ALL_ONE, UNLIKE, CHOICES = (
    Contract((X,), actions, 1000) for actions in ((PUSH,), (PULL,), (GEAR,))
)
PROOF = Proof("the formulas", 1000, 1e-6, 1e-8)


# -- words and bounds ------------------------------------------------------------------------------


def test_the_limit_is_rounding_where_that_is_more() -> None:
    assert PROOF.limit == 1e-6
    assert replace(PROOF, rounding=0.25e-6).limit == 1e-6
    assert replace(PROOF, rounding=1e-6).limit == 4e-6
    assert checked(PROOF) is PROOF
    assert checked(replace(PROOF, difference=4e-6, rounding=1e-6)).difference == 4e-6
    for wrong, words in (
        (
            replace(PROOF, difference=1.1e-6),
            "other actions than the formulas, by up to 1.1e-06 of ",
        ),
        (replace(PROOF, difference=float("nan")), "nan of half their range and not 1e-06"),
        (
            replace(PROOF, difference=1.0, same_choices=0),
            "other outputs than the formulas, by up to 1.0e+",
        ),
    ):
        with pytest.raises(RefusedError) as caught:
            checked(wrong)
        assert words in str(caught.value)


def remembering(outputs: int, **changes: float) -> list[Stage]:
    """A GRU of two units between dense layers."""
    draws = np.random.default_rng(4)
    shapes = {"weights": (2, 6), "bias": (6,), "hidden_weights": (2, 6), "hidden_bias": (6,)}
    parts = {name: draws.normal(size=shape) for name, shape in shapes.items()}
    for name, change in changes.items():
        parts[name] += change
    first, last = Dense(np.array([[0.5, -0.4]]), np.zeros(2)), draws.normal(size=(2, outputs))
    return [first, Recurrent(**parts), Dense(last, np.zeros(outputs)), Activate("tanh")]


@pytest.mark.parametrize(("contract", "outputs"), [(ALL_ONE, 1), (CHOICES, 3)])
def test_a_recurrent_policy_is_proven_over_episodes(contract: Contract, outputs: int) -> None:
    stages = remembering(outputs)
    image = image_of(stages, Target(contract), policy(outputs), "remembering", "0" * 64)
    assert image.recurrence is not None
    assert image.recurrence.trained_interval_us == contract.step_interval_us
    assert len(image.examples) == 16
    proof = prove(image, stages)
    assert (proof.count, proof.episodes) == (1000, 10)
    assert proof.same_choices == (1000 if outputs > 1 else None)
    for part in ("hidden_weights", "hidden_bias", "weights"):
        with pytest.raises(RefusedError, match="gives other"):
            prove(image, remembering(outputs, **{part: 1e-4}))
    # Of the first steps alone the hidden weights mean nothing.
    single = run(remembering(outputs, hidden_weights=1e-4), sampled(contract, 9).astype(float))
    np.testing.assert_allclose(image.output(sampled(contract, 9)), single, atol=1e-6)


# -- what its actions are --------------------------------------------------------------------------


def policy(outputs: int = 1, taken: int = 1, **changes: Any) -> ForeignPolicy:
    dense = Dense(np.ones((taken, outputs)), np.zeros(outputs))
    return replace(ForeignPolicy("a library", (dense,)), **changes)


def bounds(low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    return np.array([low]), np.array([high])


@pytest.mark.parametrize(
    ("given", "contract", "actions", "scaling"),
    [
        (policy(is_normalized=True), UNLIKE, None, None),
        (policy(is_normalized=True), UNLIKE, "scaled", None),
        (policy(is_normalized=False), UNLIKE, None, (2.0, 0.5)),
        (policy(), ALL_ONE, None, (0.0, 1.0)),
        (policy(), UNLIKE, "same", (2.0, 0.5)),
        (policy(), UNLIKE, "scaled", None),
        (policy(action_bounds=bounds(0.0, 4.0)), UNLIKE, "same", (2.0, 0.5)),
        (policy(action_bounds=bounds(-3.0, 5.0)), UNLIKE, "scaled", (1.0, 0.25)),
        (policy(is_normalized=True, action_bounds=bounds(-3.0, 5.0)), UNLIKE, "scaled", None),
        (policy(outputs=3), CHOICES, None, None),
    ],
)
def test_what_takes_an_output_to_the_range(
    given: ForeignPolicy, contract: Contract, actions: str | None, scaling: Any
) -> None:
    found = to_normalized(given, contract, actions)
    if scaling is None:
        assert found == []
        return
    (stage,) = found
    assert isinstance(stage, Normalize)
    assert (stage.mean.item(), stage.inverse_std.item()) == scaling


def test_an_end_that_clips_counts_where_the_largest_is_chosen() -> None:
    stages = [*policy().stages, Clip(np.full(1, -1.0), np.full(1, 1.0))]
    assert len(without_idle_end(stages, ALL_ONE)) == 1
    assert len(without_idle_end(stages, CHOICES)) == 2


# -- recorded --------------------------------------------------------------------------------------


def test_recorded_arrays(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, observations=np.ones((2, 1)), actions=np.zeros((2, 1)))
    observations, actions, starts = recorded(arrays_in_npz(file), file, ALL_ONE)
    assert (observations.tolist(), actions.tolist()) == ([[1.0], [1.0]], [[0.0], [0.0]])
    assert starts is None
    one, many = np.ones((1, 1)), np.ones((2, 1))
    for arrays, sentence in (
        ({"observations": one}, "actions must be (count, 1), and it has no such array"),
        ({"observations": np.ones((0, 1)), "actions": one}, "and it has (0, 1)"),
        ({"observations": one * 1e39, "actions": one}, "a number of observations is infinite or"),
        ({"observations": many, "actions": one}, "has 2 observations and 1 actions"),
    ):
        np.savez(file, **arrays)  # type: ignore[arg-type]
        with pytest.raises(DamagedFileError) as caught:
            recorded(arrays_in_npz(file), file, ALL_ONE)
        assert sentence in str(caught.value)
