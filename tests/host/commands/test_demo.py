"""The demo, with the board that this machine is, and with an emulated one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rltools_host.commands import demo
from rltools_host.runs.folder import RunFolder
from rltools_host.training.plan import TrainingRequest
from run_folders import document_of


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs go to a folder of the test."""
    original = demo.train

    def train_here(request: TrainingRequest, *screen: Any) -> dict[str, Any]:
        if request.resume is None:
            number = len(list(tmp_path.iterdir()))
            name = f"2026010{number}-000000-{request.experiment}-{request.board}-s{request.seed}"
            request = replace(request, out=tmp_path / name)
        return original(request, *screen)

    monkeypatch.setattr(demo, "train", train_here)
    return tmp_path


def test_the_story_on_this_machine(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The object of --json is the last line, and the only one of stdout."""
    demo.run(json_output=True, board="host", quick=True)
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert "8 examples give the board's bits here too" in captured.err
    report = Path(document["report"])
    assert report.parent.parent == runs
    assert "pendulum-td3" in report.read_text(encoding="utf-8")
    assert document["steps"] == demo.QUICK_STEPS
    assert document["state_sha256"] == document_of(RunFolder.open(document["run"]))["state_sha256"]
    assert {"return_mean", "success_rate", "seconds"} <= set(document)


@pytest.mark.parametrize(
    ("missing", "may_install", "board"),
    [
        ([], False, "qemu-cortex-m7"),
        (["qemu-system-arm"], True, "qemu-cortex-m7"),
        (["qemu-system-arm"], False, "unicorn-cortex-m7"),
    ],
)
def test_the_emulator_is_qemu_where_it_can_be(
    missing: list[str], may_install: bool, board: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo.tools, "missing_names", lambda _: missing)
    monkeypatch.setattr(demo.tools, "apt_prefix", lambda: [] if may_install else None)
    assert demo.default_board().name == board


@pytest.mark.all
def test_a_run_begun_on_the_emulated_board_ends_here_in_the_bits_of_one_that_was_not(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert runs.is_dir()
    monkeypatch.setattr(demo, "PAUSE_AT", 140)
    document = demo.run(quick=True)
    output = capsys.readouterr().out
    assert 140 <= document["board_steps"] < demo.QUICK_STEPS
    assert document["state_sha256"] == document["host_state_sha256"]
    assert document["same_bits"]
    sessions = document_of(RunFolder.open(document["run"]))["sessions"]
    assert [session["board"] for session in sessions] == ["qemu-cortex-m7", "host"]
    assert f"from the board's step {document['board_steps']}" in output
    assert output.count(document["state_sha256"]) == 4
