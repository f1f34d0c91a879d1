"""`rlt bench web`: how soon the page trains, what it loads, how soon a drone hovers, whether frames
cost steps, and what memory a training takes, in headless Chromium.

Frames are drawn by software. Where other programs have the processors, seconds are theirs too:
beside them stand the processor's seconds of the thread that trains.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks import harness
from benchmarks.harness import Json
from rltools_host.build import tools
from rltools_host.errors import UsageError
from rltools_host.lines import aligned
from rltools_host.system import is_root
from rltools_host.web.site import served, write_site

PENDULUM, DRONE = "pendulum-td3", "crazyflie-ppo"
DRONE_STEPS = 2_000_000
LONG = 4_000_000_000  # steps: no end to training while something else is measured
OPENINGS = 3
TURNS, TURN_S = 5, 2.0  # with frames and without, in turns
WAIT_MS = 300_000.0
CALM_S, LEAST_MEMORY_S = 5.0, 10  # until memory is at what training needs; of --memory
TARGETS: Mapping[str, tuple[float, bool]] = {  # and whether more is better
    "first_step_s": (1.0, False),
    "page_kb": (300.0, False),
    "hover_s": (15.0, False),
    "frames_per_s": (30.0, True),
    "worker_loss_percent": (5.0, False),
    "memory_growth_percent": (5.0, False),
}
# What is seen of the worker's messages, with times since the page was opened, in ms; frames can be
# withheld, so that nothing is drawn.
WATCH = """
window.seen = { first: 0, last: null, finished: 0, frames: 0 };
window.Worker = class extends Worker {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", ({ data }) => {
      const now = performance.now();
      if (data.kind === "progress") {
        if (data.step > 0) seen.first ||= now;
        seen.last = [now, data.step];
      }
      if (data.kind === "finished") seen.finished = now;
    });
  }
};
const draw = window.requestAnimationFrame.bind(window);
const withheld = [];
window.withhold = (value) => {
  window.isWithheld = value;
  if (!value) for (const each of withheld.splice(0)) draw(each);
};
window.requestAnimationFrame = (act) => {
  if (window.isWithheld) return withheld.push(act);
  return draw((now) => {
    seen.frames++;
    act(now);
  });
};
"""
TRAIN_AT_ONCE = """
addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("train");
  const press = () => {
    if (button.disabled || seen.pressed) return;
    seen.pressed = true;
    button.click();
  };
  new MutationObserver(press).observe(button, { attributes: true });
});
"""
ALL_HOVER = "document.querySelector('#trials.good')"
LAST_IS_TRIED = """() => document.querySelector('#trials').textContent
  .includes(`step ${seen.last[1].toLocaleString('en')}:`)"""


def web(
    memory_s: Annotated[
        int, typer.Option("--memory", metavar="S", help="How long to train for the memory's row.")
    ] = 60,
    json_output: Json = False,
) -> None:
    """Measure the page that trains in the browser, in Chromium."""
    if memory_s < LEAST_MEMORY_S:
        raise UsageError(f"--memory {memory_s}: at least {LEAST_MEMORY_S} seconds are needed")
    with (
        tempfile.TemporaryDirectory() as folder,
        opened_site(Path(folder) / "site") as address,
        chromium() as browser,
    ):
        pages = {name: page_size(browser, address, name) for name in (PENDULUM, DRONE)}
        document = {
            "first_step_s": first_step(browser, address),
            "page_kb": pages[PENDULUM][0],
            "page_compressed_kb": pages[PENDULUM][1],
            "drone_page_kb": pages[DRONE][0],
            "drone_page_compressed_kb": pages[DRONE][1],
            **hover(browser, address),
            **frames(browser, address),
            **memory(browser, address, memory_s),
            **harness.conditions(),
        }
    harness.tell(document, lines(document), json_output)


def lines(document: Mapping[str, Any]) -> list[str]:
    """Return the table for people, with the targets."""

    def row(what: str, key: str, form: str) -> tuple[str, str, str]:
        target, is_least = TARGETS[key]
        bound = f"{'at least' if is_least else 'at most'} {target:g}"
        kept = document[key] >= target if is_least else document[key] <= target
        return what, form.format(**document), bound if kept else f"{bound}: missed"

    rows = [
        ("what", "measured", "target"),
        row("opening the page to the first training step", "first_step_s", "{first_step_s:.2f} s"),
        row(
            f"what {PENDULUM} loads",
            "page_kb",
            "{page_kb:.0f} kB ({page_compressed_kb:.0f} compressed)",
        ),
        (
            f"what {DRONE} loads",
            "{drone_page_kb:.0f} kB ({drone_page_compressed_kb:.0f} compressed)".format(**document),
            "-",
        ),
        row(
            f"{DRONE}, {DRONE_STEPS / 1e6:g} M steps, to a drone that hovers in 10 of 10 flights",
            "hover_s",
            "{hover_s:.1f} s, of which the worker's processor {hover_processor_s:.1f} s",
        ),
        (
            "... and to the first policy on the way that does",
            "{first_hover_s:.1f} s".format(**document),
            "-",
        ),
        row(
            "frames while the drone trains and flies", "frames_per_s", "{frames_per_s:.0f} a second"
        ),
        row(
            "steps that these frames cost the worker",
            "worker_loss_percent",
            "{worker_loss_percent:.1f} % (by processor seconds {processor_loss_percent:.1f} %)",
        ),
        row(
            "memory after {memory_s} s of training {name}".format(name=PENDULUM, **document),
            "memory_growth_percent",
            "{memory_mb:.0f} MB, {memory_growth_percent:+.1f} %",
        ),
    ]
    return [*aligned(rows), f"on {harness.machine_text(document)}"]


# ---- The page and its browser --------------------------------------------------------------------


@contextlib.contextmanager
def opened_site(folder: Path, *names: str) -> Iterator[str]:
    """Write the page, serve it, and yield its address."""
    write_site(names or (PENDULUM, DRONE), folder)
    with served(folder) as address:
        yield address


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Start the system's Chromium, headless, and end it."""
    tools.require("chromium")
    tools.ensure_group("browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--js-flags=--expose-gc", *(["--no-sandbox"] if is_root() else [])]
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=arguments
        )
        yield browser
        browser.close()


