"""`rlt bench ppo`: the whole loop of PPO on MuJoCo's Ant-v4, ours against other libraries.

All have the same number of environments, steps, networks and threads, and take turns; the others
are stopped meanwhile. Beside them EnvPool alone and `mujoco.rollout` alone, with the actions of a
policy that has learned nothing: what the simulator would give if nothing else took time.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

import rltools_host
from benchmarks import harness
from benchmarks.harness import Bar, Chart, Contender, Json, MeasurementError, Panel, Peers, Row
from rltools_host.build import firmware, tools
from rltools_host.build.boards import load_board
from rltools_host.errors import RltError, UsageError

PEERS = "ppo"
BOARD, EXPERIMENT = "host-threads", "ant-ppo"
OBSERVATION_DIM, ACTION_DIM = 27, 8  # of Ant-v4, without contact forces
ITERATION_STEPS = 64 * 64
TURN_STEPS = 5 * ITERATION_STEPS
ROUNDS = 7
RETURNS = (2000.0, 4000.0)
RETURN_STEPS = 3_000_000
SETUP_LIMIT_S = 600.0
OURS, TRAIN = "ours", "ours, rlt train"
ENVPOOL, ROLLOUT = "envpool", "mujoco.rollout"
SIMULATORS = (ENVPOOL, ROLLOUT)  # they learn nothing
TITLES = {
    OURS: "this repository, loop alone",
    TRAIN: "this repository, rlt train",
    "stable_baselines3": "Stable-Baselines3",
    "pytorch": "PyTorch, single file",
    ENVPOOL: "EnvPool alone",
    ROLLOUT: "mujoco.rollout alone",
}


def ppo(
    peers: Peers = None,
    threads: Annotated[
        int, typer.Option(metavar="N", help="Threads and cores of each contender.")
    ] = 2,
    rounds: Annotated[
        int | None, typer.Option(metavar="N", help="Turns of each; the median counts. [default: 7]")
    ] = None,
    turn_steps: Annotated[
        int, typer.Option(metavar="N", help="Environment steps of a turn.")
    ] = TURN_STEPS,
    to_return: Annotated[
        bool,
        typer.Option(
            "--to-return",
            help="Measure the time to a mean return of 2,000 and 4,000, with each one's settings.",
        ),
    ] = False,
    steps: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="With --to-return: steps after which a contender gives up. [default: 3000000]",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of every contender.")] = 0,
    chart: Chart = None,
    json_output: Json = False,
) -> None:
    """Compare PPO's steps a second on Ant-v4 with other libraries."""
    if to_return and rounds is not None:
        raise UsageError("--rounds has no effect with --to-return: leave it out")
    if not to_return and steps is not None:
        raise UsageError("--steps has no effect without --to-return: leave it out, or add that")
    rounds = ROUNDS if rounds is None else rounds
    steps = RETURN_STEPS if steps is None else steps
    harness.require_positive(threads=threads, rounds=rounds, turn_steps=turn_steps, steps=steps)
    # ours must not come to the end of its run while others still take turns
    whole = steps if to_return else max(steps, (rounds + 1) * 2 * (turn_steps + ITERATION_STEPS))
    setting = Setting(threads, seed, whole, to_return)
    known = starters(harness.chosen_peers(PEERS, peers), setting)
    common = {"threads": threads, "turn_steps": turn_steps, **harness.conditions()}
    with harness.pinned(threads), contextlib.ExitStack() as running:
        contenders, failures = start(known, setting, running)
        if to_return:
            rows = turns_to_returns(contenders, turn_steps, steps, failures)
        else:
            rows = equal_turns(contenders, turn_steps, rounds, failures)
    introductions = {name: contender.introduction for name, contender in contenders.items()}
    document: Row = {**common, "contenders": introductions, "errors": failures}
    if to_return:
        document |= {"seed": seed, "steps": steps, "returns": RETURNS, "curves": rows}
        document["summary"] = returns_summary(rows, introductions, failures, RETURNS)
        harness.tell(document, returns_lines(document), json_output)
    else:
        document |= {"rounds": rounds, "rows": rows}
        document["summary"] = summary(rows, introductions, failures)
        harness.tell(document, lines(document), json_output)
    if chart is not None:
        draw_chart(document, chart)


