"""What is checked before anything is built, and finding the board."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fake_board import FakeBoard
from rltools_host.build import experiments
from rltools_host.errors import RltError, UsageError
from rltools_host.training.plan import TrainingRequest, make_plan
from training_bench import DIALECT, Bench, saved_checkpoint
from training_calls import train_here

# -- what is checked before anything is built ------------------------------------------------------


def test_the_board_that_nobody_named_is_this_machine() -> None:
    """An emulated one, which it was, took 200 times as long."""
    assert make_plan(TrainingRequest("pendulum-td3")).board.name == "host"
    assert make_plan(TrainingRequest("pendulum-td3", threads=2)).board.name == "host-threads"


@pytest.mark.parametrize(
    ("options", "settings", "kind", "sentence"),
    [
        (
            {"experiment": "fake-td4"},
            (),
            UsageError,
            'unknown experiment "fake-td4": did you',
        ),
        ({"seed": -1}, (), UsageError, "seed=-1 is out of bounds"),
        (
            {"threads": 1},
            (),
            UsageError,
            "--threads does not go with board host, .* take --board host-threads",
        ),
    ],
)
def test_mistakes_are_found_before_building(
    bench: Bench,
    tmp_path: Path,
    options: dict[str, Any],
    settings: tuple[str, ...],
    kind: type[RltError],
    sentence: str,
) -> None:
    with pytest.raises(kind, match=sentence):
        bench.train(tmp_path / "run", *settings, **options)
    assert (bench.built, bench.boards) == (0, [])
    assert not (tmp_path / "run").exists()


def test_folder_in_use_is_found_before_building(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        bench.train(tmp_path)
    assert bench.built == 0


# -- finding the board -----------------------------------------------------------------------------


def test_board_on_a_pty_is_trained_as_on_a_serial_port(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(experiments, "describe", bench.describe)
    with FakeBoard(DIALECT, pty=True, board="teensy41") as board:
        document = train_here(
            "fake-td3", "teensy41", seed=3, out=tmp_path / "run", port=board.port, tensorboard=False
        )
        assert document["state_sha256"] == board.state_sha256
    assert saved_checkpoint(tmp_path / "run").step == 1000
