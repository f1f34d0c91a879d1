"""`rlt bench train`: Pendulum-v1, ours against other libraries, as in the paper's figure 1.

All are held to one core and one thread and take turns, so that what else the machine does meets
all of them. Only the training loop is timed; imports and compilation are reported apart.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

import rltools_host
from benchmarks import harness
from benchmarks.harness import Bar, Chart, Json, Panel, Peers, Row
from rltools_host.build import cmake, experiments, firmware
from rltools_host.build.boards import load_board
from rltools_host.errors import RltError, UsageError, unknown_name
from rltools_host.policies import evaluation
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder

PEERS = "training"
ALGORITHMS = ("td3", "sac", "xqc")
STEPS, EPISODES, REPETITIONS = 10_000, 100, 3
QUICK_PEER = "pytorch"
OURS, LOOP = "ours", "ours, loop alone"
TITLES = {
    OURS: "this repository, rlt train",
    LOOP: "this repository, loop alone",
    "pytorch": "PyTorch, single file",
    "rltools": "PyPI rltools, MKL",
    "stable_baselines3": "Stable-Baselines3",
    "tianshou": "Tianshou",
}


def train(
    quick: Annotated[
        bool, typer.Option("--quick", help="Compare with plain PyTorch only, once.")
    ] = False,
    peers: Peers = None,
    repetitions: Annotated[
        int | None, typer.Option(metavar="N", help="Runs of each, with seeds 0, 1 and so on.")
    ] = None,
    steps: Annotated[int, typer.Option(metavar="N", help="Environment steps of a run.")] = STEPS,
    chart: Chart = None,
    algorithm: Annotated[str, typer.Option(metavar="ALGORITHM", help="td3, sac or xqc.")] = "td3",
    json_output: Json = False,
) -> None:
    """Compare the training time with other libraries."""
    algorithm = algorithm.lower()
    if quick and peers is not None and repetitions is not None:
        raise UsageError(
            "--quick has no effect beside --peers and --repetitions: leave it out, or one of them"
        )
    count = repetitions if repetitions is not None else 1 if quick else REPETITIONS
    harness.require_positive(repetitions=count, steps=steps)
    if algorithm not in ALGORITHMS:
        raise unknown_name("algorithm", algorithm, ALGORITHMS)
    names = harness.chosen_peers(
        PEERS, QUICK_PEER if quick and peers is None else peers, f"{algorithm}.py"
    )
    experiment = f"pendulum-{algorithm}"
    experiments.describe(experiment)
    firmware.build_firmware(load_board("host"), experiment)
    cmake.host_library("policy")
    harness.build_program("training_loop")
    contenders: dict[str, Callable[[int], Row]] = {
        OURS: partial(train_ours, experiment, steps),
        LOOP: partial(train_loop, algorithm, steps),
    }
    rows: list[Row] = []
    for name in names:
        try:
            harness.python_of(PEERS, name)
            contenders[name] = partial(train_peer, name, algorithm, steps)
        except RltError as error:
            rows.append({"name": name, "error": str(error)})
    rows += take_turns(contenders, count)
    document = {
        "algorithm": algorithm,
        "rows": rows,
        "summary": summary(rows),
        "overhead": overhead(rows),
        "steps": steps,
        "episodes": EPISODES,
        "repetitions": count,
        **harness.conditions(),
    }
    harness.tell(document, lines(document), json_output)
    if chart is not None:
        panel = Panel(bars(document), "seconds")
        harness.draw_panels([panel], f"{title(document)}, one core", document, chart)


# ---- Contenders ----------------------------------------------------------------------------------


def train_ours(experiment: str, steps: int, seed: int) -> Row:
    """Run `rlt train --board host` as users do: with the live screen, log and checkpoint."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory) / "run"
        words = ["--board", "host", "--seed", str(seed), "--steps", str(steps)]
        started = time.monotonic()
        document = harness.train_on_a_terminal(experiment, words, folder, harness.ONE_THREAD)
        total_s = time.monotonic() - started
        image = read_run_policy(RunFolder.open(str(folder)))
        outcome = evaluation.evaluate_policy(image, str(folder), EPISODES, 0, evaluation.GYMNASIUM)
    return {
        "version": rltools_host.__version__,
        "setup_s": total_s - document["train_s"],
        "train_s": document["train_s"],
        "host_cpu_s": document["host_cpu_s"],
        "return_mean": outcome.mean,
        "seed": seed,
        "steps": steps,
    }


