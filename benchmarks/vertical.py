"""`rlt bench vertical`: the same TD3 run on every device that is here, as in the paper's figure 2.

Every device's run ends in the same training state, or is refused. Emulated boards count guest
instructions, which are no time. Devices take turns; a run that takes long is not repeated.
"""

from __future__ import annotations

import contextlib
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from benchmarks import harness
from benchmarks.harness import Bar, Chart, Json, MeasurementError, Panel, Repetitions, Row
from rltools_host.build import cmake, tools
from rltools_host.build.boards import Board, emulated_boards
from rltools_host.build.native import DEVICE, KINDS, build_modules, module_path
from rltools_host.errors import RltError, unknown_name
from rltools_host.system import processors
from rltools_host.tree import TREE
from rltools_host.web.site import served

EXPERIMENT = "pendulum-td3"
STEPS = 10_000
EMULATED_STEPS = 300  # ten thousand take a quarter of an hour on an emulated board, or more
REPETITIONS = 3
LONG_S = 15.0  # of a processor: a run that takes longer is not repeated
LIMIT_S = 1800.0
REFERENCE = "avx2"
SCRIPT = harness.PROGRAMS / "train_in_wasm.mjs"
CORE = TREE.root / "host/rltools_host/web/page/core.js"
RELAXED = "--experimental-wasm-relaxed-simd"  # of node 20; later ones need no flag
BY_KIND = {"lanes": "relaxed SIMD", "exact": "exact fma"}
START_WORKER = """({ steps, kind, limit_ms }) => new Promise((resolve, reject) => {
  setTimeout(() => reject(new Error("the worker did not end in time")), limit_ms);
  const worker = new Worker("train_in_wasm.mjs", { type: "module" });
  worker.onmessage = ({ data }) => resolve(data);
  worker.onerror = (event) => reject(new Error(event.message));
  worker.postMessage({ steps, kind });
})"""


def vertical(
    devices: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="scalar, avx2, avx512, threads, node-lanes, node-exact, chromium-lanes, "
            "chromium-exact, emulated boards. [default: all]",
        ),
    ] = None,
    steps: Annotated[int, typer.Option(metavar="N", help="Environment steps of a run.")] = STEPS,
    emulated_steps: Annotated[
        int, typer.Option(metavar="N", help="The same, on emulated boards.")
    ] = EMULATED_STEPS,
    repetitions: Repetitions = REPETITIONS,
    chart: Chart = None,
    json_output: Json = False,
) -> None:
    """Train the same on every device that is here."""
    harness.require_positive(steps=steps, emulated_steps=emulated_steps, repetitions=repetitions)
    asked = chosen(devices)
    steps_of = {
        name: emulated_steps if device.is_emulated else steps for name, device in asked.items()
    }
    states = {steps: state_here(steps) for steps in sorted(set(steps_of.values()))}
    turns = take_turns(asked, steps_of, states, repetitions)
    document = {
        "experiment": EXPERIMENT,
        "rows": summary(asked, steps_of, turns),
        "repetitions": repetitions,
        **harness.conditions(),
    }
    harness.tell(document, lines(document), json_output)
    if chart is not None:
        draw_chart(document, chart)


# ---- Devices -------------------------------------------------------------------------------------


class Device(NamedTuple):
    """A device; `measure(steps)` returns a row with `state_sha256` and what it took."""

    title: str
    tag: str  # of the core's kernels
    measure: Callable[[int], Row]
    is_emulated: bool = False


def known_devices() -> dict[str, Device]:
    """Return all that there may be by their names; a missing one says so when measured."""
    here: dict[str, Device] = {
        "scalar": Device("host, scalar", "Generic", partial(on_host, "training_loop_scalar", 1)),
        "avx2": Device("host, AVX2", "Host", partial(on_host, "training_loop_avx2", 8)),
        "avx512": Device("host, AVX-512", "Host", partial(on_host, "training_loop", 16)),
        "threads": Device("host, two threads", "HostThreads", on_two_threads),
    }
    for kind in KINDS:
        by = BY_KIND[kind]
        here[f"node-{kind}"] = Device(f"node, {by}", DEVICE, partial(in_node, kind))
        here[f"chromium-{kind}"] = Device(f"Chromium, {by}", DEVICE, partial(in_chromium, kind))
    for board in emulated_boards():
        if board.programs is None or cmake.TRAIN in board.programs:
            here[board.name] = Device(board.name, board.device, partial(emulated, board), True)
    return here


def chosen(names: str | None) -> dict[str, Device]:
    """Return the devices that were typed, in the usual order, or all."""
    known = known_devices()
    if names is None:
        return known
    typed = harness.split_names(names)
    for name in typed:
        if name not in known:
            raise unknown_name("device", name, known)
    return {name: device for name, device in known.items() if name in typed}


