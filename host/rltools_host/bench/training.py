"""`rlt bench train`: Pendulum-v1, ours against other libraries, as in the paper's figure 1.

All are held to one core and one thread and take turns, so that what else the machine does meets
all of them. Only the training loop is timed; imports and compilation are reported apart. The
newest result of this machine stays in build/bench, from where a run's report takes it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rltools_host.bench import build_times, harness
from rltools_host.bench.contenders import OURS, peer, train_loop, train_ours
from rltools_host.bench.harness import Row
from rltools_host.boards.description import load_board
from rltools_host.build import cmake, experiments, firmware
from rltools_host.errors import RltError, UsageError, near_matches, unknown_name
from rltools_host.tree import PROJECT

ALGORITHMS = ("td3", "sac")
STEPS = 10_000
EPISODES = 100
REPETITIONS = 3
QUICK_PEER = "pytorch"
PEERS_DIRECTORY = harness.PEERS_DIRECTORY / "training"


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


def result_path(algorithm: str, directory: Path | None = None) -> Path:
    """Where this machine's newest result lies."""
    return (directory or PROJECT.benchmarks) / f"train-{algorithm}.json"


@dataclass(frozen=True)
class TrainingBenchmark:
    """What a user asks for; the two folders are other ones in tests."""

    quick: bool = False
    peers: str | None = None  # as typed: names with commas; None: all
    repetitions: int | None = None
    steps: int = STEPS
    episodes: int = EPISODES
    chart: Path | None = None
    algorithm: str = "td3"
    peers_directory: Path = PEERS_DIRECTORY
    environments_directory: Path = field(default_factory=lambda: PROJECT.benchmarks)


def run(request: TrainingBenchmark) -> dict[str, Any]:
    """Measures, prints the table, draws a chart where asked, returns what `--json` prints."""
    algorithm, steps, episodes = request.algorithm, request.steps, request.episodes
    environments_directory = request.environments_directory
    if request.quick and request.peers is not None and request.repetitions is not None:
        raise UsageError(
            "--quick has no effect beside --peers and --repetitions: leave it out, or one of them"
        )
    usual = 1 if request.quick else REPETITIONS
    count = usual if request.repetitions is None else request.repetitions
    harness.require_positive(repetitions=count, steps=steps, episodes=episodes)
    if algorithm not in ALGORITHMS:
        raise unknown_name("algorithm", algorithm, ALGORITHMS)
    names = chosen_peers(algorithm, request.peers, request.quick, request.peers_directory)
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
            folder = request.peers_directory / name
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
        **harness.conditions(),
    }
    print("\n".join(lines(document)))
    harness.store(document, result_path(algorithm, environments_directory))
    if request.chart is not None:
        draw_chart(document, request.chart)
        print(f"wrote {request.chart}")
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
                print(f"{name}, seed {seed}: {said}", file=sys.stderr)
    return rows


OUR_COLOUR, OTHER_COLOUR = "#c2410c", "#64748b"


class Bar(NamedTuple):
    title: str
    value: float
    label: str
    is_ours: bool


class Panel(NamedTuple):
    """Bars on one axis."""

    bars: Sequence[Bar]
    unit: str
    is_logarithmic: bool = False


def bars_of(entries: Sequence[Row], key: str, form: str, ours: Sequence[str]) -> list[Bar]:
    """A bar for each entry of a summary that has this figure."""
    return [
        Bar(entry["title"], entry[key], form.format(entry[key]), entry["name"] in ours)
        for entry in entries
        if key in entry
    ]


def draw_bars(bars: Sequence[Bar], title: str, unit: str, path: Path) -> None:
    draw_panels([Panel(bars, unit)], title, path)


def draw_panels(panels: Sequence[Panel], title: str, path: Path) -> None:
    """Into an SVG, one below the other."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    counts = [len(panel.bars) for panel in panels]
    size = (8, 0.8 * len(panels) + 0.42 * sum(counts))
    style: Any = {"svg.fonttype": "none", "svg.hashsalt": "bench", "font.size": 11}
    with matplotlib.rc_context(style):
        figure, rows = pyplot.subplots(
            *(len(panels), 1),
            figsize=size,
            layout="constrained",
            height_ratios=counts,
            squeeze=False,
        )
        for axes, panel in zip(rows[:, 0], panels, strict=True):
            drawn = panel.bars[::-1]
            rectangles = axes.barh(
                [bar.title for bar in drawn],
                [bar.value for bar in drawn],
                color=[OUR_COLOUR if bar.is_ours else OTHER_COLOUR for bar in drawn],
            )
            axes.bar_label(rectangles, [bar.label for bar in drawn], padding=4)
            if panel.is_logarithmic:
                axes.set_xscale("log")
            axes.margins(x=0.12)
            axes.set_xlabel(panel.unit)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
        figure.suptitle(title, fontsize=11)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None})
        pyplot.close(figure)


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
    header = ("library", "version", "training", "processor", "times ours", "return", "setup")
    added = document["overhead"]
    logging = []
    if added is not None:
        logging.append(
            f"Link, log and screen add {100 * added['wall']:.1f} % to the loop's time; the host "
            f"tools' processor time is {100 * added['host_cpu']:.1f} % of the loop's."
        )
    return [
        f"{title(document)}, median of {document['repetitions']}, "
        f"{document['episodes']} evaluation episodes; one core of "
        f"{harness.machine_text(document)}",
        "",
        *harness.table(header, document["summary"], cells),
        "",
        *logging,
        *build_times.lines(document["build"]),
    ]


def cells(entry: Row) -> tuple[str, ...]:
    return (
        str(entry["version"]),
        f"{entry['train_s']:.2f} s",
        harness.shown(entry["cpu_s"], "{:.2f} s"),
        harness.shown(entry.get("times_ours"), "{:.1f}"),
        harness.shown(entry["return_mean"], "{:.1f}"),
        f"{entry['setup_s']:.1f} s",
    )


def bars(document: Mapping[str, Any]) -> list[Bar]:
    """A bar for each contender, the fastest on top."""
    return bars_of(document["summary"], "train_s", "{:.2f} s", (OURS, LOOP))


def draw_chart(document: Mapping[str, Any], path: Path) -> None:
    processor, date = document["machine"]["processor"], document["date"]
    heading = f"{title(document)}, one core of {processor}, {date}"
    draw_bars(bars(document), heading, "seconds", path)
