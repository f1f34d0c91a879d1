"""`rlt bench train`: TD3 on Pendulum-v1, ours against other libraries, as in the paper's figure 1.

All are held to one core and one thread and take turns, so that what else the machine does meets
all of them. Only the training loop is timed; imports and compilation are reported apart.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import rltools_host
from rltools_host import bench, bench_environment, build, evaluate, paths, toolchain
from rltools_host.boards import load_board
from rltools_host.doctor import aligned
from rltools_host.errors import RltError, UsageError, near_matches
from rltools_host.policy_image import read_run_policy
from rltools_host.run_folder import RunFolder

EXPERIMENT = "pendulum-td3"
STEPS = 10_000
EPISODES = 100
REPETITIONS = 3
QUICK_PEER = "pytorch_td3"
PEER_LIMIT_S = 1800.0
PEERS_DIRECTORY = bench.BENCHMARKS_DIRECTORY / "peers"
CHART = paths.REPOSITORY / "docs" / "images" / "bench_train.svg"

OURS = "ours"
LOOP = "ours, loop alone"
TITLES = {
    OURS: "this repository, rlt train",
    LOOP: "this repository, loop alone",
    "pytorch_td3": "PyTorch, single file",
    "rltools": "PyPI rltools, MKL",
    "sbx": "sbx",
    "skrl": "skrl",
    "stable_baselines3": "Stable-Baselines3",
    "tianshou": "Tianshou",
}

Row = dict[str, Any]


def peer_names(directory: Path = PEERS_DIRECTORY) -> list[str]:
    return sorted(script.parent.name for script in directory.glob("*/run.py"))


def chosen_peers(peers: str | None, quick: bool, directory: Path) -> list[str]:
    known = peer_names(directory)
    if peers is None:
        return [QUICK_PEER] if quick else known
    names = [name.strip() for name in peers.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise UsageError(f'--peers: unknown peer "{name}": {near_matches(name, known)}')
    return list(dict.fromkeys(names))


def run(
    json_output: bool = False,
    quick: bool = False,
    peers: str | None = None,
    repetitions: int | None = None,
    steps: int = STEPS,
    episodes: int = EPISODES,
    chart: Path | None = None,
    peers_directory: Path = PEERS_DIRECTORY,
    environments_directory: Path = bench.ENVIRONMENTS_DIRECTORY,
) -> dict[str, Any]:
    """Measures, prints the table, draws the chart and returns what `--json` prints."""
    count = repetitions or (1 if quick else REPETITIONS)
    bench.require_positive(repetitions=count, steps=steps, episodes=episodes)
    names = chosen_peers(peers, quick, peers_directory)
    build.build_firmware(load_board("host"), EXPERIMENT)
    build.describe(EXPERIMENT)
    build.host_library("policy")
    bench.build_program("roofline")
    contenders: dict[str, Callable[[int], Row]] = {
        OURS: lambda seed: train_ours(seed, steps, episodes),
        LOOP: lambda _: train_loop(steps),
    }
    rows: list[Row] = []
    for name in names:
        try:
            contenders[name] = peer(
                name, peers_directory / name, environments_directory, steps, episodes
            )
        except RltError as error:
            rows.append({"name": name, "error": str(error)})
    rows += take_turns(contenders, count)
    document = {
        "rows": rows,
        "build": build_times(environments_directory / "build-time"),
        "summary": summary(rows),
        "steps": steps,
        "episodes": episodes,
        "repetitions": count,
        "machine": bench.machine(),
        "load_average": bench.load_average(),
        "date": datetime.now(timezone.utc).date().isoformat(),
    }
    print("\n".join(lines(document)))
    whole = steps == STEPS and names == peer_names()
    if chart is not None or whole:
        path = chart or CHART
        draw_chart(document, path)
        print(f"wrote {path}")
    if json_output:
        print(json.dumps(document))
    return document


def build_times(directory: Path) -> dict[str, float]:
    """Seconds to build what `rlt train` needs: from nothing, and where nothing has changed."""
    board = load_board("host")
    targets = [EXPERIMENT, f"describe-{EXPERIMENT}"]
    build.build_targets(board, targets, directory=directory)
    clean = [toolchain.program("ninja"), "-C", str(directory), "-t", "clean", *targets]
    subprocess.run(clean, check=True, capture_output=True, timeout=60)
    seconds = []
    for _ in range(2):
        started = time.monotonic()
        build.build_targets(board, targets, directory=directory, announcement="Timing a build")
        seconds.append(time.monotonic() - started)
    return {"from_nothing_s": seconds[0], "unchanged_s": seconds[1]}


def take_turns(contenders: Mapping[str, Callable[[int], Row]], count: int) -> list[Row]:
    """Every contender once, then all again with the next seed; who fails is not asked again."""
    rows: list[Row] = []
    failed: set[str] = set()
    with bench.pinned() as core:
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


def train_ours(seed: int, steps: int, episodes: int) -> Row:
    """`rlt train --board host` as users run it: with screen, log and checkpoint."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory) / "run"
        command = [
            *(sys.executable, "-m", "rltools_host", "train", EXPERIMENT, "--board", "host"),
            *("--seed", str(seed), "--steps", str(steps), "--out", str(folder), "--json"),
        ]
        variables = {"PYTHONPATH": str(paths.REPOSITORY / "host")}
        started = time.monotonic()
        result = bench.run_to_end(
            "rlt train", command, PEER_LIMIT_S, bench.one_thread_environment(variables)
        )
        total_s = time.monotonic() - started
        if result.returncode != 0:
            raise bench.MeasurementError(f"rlt train: {bench_environment.last_line(result.stderr)}")
        document = json.loads(result.stdout.splitlines()[-1])
        image = read_run_policy(RunFolder.open(str(folder)))
        outcome = evaluate.evaluate_policy(image, str(folder), episodes, 0, evaluate.GYMNASIUM)
    return {
        "version": rltools_host.__version__,
        "setup_s": total_s - document["train_s"],
        "train_s": document["train_s"],
        "return_mean": outcome.mean,
        "seed": seed,
        "steps": steps,
    }


