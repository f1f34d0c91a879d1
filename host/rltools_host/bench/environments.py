"""`rlt bench environments`: steps a second, ours against Gymnasium's and EnvPool's environments.

All take turns, and the others are stopped meanwhile. Every step has its observation and reward, and
an episode that ends is begun anew. MuJoCo's tasks are beside that compared with MuJoCo's own loop.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import rltools_host
from rltools_host.bench import harness
from rltools_host.bench.contenders import PPO_PEERS_DIRECTORY
from rltools_host.bench.harness import Contender, Row
from rltools_host.errors import RltError
from rltools_host.lines import aligned
from rltools_host.toolchain import tools
from rltools_host.tree import PROJECT

OURS, OURS_THREADS = "ours", "ours-threads"
GYMNASIUM = "gymnasium"
ENVPOOL, ENVPOOL_THREADS = "envpool", "envpool-threads"
THREADED = (OURS_THREADS, ENVPOOL_THREADS)
ROUNDS = 5
LIMIT_S = 600.0
TURN_S = 0.3  # about, where steps all take the same time
STEPS_OF_EACH = 50  # of every environment in a turn, where they do not


class Task(NamedTuple):
    """What is measured of an environment, and the program that has it.

    Where a step's time depends on the state all contenders do the same steps in a turn, as theirs
    are then alike.
    """

    program: str
    counts: tuple[int, ...]
    depends_on_state: bool
    needs: str | None  # a group of Python packages
    has_peers: bool = True  # whether Gymnasium and EnvPool have it too


def quadrotor_task(*counts: int) -> Task:
    return Task("quadrotor_environment_steps", counts, False, None, has_peers=False)


def mujoco_task() -> Task:
    return Task("mujoco_environment_steps", (1, 64), True, "mujoco")


TASKS = {
    "Pendulum-v1": Task("environment_steps", (1, 64, 1024), False, None),
    "Quadrotor": quadrotor_task(1, 64, 1024),
    "Quadrotor-history": quadrotor_task(1024),
    "Quadrotor-dynamics": quadrotor_task(1024),
    "Ant-v4": mujoco_task(),
    "HalfCheetah-v4": mujoco_task(),
    "Hopper-v4": mujoco_task(),
    "Walker2d-v4": mujoco_task(),
    "Humanoid-v4": mujoco_task(),
}
Starter = Callable[[], Contender]


def run(
    tasks: str | None = None,
    threads: int = 2,
    rounds: int = ROUNDS,
    directory: Path | None = None,
    with_envpool: bool = True,
) -> dict[str, Any]:
    """Measures, prints the tables, returns what `--json` prints."""
    harness.require_positive(threads=threads, rounds=rounds)
    directory = directory or PROJECT.benchmarks
    names = harness.chosen_tasks(tasks, TASKS)
    rows: list[Row] = []
    failures: dict[str, str] = {}
    versions: dict[str, str] = {}
    with harness.pinned(threads):
        for program in dict.fromkeys(TASKS[name].program for name in names):
            mine = [name for name in names if TASKS[name].program == program]
            known = starters(program, TASKS[mine[0]].needs, threads, directory, with_envpool)
            rows += measured(known, mine, rounds, failures, versions)
    loops = own_loops([name for name in names if TASKS[name].depends_on_state], rounds, failures)
    document = {
        "threads": threads,
        "rounds": rounds,
        "rows": rows,
        "loops": loops,
        "versions": versions,
        "errors": failures,
        "summary": summary(rows),
        **harness.conditions(),
    }
    print("\n".join(lines(document)))
    harness.store(document, directory / "environments.json")
    return document


def starters(
    program: str, group: str | None, threads: int, directory: Path, with_envpool: bool
) -> dict[str, Starter]:
    """How each contender is started, in the order of their turns."""

    def ours(name: str, board: str, count: int) -> Contender:
        if group is not None:
            tools.ensure_group(group)
        path = harness.build_program(program, board)
        variables = {"RLT_THREADS": str(count)}
        contender = Contender(name, [str(path)], variables, directory / f"{name}.log", LIMIT_S)
        contender.introduction["version"] = rltools_host.__version__
        return contender

    def script(name: str, command: Sequence[object], count: int) -> Contender:
        variables = {
            **harness.thread_variables(count),
            "PYTHONPATH": str(harness.PEERS_DIRECTORY),
        }
        words = list(map(str, command))
        return Contender(name, words, variables, directory / f"{name}.log", LIMIT_S)

    def gymnasium() -> Contender:
        if group is not None:
            tools.ensure_group(group)
        return script(
            GYMNASIUM,
            [sys.executable, harness.PEERS_DIRECTORY / "gymnasium_environments.py"],
            1,
        )

    def envpool(name: str, count: int) -> Contender:
        folder = PPO_PEERS_DIRECTORY / "envpool"
        requirements = folder / "requirements.txt"
        python = harness.python_of("envpool", requirements, PROJECT.benchmarks / "ppo")
        return script(name, [python, folder / "environments.py", count], count)

    known: dict[str, Starter] = {
        OURS: lambda: ours(OURS, "host", 1),
        GYMNASIUM: gymnasium,
        OURS_THREADS: lambda: ours(OURS_THREADS, "host-threads", threads),
    }
    if with_envpool:
        known[ENVPOOL] = lambda: envpool(ENVPOOL, 1)
        known[ENVPOOL_THREADS] = lambda: envpool(ENVPOOL_THREADS, threads)
    if threads == 1:
        known = {name: start for name, start in known.items() if name not in THREADED}
    return known


def measured(
    known: Mapping[str, Starter],
    tasks: Sequence[str],
    rounds: int,
    failures: dict[str, str],
    versions: dict[str, str],
) -> list[Row]:
    """Every contender once for a task and a number of environments, then all again."""
    rows: list[Row] = []
    contenders: dict[str, Contender] = {}
    try:
        for name, start in known.items():
            try:
                contenders[name] = start()
                said = contenders[name].introduction
                versions[name] = str(said.get("simulator", said.get("version", "")))
            except RltError as error:
                failures[name] = str(error)
        for task in tasks:
            for count in TASKS[task].counts:
                rows += turns_of(contenders, task, count, rounds, failures)
    finally:
        for contender in contenders.values():
            contender.end()
    return rows


def turns_of(
    contenders: Mapping[str, Contender],
    task: str,
    count: int,
    rounds: int,
    failures: dict[str, str],
) -> list[Row]:
    """Turn 0 warms up, and says how many steps the others have where that is not fixed."""
    rows: list[Row] = []
    steps = dict.fromkeys(contenders, steps_of_turn(count, None))
    for turn in range(rounds + 1):
        for name, contender in contenders.items():
            if name in failures or (name in THREADED and count == 1):
                continue
            if name not in (OURS, OURS_THREADS) and not TASKS[task].has_peers:
                continue
            try:
                answer = contender.turn(f"{task} {count} {steps[name]}", LIMIT_S)
                row = {key: answer[key] for key in ("steps", "wall_s", "cpu_s")}
            except (KeyError, RltError) as error:
                failures[name] = f"{task}: {error}"
                continue
            if turn:
                rows.append({"task": task, "count": count, "name": name, "turn": turn, **row})
            elif not TASKS[task].depends_on_state:
                steps[name] = steps_of_turn(count, row["wall_s"] / row["steps"])
    print(f"{task}, {count}: measured", file=sys.stderr)
    return rows


def steps_of_turn(count: int, step_s: float | None) -> int:
    """A multiple of `count`: a fixed number of each environment, or as many as TURN_S has."""
    least = STEPS_OF_EACH * (count if count > 1 else 20)
    if step_s is None:
        return least
    return max(least, int(TURN_S / step_s) // count * count)


def own_loops(tasks: Sequence[str], rounds: int, failures: dict[str, str]) -> dict[str, Any]:
    """Of each task the environment against MuJoCo's own loop, by turns within one program."""
    if not tasks:
        return {}
    try:
        tools.ensure_group("mujoco")
        found, _ = harness.run_program("mujoco_steps", rounds)
    except RltError as error:
        failures["MuJoCo's own loop"] = str(error)
        return {}
    for task, row in found.items():
        if not row["same_positions"]:
            failures["MuJoCo's own loop"] = f"{task} comes to other positions"
            return {}
    return {task: found[task] for task in tasks if task in found}


