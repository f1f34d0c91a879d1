"""The targets of the page. How long something takes is judged with --slow alone, on a machine that
has nothing else to do, and by processor seconds."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rltools_host.bench import web as measure
from rltools_host.errors import UsageError
from waiting import wait_for

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
        def call(*words: Any, **named: Any) -> Any:
            pairs = [f"{key}={value}" for key, value in named.items()]
            self.done.append(" ".join([name, *map(str, words), *pairs]))
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


def opening(experiment: str, steps: int = 4_000_000_000) -> list[str]:
    address = f"http://a/#experiment={experiment}&steps={steps}"
    return [f"goto {address}", "locator #train:enabled", "wait_for"]


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
    assert measure.hover(None, "http://a/") == {
        "hover_s": 15.13,
        "hover_processor_s": 8.62,
        "first_hover_s": 4.24,
        "hovered": 9,
    }
    moment = f"() => {measure.ALL_HOVER} ? performance.now() : Infinity"
    assert page.done == [
        *opening("crazyflie-ppo", measure.DRONE_STEPS),
        *("locator #scene", "wait_for"),
        *("() => performance.now()", "click #train"),
        f"wait_for_function () => {measure.ALL_HOVER} || seen.finished polling=50",
        moment,
        "wait_for_function () => seen.finished polling=50",
        f"wait_for_function {measure.LAST_IS_TRIED} polling=50",
        moment,
    ]


def test_bytes_that_a_page_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    """In kB; what was not found is none of them."""
    bodies = [(True, b"a" * 1234), (False, b"b" * 9999), (True, b"c" * 1000)]
    page = FakePage(bodies=bodies)
    given(monkeypatch, page)
    plain, compressed = measure.page_size(None, "http://a/", "pendulum-td3")
    assert plain == 2.2
    assert compressed == 0.1  # twice some thirty bytes
    assert page.done == [
        *opening("pendulum-td3"),
        *("locator #picture:visible, #scene:visible", "wait_for", "wait_for_timeout 500"),
    ]


def test_seconds_until_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [FakePage(ms) for ms in (2000.0, 456.7, 123.4)]
    given(monkeypatch, *pages)
    assert measure.first_step(None, "http://a/") == 0.457
    for page in pages:
        assert page.done == [
            opening("pendulum-td3")[0],
            *("wait_for_function () => seen.first > 0", "() => seen.first"),
        ]


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
    look, wait = "() => [...seen.last, seen.frames]", "wait_for_timeout 2000.0"
    assert page.done == [
        *opening("crazyflie-ppo"),
        *("locator #scene", "wait_for", "click #train"),
        *("wait_for_function () => seen.first > 0", wait),
        *("(value) => withhold(value) False", "wait_for_timeout 200", look, wait, look),
        *("(value) => withhold(value) True", "wait_for_timeout 200", look, wait, look),
    ]


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
        look = [
            *["() => gc()"] * 2,  # in both workers
            f"new_cdp_session {page}",
            *("send HeapProfiler.collectGarbage", "detach"),
        ]
        assert page.done == [
            *opening("pendulum-td3"),
            *("click #train", "wait_for_function () => seen.first > 0"),
            *(f"wait {calm_ms}", *look, *["wait 1000"] * round(0.8 * seconds), *look),
        ]


def test_a_page_is_opened_as_by_somebody_new() -> None:
    context = FakePage()
    with measure.opened_page(context, "script") as page:
        assert page is context
        assert page.done == [
            "new_context service_workers=block",
            *(f"add_init_script {measure.WATCH}", "add_init_script script"),
            *("new_page", "set_default_timeout 300000.0"),
        ]
    assert page.done[-1] == "close"


@pytest.mark.parametrize(("user", "flags"), [(0, ["--no-sandbox"]), (1000, [])])
def test_the_browser_of_the_system_is_started(
    user: int, flags: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its sandbox where it would refuse one."""
    browser, required = FakePage(), []
    playwright = SimpleNamespace(chromium=browser)
    module = SimpleNamespace(sync_playwright=lambda: contextlib.nullcontext(playwright))
    monkeypatch.setitem(sys.modules, "playwright.sync_api", module)
    monkeypatch.setattr(measure.tools, "require", required.append)
    monkeypatch.setattr(measure.tools, "ensure_group", required.append)
    monkeypatch.setattr(measure.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(measure.os, "geteuid", lambda: user)
    with measure.chromium() as opened:
        assert opened is browser
        arguments = ["--js-flags=--expose-gc", *flags]
        assert opened.done == [f"launch executable_path=/usr/bin/chromium args={arguments}"]
    assert browser.done[1:] == ["close"]
    assert required == ["chromium", "browser"]


def test_the_worker_is_apart_from_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = {"DedicatedWorker": {"a": 1.0, "b": 2.0}, "": {"a": 1.0, "b": 2.0, "c": 7.0}}
    monkeypatch.setattr(measure, "threads_of", threads.__getitem__)
    assert (measure.worker_seconds(), measure.browser_seconds()) == (3.0, 7.0)


def test_processor_seconds_of_a_thread_by_its_name() -> None:
    """Of a child that computes for a moment."""
    name = Path("/proc/self/comm").read_text().strip()
    child = os.fork()
    if child == 0:
        while sum(os.times()[:2]) < 0.05:
            pass
        time.sleep(60)
        os._exit(0)
    try:
        task = f"/proc/{child}/task/{child}"
        wait_for(lambda: measure.threads_of(name).get(task, 0.0) >= 0.05)
        found = [each for each in measure.threads_of(name) if f"/{child}/" in each]
        assert found == [task]
        assert measure.threads_of(name)[task] < 1.0
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def test_memory_is_that_of_the_largest_process_with_a_page() -> None:
    program = "import sys, time; held = b'x' * int(sys.argv[1]); print(flush=True); time.sleep(60)"
    with contextlib.ExitStack() as stack:
        for count, kind in ((30_000_000, "renderer"), (1, "renderer"), (90_000_000, "gpu")):
            command = [sys.executable, "-S", "-c", program, str(count), f"--type={kind}"]
            child = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            stack.callback(child.kill)
            assert child.stdout
            child.stdout.readline()
        assert 30_000 * 1000 / 1024 < measure.renderer_kb() < 80_000


def test_a_measurement_from_its_beginning_to_its_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each figure is that of its function, which gets the browser and the page's address."""
    called: list[tuple[Any, ...]] = []

    def give(name: str, value: Any) -> None:
        def measured(*given: Any) -> Any:
            called.append((name, *given))
            return value(*given) if callable(value) else value

        monkeypatch.setattr(measure, name, measured)

    sizes = {measure.PENDULUM: (300.0, 90.0), measure.DRONE: (500.0, 130.0)}
    parts = {
        "hover": ("hover_s", "hover_processor_s", "first_hover_s"),
        "frames": ("frames_per_s", "frame_ms", "worker_loss_percent", "processor_loss_percent"),
        "memory": ("memory_s", "memory_mb", "memory_growth_percent"),
    }
    give("first_step", 0.5)
    give("page_size", lambda *given: sizes[given[2]])
    for name, keys in parts.items():
        give(name, {key: DOCUMENT[key] for key in keys})
    give("opened_site", lambda _: contextlib.nullcontext("http://a/"))
    give("chromium", lambda: contextlib.nullcontext("browser"))
    conditions = {key: DOCUMENT[key] for key in ("machine", "load_average")}
    monkeypatch.setattr(measure.harness, "conditions", lambda: conditions)
    assert measure.run(10) == DOCUMENT
    assert capsys.readouterr().out.splitlines() == measure.lines(DOCUMENT)
    assert {call[1:3] for call in called[2:]} == {("browser", "http://a/")}
    assert called[-1][3:] == (10,)


def test_the_page_is_written_and_served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    written: list[Any] = []
    monkeypatch.setattr(measure, "write_site", lambda *given: written.append(given))
    monkeypatch.setattr(measure, "served", lambda folder: contextlib.nullcontext(f"of {folder}"))
    for names, expected in (((), ("pendulum-td3", "crazyflie-ppo")), (("a", "b"), ("a", "b"))):
        with measure.opened_site(tmp_path, *names) as address:
            assert address == f"of {tmp_path}"
            assert written.pop() == (expected, tmp_path)


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