def train_loop(steps: int) -> Row:
    """The same training in one process, without link, screen and log."""
    raw, _ = bench.run_program("roofline", steps, 1, 1)
    return {
        "version": rltools_host.__version__,
        "setup_s": 0.0,
        "train_s": raw["wall_s"][0],
        "cpu_s": raw["plain_s"][0],
        "return_mean": None,
        "seed": 0,
        "steps": steps,
    }


def peer(
    name: str, folder: Path, environments: Path, steps: int, episodes: int
) -> Callable[[int], Row]:
    """A peer in its own environment, which is made here and now."""
    python = bench_environment.python_of(name, folder / "requirements.txt", environments)
    script = folder / "run.py"

    def measure(seed: int) -> Row:
        arguments = ["--seed", seed, "--steps", steps, "--episodes", episodes]
        row = bench_environment.measure(name, python, script, arguments, PEER_LIMIT_S)
        for key in ("version", "setup_s", "train_s", "return_mean", "seed"):
            if key not in row:
                raise bench.MeasurementError(f"{name} did not say its {key}")
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
                "setup_s": bench.median([row["setup_s"] for row in good]),
                "train_s": bench.median([row["train_s"] for row in good]),
                "cpu_s": bench.median(processor) if processor else None,
                "return_mean": bench.median(returns) if returns else None,
            }
        )
    ours = next((entry.get("train_s") for entry in entries if entry["name"] == OURS), None)
    for entry in entries:
        if ours and "train_s" in entry:
            entry["times_ours"] = entry["train_s"] / ours
    return sorted(entries, key=lambda entry: entry.get("train_s", float("inf")))


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
    return [
        f"TD3 on Pendulum-v1, {document['steps']:,} steps, median of {document['repetitions']}, "
        f"{document['episodes']} evaluation episodes; one core of {machine['processor']} "
        f"({machine['cores']} cores, load average {document['load_average']})",
        "",
        *aligned(table),
        *reasons,
        "",
        f"Building {EXPERIMENT}: {document['build']['from_nothing_s']:.1f} s from nothing, "
        f"{document['build']['unchanged_s']:.2f} s where nothing has changed.",
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
            f"TD3 on Pendulum-v1, {document['steps']:,} steps, one core of "
            f"{machine['processor']}, {document['date']}",
            fontsize=11,
        )
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None})
        pyplot.close(figure)
