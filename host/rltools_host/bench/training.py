"""`rlt bench train`: Pendulum-v1, ours against other libraries, as in the paper's figure 1.

All are held to one core and one thread and take turns, so that what else the machine does meets
all of them. Only the training loop is timed; imports and compilation are reported apart. The
newest result of this machine stays in build/bench, from where a run's report takes it.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import rltools_host
from rltools_host import paths
from rltools_host.bench import build_times, harness, peer_environment
from rltools_host.boards.description import load_board
from rltools_host.build import cmake, experiments, firmware
from rltools_host.errors import RltError, UsageError, near_matches, unknown_name
from rltools_host.files import write_atomically
from rltools_host.policies import evaluation
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.ui.table import aligned

ALGORITHMS = ("td3", "sac")
STEPS = 10_000
EPISODES = 100
REPETITIONS = 3
QUICK_PEER = "pytorch"
PEER_LIMIT_S = 1800.0
PEERS_DIRECTORY = harness.BENCHMARKS_DIRECTORY / "peers"
CHARTS = {
    "td3": paths.REPOSITORY / "docs" / "images" / "bench_train.svg",
    "sac": paths.REPOSITORY / "docs" / "images" / "bench_train_sac.svg",
}
TERMINAL_SIZE = (40, 120)  # lines, columns

OURS = "ours"
LOOP = "ours, loop alone"
TITLES = {
    OURS: "this repository, rlt train",
    LOOP: "this repository, loop alone",
    "pytorch": "PyTorch, single file",
    "rltools": "PyPI rltools, MKL",
    "sbx": "sbx",
    "skrl": "skrl",
    "stable_baselines3": "Stable-Baselines3",
    "tianshou": "Tianshou",
}

Row = dict[str, Any]


def peer_names(script: str, directory: Path = PEERS_DIRECTORY) -> list[str]:
    """Peers with a script of this name: each algorithm has its own."""
    return sorted(path.parent.name for path in directory.glob(f"*/{script}.py"))


def chosen_peers(script: str, peers: str | None, quick: bool, directory: Path) -> list[str]:
    known = peer_names(script, directory)
    if peers is None:
        return [QUICK_PEER] if quick else known
    names = [name.strip() for name in peers.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise UsageError(f'--peers: unknown peer "{name}": {near_matches(name, known)}')
    return list(dict.fromkeys(names))


def result_path(algorithm: str, directory: Path = harness.ENVIRONMENTS_DIRECTORY) -> Path:
    """Where this machine's newest result lies."""
    return directory / f"train-{algorithm}.json"


def run(
    json_output: bool = False,
    quick: bool = False,
    peers: str | None = None,
    repetitions: int | None = None,
    steps: int = STEPS,
    episodes: int = EPISODES,
    chart: Path | None = None,
    algorithm: str = "td3",
    peers_directory: Path = PEERS_DIRECTORY,
    environments_directory: Path = harness.ENVIRONMENTS_DIRECTORY,
) -> dict[str, Any]:
    """Measures, prints the table, draws the chart and returns what `--json` prints."""
    count = repetitions or (1 if quick else REPETITIONS)
    harness.require_positive(repetitions=count, steps=steps, episodes=episodes)
    if algorithm not in ALGORITHMS:
        raise unknown_name("algorithm", algorithm, ALGORITHMS)
    names = chosen_peers(algorithm, peers, quick, peers_directory)
    experiment = f"pendulum-{algorithm}"
    experiments.describe(experiment)
    firmware.build_firmware(load_board("host"), experiment)
    cmake.host_library("policy")
    harness.build_program("training_loop")
    contenders: dict[str, Callable[[int], Row]] = {
        OURS: lambda seed: train_ours(experiment, seed, steps, episodes),
        LOOP: lambda _: train_loop(algorithm, steps),
    }
    rows: list[Row] = []
    for name in names:
        try:
            folder = peers_directory / name
            contenders[name] = peer(
                name, folder, algorithm, environments_directory, steps, episodes
            )
        except RltError as error:
            rows.append({"name": name, "error": str(error)})
    rows += take_turns(contenders, count)
    document = {
        "algorithm": algorithm,
        "rows": rows,
        "build": build_times.build_times(experiment, environments_directory / "build-time"),
        "summary": summary(rows),
        "overhead": overhead(rows),
        "steps": steps,
        "episodes": episodes,
        "repetitions": count,
        "machine": harness.machine(),
        "load_average": harness.load_average(),
        "date": datetime.now(timezone.utc).date().isoformat(),
    }
    print("\n".join(lines(document)))
    path = result_path(algorithm, environments_directory)
    write_atomically(path, (json.dumps(document, indent=2) + "\n").encode())
    whole = steps == STEPS and names == peer_names(algorithm)
    if chart is not None or whole:
        chart_path = chart or CHARTS[algorithm]
        draw_chart(document, chart_path)
        print(f"wrote {chart_path}")
    if json_output:
        print(json.dumps(document))
    return document