# ---- Contenders ----------------------------------------------------------------------------------


class Setting(NamedTuple):
    """The setting of all contenders."""

    threads: int
    seed: int
    steps: int  # of a whole run
    published: bool  # with each library's own settings for the task


def starters(names: Sequence[str], setting: Setting) -> dict[str, Callable[[], TakesTurns]]:
    """Return how each contender is started, in the order of their turns."""
    peers = {name: partial(start_peer, name, setting) for name in names}
    known: dict[str, Callable[[], TakesTurns]] = {OURS: partial(start_ours, setting)}
    if not setting.published:
        known[TRAIN] = partial(start_train, setting)
    known |= {name: peer for name, peer in peers.items() if name not in SIMULATORS}
    if not setting.published:
        known |= {name: peer for name, peer in peers.items() if name in SIMULATORS}
        known[ROLLOUT] = partial(start_rollout, setting)
    return known


def start_ours(setting: Setting) -> Contender:
    """Start our loop alone."""
    tools.ensure_group("mujoco")
    program = harness.build_program("ppo_loop", BOARD)
    command = [str(program), str(setting.seed), str(setting.steps)]
    variables = {"RLT_THREADS": str(setting.threads)}
    contender = Contender(OURS, command, variables, log_of("ours"), SETUP_LIMIT_S)
    contender.introduction["version"] = rltools_host.__version__
    return contender


def log_of(name: str) -> Path:
    """Return the file for what a contender of this machine's own Python complains about."""
    return harness.ENVIRONMENTS / PEERS / f"{name}.log"


class Train:
    """`rlt train` as users run it, from the beginning in every turn; evaluations do not count."""

    name = TRAIN

    def __init__(self, setting: Setting, introduction: Row) -> None:
        self._setting = setting
        self.introduction = introduction

    def turn(self, order: str) -> Row:
        """Train for as many steps, in a run of its own."""
        words = ["--board", BOARD, "--threads", str(self._setting.threads)]
        words += ["--seed", str(self._setting.seed), "--steps", order]
        words += ["--set", f"eval_freq={self._setting.steps}", "--set", "n_eval_episodes=1"]
        variables = harness.thread_variables(self._setting.threads)
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory) / "run"
            document = harness.train_on_a_terminal(EXPERIMENT, words, folder, variables)
        done = int(document["step"])
        return {"steps": done, "wall_s": done / document["steps_per_s"], "cpu_s": None}

    def end(self) -> None:
        pass


TakesTurns = Contender | Train


def start_train(setting: Setting) -> TakesTurns:
    """Build what `rlt train` needs; it introduces itself as our loop does."""
    loop = start_ours(setting)
    loop.end()
    firmware.build_firmware(load_board(BOARD), EXPERIMENT)
    return Train(setting, loop.introduction)


def start_rollout(setting: Setting) -> Contender:
    """Start MuJoCo's own rollouts."""
    tools.ensure_group("mujoco")
    script = harness.PEERS / "mujoco_rollout.py"
    command = [sys.executable, str(script), "--threads", str(setting.threads)]
    return Contender(ROLLOUT, command, script_variables(setting), log_of("rollout"), SETUP_LIMIT_S)


def start_peer(name: str, setting: Setting) -> Contender:
    """Start a peer in its own environment, which is made here and now."""
    command, temporary = harness.command_of(PEERS, name)
    command += [
        *("--threads", str(setting.threads)),
        *("--seed", str(setting.seed), "--steps", str(setting.steps)),
        *(("--published",) if setting.published else ()),
    ]
    variables = {**script_variables(setting), "TMPDIR": str(temporary)}
    return Contender(name, command, variables, temporary / f"{name}.log", SETUP_LIMIT_S)


