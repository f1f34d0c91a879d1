"""The targets of the page. How long something takes is judged with --slow alone, on a machine that
has nothing else to do, and by processor seconds."""

from __future__ import annotations

import math
import os
import time
from typing import Any

import pytest

from rltools_host.errors import UsageError
from rltools_host.web import measure

DOCUMENT = {
    "first_step_s": 0.5,
    "page_kb": 300.0,
    "page_compressed_kb": 90.0,
    "drone_page_kb": 500.0,
    "drone_page_compressed_kb": 130.0,
    "hover_s": 15.1,
    "hover_processor_s": 9.0,
    "first_hover_s": 4.0,
    "frames_per_s": 30.0,
    "frame_ms": 9.0,
    "worker_loss_percent": -1.0,
    "processor_loss_percent": 1.0,
    "memory_s": 60,
    "memory_mb": 170.0,
    "memory_growth_percent": 6.0,
    "machine": {"processor": "one", "cores": 2},
    "load_average": 1.0,
}


def test_what_misses_its_target_is_said() -> None:
    rows = measure.lines(DOCUMENT)
    missed = [row for row in rows if row.endswith("missed")]
    assert ["15.1 s" in missed[0], "+6.0 %" in missed[1], len(missed)] == [True, True, 2]
    assert any(row.endswith("at least 30") for row in rows)


def test_too_short_a_time_for_memory_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^--memory 3: at least 10 seconds are needed$"):
        measure.run(3)


def test_frames_that_cost_nothing_are_no_loss() -> None:
    assert measure.loss({False: [9.0, 8.0, 7.0], True: [8.0, 10.0, 12.0]}) == 20.0
    assert measure.loss({False: [5.0], True: [5.0]}) == 0.0


def test_a_process_is_found_by_whom_it_was_started() -> None:
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        found = measure.descendants(os.getpid())
        assert {os.getpid(), child} <= found
        assert os.getppid() not in found
        assert any(f"/{child}/" in task for task in measure.threads_of(""))
        assert measure.threads_of("no such thread") == {}
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


@pytest.mark.all
def test_a_page_with_one_experiment_is_small(site: str, browser: Any) -> None:
    for experiment, most_kb in ((measure.PENDULUM, 300), (measure.DRONE, 600)):
        plain, compressed = measure.page_size(browser, site, experiment)
        assert 100 < plain <= most_kb
        assert compressed < plain / 2


@pytest.mark.slow
def test_training_begins_soon(site: str, browser: Any) -> None:
    """In a second, where nobody else has the processors."""
    begin = measure.browser_seconds()
    measure.first_step(browser, site)
    assert (measure.browser_seconds() - begin) / measure.OPENINGS < 4.0


@pytest.mark.slow
def test_a_drone_soon_hovers(site: str, browser: Any) -> None:
    found = measure.hover(browser, site, 1_000_000)
    assert math.isfinite(found["first_hover_s"])
    assert found["hovered"] >= 9
    assert found["hover_processor_s"] <= 15.0


@pytest.mark.all
def test_frames_are_counted_with_them_and_without(
    site: str, browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "TURN_S", 0.3)
    found = measure.frames(browser, site, turns=1)
    assert found["frames_per_s"] > 0
    assert math.isfinite(found["worker_loss_percent"])
    assert math.isfinite(found["processor_loss_percent"])


@pytest.mark.slow
def test_frames_do_not_cost_steps(site: str, browser: Any) -> None:
    """By far less than they would if they were drawn by the thread that trains. (Others on the same
    core cost both, by their use of its caches.)"""
    found = measure.frames(browser, site, turns=1)
    assert found["frames_per_s"] > 0
    assert found["frame_ms"] < 66.0
    assert found["processor_loss_percent"] < 50.0


@pytest.mark.parametrize(
    "seconds",
    [pytest.param(10, marks=pytest.mark.all), pytest.param(3600, marks=pytest.mark.slow)],
)
def test_memory_stays_as_it_is(site: str, browser: Any, seconds: int) -> None:
    found = measure.memory(browser, site, seconds)
    assert found["memory_growth_percent"] < 5.0
