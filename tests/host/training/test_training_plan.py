"""What is checked before anything is built, and finding the board."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fake_board import FakeBoard
from rltools_host.build import experiments
from rltools_host.commands.train import closing_lines
from rltools_host.errors import UsageError
from rltools_host.runs.task import Task
from rltools_host.training.plan import (
    RATES_AT_END,
    Plan,
    TrainingRequest,
    evaluation_interval,
    lacks_evaluation,
    make_plan,
    note_of_rate,
)
from training_bench import DIALECT, Bench, saved_checkpoint
from training_calls import train_here

# -- what is checked before anything is built ------------------------------------------------------


def test_the_board_that_nobody_named_is_this_machine() -> None:
    """An emulated one, which it was, took 200 times as long."""
    assert make_plan(TrainingRequest("pendulum-td3")).board.name == "host"
    assert make_plan(TrainingRequest("pendulum-td3", threads=2)).board.name == "host-threads"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"experiment": "fake-td4"}, 'unknown experiment "fake-td4": did you'),
        ({"seed": -1}, "seed=-1 is out of bounds"),
        ({"threads": 1}, "--threads does not go with board host, .* take --board host-threads"),
    ],
)
def test_mistakes_are_found_before_building(
    bench: Bench, tmp_path: Path, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        bench.train(tmp_path / "run", **options)
    assert (bench.built, bench.boards) == (0, [])
    assert not (tmp_path / "run").exists()


def test_folder_in_use_is_found_before_building(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        bench.train(tmp_path)
    assert bench.built == 0


# -- evaluations, and what a run cannot learn ----------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "episode_steps", "interval"),
    [(10**6, 1000, 50_000), (100_000, 500, 15_000), (1000, 1000, 30_000), (400, 1, 30)],
)
def test_a_task_is_evaluated_by_its_steps_and_for_a_quarter_of_them(
    steps: int, episode_steps: int, interval: int
) -> None:
    values = {"steps": steps, "eval_freq": 100_000, "n_eval_episodes": 10}
    task = cast(Task, SimpleNamespace(episode_steps=episode_steps))
    assert evaluation_interval(values, task) == interval
    evaluated = (steps - 1) // interval * 10 * episode_steps  # but for the last one
    assert evaluated <= (steps + evaluated) / 4
    assert evaluation_interval(values, None) == (100_000 if steps >= 100_000 else steps // 20)


@pytest.mark.parametrize(
    ("settings", "is_said"), [(("learning_starts=400",), True), (("learning_starts=300",), False)]
)
def test_a_run_that_ends_before_its_first_update_says_so(
    settings: tuple[str, ...], is_said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    make_plan(TrainingRequest("pendulum-td3", steps=400, settings=settings))
    note = "nothing is learned in 400 steps, as the first update comes after learning_starts=400"
    assert (note in capsys.readouterr().err) == is_said


def test_the_last_lines_say_what_evaluations_took_and_that_nothing_was_learned() -> None:
    numbers = {"step": 300, "train_s": 2.0, "evaluation_s": 1.0, "steps_per_s": 300.0, "updates": 9}
    words = {
        "run": "r",
        "experiment": "e",
        "environment": "E",
        "state_sha256": "a",
        "guest_instructions": None,
    }
    known = {**numbers, **words, "return_mean": None, "best": None, "faults": None}
    lines = closing_lines(known)
    assert lines[0] == (
        "finished 300 steps in 1.00 s (300 steps/s) and 1.00 s of evaluations (50 % of the time)"
    )
    nothing = "nothing was learned: the run made no update"
    assert not any(nothing in line for line in lines)
    assert any(nothing in line for line in closing_lines({**known, "updates": 0}))
    assert "%" not in closing_lines({**known, "evaluation_s": 0.1})[0]


def resumed(step: int, steps: int, own_steps: int, environments: int = 1, **values: float) -> Plan:
    return cast(
        Plan,
        SimpleNamespace(
            checkpoint=SimpleNamespace(step=step),
            hyperparameters={"eval_freq": 100, **values},
            description=SimpleNamespace(environments=environments),
            steps=steps,
            own_steps=own_steps,
            first_step=step,
        ),
    )


def test_a_resumption_says_that_an_annealed_learning_rate_rises() -> None:
    for name in RATES_AT_END:
        assert "rises again" in note_of_rate(resumed(1000, 2000, 1000, **{name: 0.1}))
    assert note_of_rate(resumed(500, 1000, 1000, lr_end_factor=0.1)) == ""
    assert note_of_rate(resumed(1000, 2000, 1000, lr_end_factor=1.0)) == ""


@pytest.mark.parametrize(
    ("step", "environments", "evaluated", "lacks"),
    [
        *((100, 1, [], True), (100, 1, [100], False), (101, 1, [], False), (1000, 1, [], True)),
        *(
            (102, 3, [], True),
            (105, 3, [], False),
            (102, 3, [102], False),
            (1000, 1, [1000], False),
        ),
    ],
)
def test_an_evaluation_that_a_pause_has_ended_is_known_by_its_missing_row(
    step: int, environments: int, evaluated: list[int], lacks: bool
) -> None:
    rows = [{"kind": "evaluation", "step": each} for each in evaluated]
    rows.append({"kind": "progress", "step": step})
    assert lacks_evaluation(resumed(step, 1000, 1000, environments), rows) == lacks


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
