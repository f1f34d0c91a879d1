"""The demo's story, told with the board that this machine is, and what may go wrong in it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rltools_host.commands import demo
from rltools_host.commands import train as train_command
from rltools_host.errors import MissingToolError, UnknownNameError, UsageError, VerificationError
from rltools_host.runs.folder import RunFolder
from rltools_host.training.plan import TrainingRequest


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs go to a folder of the test."""
    original = train_command.run

    def run_here(request: TrainingRequest) -> dict[str, Any]:
        number = len(list(tmp_path.iterdir()))
        name = f"2026010{number}-000000-{request.experiment}-{request.board}-s{request.seed}"
        return original(replace(request, out=tmp_path / name))

    monkeypatch.setattr(train_command, "run", run_here)
    return tmp_path


def test_the_story_on_this_machine(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = demo.run(board="host", quick=True)
    output = capsys.readouterr().out
    headings = re.findall(r"^\[(\d)/(\d)\] (.+)$", output, re.MULTILINE)
    assert [heading[0] for heading in headings] == ["1", "2", "3", "4", "5", "6"]
    assert "8 examples give the board's bits here too" in output
    assert "100 deterministic episodes" in output
    assert "leave out --quick for a policy that works" in output
    assert output.rstrip().splitlines()[-1].endswith("report.html")
    report = Path(document["report"])
    assert report.parent.parent == runs
    assert "pendulum-td3" in report.read_text(encoding="utf-8")
    assert document["steps"] == demo.QUICK_STEPS
    assert document["state_sha256"] == RunFolder.open(document["run"]).metadata["state_sha256"]


def test_json_is_the_last_line_and_the_only_one_on_stdout(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runs.is_dir()
    demo.run(json_output=True, board="host", quick=True)
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert {"run", "report", "state_sha256", "return_mean", "success_rate", "seconds"} <= set(
        document
    )
    assert "[1/6]" in captured.err


def story(compare_host: bool = True) -> demo.Story:
    import sys

    return demo.Story(demo.load_board("qemu-cortex-m7"), None, compare_host, sys.stdout)


def test_the_host_is_compared_unless_it_is_the_board() -> None:
    headings = [step.heading for step in demo.steps_of(story())]
    assert headings[4] == "Train the same on this machine and compare"
    assert len(demo.steps_of(story(compare_host=False))) == len(headings) - 1


def test_a_board_with_other_bits_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[demo.Story] = []
    monkeypatch.setattr(demo, "tell", lambda story, _steps: told.append(story))
    monkeypatch.setattr(demo, "close", lambda _story: None)
    for board in ("qemu-cortex-m7", "host-blas", "host"):
        demo.run(board=board)
    assert [story.compare_host for story in told] == [True, False, False]


def test_equal_states_are_shown_side_by_side(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = fake_training(monkeypatch, "ab" * 32)
    demo.train_on_host(told)
    output = capsys.readouterr().out
    assert f"qemu-cortex-m7  {'ab' * 32}\n" in output
    assert f"host            {'ab' * 32}\n" in output
    assert "the same bits" in output
    assert "noise of the training screen" not in output
    assert told.document["same_bits"] is True


def test_unequal_states_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    told = fake_training(monkeypatch, "cd" * 32)
    with pytest.raises(VerificationError, match="end in different states for seed 0"):
        demo.train_on_host(told)


def fake_training(monkeypatch: pytest.MonkeyPatch, digest: str) -> demo.Story:
    def train_elsewhere(*_: Any) -> dict[str, Any]:
        print("noise of the training screen")
        return {"state_sha256": digest, "steps": 10_000, "train_s": 1.5, "run": "runs/x"}

    monkeypatch.setattr(train_command, "run", train_elsewhere)
    told = story()
    told.document = {"state_sha256": "ab" * 32, "train_s": 200.0}
    return told


def test_a_missing_tool_ends_the_demo_in_its_first_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*names: str) -> None:
        assert "qemu-system-arm" in names
        raise MissingToolError("qemu-system-arm not found: run this line, then try again: ...")

    monkeypatch.setattr(demo.tools, "require", refuse)
    with pytest.raises(MissingToolError):
        demo.run()
    assert "[1/7]" in capsys.readouterr().out


def test_boards_that_cannot_tell_the_story_are_named() -> None:
    with pytest.raises(
        UsageError, match=r"teensy41: flash that one with `.*rlt flash teensy41 pend"
    ):
        demo.run(board="teensy41")
    with pytest.raises(UnknownNameError, match='unknown board "qemu"'):
        demo.run(board="qemu")


def test_this_machine_is_not_compared_with_itself() -> None:
    with pytest.raises(UsageError, match="--compare has no effect with --board host: leave it out"):
        demo.run(board="host", compare_host=True)