def script_variables(setting: Setting) -> dict[str, str]:
    """Return the variables for scripts.

    PyTorch's threads sleep while they wait unless the caller's environment says something else:
    where they spin, as they do by default, they take the cores from EnvPool's.
    """
    return {
        **harness.thread_variables(setting.threads),
        "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "PASSIVE"),
        "PYTHONPATH": str(harness.PEERS),
    }


def require_the_task(contender: TakesTurns, setting: Setting) -> None:
    """Refuse a contender that does something else, or with other threads than all."""
    introduction = contender.introduction
    observation, action = introduction["observation_dim"], introduction["action_dim"]
    if observation not in (OBSERVATION_DIM, None) or action != ACTION_DIM:
        raise MeasurementError(
            f"{contender.name} has {observation} observations and {action} actions, "
            f"Ant-v4 {OBSERVATION_DIM} and {ACTION_DIM}"
        )
    threads = introduction["threads"].items()
    other = {part: count for part, count in threads if count != setting.threads}
    if other and not setting.published:  # a library's own may be a single environment
        raise MeasurementError(
            f"{contender.name} computes with other threads than {setting.threads}: {other}"
        )


# ---- Turns ---------------------------------------------------------------------------------------


def start(
    known: Mapping[str, Callable[[], TakesTurns]], setting: Setting, running: contextlib.ExitStack
) -> tuple[dict[str, TakesTurns], dict[str, str]]:
    """Start every contender that can be had, and return of the others the reason.

    All of them end with `running`.
    """
    contenders: dict[str, TakesTurns] = {}
    failures: dict[str, str] = {}
    for name, start_one in known.items():
        try:
            contender = start_one()
            running.callback(contender.end)
            require_the_task(contender, setting)
            contenders[name] = contender
            outcome = contender.introduction["settings"]
        except RltError as error:
            failures[name] = outcome = str(error)
        print(f"{name}: {outcome}", file=sys.stderr)
    return contenders, failures


def one_turn(
    contender: TakesTurns, steps: int, number: int, failures: dict[str, str]
) -> Row | None:
    """Return the row of a turn, or None and the reason among the failures."""
    try:
        row = {"name": contender.name, "turn": number, **contender.turn(str(steps))}
        if row["steps"] < steps:
            raise MeasurementError(f"{contender.name} did {row['steps']} of {steps} steps")
        outcome = f"{row['steps'] / row['wall_s']:,.0f} steps a second"
    except RltError as error:
        failures[contender.name] = outcome = str(error)
        row = None
    print(f"{contender.name}, turn {number}: {outcome}", file=sys.stderr)
    return row


def equal_turns(
    contenders: Mapping[str, TakesTurns], steps: int, rounds: int, failures: dict[str, str]
) -> list[Row]:
    """Return the rows of equal turns, after a turn 0 that warms up (compilers, caches)."""
    rows = []
    for number in range(rounds + 1):
        for name, contender in contenders.items():
            if name in failures:
                continue
            row = one_turn(contender, steps if number else ITERATION_STEPS, number, failures)
            if row is not None and number:
                row.pop("iterations", None)
                rows.append(row)
    return rows


def turns_to_returns(
    contenders: Mapping[str, TakesTurns], turn_steps: int, steps: int, failures: dict[str, str]
) -> list[Row]:
    """Take turns until all have reached the largest return or done the steps; return the curves.

    The first iteration counts as much as the second one.
    """
    rows: list[Row] = [{"name": name, "curve": [], "train_s": 0.0} for name in contenders]
    number = 0
    while True:
        waiting = [
            row
            for row in rows
            if row["name"] not in failures and not is_done(row["curve"], steps, RETURNS)
        ]
        if not waiting:
            return rows
        number += 1
        for row in waiting:
            done = row["curve"][-1]["steps"] if row["curve"] else 0
            order = min(turn_steps, steps - done)
            answer = one_turn(contenders[row["name"]], order, number, failures)
            if answer is None:
                continue
            compiling_s = 0.0 if row["curve"] else first_iteration_more_s(answer["iterations"])
            began_s = row["train_s"] - compiling_s
            row["curve"] += [
                {**point, "train_s": began_s + point["wall_s"]} for point in answer["iterations"]
            ]
            row["train_s"] = began_s + answer["wall_s"]


