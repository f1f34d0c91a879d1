"""The screen of a training run."""

from __future__ import annotations

import io
import math
import time
from pathlib import Path

import pytest

from rltools_host.boards import training
from rltools_host.boards.messages import Evaluation, Event, StatusText, TrainingProgress
from rltools_host.screen.training_screen import PlainScreen, picture
from rltools_host.training.metrics_log import row_of
from rltools_host.training.progress import TrainingView
from terminal import drawn
from training_bench import Bench, metrics

LOSSES = ("critic_1_loss", "critic_2_loss", "actor_loss")
NOT_KNOWN = (math.nan,) * 16


def filled_view() -> TrainingView:
    now, steps = 0.0, 10_000
    view = TrainingView("a", "b", 1, steps, Path("r"), clock=lambda: now, metric_names=LOSSES)
    view.begin()
    for step in range(20, 6241, 20):
        now = step / 52.0
        metrics = tuple(i + 0.1 + step / 1e4 for i in range(16))
        progress = TrainingProgress(
            step, step, steps, step, step // 200, -1500 + step / 5, -1.0, metrics
        )
        view.take(progress)
        if step % 1000 == 0:
            view.take(Evaluation(step, step, 10, -1600 + step / 4, 20.0, -1700.0, -1.0))
    return view


def test_what_a_board_says_cannot_move_the_cursor() -> None:
    view, stream = filled_view(), io.StringIO()
    PlainScreen(view, stream).take(StatusText(6, "all \x1b[2J well\r"))
    for text in (stream.getvalue(), "\n".join(drawn(picture(view, 120), 120, 40))):
        assert "the board says: all ?[2J well?" in text


def test_view_of_a_run_whose_algorithm_had_other_metrics() -> None:
    """Metrics are no part of the fingerprint: a run goes on after a change of them."""
    view = TrainingView("a", "b", 1, 1000, Path("r"), metric_names=("kl", "actor_loss"))
    values = (0.5, 0.25, 2.0, *NOT_KNOWN[3:])
    view.take_row(row_of(TrainingProgress(1, 200, 1000, 100, 1, -9.0, -8.0, values), LOSSES))
    assert view.metrics == pytest.approx({"kl": math.nan, "actor_loss": 2.0}, nan_ok=True)


def test_reports_are_taken_in_together(bench: Bench, tmp_path: Path) -> None:
    """A board that reports each millisecond awakens the host a few times, and nothing is lost."""
    bench.options = {"seconds_per_step": 0.001}
    awakenings = 0
    original = training.TrainingClient.poll

    def poll(self: training.TrainingClient, timeout_s: float) -> list[Event]:
        nonlocal awakenings
        events = original(self, timeout_s)
        awakenings += bool(events)
        return events

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training.TrainingClient, "poll", poll)
        began = time.monotonic()
        bench.train(tmp_path / "run", "report_every=2", steps=600, tensorboard=False)
    rows = metrics(tmp_path / "run", "progress")
    assert [row["step"] for row in rows] == list(range(2, 601, 2))
    assert awakenings < len(rows) / 4 + (time.monotonic() - began) / training.GATHER_S
