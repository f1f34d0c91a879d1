"""The example of an environment of one's own: it is learned, and its policy written as C."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from rltools_host.environments.server_start import open_task
from rltools_host.environments.task import TaskRequest
from rltools_host.tree import TREE

FILE = TREE.root / "examples/gymnasium_task/servo.py"
EXAMPLE = runpy.run_path(str(FILE), run_name="example")


@pytest.mark.all
def test_the_servo_is_learned(tmp_path: Path) -> None:
    """Without a torque the return is about -80; 20,000 steps reach -9."""
    assert EXAMPLE["train"](3000, tmp_path) > -25.0
    header = (tmp_path / "servo.h").read_text()
    for word in ("angle_error", "rad/s", "N*m"):
        assert word in header


def test_it_is_the_same_task_on_the_command_line() -> None:
    server = open_task(TaskRequest(f"gym:{FILE}:Servo", channels=EXAMPLE["CHANNELS"]))
    assert server.task.experiment == "gym-servo-sac"
    assert server.task.step_interval_us == 20_000
    server.close()