def take_turns(contenders: Mapping[str, Callable[[int], Row]], count: int) -> list[Row]:
    """Every contender once, then all again with the next seed; who fails is not asked again."""
    rows: list[Row] = []
    failed: set[str] = set()
    with harness.pinned() as core:
        for seed in range(count):
            for name, measure in contenders.items():
                if name in failed:
                    continue
                try:
                    row = {"name": name, **measure(seed), "core": core}
                    said = f"{row['train_s']:.2f} s"
                except RltError as error:
                    failed.add(name)
                    row = {"name": name, "error": str(error)}
                    said = str(error)
                rows.append(row)
                print(f"{name}, seed {seed}: {said}", file=sys.stderr, flush=True)
    return rows


# -- contenders --------------------------------------------------------------------------------


def train_ours(experiment: str, seed: int, steps: int, episodes: int) -> Row:
    """`rlt train --board host` as users run it: with the live screen, log and checkpoint."""
    with tempfile.TemporaryDirectory() as directory, terminal() as screen:
        folder = Path(directory) / "run"
        command = [
            *(sys.executable, "-m", "rltools_host", "train", experiment, "--board", "host"),
            *("--seed", str(seed), "--steps", str(steps), "--out", str(folder), "--json"),
        ]
        variables = {"PYTHONPATH": str(paths.REPOSITORY / "host"), "TERM": "xterm-256color"}
        started = time.monotonic()
        result = harness.run_to_end(
            "rlt train",
            command,
            PEER_LIMIT_S,
            harness.one_thread_environment(variables),
            error_stream=screen,
        )
        total_s = time.monotonic() - started
        document = last_document(result.stdout)
        if result.returncode != 0:
            raise harness.MeasurementError(f"rlt train: {document.get('error', 'it said nothing')}")
        image = read_run_policy(RunFolder.open(str(folder)))
        outcome = evaluation.evaluate_policy(image, str(folder), episodes, 0, evaluation.GYMNASIUM)
    return {
        "version": rltools_host.__version__,
        "setup_s": total_s - document["train_s"],
        "train_s": document["train_s"],
        "host_cpu_s": document["host_cpu_s"],
        "return_mean": outcome.mean,
        "seed": seed,
        "steps": steps,
    }


def last_document(output: str) -> dict[str, Any]:
    """The object that `--json` prints on the last line."""
    text = (output.splitlines() or ["{}"])[-1]
    document = json.loads(text) if text.startswith("{") else {}
    return document if isinstance(document, dict) else {}


@contextmanager
def terminal() -> Iterator[int]:
    """A terminal to write to, whose other side takes all there is as a terminal's window would."""
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", *TERMINAL_SIZE, 0, 0))

    def take_all() -> None:
        with suppress(OSError):  # EIO: nobody writes any more
            while os.read(reader, 65536):
                pass

    window = threading.Thread(target=take_all, daemon=True)
    window.start()
    try:
        yield writer
    finally:
        os.close(writer)
        window.join(1.0)
        os.close(reader)


def train_loop(algorithm: str, steps: int) -> Row:
    """The same training in one process, without link, screen and log."""
    raw, _ = harness.run_program("training_loop", algorithm, steps)
    return {
        "version": rltools_host.__version__,
        "setup_s": 0.0,
        "train_s": raw["wall_s"],
        "cpu_s": raw["cpu_s"],
        "evaluations_s": raw["evaluations_s"],
        "return_mean": None,
        "seed": 0,
        "steps": steps,
    }


def peer(
    name: str, folder: Path, algorithm: str, environments: Path, steps: int, episodes: int
) -> Callable[[int], Row]:
    """A peer in its own environment, which is made here and now."""
    python = peer_environment.python_of(name, folder / "requirements.txt", environments)
    script = folder / f"{algorithm}.py"

    def measure(seed: int) -> Row:
        arguments = ["--seed", seed, "--steps", steps, "--episodes", episodes]
        row = peer_environment.measure(name, python, script, arguments, PEER_LIMIT_S)
        for key in ("version", "setup_s", "train_s", "return_mean", "seed"):
            if key not in row:
                raise harness.MeasurementError(f"{name} did not say its {key}")
        return row

    return measure


# -- outcome -----------------------------------------------------------------------------------


