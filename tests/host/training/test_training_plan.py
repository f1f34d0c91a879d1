"""What is checked before anything is built, and finding the board."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from fake_board import FakeBoard
from rltools_host.boards import board_link
from rltools_host.build import experiments
from rltools_host.build.boards import load_board
from rltools_host.environments.server_start import environments_of
from rltools_host.environments.task import TaskRequest
from rltools_host.errors import PortError, RltError, UsageError
from rltools_host.runs.folder import RunFolder
from rltools_host.training.board import open_board
from rltools_host.training.hyperparameters import default_values, given_values
from rltools_host.training.plan import Plan, TrainingRequest, make_plan, report_interval
from training_bench import DIALECT, EXPERIMENT, Bench, saved_checkpoint
from training_calls import train_here

# -- what is checked before anything is built ------------------------------------------------------


def test_the_board_that_nobody_named_is_this_machine() -> None:
    """An emulated one, which it was, took 200 times as long."""
    assert make_plan(TrainingRequest("pendulum-td3")).board.name == "host"
    assert make_plan(TrainingRequest("pendulum-td3", threads=2)).board.name == "host-threads"
    assert make_plan(TrainingRequest("ant-ppo")).board.name == "host-threads"


def test_many_environments_report_as_often_as_one_does() -> None:
    """By the calls of a board's main loop, each of which steps all of them."""
    board = load_board("host")
    many = dataclasses.replace(EXPERIMENT, environments=64)
    assert report_interval(EXPERIMENT, board) == board.report_every
    assert report_interval(many, board) == 64 * board.report_every


@pytest.mark.parametrize(
    ("options", "settings", "kind", "sentence"),
    [
        (
            {"experiment": "fake-td4"},
            (),
            UsageError,
            'unknown experiment "fake-td4": did you',
        ),
        ({"board": "tensy41"}, (), UsageError, "did you mean teensy41"),
        ({}, ("learnign_rate=1",), UsageError, "did you mean learning_rate"),
        ({}, ("learning_rate",), UsageError, "has no value: write --set name=value"),
        ({}, ("learning_rate=1e-300",), UsageError, "is 0 in a float of 32 bits: .* least 1e-45"),
        ({"board": ""}, (), UsageError, 'unknown board ""'),
        ({"experiment": ""}, (), UsageError, 'unknown experiment ""'),
        ({}, ("eval_freq=0",), UsageError, "a whole number from 1 to 4294967295 steps"),
        ({"steps": 0}, (), UsageError, "steps=0 is out of bounds"),
        ({"seed": -1}, (), UsageError, "seed=-1 is out of bounds"),
        ({"seed": 1}, ("seed=2",), UsageError, "seed is given twice"),
        ({}, ("eval_freq=5", "eval_freq=5"), UsageError, "eval_freq is given twice"),
        ({"experiment": None}, (), UsageError, "name an experiment"),
        (
            {"threads": 1},
            (),
            UsageError,
            "--threads does not go with board host, .* take --board host-threads",
        ),
        (
            {"board": "host-threads", "threads": 3, "port": "socket://127.0.0.1:9"},
            (),
            UsageError,
            "--threads does not go with --port",
        ),
        ({"board": "host-threads", "threads": 0}, (), UsageError, "--threads 0: at least 1"),
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


def test_values_that_are_allowed() -> None:
    given = given_values(
        EXPERIMENT, 4294967295, 1, ["eval_freq=1e3", "n_eval_episodes=1_000", "learning_rate = 1"]
    )
    assert given == {
        "seed": 4294967295,
        "steps": 1,
        "eval_freq": 1000,
        "n_eval_episodes": 1000,
        "learning_rate": 1.0,
    }
    assert default_values(EXPERIMENT)["learning_rate"] == 0.001


def test_the_command_that_goes_on_keeps_the_threads() -> None:
    values = default_values(EXPERIMENT)
    plan = Plan(EXPERIMENT, load_board("host-threads"), values, threads=3)
    assert plan.resume_command(Path("run")).endswith(
        "--board host-threads --threads 3 --resume run"
    )


# -- finding the board -----------------------------------------------------------------------------


def teensy_plan(port: str | None = None) -> Plan:
    values = default_values(EXPERIMENT)
    return Plan(EXPERIMENT, load_board("teensy41"), values, port)


def test_no_board_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_link, "find_connected", lambda _: [])
    with pytest.raises(PortError, match=r"no teensy41 is connected: plug it in .*rlt flash teen"):
        open_board(teensy_plan())


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


# -- how often a run is evaluated ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "settings", "every"),
    [
        (1000, (), 100),
        (100, (), 100),
        (99, (), 4),
        (40, (), 2),
        (7, (), 1),
        (40, ("eval_freq=100",), 100),
        (40, ("eval_freq=30",), 30),
    ],
)
def test_a_run_that_is_short_is_evaluated_on_its_way(
    bench: Bench, tmp_path: Path, steps: int, settings: tuple[str, ...], every: int
) -> None:
    """Unless somebody says how often; the fake experiment's own number is 100."""
    document = bench.train(tmp_path / "run", *settings, steps=steps)
    values = RunFolder.open(tmp_path / "run").metadata["hyperparameters"]
    assert values["eval_freq"] == every
    rows = RunFolder.open(tmp_path / "run").read_metrics()
    evaluations = [row["step"] for row in rows if row["kind"] == "evaluation"]
    assert evaluations[-1] == document["step"] == steps


def test_the_algorithm_of_choices_is_said_where_nobody_asked_for_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    taken = "has choices as its actions: ppo learns them\n"
    for task, said in (
        (TaskRequest("gym:CartPole-v1"), f"CartPole-v1 {taken}"),
        (TaskRequest("gym:CartPole-v1", algorithm="dqn"), ""),
        (TaskRequest("gym:Pendulum-v1"), ""),
    ):
        with environments_of(task, is_built=True) as server:
            assert server is not None
        lines = capsys.readouterr().err.splitlines(keepends=True)
        assert "".join(line for line in lines if "has choices" in line) == said
        assert sum(line.startswith("assumed: ") for line in lines) >= 2  # of rate and safe action
