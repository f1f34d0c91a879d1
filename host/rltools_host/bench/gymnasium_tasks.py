"""`rlt bench gymnasium`: tasks of Gymnasium's, `rlt train gym:ID` against other libraries.

All learn with their own defaults, for equal steps, with layers of equal widths, on one thread.
Measured are the return of the last policy and the processor time. Ours is the time of `rlt train`
and of every process below it, from start to end, with one episode of evaluation; a peer's is that
of its learning alone, without imports. Several runs may go on at once, since nothing depends on
time on the clock.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import rltools_host
from rltools_host.bench import harness
from rltools_host.bench.contenders import OURS, PEER_LIMIT_S, rlt
from rltools_host.bench.harness import Row
from rltools_host.bench.training import TITLES, chosen_peers
from rltools_host.errors import RltError
from rltools_host.interruption import die_with
from rltools_host.runs.aggregates import interval_of_difference
from rltools_host.training.group_plan import parse_seeds
from rltools_host.tree import PROJECT

PEERS_DIRECTORY = harness.PEERS_DIRECTORY / "gymnasium"
EPISODES = 20
SEEDS = "0-4"
WARM_UP_STEPS = 2048  # of a first run, in which the program is compiled


class Task(NamedTuple):
    algorithm: str
    steps: int
    hidden: str = "64,64"


TASKS = {
    "CartPole-v1": Task("ppo", 60_000),
    "Acrobot-v1": Task("ppo", 60_000),
    "LunarLander-v3": Task("ppo", 60_000),
    "Swimmer-v5": Task("ppo", 60_000),
    "Hopper-v5": Task("ppo", 60_000),
    "Walker2d-v5": Task("ppo", 60_000),
    "Pendulum-v1": Task("sac", 10_000),
    "LunarLanderContinuous-v3": Task("sac", 20_000),
    "InvertedDoublePendulum-v5": Task("sac", 10_000),
    "Reacher-v5": Task("sac", 10_000),
    "HalfCheetah-v5": Task("sac", 10_000, "256,256"),
}


@dataclass(frozen=True)
class GymnasiumBenchmark:
    """What a user asks for; the two folders are other ones in tests."""

    tasks: str | None = None  # as typed: names with commas; None: all
    peers: str | None = None
    seeds: str = SEEDS  # as typed
    jobs: int = 1
    algorithm: str | None = None  # in place of each task's
    steps: int | None = None
    hidden: str | None = None
    episodes: int = EPISODES
    settings: Sequence[str] = ()  # of ours: NAME=VALUE
    peers_directory: Path = PEERS_DIRECTORY
    directory: Path = field(default_factory=lambda: PROJECT.benchmarks / "gymnasium")


class Order(NamedTuple):
    """One run. `python`: a peer's; None where the run is ours."""

    name: str
    task: str
    setting: Task
    seed: int
    episodes: int
    python: Path | None
    script: Path
    settings: tuple[str, ...]


def run(request: GymnasiumBenchmark) -> dict[str, Any]:
    """Measures, prints the table, returns what `--json` prints."""
    seeds = parse_seeds(request.seeds)
    harness.require_positive(jobs=request.jobs, episodes=request.episodes)
    given = {"algorithm": request.algorithm, "steps": request.steps, "hidden": request.hidden}
    changes: Any = {name: value for name, value in given.items() if value is not None}
    tasks = {
        name: TASKS[name]._replace(**changes) for name in harness.chosen_tasks(request.tasks, TASKS)
    }
    names = [OURS, *chosen_peers("run", request.peers, False, request.peers_directory)]
    pythons: dict[str, Path | None] = {OURS: None}
    rows: list[Row] = []
    for name in names[1:]:
        requirements = request.peers_directory / name / "requirements.txt"
        try:
            pythons[name] = harness.python_of(name, requirements, request.directory)
        except RltError as error:
            rows += [{"name": name, "task": task, "error": str(error)} for task in tasks]
    orders = [
        Order(
            *(name, task, setting, seed, request.episodes, python),
            request.peers_directory / name / "run.py",
            tuple(request.settings),
        )
        for seed in seeds
        for task, setting in tasks.items()
        for name, python in pythons.items()
    ]
    warm_up = [
        order._replace(setting=order.setting._replace(steps=WARM_UP_STEPS), episodes=1)
        for order in orders
        if order.python is None and order.seed == seeds[0]
    ]
    document: dict[str, Any] = {
        "tasks": {name: task._asdict() for name, task in tasks.items()},
        "episodes": request.episodes,
        "settings": list(request.settings),
        **harness.conditions(),
    }
    for order in warm_up:
        print(f"{order.task}: {said_of(measured(order))}", file=sys.stderr)
    request.directory.mkdir(parents=True, exist_ok=True)
    for row in all_measured(orders, request.jobs):
        rows.append(row)
        print(f"{row['task']}, {row['name']}, seed {row['seed']}: {said_of(row)}", file=sys.stderr)
        sys.stderr.flush()
        document.update(rows=rows, summary=summary(rows, tasks, names))
        harness.store(document, request.directory / "result.json")  # what is there so far
    print("\n".join(lines(document)))
    return document


