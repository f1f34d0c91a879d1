"""What a screen knows of a run, and of the runs of a group: times, rates, states, earlier rows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from fake_board import policy_of
from rltools_host.boards.messages import Evaluation, StatusText, TrainingProgress
from rltools_host.runs.group import RunName
from rltools_host.runs.saves import (
    state_of_policy,
)
from rltools_host.training.metrics_log import row_of
from rltools_host.training.progress import (
    FAILED,
    FINISHED,
    PAUSED,
    PRUNED,
    STARTING,
    STATES,
    TRAINING,
    WAITING,
    GroupScreen,
    GroupView,
    Member,
    TrainingView,
)
from run_folders import new_run
from training_bench import final_state

NAMES = ("loss", "kl")
EVALUATION = Evaluation(1, 300, 10, -5.0, 1.0, -6.0, -4.0, 150.5)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def made(clock: Clock, **known: Any) -> TrainingView:
    return TrainingView("e", "host", 0, 1000, Path("r"), clock=clock, metric_names=NAMES, **known)


def report(step: int, episodes: int, last: float, *metrics: float) -> TrainingProgress:
    return TrainingProgress(0, step, 1000, step // 2, episodes, last, last + 1, metrics)


def test_time_at_rest_does_not_count() -> None:
    clock = Clock()
    view = made(clock)
    view.begin()
    clock.now = 103.0
    assert view.elapsed_s == 3.0
    view.end()
    clock.now = 150.0
    assert view.elapsed_s == 3.0
    view.begin()
    clock.now = 152.0
    assert view.elapsed_s == 5.0


def test_the_rate_is_that_of_the_last_seconds() -> None:
    clock = Clock()
    view = made(clock)
    view.begin()
    clock.now = 102.0
    view.reach(100)
    assert (view.steps_per_s, view.left_s) == (50.0, 18.0)
    clock.now = 107.0  # the second point is five seconds old: the first one stays
    view.reach(100)
    assert view.steps_per_s == pytest.approx(100 / 7)
    clock.now = 107.5
    view.reach(210)
    assert view.steps_per_s == pytest.approx(110 / 5.5), "from the point at 102 on"
    clock.now = 120.0
    view.reach(1010)
    assert view.steps_per_s == pytest.approx(800 / 12.5)
    assert (view.left_s, view.share) == (0, 1.0)
    view.begin()
    assert math.isnan(view.steps_per_s), "what was before the rest is forgotten"
    clock.now = 121.0
    view.reach(1010)
    assert (view.steps_per_s, math.isnan(view.left_s)) == (0.0, True)
    view.steps = 0
    assert view.share == 1.0


def test_what_a_board_reports() -> None:
    view = made(Clock())
    view.take(report(100, 1, -9.0, 0.5, math.nan))
    view.take(report(150, 1, -9.0, 0.25, math.nan))  # the same episode
    view.take(report(200, 2, math.nan, math.nan, 0.125))
    assert view.episode_points == [(100, -9.0)]
    assert (view.step, view.updates, view.episodes, view.episode_length) == (200, 100, 2, 100)
    assert view.metrics == {"loss": 0.25, "kl": 0.125}, "the newest that is known of each"
    view.take(report(250, 3, -7.0))
    assert (view.last_return, view.best_return) == (-7.0, pytest.approx(math.nan, nan_ok=True))
    assert view.episode_points == [(100, -9.0), (250, -7.0)]
    view.take(EVALUATION)
    assert (view.evaluation, view.evaluation_points, view.step) == (EVALUATION, [(300, -5.0)], 300)
    for text in ("one", "two\x1b[2J", "three"):
        view.take(StatusText(6, text))
    assert len(view.texts) == 2
    assert view.texts[-1] == "three"
    assert "\x1b" not in view.texts[0]


def test_the_best_return_is_that_of_an_evaluation() -> None:
    """Of training episodes the first ones of a task may be shorter (docs/gymnasium_tasks.md)."""
    view = made(Clock())
    view.take(report(100, 1, 0.0))
    for step, mean in ((200, math.nan), (300, -9.0), (400, -5.0), (500, -7.0)):
        view.take(Evaluation(1, step, 10, mean, 1.0, -20.0, 0.0))
    assert view.best_return == -5.0
    view.take_row(row_of(Evaluation(1, 50, 10, -4.0, 1.0, -20.0, 0.0), NAMES))
    assert view.best_return == -4.0, "the sessions before count"


def test_rows_of_the_sessions_before_are_points_and_no_steps() -> None:
    view = made(Clock(), first_step=400)
    view.take_row(row_of(report(100, 1, -9.0, 0.5, 0.25), NAMES))
    view.take_row(row_of(EVALUATION, NAMES))
    view.take_row({"kind": "event", "step": 310, "severity": 4, "text": "a fault"})
    assert (view.episode_points, view.evaluation_points) == ([(100, -9.0)], [(300, -5.0)])
    assert (view.step, view.metrics, list(view.texts)) == (400, {"loss": 0.5, "kl": 0.25}, [])


def member(state: str = WAITING, seed: int = 0, label: str = "", **known: Any) -> Member:
    name = RunName("v" if label else "", seed)
    return Member(name, label, Path("g") / name.folder, 1000, state, **known)


def test_what_a_process_reports() -> None:
    run = member(STARTING)
    run.take({"step": "100", "steps": 2000, "steps_per_s": None, "evaluations": [(50, -9)]})
    assert (run.state, run.step, run.steps, run.activity) == (STARTING, 100, 2000, "")
    assert run.is_running
    run.take(
        {
            "step": 200,
            "steps": 2000,
            "steps_per_s": 10,
            "left_s": 180,
            "activity": "saving",
            "return_mean": None,
            "evaluations": [[100, -8.0], [150, None]],
        }
    )
    assert (run.state, run.steps_per_s, run.left_s, run.activity) == (TRAINING, 10, 180, "saving")
    assert run.is_running
    assert run.evaluations == {50: -9.0, 100: -8.0}
    assert math.isnan(run.return_mean)
    paused = member(PAUSED)
    paused.take({"step": 1, "steps": 2, "steps_per_s": 3.0})
    assert paused.state == PAUSED, "what run.json says begins nothing"
    assert [state for state in STATES if member(state).is_running] == [TRAINING, STARTING]


def made_run(path: Path, **changes: Any) -> None:
    payload = final_state(0, 400)
    policy = policy_of(payload)
    document = {"format": 4, "experiment": "fake-td3", "seed": 0, "state": "finished", **changes}
    known: dict[str, Any] = {"step": 400, "return_mean": -5.0, "return_std": 0.5, "train_s": 1.5}
    folder = new_run(path, document)
    files = {"checkpoint.safetensors": b"c", "policy.rltp": policy}
    run = structs.replace(folder.content, **known)
    folder.commit(400, state_of_policy(policy) or "", files, run)
    folder.close()


@pytest.mark.parametrize(
    ("of_run", "asked", "expected"),
    [
        ({"steps": 400}, None, (FINISHED, 400)),
        ({"steps": 400}, 400, (FINISHED, 400)),
        ({"steps": 400}, 401, (PAUSED, 401)),  # it goes on
        ({"steps": 400}, 300, (FINISHED, 400)),
        ({"steps": 500, "state": "paused"}, None, (PAUSED, 500)),
        ({}, None, (FINISHED, 1000)),  # of a tool that did not write it down: what was planned
    ],
)
def test_a_look_into_a_folder(
    of_run: dict[str, Any], asked: int | None, expected: tuple[str, int], tmp_path: Path
) -> None:
    run = member()
    run.path = tmp_path / "s0"
    made_run(run.path, **of_run)
    run.look(asked)
    assert (run.state, run.steps) == expected
    assert (run.step, run.return_mean, run.return_std, run.train_s) == (400, -5.0, 0.5, 1.5)
    assert math.isnan(run.steps_per_s)
    assert len(run.state_sha256) == 64
    assert (run.environment_faults, run.observations_outside) == (None, None)


def test_folders_that_a_look_cannot_go_on_with(tmp_path: Path) -> None:
    run = member(FINISHED)
    run.path = tmp_path / "s0"
    run.look(None)
    assert (run.state, run.error) == (WAITING, "")
    made_run(run.path)
    checkpoint = next(run.path.glob("save-*")) / "checkpoint.safetensors"
    checkpoint.unlink()
    run.look(None)
    assert (run.state, run.error, run.step) == (WAITING, "", 0), "it starts over"
    (run.path / "run.json").write_text("{")
    run.look(None)
    assert run.state == FAILED
    assert "is damaged" in run.error
    (run.path / "run.json").unlink()
    run.look(None)
    assert run.state == FAILED
    missing = f"{run.path} holds a save and no run.json"
    assert run.error == f"{missing}: restore that, or move the save away"


def view(members: list[Member], total: int | None = None) -> GroupView:
    times = iter((10.0, 14.5))
    return GroupView("t", "host", Path("g"), members, 2, clock=lambda: next(times), total=total)


def test_what_is_left_of_a_group() -> None:
    trains = member(TRAINING, step=400, steps_per_s=60.0)
    also = member(TRAINING, step=900, steps_per_s=40.0)
    done = [member(state, step=10) for state in (FINISHED, FAILED, PRUNED)]
    others = [member(PAUSED, step=500), member()]
    assert view([trains, also, *done, *others]).left_s == (600 + 100 + 500 + 1000) / 100
    assert view([trains], total=3).left_s == (600 + 2 * 1000) / 60, "two are not known yet"
    assert (view([trains], total=3).count, view([trains]).count) == (3, 1)
    assert view([member(TRAINING, step=1500, steps_per_s=1.0)]).left_s == 0
    for nobody in ([], others, [member(TRAINING, steps_per_s=0.0)], [member(TRAINING)]):
        assert math.isnan(view(nobody).left_s)
    timed = view([])
    assert (timed.elapsed_s, timed.activity) == (4.5, "")
    screen = GroupScreen(timed)
    screen.activity("pausing")
    assert screen.view.activity == "pausing"