@contextlib.contextmanager
def opened_page(browser: Any, *scripts: str) -> Iterator[Any]:
    """Open a page as somebody new, without a copy of it for use without a network."""
    context = browser.new_context(service_workers="block")
    for script in (WATCH, *scripts):
        context.add_init_script(script)
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    yield page
    context.close()


def address_of(address: str, experiment: str, steps: int = LONG) -> str:
    """Return the page's address with an experiment and its steps."""
    return f"{address}#experiment={experiment}&steps={steps}"


def open_at(page: Any, address: str) -> None:
    """Go to an address and wait until it can train."""
    page.goto(address)
    page.locator("#train:enabled").wait_for()


# ---- The worker's thread -------------------------------------------------------------------------


def threads_of(name: str) -> dict[str, float]:
    """Return processor seconds of the threads of this name, or of all where it is empty.

    They are those of the processes that this one has started.
    """
    found = {}
    for process in descendants(os.getpid()) - {os.getpid()}:
        for task in Path(f"/proc/{process}/task").glob("*"):
            with contextlib.suppress(OSError):
                if name in ("", (task / "comm").read_text().strip()):
                    fields = (task / "stat").read_text().rpartition(")")[2].split()
                    ticks = int(fields[11]) + int(fields[12])
                    found[str(task)] = ticks / os.sysconf("SC_CLK_TCK")
    return found


def descendants(process: int) -> set[int]:
    """Return a process and all that it has started, directly or not."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = {process}
    while more := {each for each, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def worker_seconds() -> float:
    """Return processor seconds of the worker that trains."""
    return sum(threads_of("DedicatedWorker").values())


def browser_seconds() -> float:
    """Return processor seconds of all threads of the browser but the worker's."""
    return sum(threads_of("").values()) - worker_seconds()


def renderer_kb() -> int:
    """Return resident memory of the browser's largest process: the one that has the page."""
    sizes = []
    for process in descendants(os.getpid()) - {os.getpid()}:
        with contextlib.suppress(OSError, StopIteration):
            text = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
            command = Path(f"/proc/{process}/cmdline").read_text(encoding="utf-8")
            if "--type=renderer" in command:
                sizes.append(next(int(row.split()[1]) for row in text if row.startswith("VmRSS")))
    return max(sizes)


# ---- What is measured ----------------------------------------------------------------------------


def first_step(browser: Any, address: str) -> float:
    """Return seconds from the opening, with Train pressed at once, until steps are reported."""
    times = []
    for _ in range(OPENINGS):
        with opened_page(browser, TRAIN_AT_ONCE) as page:
            page.goto(address_of(address, PENDULUM))
            page.wait_for_function("() => seen.first > 0")
            times.append(page.evaluate("() => seen.first") / 1000)
    return round(harness.median(times), 3)


