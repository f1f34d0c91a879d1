"""A run whose link was gone is fetched from the live board, whatever it has done meanwhile: a real
program behind a link that is away for a while."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rltools_host.boards import connection
from rltools_host.boards.messages import Evaluation, Result, State, StatusText
from rltools_host.boards.session import BoardSession
from rltools_host.boards.transport import open_link
from rltools_host.build import cmake, firmware
from rltools_host.build.boards import load_board
from rltools_host.errors import LinkLostError, UsageError
from rltools_host.runs import saves as run_saves
from rltools_host.runs.folder import RunFolder
from rltools_host.training.held_run import unheard
from rltools_host.training.run import TrainingRun
from tcp_board import TcpBoard
from training_calls import train_here
from waiting import wait_for

pytestmark = pytest.mark.all
STEPS, EVERY = 12_000, 3000  # some tenths of a second at least, in which a save arrives


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Iterator[TcpBoard]:
    monkeypatch.setattr(connection, "SILENCE_LIMIT_S", 2.0)
    program = firmware.build_firmware(load_board("host"), "pendulum-td3")
    with TcpBoard(program, {}) as running:
        yield running


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same run with nothing in its way."""
    return train(tmp_path_factory.mktemp("straight") / "run")


def train(path: Path, **options: Any) -> dict[str, Any]:
    settings = () if "resume" in options else (f"eval_freq={EVERY}", "report_every=100")
    begun = {} if "resume" in options else {"seed": 5, "steps": STEPS, "out": path}
    experiment = None if "resume" in options else "pendulum-td3"
    return train_here(experiment, "host", settings=settings, tensorboard=False, **begun, **options)


def state_of(board: TcpBoard) -> int:
    with open_session(board) as session:
        return session.node.identity().state


def open_session(board: TcpBoard) -> BoardSession:
    session, _ = BoardSession.connect(open_link(board.port), cmake.load_dialect(), None, 30.0)
    return session


def lose_at(
    board: TcpBoard, step: int, monkeypatch: pytest.MonkeyPatch, saved: Path | None = None
) -> None:
    """Lose the link at the first report of this step or a later one, once the run `saved` has a
    save."""
    take = TrainingRun._take

    def taken(self: TrainingRun, event: Any) -> None:
        take(self, event)
        is_saved = saved is None or bool(RunFolder.open(saved).content.save)
        if getattr(event, "step", 0) >= step and is_saved:
            board.is_gone = True

    monkeypatch.setattr(TrainingRun, "_take", taken)


@pytest.mark.parametrize("saves", [False, True])
def test_a_board_that_went_on_alone(
    board: TcpBoard,
    straight: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    saves: bool,
) -> None:
    """Also where the run has an earlier save, and the last evaluations were never heard of."""
    run = tmp_path / "run"
    if saves:
        monkeypatch.setattr(run_saves, "FIRST_SAVE_S", 0.0)
    with monkeypatch.context() as patch:
        lose_at(board, 900, patch, run if saves else None)
        with pytest.raises(LinkLostError, match="go on"):
            train(run, port=board.port)
    board.is_gone = False
    assert bool(RunFolder.open(run).content.save) == saves
    wait_for(lambda: state_of(board) == State.FINISHED, 120)
    document = train(run, resume=str(run), port=board.port)
    assert document["state_sha256"] == straight["state_sha256"]
    assert document["best"] == straight["best"]
    assert document["return_mean"] == straight["return_mean"]
    content = RunFolder.open(run).content
    assert (content.state, len(content.sessions)) == ("finished", 2)
    assert content.train_s is not None
    assert [path.name for path in run.iterdir() if path.name.startswith(".")] == []


def test_a_board_that_trains_yet(
    board: TcpBoard, straight: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        lose_at(board, 200, patch)
        with pytest.raises(LinkLostError, match="as long as the board stays on, go on with"):
            train(run, port=board.port)
    board.is_gone = False
    assert train(run, resume=str(run), port=board.port)["state_sha256"] == straight["state_sha256"]


def test_evaluations_that_nobody_heard() -> None:
    """They are reports as the others; older firmware states none, which is said."""
    rows = [{"kind": "evaluation", "step": 500}, {"kind": "progress", "step": 900}]
    result = Result(0, 0, 2000, True, "5" * 64)
    kept = [Evaluation(0, step, 10, -1.0, 0.0, 0.0, 0.0) for step in (500, 2000)]
    session: Any = SimpleNamespace(training=SimpleNamespace(kept_evaluations=lambda: kept))
    assert unheard(session, result, rows) == [kept[1]]
    assert unheard(session, result, [*rows, {"kind": "evaluation", "step": 2000}]) == []
    kept.clear()
    (text,) = unheard(session, result, rows)
    assert isinstance(text, StatusText)
    assert "what it reported from step 900 on is lost" in text.text


def test_the_state_of_another_run_is_refused(
    board: TcpBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        lose_at(board, 200, patch)
        with pytest.raises(LinkLostError):
            train(run, port=board.port)
    board.is_gone = False
    wait_for(lambda: state_of(board) == State.FINISHED, 120)
    other = {"seed": 6, "steps": 200, "out": tmp_path / "other", "port": board.port}
    train_here("pendulum-td3", "host", tensorboard=False, **other)
    with pytest.raises(UsageError, match="holds the state of another run, of another seed: start"):
        train(run, resume=str(run), port=board.port)


def test_a_board_that_was_reset_has_nothing(
    board: TcpBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        lose_at(board, 200, patch)
        with pytest.raises(LinkLostError):
            train(run, port=board.port)
    board.is_gone = False
    program = firmware.build_firmware(load_board("host"), "pendulum-td3")
    with (
        TcpBoard(program, {}) as fresh,
        pytest.raises(UsageError, match=r"is idle, and has no training state: start a new run"),
    ):
        train(run, resume=str(run), port=fresh.port)