ORDER = (OURS, GYMNASIUM, ENVPOOL, OURS_THREADS, ENVPOOL_THREADS)
PAIRS = ((OURS, GYMNASIUM), (OURS, ENVPOOL), (OURS_THREADS, ENVPOOL_THREADS))


def summary(rows: Sequence[Row]) -> list[Row]:
    """An entry for each task and number of environments: medians, and medians of the ratios."""
    entries: list[Row] = []
    for task, count in dict.fromkeys((row["task"], row["count"]) for row in rows):
        mine = [row for row in rows if (row["task"], row["count"]) == (task, count)]
        rates = {
            name: {row["turn"]: row["steps"] / row["wall_s"] for row in mine if row["name"] == name}
            for name in ORDER
        }
        entry: Row = {"task": task, "count": count, "steps_s": {}, "ratios": {}}
        for name, by_turn in rates.items():
            if by_turn:
                entry["steps_s"][name] = harness.median(list(by_turn.values()))
        for one, other in PAIRS:
            both = rates[one].keys() & rates[other].keys()
            if both:
                ratios = [rates[one][turn] / rates[other][turn] for turn in sorted(both)]
                entry["ratios"][f"{one}/{other}"] = harness.median(ratios)
        entries.append(entry)
    return entries


def lines(document: Mapping[str, Any]) -> list[str]:
    """What a person reads."""
    threads = document["threads"]
    titles = {
        OURS: "this repository",
        GYMNASIUM: "Gymnasium",
        ENVPOOL: "EnvPool",
        OURS_THREADS: f"this, {threads} threads",
        ENVPOOL_THREADS: f"EnvPool, {threads} threads",
    }
    present = [name for name in ORDER if any(name in e["steps_s"] for e in document["summary"])]
    pairs = [(a, b) for a, b in PAIRS if a in present and b in present]
    table = [
        (
            *("task", "environments", *(titles[name] for name in present)),
            *(f"to {titles[other]}" for _, other in pairs),
        )
    ]
    for entry in document["summary"]:
        rates = [entry["steps_s"].get(name) for name in present]
        ratios = [entry["ratios"].get(f"{one}/{other}") for one, other in pairs]
        table.append(
            (
                entry["task"],
                f"{entry['count']:,}",
                *("-" if value is None else f"{value:,.0f}" for value in rates),
                *("-" if value is None else f"{value:.2f} x" for value in ratios),
            )
        )
    loops = [
        f"{task}: {row['environment_steps_s']:,} steps a second of a core's time, "
        f"{100 * row['ratio']:.1f} % of MuJoCo's own loop"
        for task, row in document["loops"].items()
    ]
    versions = ", ".join(
        f"{titles[name]} {version}" if name == GYMNASIUM else version
        for name, version in document["versions"].items()
        if name in (GYMNASIUM, ENVPOOL)
    )
    return [
        f"Steps a second with observation, reward and new episodes, one thread where none is "
        f"named, median of {document['rounds']} turns; {versions}; "
        f"{harness.machine_text(document)}",
        "",
        *aligned(table),
        *(f"{titles.get(name, name)}: {reason}" for name, reason in document["errors"].items()),
        "",
        *loops,
    ]
