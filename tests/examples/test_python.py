"""examples/python does what its README says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rltools_host.tree import TREE

FOLDER = TREE.root / "examples" / "python"


def run_example(name: str, *arguments: str | Path) -> str:
    command = [sys.executable, str(FOLDER / name), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The run of train_and_fly.py, and what it printed."""
    run = tmp_path_factory.mktemp("python") / "run"
    return run, run_example("train_and_fly.py", run)


def mean_return(output: str) -> float:
    match = re.search(r"mean return (-\d+\.\d) of \d+ episodes\n$", output)
    assert match, output
    return float(match[1])


def test_train_and_fly_learns(trained: tuple[Path, str]) -> None:
    run, output = trained
    assert "finished 10,000 steps" in output
    assert "Policy(pendulum-td3, step 10000, 3-64-64-1, Pendulum-v1)" in output
    assert mean_return(output) > -350  # random actions earn -1,200
    assert (run / "run.json").is_file()


def test_own_loop_has_as_good_a_policy(trained: tuple[Path, str]) -> None:
    assert mean_return(run_example("own_loop.py", trained[0])) > -350


def test_gymnasium_make_goes_through_an_episode() -> None:
    output = run_example("gymnasium_make.py")
    said, _, names = output.partition("; there are ")
    assert said == "200 steps with Box(-2.0, 2.0, (1,), float32)"
    assert {"Ant-v4", "Pendulum-v1"} <= set(names.split(", "))
