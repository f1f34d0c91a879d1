"""Training with the real programs of this machine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rltools_host.build import experiments, firmware
from rltools_host.build.boards import load_board
from rltools_host.commands import train as train_command
from rltools_host.errors import (
    Interrupted,
)
from rltools_host.runs.folder import RunFolder
from run_folders import document_of
from training_bench import interrupt_at, metrics
from training_calls import train_here

# -- the real programs of this machine -------------------------------------------------------------


def train_pendulum(out: Path | None = None, **options: Any) -> dict[str, Any]:
    return train_here(None if "resume" in options else "pendulum-td3", "host", out=out, **options)


def test_host_program_pauses_and_resumes_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paused on the way to a total that it does not reach before, however late the pause comes. The
    best policy is that of both sessions, though the second board does not know of the first."""
    settings = ["eval_freq=100", "report_every=10"]
    with monkeypatch.context() as patch:
        patch.setattr(train_command, "make_screen", interrupt_at(200))
        with pytest.raises(Interrupted, match="checkpoint saved"):
            train_pendulum(tmp_path / "run", seed=7, steps=10_000_000, settings=settings)
    paused = document_of(RunFolder.open(tmp_path / "run"))
    assert paused["checkpoint_step"] >= 200
    steps = paused["checkpoint_step"] // 100 * 100 + 400
    resumed = train_pendulum(resume=str(tmp_path / "run"), steps=steps)
    whole = train_pendulum(tmp_path / "whole", seed=7, steps=steps, settings=settings)
    assert paused["state_sha256"] != whole["state_sha256"]
    assert resumed["state_sha256"] == whole["state_sha256"]
    assert resumed["return_mean"] == whole["return_mean"]
    assert resumed["best"] == whole["best"]
    assert paused["best"] is not None
    saved = RunFolder.open(tmp_path / "run").save_path
    names = {path.name for path in saved.iterdir()}
    assert names == {"best.rltp", "checkpoint.safetensors", "policy.rltp"}
    rows = [(r["step"], r["return_mean"]) for r in metrics(tmp_path / "run", "evaluation")]
    assert rows == [
        (r["step"], r["return_mean"]) for r in metrics(tmp_path / "whole", "evaluation")
    ]
    assert [row[0] for row in rows] == list(range(100, steps + 1, 100))


@pytest.mark.all  # of every day, for a Gymnasium task: tests/host/environments
def test_any_number_of_threads_trains_to_the_same_bits(tmp_path: Path) -> None:
    """Of SAC: test_training_on_threads.cpp."""

    def train(board: str, threads: int | None) -> dict[str, Any]:
        out = tmp_path / f"{board}-{threads}"
        return train_here(
            "pendulum-td3",
            board,
            seed=3,
            steps=300,
            settings=["eval_freq=100", "n_eval_episodes=2"],
            out=out,
            threads=threads,
        )

    expected = train("host", None)
    for threads in (None, 1, 3):
        run = train("host-threads", threads)
        assert run["board"] == "host-threads"
        assert run["state_sha256"] == expected["state_sha256"]
        assert run["return_mean"] == expected["return_mean"]
        (session,) = document_of(RunFolder.open(tmp_path / f"host-threads-{threads}"))["sessions"]
        assert session.get("threads") == threads


@pytest.mark.parametrize("count", ["0", "two", "99999999999999999999", "2"])
def test_a_number_of_threads_that_a_device_cannot_have(count: str) -> None:
    program = firmware.build_firmware(load_board("host"), "pendulum-td3")
    ended = subprocess.run(
        [program], env={"RLT_THREADS": count}, stdin=subprocess.DEVNULL, capture_output=True
    )
    assert ended.returncode == 2
    assert ended.stderr.decode() == (
        f"RLT_THREADS={count}: device Host cannot compute with so many threads\n"
    )


def test_host_program_refuses_what_the_host_refuses(tmp_path: Path) -> None:
    """The board's own bounds agree with the description's: each bound is accepted."""
    description = experiments.describe("pendulum-td3")
    for end in ("minimum", "maximum"):
        settings = [
            f"{entry.name}={getattr(entry, end)!r}"
            for entry in description.hyperparameters
            if entry.name not in ("seed", "steps", "learning_starts")
            and not entry.name.endswith(("eval_freq", "eval_episodes"))
        ]
        path = tmp_path / end
        try:
            train_pendulum(path, steps=20, settings=settings)
        finally:
            shutil.rmtree(path, ignore_errors=True)
