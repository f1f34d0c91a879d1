"""What a screen knows of a run: times, rates, points, and rows of the sessions before."""

from __future__ import annotations

import math
import signal
from pathlib import Path
from typing import Any

import pytest

from rltools_host.clients.messages import Evaluation, StatusText, TrainingProgress
from rltools_host.training.metrics_log import row_of
from rltools_host.training.progress import PausingScreen, Screen, TrainingView

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


def test_a_view_before_training() -> None:
    clock = Clock()
    view = made(clock, first_step=200)
    assert (view.step, view.share, view.elapsed_s) == (200, 0.2, 0.0)
    assert math.isnan(view.steps_per_s)
    assert math.isnan(view.left_s)
    assert all(map(math.isnan, (view.last_return, view.best_return, view.episode_length)))
    assert list(view.metrics) == [*NAMES]
    assert all(map(math.isnan, view.metrics.values()))
    assert (view.updates, view.episodes, view.activity, view.activity_share) == (0, 0, "", None)


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
    assert (view.last_return, view.best_return) == (-7.0, -6.0)
    assert view.episode_points == [(100, -9.0), (250, -7.0)]
    view.take(EVALUATION)
    assert (view.evaluation, view.evaluation_points, view.step) == (EVALUATION, [(300, -5.0)], 300)
    for text in ("one", "two\x1b[2J", "three"):
        view.take(StatusText(6, text))
    assert len(view.texts) == 2
    assert view.texts[-1] == "three"
    assert "\x1b" not in view.texts[0]


def test_rows_of_the_sessions_before_are_points_and_no_steps() -> None:
    view = made(Clock(), first_step=400)
    view.take_row(row_of(report(100, 1, -9.0, 0.5, 0.25), NAMES))
    view.take_row(row_of(EVALUATION, NAMES))
    view.take_row({"kind": "event", "step": 310, "severity": 4, "text": "a fault"})
    assert (view.episode_points, view.evaluation_points) == ([(100, -9.0)], [(300, -5.0)])
    assert (view.step, view.metrics, list(view.texts)) == (400, {"loss": 0.5, "kl": 0.25}, [])


def test_a_pause_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(signal, "raise_signal", sent.append)
    shown = Screen(made(Clock()))
    screen = PausingScreen(shown, 200)
    screen.take(report(199, 1, -9.0))
    assert sent == []
    screen.take(report(200, 1, -9.0))
    screen.take(report(201, 1, -9.0))
    assert sent == [signal.SIGTERM]
    assert screen.view.step == 201
    screen.activity("pausing; Ctrl-C once more quits", 0.5)
    assert (shown.view.activity, shown.view.activity_share) == ("pausing", 0.5)
