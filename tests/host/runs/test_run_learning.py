"""What differs between a run's experiment and the present tree, in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fake_board import initial_state
from fake_experiment import FINGERPRINT, TENSORS, fake_experiment
from rltools_host.errors import BoardMismatchError
from rltools_host.runs.checkpoint import (
    Checkpoint,
    learning_difference,
    load_checkpoint,
    to_safetensors,
)

BEFORE = {"gravity": 10, "mass": 1.0, "actor.activations[0]": "relu", "environment.behavior": 5}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ""),
        ({"gravity": 9.8100004196}, "gravity was 10, is 9.81"),
        ({"gravity": 9.81, "environment.behavior": 6}, "gravity was 10, is 9.81"),
        ({"environment.behavior": 6}, "the environment's step has changed"),
        ({"mass": 1.0000000001}, "mass was 1.0, is 1.0000000001"),
        ({"actor.activations[0]": "tanh"}, "actor.activations[0] was relu, is tanh"),
        ({"drag": 0.5}, "drag is new, 0.5"),
        (
            {"gravity": 1, "mass": 2, "a": 1, "b": 2, "c": 3},
            "gravity was 10, is 1; mass was 1, is 2; a is new, 1; and 2 more",
        ),
    ],
)
def test_difference(change: dict[str, Any], expected: str) -> None:
    assert learning_difference(BEFORE, {**BEFORE, **change}) == expected


def test_checkpoint_of_another_tree_says_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    checkpoint = Checkpoint("fake-td3", FINGERPRINT, 1, initial_state(1), learning=BEFORE)
    path.write_bytes(to_safetensors(checkpoint, TENSORS))
    present = fake_experiment(fingerprint=7)
    object.__setattr__(present, "document", {"learning": {**BEFORE, "gravity": 9.81}})
    with pytest.raises(
        BoardMismatchError, match=r"00000007 \(gravity was 10, is 9.81\): check out"
    ):
        load_checkpoint(path, present)
