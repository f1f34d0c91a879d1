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


def test_what_is_gone_is_named() -> None:
    now = {name: value for name, value in BEFORE.items() if name != "gravity"}
    assert learning_difference(BEFORE, now) == "gravity was 10, is gone"
    assert learning_difference({}, now) == learning_difference(BEFORE, {}) == ""


OLD = {"environment.latency": 0, "environment.behavior": 5, "environment": "Quadrotor", "size": 2}
TODAY = {**OLD, "environment.latency": 2, "environment.behavior": 6, "environment.probes": 10}
NOT_COVERED = (
    "the run's fingerprint does not cover the effects of the environment's settings, "
    "which may have changed since"
)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (OLD, TODAY, NOT_COVERED),
        (OLD, {**TODAY, "environment.behavior": 5, "environment.latency": 0}, NOT_COVERED),
        (OLD, {**TODAY, "size": 3}, "size was 2, is 3"),
        (OLD, {**TODAY, "environment": "Kite"}, "environment was Quadrotor, is Kite"),
        (TODAY, {**TODAY, "environment.latency": 1}, "environment.latency was 2, is 1"),
        (TODAY, {**TODAY, "environment.probes": 9}, "environment.probes was 10, is 9"),
        (TODAY, OLD, "environment.latency was 2, is 0; environment.probes was 10, is gone"),
    ],
)
def test_a_run_of_before_the_probes_is_said_to_be_one(
    before: dict[str, Any], now: dict[str, Any], expected: str
) -> None:
    assert learning_difference(before, now) == expected


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
