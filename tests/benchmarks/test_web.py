"""The page's targets. How long something takes is judged with --slow alone, on a machine that has
nothing else to do, and by processor seconds."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import web as measure
from rltools_host.build import tools
from rltools_host.build.native import COMPILER_GROUP
from waiting import wait_for


def test_loss_is_of_the_median_rates() -> None:
    assert measure.loss({False: [9.0, 8.0, 7.0], True: [8.0, 10.0, 12.0]}) == 20.0
    assert measure.loss({False: [5.0], True: [5.0]}) == 0.0


def test_processor_seconds_of_a_thread_by_its_name() -> None:
    """Of a child that computes for a moment."""
    name = Path("/proc/self/comm").read_text().strip()
    child = os.fork()
    if child == 0:
        while sum(os.times()[:2]) < 0.2:  # the two clocks round differently
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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if tools.missing_names(("chromium",)):
        pytest.skip("not installed (rlt doctor): chromium")
    tools.ensure_group(COMPILER_GROUP)
    with measure.opened_site(tmp_path_factory.mktemp("web") / "site") as address:
        yield address


@pytest.fixture(scope="module")
def browser(site: str) -> Iterator[Any]:
    assert site
    with measure.chromium() as browser:
        yield browser


@pytest.mark.slow
def test_training_begins_soon(site: str, browser: Any) -> None:
    """In a second, where nobody else has the processors."""
    begin = measure.browser_seconds()
    measure.first_step(browser, site)
    assert (measure.browser_seconds() - begin) / measure.OPENINGS < 4.0


@pytest.mark.slow
def test_a_drone_soon_hovers(site: str, browser: Any) -> None:
    found = measure.hover(browser, site)
    assert math.isfinite(found["first_hover_s"])
    assert found["hovered"] >= 9
    assert found["hover_processor_s"] <= 15.0


@pytest.mark.slow
def test_frames_do_not_cost_steps(site: str, browser: Any) -> None:
    """By far less than they would if they were drawn by the thread that trains. (Others on the same
    core cost both, by their use of its caches.)"""
    found = measure.frames(browser, site, turns=1)
    assert found["frames_per_s"] > 0
    assert found["frame_ms"] < 66.0
    assert found["processor_loss_percent"] < 50.0


@pytest.mark.slow
def test_memory_stays_as_it_is(site: str, browser: Any) -> None:
    found = measure.memory(browser, site, 3600)
    assert found["memory_growth_percent"] < 5.0