def page_size(browser: Any, address: str, experiment: str) -> tuple[float, float]:
    """Return kB that are loaded until the policy plays: as they are, and compressed."""
    with opened_page(browser) as page:
        responses: list[Any] = []
        page.on("response", responses.append)
        open_at(page, address_of(address, experiment))
        page.locator("#picture:visible, #scene:visible").first.wait_for()
        page.wait_for_timeout(500)
        bodies = [response.body() for response in responses if response.ok]
    compressed = sum(len(gzip.compress(body, 9)) for body in bodies)
    return round(sum(map(len, bodies)) / 1000, 1), round(compressed / 1000, 1)


def hover(browser: Any, address: str) -> dict[str, float]:
    """Return seconds from pressing Train until a run has ended and its drone hovers in all flights.

    And until the first policy on the way does.
    """
    with opened_page(browser) as page:
        open_at(page, address_of(address, DRONE, DRONE_STEPS))
        page.locator("#scene").wait_for()
        before_s = worker_seconds()
        begin = page.evaluate("() => performance.now()")
        page.click("#train")
        page.wait_for_function(f"() => {ALL_HOVER} || seen.finished", polling=50)
        first = page.evaluate(f"() => {ALL_HOVER} ? performance.now() : Infinity")
        page.wait_for_function("() => seen.finished", polling=50)
        processor_s = worker_seconds() - before_s
        page.wait_for_function(LAST_IS_TRIED, polling=50)
        end = page.evaluate(f"() => {ALL_HOVER} ? performance.now() : Infinity")
        hovered = int(page.get_attribute("#trials", "data-hovered"))
    return {
        "hover_s": round((end - begin) / 1000, 2),
        "hover_processor_s": round(processor_s, 2),
        "first_hover_s": round((first - begin) / 1000, 2),
        "hovered": hovered,
    }


def frames(browser: Any, address: str) -> dict[str, float]:
    """Return frames a second while the drone trains, and what they cost the worker, in turns."""
    rates: dict[bool, list[float]] = {False: [], True: []}
    costs: dict[bool, list[float]] = {False: [], True: []}
    drawn, frame_ms = [], []
    with opened_page(browser) as page:
        open_at(page, address_of(address, DRONE))
        page.locator("#scene").wait_for()
        page.click("#train")
        page.wait_for_function("() => seen.first > 0")
        page.wait_for_timeout(1000 * TURN_S)
        for turn in range(2 * TURNS):
            is_withheld = turn % 2 == 1
            page.evaluate("(value) => withhold(value)", is_withheld)
            page.wait_for_timeout(200)
            before = reading(page)
            page.wait_for_timeout(1000 * TURN_S)
            after = reading(page)
            ms, steps, frames, worker_s, browser_s = (
                b - a for a, b in zip(before, after, strict=True)
            )
            rates[is_withheld].append(steps / ms)
            costs[is_withheld].append(steps / max(worker_s, 1e-3))
            if not is_withheld:
                drawn.append(1000 * frames / ms)
                frame_ms.append(1000 * browser_s / max(frames, 1))
    return {
        "frames_per_s": round(harness.median(drawn), 1),
        "frame_ms": round(harness.median(frame_ms), 1),
        "worker_loss_percent": loss(rates),
        "processor_loss_percent": loss(costs),
    }


def reading(page: Any) -> tuple[float, ...]:
    """Return time in ms, steps, frames; processor seconds of the worker and of the rest."""
    seen = page.evaluate("() => [...seen.last, seen.frames]")
    return (*seen, worker_seconds(), browser_seconds())


def loss(rates: Mapping[bool, list[float]]) -> float:
    """Return how much less is done with frames (False) than while they are withheld, in %."""
    return round(100 * (1 - harness.median(rates[False]) / harness.median(rates[True])), 1)


def memory(browser: Any, address: str, seconds: int) -> dict[str, float]:
    """Return the page's memory at the end, and its growth since the first fifth of the time."""
    with opened_page(browser) as page:
        open_at(page, address_of(address, PENDULUM))
        page.click("#train")
        page.wait_for_function("() => seen.first > 0")
        page.wait_for_timeout(1000 * max(CALM_S, seconds / 5))
        before = settled_kb(page)
        end = time.monotonic() + 0.8 * seconds
        while time.monotonic() < end:
            page.wait_for_timeout(1000)
        after = settled_kb(page)
    return {
        "memory_s": seconds,
        "memory_mb": round(after / 1000, 1),
        "memory_growth_percent": round(100 * (after / before - 1), 1),
    }


def settled_kb(page: Any) -> int:
    """Return the memory after garbage was collected.

    The worker's too: little is made there, so that its engine lets tens of megabytes gather.
    """
    for worker in page.workers:
        worker.evaluate("() => gc()")
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.detach()
    return renderer_kb()


if __name__ == "__main__":
    harness.main(web, "--memory 600")