def summary(rows: Sequence[Row]) -> list[Row]:
    """One entry for each contender, in the order of the first run: medians over the repetitions."""
    entries: list[Row] = []
    for name in dict.fromkeys(row["name"] for row in rows):
        mine = [row for row in rows if row["name"] == name]
        errors = [row["error"] for row in mine if "error" in row]
        good = [row for row in mine if "error" not in row]
        if not good:
            entries.append({"name": name, "title": TITLES.get(name, name), "error": errors[0]})
            continue
        returns = [row["return_mean"] for row in good if row["return_mean"] is not None]
        processor = [row["cpu_s"] for row in good if row.get("cpu_s") is not None]
        entries.append(
            {
                "name": name,
                "title": TITLES.get(name, name),
                "version": good[0]["version"],
                "runs": len(good),
                "setup_s": harness.median([row["setup_s"] for row in good]),
                "train_s": harness.median([row["train_s"] for row in good]),
                "cpu_s": harness.median(processor) if processor else None,
                "return_mean": harness.median(returns) if returns else None,
            }
        )
    ours = next((entry.get("train_s") for entry in entries if entry["name"] == OURS), None)
    for entry in entries:
        if ours and "train_s" in entry:
            entry["times_ours"] = entry["train_s"] / ours
    return sorted(entries, key=lambda entry: entry.get("train_s", float("inf")))


def overhead(rows: Sequence[Row]) -> dict[str, float] | None:
    """What link, log and screen add to the loop, as shares of the loop's time.

    "wall": the difference of the two times, which what else the machine does blurs. "host_cpu": the
    processor time of the host tools meanwhile, which is what they take from a board that has to
    share its core with them. The returns that a run reports on its way are training's, and do not
    count.
    """
    ours = [row for row in rows if row["name"] == OURS and "error" not in row]
    loops = [row for row in rows if row["name"] == LOOP and "error" not in row]
    if not ours or not loops:
        return None

    def middle(of: Sequence[Row], key: str) -> float:
        return harness.median([row[key] for row in of])

    added_s = middle(ours, "train_s") - middle(loops, "train_s") - middle(loops, "evaluations_s")
    return {
        "wall": added_s / middle(loops, "train_s"),
        "host_cpu": middle(ours, "host_cpu_s") / middle(loops, "cpu_s"),
    }


def title(document: Mapping[str, Any]) -> str:
    return f"{document['algorithm'].upper()} on Pendulum-v1, {document['steps']:,} steps"


def lines(document: Mapping[str, Any]) -> list[str]:
    """What a person reads."""
    machine = document["machine"]
    header = ("library", "version", "training", "processor", "times ours", "return", "setup")
    table = [header]
    reasons = []
    for entry in document["summary"]:
        if "error" in entry:
            table.append((entry["title"], "-", "-", "-", "-", "-", "-"))
            reasons.append(f"{entry['title']}: {entry['error']}")
            continue
        mean, cpu_s, ratio = entry["return_mean"], entry["cpu_s"], entry.get("times_ours")
        table.append(
            (
                entry["title"],
                str(entry["version"]),
                f"{entry['train_s']:.2f} s",
                "-" if cpu_s is None else f"{cpu_s:.2f} s",
                "-" if ratio is None else f"{ratio:.1f}",
                "-" if mean is None else f"{mean:.1f}",
                f"{entry['setup_s']:.1f} s",
            )
        )
    added = document["overhead"]
    logging = []
    if added is not None:
        logging.append(
            f"Link, log and screen add {100 * added['wall']:.1f} % to the loop's time; the host "
            f"tools' processor time is {100 * added['host_cpu']:.1f} % of the loop's."
        )
    return [
        f"{title(document)}, median of {document['repetitions']}, "
        f"{document['episodes']} evaluation episodes; one core of {machine['processor']} "
        f"({machine['cores']} cores, load average {document['load_average']})",
        "",
        *aligned(table),
        *reasons,
        "",
        *logging,
        *build_times.lines(document["build"]),
    ]


def draw_chart(document: Mapping[str, Any], path: Path) -> None:
    """A bar for each contender, the fastest on top."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    entries = [entry for entry in document["summary"] if "train_s" in entry][::-1]
    machine = document["machine"]
    style: Any = {"svg.fonttype": "none", "svg.hashsalt": "bench", "font.size": 11}
    with matplotlib.rc_context(style):
        figure, axes = pyplot.subplots(figsize=(8, 0.8 + 0.42 * len(entries)), layout="constrained")
        ours = (OURS, LOOP)
        colours = ["#c2410c" if entry["name"] in ours else "#64748b" for entry in entries]
        bars = axes.barh(
            [entry["title"] for entry in entries],
            [entry["train_s"] for entry in entries],
            color=colours,
        )
        axes.bar_label(bars, [f"{entry['train_s']:.2f} s" for entry in entries], padding=4)
        axes.margins(x=0.12)
        axes.set_xlabel("seconds")
        figure.suptitle(
            f"{title(document)}, one core of {machine['processor']}, {document['date']}",
            fontsize=11,
        )
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None})
        pyplot.close(figure)