def on_host(program: str, lanes: int, steps: int) -> Row:
    """Run a program of this machine whose vectors have so many lanes."""
    if lanes > 1 and not is_x86():
        raise MeasurementError("this processor is not of the kind x86")
    raw, _ = harness.run_program(program, "td3", steps)
    if raw["lanes"] != lanes:
        raise MeasurementError(f"this processor has no vectors of {32 * lanes} bits")
    return row_of(raw)


def is_x86() -> bool:
    """Return whether this machine has such a processor."""
    return platform.machine() in ("x86_64", "AMD64")


def on_two_threads(steps: int) -> Row:
    """Run this machine's program with a second thread."""
    if processors() < 2:
        raise MeasurementError("this process may use one core only, and a second thread needs one")
    raw, _ = harness.run_program("training_loop", "td3", steps, board="host-threads", cores=2)
    return row_of(raw)


def row_of(raw: Mapping[str, Any]) -> Row:
    """Return the row of what training_loop printed."""
    return {"train_s": raw["wall_s"], "cpu_s": raw["cpu_s"], "state_sha256": raw["state_sha256"]}


def modules() -> list[Path]:
    """Build the modules of WebAssembly and return their paths."""
    build_modules([EXPERIMENT])
    return [module_path(EXPERIMENT, kind) for kind in KINDS]


def require_tool(name: str) -> None:
    """Refuse to go on without a tool."""
    if missing := tools.missing_tools((name,)):
        raise MeasurementError(tools.how_to_get(missing))


def in_node(kind: str, steps: int) -> Row:
    """Train in Node.js."""
    require_tool("node")
    words = [str(SCRIPT), str(CORE), *map(str, modules()), str(steps), kind]
    knows_flag = harness.run_to_end("node", ["node", RELAXED, "-e", "0"], 60.0).returncode == 0
    command = ["node", *([RELAXED] if knows_flag else []), *words]
    with harness.pinned():
        result = harness.run_to_end("node", command, LIMIT_S)
    if result.returncode != 0:
        raise MeasurementError(f"node: {harness.last_line(result.stderr)}")
    return of_wasm(harness.last_document(result.stdout))


def of_wasm(reported: Mapping[str, Any]) -> Row:
    """Return the row of what train_in_wasm.mjs printed."""
    if "error" in reported:
        raise MeasurementError(str(reported["error"]))
    if not reported["finished"]:
        raise MeasurementError("training met a number that is not finite")
    row = {
        "train_s": reported["seconds"],
        "cpu_s": reported["cpu_s"],
        "state_sha256": reported["hash"],
    }
    return {**row, "version": reported["version"]}


def in_chromium(kind: str, steps: int) -> Row:
    """Train in one worker of a headless browser, which is started for this run."""
    require_tool("chromium")
    tools.ensure_group("browser")
    from playwright.sync_api import Error, sync_playwright

    program = shutil.which("chromium")
    with harness.pinned(), site() as address, sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=program, args=["--no-sandbox"], timeout=60e3
            )
            page = browser.new_page()
            page.goto(address)
            session = browser.new_browser_cdp_session()
            before = processor_seconds(session)
            asked = {"steps": steps, "kind": kind, "limit_ms": 1e3 * LIMIT_S}
            reported = page.evaluate(START_WORKER, asked)
            after = processor_seconds(session)
            spent = [now - before.get(process, 0.0) for process, now in after.items()]
            version = browser.version
            browser.close()
        except Error as error:
            raise MeasurementError(f"Chromium: {harness.last_line(error.message)}") from None
    return of_wasm({**reported, "cpu_s": max(spent), "version": version})  # the worker's process


def processor_seconds(session: Any) -> dict[int, float]:
    """Return the processor time of each of the browser's processes."""
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    return {process["id"]: process["cpuTime"] for process in processes}


