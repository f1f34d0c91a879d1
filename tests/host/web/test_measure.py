"""The targets of the page. How long something takes is judged with --slow alone, on a machine that
has nothing else to do, and by processor seconds."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
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


def test_what_was_measured_and_what_misses_its_target() -> None:
    found = [" ".join(row.split()) for row in measure.lines(DOCUMENT)]
    assert found[0] == "what measured target"
    assert found[1:-1] == [
        "opening the page to the first training step 0.50 s at most 1",
        "what pendulum-td3 loads 300 kB (90 compressed) at most 300",
        "what crazyflie-ppo loads 500 kB (130 compressed) -",
        "crazyflie-ppo, 2 M steps, to a drone that hovers in 10 of 10 flights "
        "15.1 s, of which the worker's processor 9.0 s at most 15: missed",
        "... and to the first policy on the way that does 4.0 s -",
        "frames while the drone trains and flies 30 a second at least 30",
        "steps that these frames cost the worker -1.0 % (by processor seconds 1.0 %) at most 5",
        "memory after 60 s of training pendulum-td3 170 MB, +6.0 % at most 5: missed",
    ]
    assert found[-1].startswith("on one")


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


class FakePage:
    """A page whose scripts have these values, one after the other, and that loads these bodies."""

    def __init__(self, *values: Any, bodies: Sequence[tuple[bool, bytes]] = ()) -> None:
        self.values, self.bodies = iter(values), bodies
        self.done: list[str] = []
        self.first, self.context, self.workers = self, self, [self, self]

    def __getattr__(self, name: str) -> Any:
        def call(*words: Any, **_: Any) -> Any:
            self.done.append(" ".join([name, *map(str, words)]))
            return self

        return call

    def on(self, event: str, hear: Any) -> None:
        assert event == "response"
        for ok, body in self.bodies:
            hear(SimpleNamespace(ok=ok, body=lambda body=body: body))

    def evaluate(self, script: str, *words: Any) -> Any:
        self.done.append(" ".join([script, *map(str, words)]))
        return None if script in ("(value) => withhold(value)", "() => gc()") else next(self.values)

    def get_attribute(self, place: str, name: str) -> str:
        assert (place, name) == ("#trials", "data-hovered")
        return "9"


def given(monkeypatch: pytest.MonkeyPatch, *pages: FakePage, **functions: Sequence[float]) -> None:
    """These pages, and what these functions of the module return, call by call."""
    opened = iter(pages)

    @contextlib.contextmanager
    def open_page(*_: Any) -> Iterator[FakePage]:
        yield next(opened)

    monkeypatch.setattr(measure, "opened_page", open_page)
    for name, values in functions.items():
        monkeypatch.setattr(measure, name, iter(values).__next__)


def test_seconds_until_a_drone_hovers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's milliseconds from pressing Train on, and the worker's processor seconds."""
    page = FakePage(1000.0, 5236.6, 16128.4)
    given(monkeypatch, page, worker_seconds=(1.5, 10.123))
    assert measure.hover(None, "http://a/", 77) == {
        "hover_s": 15.13,
        "hover_processor_s": 8.62,
        "first_hover_s": 4.24,
        "hovered": 9,
    }
    assert page.done[0] == "goto http://a/#experiment=crazyflie-ppo&steps=77"
    assert page.done[page.done.index("() => performance.now()") + 1] == "click #train"


def test_bytes_that_a_page_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    """In kB; what was not found is none of them."""
    bodies = [(True, b"a" * 1234), (False, b"b" * 9999), (True, b"c" * 1000)]
    given(monkeypatch, FakePage(bodies=bodies))
    plain, compressed = measure.page_size(None, "http://a/", "pendulum-td3")
    assert plain == 2.2
    assert compressed == 0.1  # twice some thirty bytes


def test_seconds_until_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, *(FakePage(ms) for ms in (2000.0, 456.7, 123.4)))
    assert measure.first_step(None, "http://a/") == 0.457


def test_what_frames_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn with frames, 100 steps in 10 ms, and one without, 125 steps."""
    turns = [(0, 0, 0), (10, 100, 2), (20, 200, 2), (30, 325, 2)]  # ms, steps, frames
    page = FakePage(*turns)
    given(
        monkeypatch, page, worker_seconds=(0.0, 2.0, 2.0, 4.0), browser_seconds=(0.0, 0.5, 1.0, 9.0)
    )
    assert measure.frames(None, "http://a/", 1) == {
        "frames_per_s": 200.0,
        "frame_ms": 250.0,
        "worker_loss_percent": 20.0,
        "processor_loss_percent": 20.0,
    }
    withheld = [each for each in page.done if each.startswith("(value)")]
    assert withheld == ["(value) => withhold(value) False", "(value) => withhold(value) True"]


def test_memory_is_compared_once_it_is_calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a fifth of the time, or five seconds; it is looked at again after the rest."""
    for seconds, calm_ms in ((10, 5000.0), (100, 20000.0)):
        page, now = FakePage(), [0.0]
        given(monkeypatch, page, renderer_kb=(160_000, 170_456))

        def wait(ms: float, now: list[float] = now, page: FakePage = page) -> None:
            now[0] += ms / 1000
            page.done.append(f"wait {ms}")

        page.__dict__["wait_for_timeout"] = wait
        monkeypatch.setattr(measure, "time", SimpleNamespace(monotonic=lambda now=now: now[0]))
        assert measure.memory(None, "http://a/", seconds) == {
            "memory_s": seconds,
            "memory_mb": 170.5,
            "memory_growth_percent": 6.5,
        }
        waits = [each for each in page.done if each.startswith("wait ")]
        assert waits == [f"wait {calm_ms}", *["wait 1000"] * round(0.8 * seconds)]
        assert page.done.count("() => gc()") == 4  # in both workers, before both looks


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