def all_measured(orders: Sequence[Order], jobs: int) -> Iterator[Row]:
    """Rows as they come. Each has a process of its own, whose children's time is the run's."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        jobs, context, die_with, (os.getpid(),), max_tasks_per_child=1
    ) as pool:
        try:
            for done in as_completed([pool.submit(measured, order) for order in orders]):
                yield done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def measured(order: Order) -> Row:
    key = {"name": order.name, "task": order.task, "seed": order.seed}
    try:
        measure = train_ours if order.python is None else train_peer
        return {**key, **measure(order)}
    except RltError as error:
        return {**key, "error": str(error)}


def said_of(row: Row) -> str:
    if "error" in row:
        return str(row["error"])
    return f"return {row['return_mean']:.1f}, {row['cpu_s']:.1f} s of processor time"


def train_ours(order: Order) -> Row:
    algorithm, steps, hidden = order.setting
    with tempfile.TemporaryDirectory() as directory:
        folder = str(Path(directory) / "run")
        words = ["--algorithm", algorithm, "--steps", str(steps), "--hidden", hidden]
        words += ["--seed", str(order.seed), "--board", "host", "--set", f"eval_every={steps}"]
        words += ["--set", "eval_episodes=1"]  # `rlt evaluate` judges the policy
        words += [word for setting in order.settings for word in ("--set", setting)]
        before_s = children_s()
        rlt(
            ["train", f"gym:{order.task}", *words, "--no-tensorboard", "--out", folder],
            harness.ONE_THREAD,
        )
        cpu_s = children_s() - before_s
        played = rlt(["evaluate", folder, "--episodes", str(order.episodes)], harness.ONE_THREAD)
    version = rltools_host.__version__
    return {"version": version, "cpu_s": cpu_s, "return_mean": played["return_mean"]}


def children_s() -> float:
    """Processor time of this process's ended children and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def train_peer(order: Order) -> Row:
    assert order.python is not None
    algorithm, steps, hidden = order.setting
    arguments: list[object] = ["--task", order.task, "--algorithm", algorithm, "--hidden", hidden]
    arguments += ["--steps", steps, "--seed", order.seed, "--episodes", order.episodes]
    row = harness.measure(order.name, order.python, order.script, arguments, PEER_LIMIT_S)
    return harness.complete(order.name, row, ("version", "cpu_s", "return_mean"))


def summary(rows: Sequence[Row], tasks: Mapping[str, Task], names: Sequence[str]) -> list[Row]:
    """One entry for each task and contender: means over the seeds, and a peer's against ours."""
    entries: list[Row] = []
    for task, setting in tasks.items():
        ours: Row = {}
        for name in names:
            mine = [row for row in rows if (row["name"], row["task"]) == (name, task)]
            good = sorted((row for row in mine if "error" not in row), key=lambda row: row["seed"])
            entry = {"name": name, "task": task, **setting._asdict(), "title": task}
            if not good:
                reasons = [row["error"] for row in mine]
                entries.append({**entry, "error": reasons[0] if reasons else "not yet"})
                continue
            returns = [float(row["return_mean"]) for row in good]
            entry.update(
                runs=len(good),
                version=good[0]["version"],
                returns=returns,
                return_mean=fmean(returns),
                cpu_s=harness.median([float(row["cpu_s"]) for row in good]),
            )
            if name == OURS:
                ours = entry
            elif ours:
                entry["difference"] = fmean(ours["returns"]) - fmean(returns)
                entry["difference_interval"] = interval_of_difference(ours["returns"], returns)
                entry["times_ours"] = entry["cpu_s"] / ours["cpu_s"]
            entries.append(entry)
    return entries


def lines(document: Mapping[str, Any]) -> list[str]:
    """What a person reads."""
    header = (
        *("task", "algorithm", "steps", "layers", "library"),
        *("return", "ours less theirs (95 %)", "processor", "times ours"),
    )
    heading = f"Mean return of {document['episodes']} episodes, means over seeds"
    return [
        f"{heading}; {harness.machine_text(document)}",
        "",
        *harness.table(header, document["summary"], cells),
    ]


def cells(entry: Row) -> tuple[str, ...]:
    ends = entry.get("difference_interval")
    interval = f" ({ends[0]:.1f} to {ends[1]:.1f})" if ends else ""
    return (
        entry["algorithm"].upper(),
        f"{entry['steps']:,}",
        entry["hidden"],
        f"{TITLES.get(entry['name'], entry['name'])} {entry['version']}",
        f"{entry['return_mean']:.1f}",
        harness.shown(entry.get("difference"), "{:.1f}") + interval,
        f"{entry['cpu_s']:.1f} s",
        harness.shown(entry.get("times_ours"), "{:.1f}"),
    )