@contextlib.contextmanager
def site() -> Iterator[str]:
    """Serve a page that does nothing, with what a worker trains with, and yield its address."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        for file in (SCRIPT, CORE):
            shutil.copyfile(file, folder / file.name)
        for kind, module in zip(KINDS, modules(), strict=True):
            shutil.copyfile(module, folder / f"{kind}.wasm")
        (folder / "index.html").write_text('<!doctype html><link rel="icon" href="data:,">')
        with served(folder) as address:
            yield address


def emulated(board: Board, steps: int) -> Row:
    """Train on an emulated board."""
    if missing := tools.missing_tools(cmake.required_tools(board, to_run=True)):
        raise MeasurementError(tools.how_to_get(missing))
    with tempfile.TemporaryDirectory() as directory:
        words = ["train", EXPERIMENT, "--board", board.name, "--steps", str(steps)]
        reported = harness.rlt([*words, "--out", str(Path(directory) / "run")], {})
    return {
        "guest_instructions": reported["guest_instructions"],
        "state_sha256": reported["state_sha256"],
    }


# ---- Turns ---------------------------------------------------------------------------------------


def state_here(steps: int) -> str:
    """Return the state in which every device's run must end: that of this machine's program."""
    raw, _ = harness.run_program("training_loop", "td3", steps)
    return str(raw["state_sha256"])


def take_turns(
    asked: Mapping[str, Device],
    steps_of: Mapping[str, int],
    states: Mapping[int, str],
    count: int,
) -> list[dict[str, Row]]:
    """Return the rows of each round; who failed, took long or is emulated is asked once."""
    rounds: list[dict[str, Row]] = []
    again = dict(asked)
    for turn in range(count):
        rows: dict[str, Row] = {}
        for name, device in list(again.items()):
            steps = steps_of[name]
            try:
                row = device.measure(steps)
                if row["state_sha256"] != states[steps]:
                    raise MeasurementError(
                        f"ended in other bits, {row['state_sha256'][:12]} instead of "
                        f"{states[steps][:12]}"
                    )
                reported = f"{row['train_s']:.2f} s" if "train_s" in row else "ended"
            except RltError as error:
                row, reported = {"error": str(error)}, str(error)
            rows[name] = row
            print(f"{device.title}, turn {turn + 1}: {reported}", file=sys.stderr)
            if row.get("cpu_s", LONG_S) >= LONG_S:
                del again[name]
        rounds.append(rows)
    return rounds


def summary(
    asked: Mapping[str, Device], steps_of: Mapping[str, int], rounds: Sequence[Mapping[str, Row]]
) -> list[Row]:
    """Return a row for each device: medians, and medians of the ratios within a round."""
    entries: list[Row] = []
    for name, device in asked.items():
        mine = [rows[name] for rows in rounds if name in rows]
        good = [row for row in mine if "error" not in row]
        entry: Row = {"name": name, "title": device.title, "device": device.tag}
        entry["steps"] = steps_of[name]
        if len(good) < len(mine) or not good:
            entries.append({**entry, "error": next(row["error"] for row in mine if "error" in row)})
            continue
        entry["state_sha256"] = good[0]["state_sha256"]
        entry["version"] = good[0].get("version")
        if device.is_emulated:
            entries.append({**entry, "guest_instructions": good[0]["guest_instructions"]})
            continue
        entry["runs"] = len(good)
        for key, ratio in (("train_s", "ratio"), ("cpu_s", "cpu_ratio")):
            entry[key] = harness.median([row[key] for row in good])
            ratios = [
                rows[name][key] / rows[REFERENCE][key]
                for rows in rounds
                if key in rows.get(name, ()) and key in rows.get(REFERENCE, ())
            ]
            entry[ratio] = harness.median(ratios) if ratios else None
        entries.append(entry)
    return entries


def lines(document: Mapping[str, Any]) -> list[str]:
    """Return the table for people."""
    times = ("training", "times AVX2", "processor", "times AVX2")
    header = ("device", "kernels", "steps", *times, "guest instructions", "state")
    return [
        f"{EXPERIMENT} on every device, median of up to {document['repetitions']} runs, "
        f"evaluations left out; {harness.machine_text(document)}",
        "",
        *harness.table(header, document["rows"], cells),
        "",
        "One core and one thread each, but for the row with two. Guest instructions are not time.",
    ]


def cells(entry: Row) -> tuple[str, ...]:
    """Return a device's cells."""
    return (
        entry["device"],
        f"{entry['steps']:,}",
        harness.shown(entry.get("train_s"), "{:.2f} s"),
        harness.shown(entry.get("ratio"), "{:.2f}"),
        harness.shown(entry.get("cpu_s"), "{:.2f} s"),
        harness.shown(entry.get("cpu_ratio"), "{:.2f}"),
        harness.shown(entry.get("guest_instructions"), "{:,}"),
        entry["state_sha256"][:12],
    )


def draw_chart(document: Mapping[str, Any], path: Path) -> None:
    """Draw time above and guest instructions below: neither says anything of the other."""
    rows = [row for row in document["rows"] if "error" not in row]
    panels = []
    for key, unit in (
        ("train_s", "processor seconds for {:,} steps"),
        ("guest_instructions", "guest instructions for {:,} steps, which are not time"),
    ):
        if found := [row for row in rows if key in row]:
            bars = [bar_of(row) for row in found]
            panels.append(Panel(bars, unit.format(found[0]["steps"]), is_logarithmic=True))
    harness.draw_panels(panels, f"{EXPERIMENT}: the same bits", document, path)


def bar_of(row: Row) -> Bar:
    """Return a bar of instructions, or of processor time, which other programs hardly change."""
    is_browsers = row["device"] == DEVICE
    if "guest_instructions" in row:
        count = row["guest_instructions"]
        return Bar(row["title"], count, f"{count:,}", is_browsers)
    return Bar(row["title"], row["cpu_s"], f"{row['cpu_s']:.2f} s", is_browsers)


if __name__ == "__main__":
    harness.main(vertical, "--devices avx2,chromium-lanes,qemu-cortex-m7")
