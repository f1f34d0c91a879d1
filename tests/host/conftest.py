"""Fixtures of training on fake boards, and of boards that keep policies."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from rltools_host.commands import train as train_command
from rltools_host.errors import Interrupted
from rltools_host.policies import board as policy_board
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


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a board that is started here keeps its policies, for this test alone."""
    file = tmp_path / "policies" / "storage.bin"
    monkeypatch.setattr(policy_board, "storage_file", lambda *_: file)
    return file