def first_iteration_more_s(iterations: Sequence[Row]) -> float:
    """Return what the first iteration took more than the second: compilers work there."""
    if len(iterations) < 2:
        return 0.0
    first_s, second_s = (float(point["wall_s"]) for point in iterations[:2])
    return max(0.0, first_s - (second_s - first_s))


# ---- Steps a second ------------------------------------------------------------------------------


def ratio_of_turns(of: Mapping[int, float], to: Mapping[int, float]) -> float | None:
    """Return the median ratio of neighbors in time: the machine may change from turn to turn."""
    ratios = [of[turn] / to[turn] for turn in of if turn in to]
    return harness.median(ratios) if ratios else None


def summary(
    rows: Sequence[Row],
    introductions: Mapping[str, Mapping[str, Any]],
    failures: Mapping[str, str],
) -> list[Row]:
    """Return an entry for each contender, the fastest first, those that learn before the others."""
    rates = {
        name: {
            row["turn"]: float(row["steps"] / row["wall_s"]) for row in rows if row["name"] == name
        }
        for name in introductions
    }
    entries: list[Row] = []
    for name, mine in rates.items():
        if not mine or name in failures:
            continue
        processor_s = [
            row["cpu_s"] / row["steps"]
            for row in rows
            if row["name"] == name and row["cpu_s"] is not None
        ]
        entries.append(
            {
                "name": name,
                "title": TITLES.get(name, name),
                "learns": name not in SIMULATORS,
                "version": introductions[name]["version"],
                "simulator": introductions[name]["simulator"],
                "settings": introductions[name]["settings"],
                "turns": len(mine),
                "steps_s": harness.median(list(mine.values())),
                "cpu_us_a_step": 1e6 * harness.median(processor_s) if processor_s else None,
                "of_rollout": ratio_of_turns(mine, rates.get(ROLLOUT, {})),
                "ours_times": ratio_of_turns(rates.get(OURS, {}), mine),
            }
        )
    entries.sort(key=lambda entry: (not entry["learns"], -entry["steps_s"]))
    return [*entries, *failed_entries(failures)]


def failed_entries(failures: Mapping[str, str]) -> list[Row]:
    """Return an entry with the reason for each contender that failed."""
    return [
        {"name": name, "title": TITLES.get(name, name), "error": reason}
        for name, reason in failures.items()
    ]


def best_peer(entries: Sequence[Row]) -> Row | None:
    """Return the fastest one that learns and is not ours."""
    peers = [e for e in entries if e.get("learns") and e["name"] not in (OURS, TRAIN)]
    return max(peers, key=lambda entry: float(entry["steps_s"]), default=None)


def title(document: Mapping[str, Any]) -> str:
    """Return the task and the threads."""
    return f"PPO on Ant-v4, {document['threads']} threads each"


def lines(document: Mapping[str, Any]) -> list[str]:
    """Return the table of steps a second for people."""
    entries = document["summary"]
    header = (
        *("library", "version", "simulator", "settings", "steps/s", "of mujoco.rollout"),
        *("our loop is", "processor time a step"),
    )
    best = best_peer(entries)
    ours: Row = next((entry for entry in entries if entry["name"] == OURS), {})
    against = []
    if best is not None and best["ours_times"] is not None:
        against.append(f"Against the fastest library, {best['title']}: {best['ours_times']:.2f} x.")
    if ours.get("of_rollout") is not None:
        share = 100 * ours["of_rollout"]
        against.append(f"Against mujoco.rollout, which only simulates: {share:.0f} %.")
    return [
        f"{title(document)}: steps of the whole loop, median of {document['rounds']} turns of "
        f"{document['turn_steps']:,} steps; settings are environments x steps of a rollout, "
        f"minibatch, epochs, hidden layers, each library's those with which it is quicker; "
        f"{harness.machine_text(document, 'at the start ')}",
        "",
        *harness.table(header, entries, cells),
        "",
        *against,
    ]


