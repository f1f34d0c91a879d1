"""Sizes of an experiment by `--set`: the name that says them, the header, and runs of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rltools_host.build import experiments, sizes
from rltools_host.build.experiments import generated_header, is_generated, sized
from rltools_host.errors import UsageError
from rltools_host.training.hyperparameters import of_experiment
from rltools_host.tree import MARKER, TREE, VARIABLE


def test_the_name_says_every_size() -> None:
    given = {"batch_size": (64,), "hidden": (32, 16), "episode_steps": (50,)}
    name = sizes.name_of("pendulum-td3", given)
    assert name == "pendulum-td3-h32x16-b64-e50"
    assert sizes.split(name) == ("pendulum-td3", given)
    assert sizes.split("pendulum-td3-b64-h32x16") is None, "each experiment has one name"
    for name in ("pendulum-td3", "pendulum-td3-b", "pendulum-td3-b06", "-b64", "r2-d2"):
        assert sizes.split(name) is None


def test_words_of_sizes_become_the_experiments() -> None:
    settings = ("gamma=0.9", "hidden=[32, 32]", "buffer_size=5e3")
    expected = ("pendulum-td3-h32x32-c5000", ("gamma=0.9",))
    assert of_experiment("pendulum-td3", settings) == expected
    assert of_experiment("pendulum-td3", ("gamma=0.9",)) == ("pendulum-td3", ("gamma=0.9",))
    assert of_experiment("pendulum-td3-h8", ("batch_size=10",))[0] == "pendulum-td3-h8-b10"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["hidden=64,64", "hidden=32"], "hidden is given twice: give it once"),
        (["hidden=0"], "hidden=0: give numbers from 1 to 10,000,000"),
        (["n_steps=64"], "n_steps=64: pendulum-td3 has no n_steps"),
        (
            ["hidden=100,100,100,100", "batch_size=100"],
            "would have more than 31 characters: give fewer sizes, or write an experiment",
        ),
    ],
)
def test_sizes_that_there_cannot_be(settings: list[str], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        of_experiment("pendulum-td3", settings)
    assert sentence in str(refused.value)
    with pytest.raises(UsageError, match="pendulum-td3-h8 has it: give it once"):
        sized("pendulum-td3-h8", {"hidden": (16,)})


def test_the_header_is_there_once_it_is_asked_for(project: Path) -> None:
    """Of an experiment that there is, and with what builds read in the header of that one."""
    name = "ant-ppo-h32x32-b200"
    assert is_generated(name)
    header = generated_header(name)
    assert header.is_relative_to(project)
    text = header.read_text()
    assert '#include "ant_ppo.h"' in text
    assert "struct AntPpoH32x32B200 : WithHidden<AntPpo, 32, 32> {" in text
    assert "// Requires: mujoco\n" in text
    rows = int(text.partition("kTileRows = ")[2].partition(";")[0])
    assert 200 % rows == 0
    written = header.stat().st_mtime_ns
    experiments.require_experiment(name)
    assert header.stat().st_mtime_ns == written, "what was compiled stays good"
    with pytest.raises(UsageError, match='unknown experiment "pendulum-td4-h8"'):
        experiments.require_experiment("pendulum-td4-h8")


def test_sizes_that_another_experiment_states(project: Path) -> None:
    """Those of the header that is included, which the experiment derives from; what a build reads
    in it stays its own."""
    assert of_experiment("pendulum-ppo-masked", ["n_steps=64"])[0] == "pendulum-ppo-masked-r64"
    name = "quadrotor-wind-ppo-b96-r8"
    assert is_generated(name)
    text = generated_header(name).read_text()
    assert "kRolloutSteps = 8;" in text
    assert text.count("// Requires: hosted\n") == 1
    assert text.count("// Gate:") == 1
    folder = project / "experiments"
    folder.mkdir(exist_ok=True)
    (folder / "cart.h").write_text('#include "acrobot_ppo.h"\nstruct Cart : AcrobotPpo {};\n')
    (folder / "cart_two.h").write_text('#include "cart.h"\nstruct CartTwo : Cart {};\n')
    assert is_generated("cart-two-r16"), "the tree's, by way of one of the project's"
    with pytest.raises(UsageError, match="cart-two has no buffer_size"):
        of_experiment("cart-two", ["buffer_size=100"])


@pytest.mark.all
def test_trials_with_sizes_are_runs_that_are_replayed(tmp_path: Path) -> None:
    """A search of widths, its best run evaluated, resumed without its header, and trained anew by
    the line that the search gives: the same state."""
    (tmp_path / MARKER).touch()
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    environment |= {"PYTHONPATH": str(TREE.root / "host"), "TERM": "dumb"}

    def rlt(*words: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "rltools_host", *words, "--json"]
        result = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert result.returncode == 0, (words, result.stdout, result.stderr)
        document: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
        return document

    fixed = ("--steps", "120", "--set", "n_eval_episodes=1", "--set", "batch_size=20")
    search = ("--search", "hidden=8,16x8", "--trials", "2", "--jobs", "1", "--no-prune")
    found = rlt("tune", "pendulum-td3", "--board", "host", *fixed, *search, "--name", "search")
    assert [trial["state"] for trial in found["trials"]] == ["complete", "complete"]
    (setting,) = found["best"]["settings"]
    folder = str(Path(found["best"]["run"]) / "s0")
    run = json.loads((Path(folder) / "run.json").read_text())
    widths = setting.removeprefix("hidden=").replace(",", "x")
    assert run["experiment"] == f"pendulum-td3-h{widths}-b20"
    assert found["command"].endswith(f"--set {setting}")
    for header in (tmp_path / "build" / "gymnasium_tasks" / "experiments").iterdir():
        header.unlink()
    assert rlt("evaluate", folder, "--episodes", "2")["episodes"] == 2
    again = rlt(
        *("train", "pendulum-td3", "--board", "host", *fixed, "--set", setting, "--out", "again")
    )
    assert again["state_sha256"] == run["state_sha256"]
    on = rlt("train", "--board", "host", "--resume", "again", "--steps", "130")
    assert (on["experiment"], on["step"]) == (run["experiment"], 130)
