"""Fixtures of training on fake boards, and of boards that keep policies."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from rltools_host.boards import policy_session as policy_board
from rltools_host.build.boards import Board
from rltools_host.commands import train as train_command
from rltools_host.errors import Interrupted
from training_bench import PAUSED_BOARD, Bench, installed_bench, interrupt_at


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    bench = installed_bench(monkeypatch)
    yield bench
    bench.close()


@pytest.fixture(autouse=True)
def _interrupts() -> Iterator[None]:
    """Ctrl-C interrupts, also where the tests were started with it ignored."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.fixture
def interrupted(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Bench, Path, Interrupted]:
    """A run that was paused by Ctrl-C at about step 200."""
    bench.options = PAUSED_BOARD
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(train_command, "make_screen", interrupt_at(200))
        with pytest.raises(Interrupted) as caught:
            bench.train(tmp_path / "run", "report_every=20")
    bench.options = {}
    return bench, tmp_path / "run", caught.value


@pytest.fixture(autouse=True)
def _own_policies(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test finds, or leaves, policies of the boards that are started here."""

    def file(_board: Board, name: str) -> Path:
        tmp_path: Path = request.getfixturevalue("tmp_path")  # only in tests that come here
        return tmp_path / "policies" / f"{name}.bin"

    monkeypatch.setattr(policy_board, "storage_file", file)


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one file in which a board that is started here keeps its policies."""
    file = tmp_path / "policies" / "storage.bin"
    monkeypatch.setattr(policy_board, "storage_file", lambda *_: file)
    return file