def cells(entry: Row) -> tuple[str, ...]:
    """Return a contender's cells."""
    share = entry["of_rollout"]
    return (
        str(entry["version"]),
        entry["simulator"],
        entry.get("settings", ""),
        f"{entry['steps_s']:,.0f}",
        harness.shown(share if share is None else 100 * share, "{:.0f} %"),
        f"{harness.shown(entry['ours_times'], '{:.2f}')} x",
        harness.shown(entry["cpu_us_a_step"], "{:.0f} us"),
    )


# ---- Time to a return ----------------------------------------------------------------------------


def reached(curve: Sequence[Row], wanted: float) -> Row | None:
    """Return the first iteration whose mean training return is as large."""
    for point in curve:
        if point["return_mean"] is not None and point["return_mean"] >= wanted:
            return point
    return None


def is_done(curve: Sequence[Row], steps: int, returns: Sequence[float]) -> bool:
    """Return whether a contender has reached the largest return or done the steps."""
    if not curve:
        return False
    return int(curve[-1]["steps"]) >= steps or reached(curve, max(returns)) is not None


def returns_summary(
    rows: Sequence[Row],
    introductions: Mapping[str, Mapping[str, Any]],
    failures: Mapping[str, str],
    returns: Sequence[float],
) -> list[Row]:
    """Return for each contender what it took to each of the returns, None where it failed to."""
    entries: list[Row] = []
    for row in rows:
        name, curve = row["name"], row["curve"]
        if name in failures or not curve:
            continue
        means = [point["return_mean"] for point in curve if point["return_mean"] is not None]
        entries.append(
            {
                "name": name,
                "title": TITLES.get(name, name),
                "version": introductions[name]["version"],
                "settings": introductions[name]["settings"],
                "reached": [
                    None
                    if point is None
                    else {"return": wanted, "train_s": point["train_s"], "steps": point["steps"]}
                    for wanted in returns
                    for point in [reached(curve, wanted)]
                ],
                "best_return": max(means, default=None),
                "train_s": row["train_s"],
                "steps": curve[-1]["steps"],
            }
        )
    return [*entries, *failed_entries(failures)]


def returns_lines(document: Mapping[str, Any]) -> list[str]:
    """Return the table of times to a return for people."""
    columns = [f"to {wanted:,.0f}" for wanted in document["returns"]]
    header = ("library", "settings", *columns, "best mean", "in all")
    return [
        f"{title(document)}, each library with its own settings for the task, seed "
        f"{document['seed']}, {document['steps']:,} steps at most: training time until the mean "
        f"return of the last 100 episodes of training is reached; "
        f"{harness.machine_text(document, 'at the start ')}",
        "",
        *harness.table(header, document["summary"], cells_of_returns),
    ]


def cells_of_returns(entry: Row) -> tuple[str, ...]:
    """Return a contender's cells."""

    def there(point: Row | None) -> str:
        if point is None:
            return "not reached"
        return f"{point['train_s']:,.0f} s, {point['steps']:,} steps"

    best = harness.shown(entry["best_return"], "{:,.0f}")
    return (entry["settings"], *map(there, entry["reached"]), best, there(entry))


def draw_chart(document: Mapping[str, Any], path: Path) -> None:
    """Draw steps a second, or the seconds of those that reached the first return."""
    if "returns" not in document:
        bars = harness.bars_of(document["summary"], "steps_s", "{:,.0f}", (OURS, TRAIN))
        harness.draw_panels([Panel(bars, "steps a second")], title(document), document, path)
        return
    there = [e for e in document["summary"] if "error" not in e and e["reached"][0] is not None]
    there.sort(key=lambda entry: float(entry["reached"][0]["train_s"]))
    bars = [
        Bar(entry["title"], seconds, f"{seconds:,.0f} s", entry["name"] == OURS)
        for entry in there
        for seconds in [entry["reached"][0]["train_s"]]
    ]
    heading = f"{title(document)}: to a mean training return of {document['returns'][0]:,.0f}"
    harness.draw_panels([Panel(bars, "seconds")], heading, document, path)


if __name__ == "__main__":
    harness.main(ppo, "--peers rl_games --threads 2")
