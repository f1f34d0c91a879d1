"""A run that a fault has stopped: with what it may go on."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest

from fake_experiment import fake_experiment
from rltools_host.build.boards import load_board
from rltools_host.build.description import StateTensor
from rltools_host.errors import BrokenEnvironmentError, TrainingFaultError
from rltools_host.runs.checkpoint import Checkpoint
from rltools_host.training.faults import checkpoint_to_put, smaller_steps
from rltools_host.training.plan import Plan

TENSORS = (
    StateTensor("teacher/learning_rate", "F32", (1, 1), 0),
    StateTensor("actor/weights", "F32", (1, 1), 4),
    StateTensor("learning_rate", "F32", (1, 1), 8),
)

STUDENT = "student_learning_rate"


def plan(**values: Any) -> Plan:
    description = replace(fake_experiment(), tensors=TENSORS)
    made = Plan(description, load_board("host"), {"seed": 1, "steps": 1000, **values})
    payload = struct.pack("<3f", 0.25, 7.0, 1.0)
    made.checkpoint = Checkpoint(description.name, description.fingerprint, 100, payload)
    return made


def test_a_step_size_in_the_state_changes_with_its_hyperparameter() -> None:
    run = plan(learning_rate=0.001)
    assert checkpoint_to_put(run) is run.checkpoint
    run.changed = {"target_kl": (0.01, 0.005)}
    assert checkpoint_to_put(run) is run.checkpoint
    run.changed = {"learning_rate": (0.001, 0.0005)}
    put = checkpoint_to_put(run)
    assert put is not None
    assert struct.unpack("<3f", put.payload) == (0.125, 7.0, 0.5)


@pytest.mark.parametrize(
    ("values", "step", "smaller"),
    [
        ({"learning_rate": 3e-4}, 10, {"learning_rate": 1.5e-4}),
        ({"learning_rate": 3e-4, "adaptive_lr": 0}, 10, {"learning_rate": 1.5e-4}),
        ({"learning_rate": 3e-4, "adaptive_lr": 1, "target_kl": 0.01}, 10, {"target_kl": 0.005}),
        ({"target_kl": 0.01, "adaptive_lr": 1, STUDENT: 0.004, "teacher_steps": 9}, 10,
         {STUDENT: 0.002}),
        ({"target_kl": 0.01, "adaptive_lr": 1, STUDENT: 0.004, "teacher_steps": 20}, 10,
         {"target_kl": 0.005}),
    ],
)  # fmt: skip
def test_the_steps_that_are_made_smaller_are_those_of_what_learns(
    values: dict[str, Any], step: int, smaller: dict[str, float]
) -> None:
    assert smaller_steps(plan(**values), TrainingFaultError("a loss"), step) == smaller
    assert smaller_steps(plan(**values), BrokenEnvironmentError("a reward"), step) == {}
