"""A checkpoint of another tree is refused with what differs in the experiment."""

from __future__ import annotations

from pathlib import Path

import pytest

from fake_board import initial_state
from fake_experiment import FINGERPRINT, TENSORS, fake_experiment
from rltools_host.errors import BoardMismatchError
from rltools_host.runs.checkpoint import (
    Checkpoint,
    load_checkpoint,
    to_safetensors,
)

BEFORE = {"gravity": 10, "mass": 1.0, "actor.activations[0]": "relu", "environment.behavior": 5}


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
