"""The demo's story, told with the board that this machine is, and what may go wrong in it."""

from __future__ import annotations

import contextlib
import io
import json
import re
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rltools_host.boards.messages import StatusText
from rltools_host.build.boards import load_board
from rltools_host.commands import demo
from rltools_host.errors import Interrupted, MissingToolError, RefusedError
from rltools_host.runs.folder import RunFolder
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.progress import Screen, TrainingView
from run_folders import document_of

BITS = "ab" * 32


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
    assert re.findall(r"^\[(\d)\] ", captured.err, re.MULTILINE) == list("12345")
    assert "8 examples give the board's bits here too" in captured.err
    assert "100 deterministic episodes" in captured.err
    assert "leave out --quick for a policy that works" in captured.err
    assert captured.err.splitlines()[-2].endswith("report.html")
    assert captured.err.splitlines()[-1] == f"The state: {document['state_sha256']}"
    report = Path(document["report"])
    assert report.parent.parent == runs
    assert "pendulum-td3" in report.read_text(encoding="utf-8")
    assert document["steps"] == demo.QUICK_STEPS
    assert document["state_sha256"] == document_of(RunFolder.open(document["run"]))["state_sha256"]
    assert {"return_mean", "success_rate", "seconds"} <= set(document)


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


class Told:
    """A story whose trainings are not real ones."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
        self.stream = io.StringIO()
        self.trained: list[TrainingRequest] = []
        self.digest = BITS
        self.pauses: Callable[[Screen], None] = lambda _: None
        told = {"here": True, "whole": False, "steps": None, **changes}
        self.story = demo.Story(
            load_board("qemu-cortex-m7"), stream=self.stream, workers=ThreadPoolExecutor(1), **told
        )
        monkeypatch.setattr(demo, "train", self.train)
        monkeypatch.setattr(demo.experiments, "describe", lambda *_: None)
        monkeypatch.setattr(demo.cmake, "build_targets", lambda *_, **__: Path())
        monkeypatch.setattr(demo.firmware, "build_firmware", lambda *_: Path("program"))
        monkeypatch.setattr(demo.firmware, "memory_usage", lambda *_: [])
        for name in ("evaluate_policy", "write_report", "prove_policy"):
            monkeypatch.setattr(demo, name, lambda _: None)

    def train(
        self, request: TrainingRequest, make: Callable[[TrainingView], Screen]
    ) -> dict[str, Any]:
        self.trained.append(request)
        view = TrainingView("pendulum-td3", str(request.board), 0, 10_000, Path("runs/x"))
        with contextlib.redirect_stdout(self.stream):
            screen = make(view)
        document = {
            "run": f"runs/{request.board}",
            "experiment": "pendulum-td3",
            "board": request.board,
            "seed": 0,
            "steps": 10_000,
            "step": 10_000,
            "train_s": 1.5,
            "steps_per_s": 8.0,
            "guest_instructions": None if request.board == "host" else 1_201_960_021,
            "state_sha256": self.digest if request.board == "host" else BITS,
        }
        if request.board != "host":
            view.step = 320
            self.pauses(screen)
        return document

    def tell(self) -> str:
        demo.tell(self.story)
        return self.stream.getvalue()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    monkeypatch.setattr(demo.tools, "require", lambda *_: None)
    return Told(monkeypatch)


@pytest.fixture
def asked() -> Iterator[list[int]]:
    """Signals that this process sends to itself."""
    numbers: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: numbers.append(number))
    yield numbers
    signal.signal(signal.SIGTERM, before)


def pause(screen: Screen) -> None:
    """As training answers a signal."""
    for _ in range(2):
        screen.take(StatusText(severity=6, text="trains"))
    error = Interrupted("paused at step 320")
    error.details = {
        **dict.fromkeys(demo.OF_A_RUN, "x"),
        "run": "runs/m7",
        "step": 320,
        "steps": 10_000,
        "guest_instructions": 12,
    }
    raise error


def test_the_board_is_paused_and_its_run_finished_here(told: Told, asked: list[int]) -> None:
    told.pauses = pause
    output = told.tell()
    assert asked == [signal.SIGTERM]
    assert "paused at step 320 of 10,000" in output
    assert "--board host --resume runs/m7" in output
    assert [(request.board, request.resume) for request in told.trained] == [
        *(("host", None), ("qemu-cortex-m7", None), ("host", "runs/m7"))
    ]
    assert told.story.document["same_bits"] is True
    assert re.findall(r"\[\d\] (.*)", output)[-4:] == [
        "Train the same on an emulated microcontroller",
        "Take the policy home and prove it",
        "Finish that run here",
        "Compare",
    ]
    assert max(map(len, output.splitlines())) <= 80


def test_a_user_s_ctrl_c_ends_the_demo(told: Told, asked: list[int]) -> None:
    def interrupt(_: Screen) -> None:
        raise Interrupted("paused at step 40")

    told.pauses = interrupt
    with pytest.raises(Interrupted, match="paused at step 40"):
        told.tell()
    assert asked == []


def test_all_of_it_is_trained_on_the_board_where_that_is_asked_for(told: Told) -> None:
    told.story.whole = True
    output = told.tell()
    assert [request.board for request in told.trained] == ["host", "qemu-cortex-m7"]
    assert "Finish that run here" not in output
    assert output.count(BITS) == 3


def test_unequal_states_are_an_error(told: Told) -> None:
    told.story.whole, told.digest = True, "cd" * 32
    with pytest.raises(RefusedError, match="end in different states for seed 0"):
        told.tell()


def test_the_board_is_left_out_where_its_tools_are_missing(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"apt-get install {' '.join(['qemu-system-arm'] * 5)}"

    def refuse(*names: str) -> None:
        if "qemu-system-arm" in names:
            raise MissingToolError(f"qemu-system-arm not found: run this line: {line}")

    monkeypatch.setattr(demo.tools, "require", refuse)
    output = told.tell()
    assert [request.board for request in told.trained] == ["host"]
    assert output.count("qemu-system-arm not found") == 1
    assert f" {line}\n" in output  # whole, to be copied
    assert told.story.document["state_sha256"] == BITS
    told.story.here, told.story.left_out = False, ""
    with pytest.raises(MissingToolError):  # where it is all that there is
        told.tell()


def test_what_is_compared_and_what_is_trained_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[demo.Story] = []
    monkeypatch.setattr(demo, "tell", told.append)
    monkeypatch.setattr(demo, "close", lambda _story: None)
    for board in ("qemu-cortex-m7", "host-threads", "host"):
        demo.run(board=board)
    demo.run(whole=True)
    assert [(story.here, story.whole) for story in told] == [
        *((True, False), (True, True), (False, True)),
        (True, True),
    ]