def train_loop(algorithm: str, steps: int, seed: int) -> Row:
    """Run the same training in one process, without link, screen and log; its seed is 0."""
    del seed
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


def train_peer(name: str, algorithm: str, steps: int, seed: int) -> Row:
    """Run a peer's script in its own environment."""
    arguments = ["--seed", seed, "--steps", steps, "--episodes", EPISODES]
    return harness.measure(PEERS, name, arguments, f"{algorithm}.py")


def take_turns(contenders: Mapping[str, Callable[[int], Row]], count: int) -> list[Row]:
    """Run every contender once, then all again with the next seed, but for those that failed."""
    rows: list[Row] = []
    failed: set[str] = set()
    with harness.pinned() as core:
        for seed in range(count):
            for name, measure in contenders.items():
                if name in failed:
                    continue
                try:
                    row = {"name": name, **measure(seed), "core": core}
                    outcome = f"{row['train_s']:.2f} s"
                except RltError as error:
                    failed.add(name)
                    row = {"name": name, "error": str(error)}
                    outcome = str(error)
                rows.append(row)
                print(f"{name}, seed {seed}: {outcome}", file=sys.stderr)
    return rows


# ---- Figures -------------------------------------------------------------------------------------


def summary(rows: Sequence[Row]) -> list[Row]:
    """Return medians over the repetitions, an entry for each contender, the fastest first."""
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
    """Return what link, log and screen add to the loop, as shares of the loop's time.

    "wall": the difference of the two times, which what else the machine does blurs. "host_cpu": the
    processor time of the host tools meanwhile, which is what they take from a board that has to
    share its core with them. The returns that a run reports on its way are training's, and do not
    count.
    """
    ours = [row for row in rows if row["name"] == OURS and "error" not in row]
    loops = [row for row in rows if row["name"] == LOOP and "error" not in row]
    if not ours or not loops:
        return None

    def middle(chosen: Sequence[Row], key: str) -> float:
        return harness.median([row[key] for row in chosen])

    added_s = middle(ours, "train_s") - middle(loops, "train_s") - middle(loops, "evaluations_s")
    return {
        "wall": added_s / middle(loops, "train_s"),
        "host_cpu": middle(ours, "host_cpu_s") / middle(loops, "cpu_s"),
    }


def title(document: Mapping[str, Any]) -> str:
    """Return the task and its length."""
    return f"{document['algorithm'].upper()} on Pendulum-v1, {document['steps']:,} steps"


def lines(document: Mapping[str, Any]) -> list[str]:
    """Return the table for people."""
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
    ]


def cells(entry: Row) -> tuple[str, ...]:
    """Return a contender's cells."""
    return (
        str(entry["version"]),
        f"{entry['train_s']:.2f} s",
        harness.shown(entry["cpu_s"], "{:.2f} s"),
        harness.shown(entry.get("times_ours"), "{:.1f}"),
        harness.shown(entry["return_mean"], "{:.1f}"),
        f"{entry['setup_s']:.1f} s",
    )


def bars(document: Mapping[str, Any]) -> list[Bar]:
    """Return a bar for each contender, the fastest on top."""
    return harness.bars_of(document["summary"], "train_s", "{:.2f} s", (OURS, LOOP))


if __name__ == "__main__":
    harness.main(train, "--quick")
