"""`rlt bench ppo`: the whole loop of PPO on MuJoCo's Ant-v4, ours against other libraries.

All have the same number of environments, steps, networks and threads, and take turns; the others
are stopped meanwhile. Beside them EnvPool alone and `mujoco.rollout` alone, with the actions of a
policy that has learnt nothing: what the simulator would give if nothing else took time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rltools_host.bench import harness, ppo_result
from rltools_host.bench.contenders import (
    PPO_PEERS_DIRECTORY,
    SIMULATORS,
    TRAIN,
    Setting,
    require_the_task,
    starters,
)
from rltools_host.bench.harness import Row, TakesTurns
from rltools_host.bench.training import chosen_peers
from rltools_host.errors import RltError
from rltools_host.tree import PROJECT

ITERATION_STEPS = 64 * 64
TURN_STEPS = 5 * ITERATION_STEPS
ROUNDS = 7
RETURNS = (2000.0, 4000.0)
RETURN_STEPS = 3_000_000
TURN_LIMIT_S = 1800.0


def result_path(directory: Path | None = None, to_return: bool = False) -> Path:
    """Where this machine's newest result lies."""
    directory = directory or PROJECT.benchmarks / "ppo"
    return directory / ("result-returns.json" if to_return else "result.json")


@dataclass(frozen=True)
class PpoBenchmark:
    """What a user asks for; the two folders are other ones in tests."""

    peers: str | None = None  # as typed: names with commas; None: all
    threads: int = 2
    rounds: int = ROUNDS
    turn_steps: int = TURN_STEPS
    to_return: bool = False
    steps: int = RETURN_STEPS
    seed: int = 0
    chart: Path | None = None
    peers_directory: Path = PPO_PEERS_DIRECTORY
    directory: Path = field(default_factory=lambda: PROJECT.benchmarks / "ppo")


def run(request: PpoBenchmark) -> dict[str, Any]:
    """Measures, prints the table, draws a chart where asked, returns what `--json` prints."""
    threads, rounds, turn_steps = request.threads, request.rounds, request.turn_steps
    to_return, steps, chart = request.to_return, request.steps, request.chart
    harness.require_positive(threads=threads, rounds=rounds, turn_steps=turn_steps, steps=steps)
    names = chosen_peers("run", request.peers, False, request.peers_directory)
    # ours must not come to the end of its run while others still take turns
    whole = steps if to_return else max(steps, (rounds + 1) * 2 * (turn_steps + ITERATION_STEPS))
    setting = Setting(threads, request.seed, whole, to_return)
    known = starters(names, setting, request.directory, request.peers_directory)
    if to_return:
        left_out = (*SIMULATORS, TRAIN)
        known = {name: start for name, start in known.items() if name not in left_out}
    common = {"threads": threads, "turn_steps": turn_steps, **harness.conditions()}
    with harness.pinned(threads):
        contenders, failures = started(known, setting)
        try:
            if to_return:
                rows = turns_to_returns(contenders, turn_steps, steps, failures)
            else:
                rows = equal_turns(contenders, turn_steps, rounds, failures)
        finally:
            for contender in contenders.values():
                contender.end()
    introductions = {name: contender.introduction for name, contender in contenders.items()}
    document: dict[str, Any] = {**common, "contenders": introductions, "errors": failures}
    if to_return:
        summary = ppo_result.returns_summary(rows, introductions, failures, RETURNS)
        document.update(
            seed=request.seed, steps=steps, returns=RETURNS, curves=rows, summary=summary
        )
        lines = ppo_result.returns_lines(document)
    else:
        summary = ppo_result.summary(rows, introductions, failures)
        document.update(rounds=rounds, rows=rows, summary=summary)
        lines = ppo_result.lines(document)
    print("\n".join(lines))
    harness.store(document, result_path(request.directory, to_return))
    if chart is not None:
        draw = ppo_result.draw_returns if to_return else ppo_result.draw_chart
        print(f"wrote {chart}" if draw(document, chart) else "no chart: there is nothing to draw")
    return document


def started(
    known: Mapping[str, Callable[[], TakesTurns]], setting: Setting
) -> tuple[dict[str, TakesTurns], dict[str, str]]:
    """Every contender that can be had, and of the others the reason."""
    contenders: dict[str, TakesTurns] = {}
    failures: dict[str, str] = {}
    for name, start in known.items():
        try:
            contender = start()
            try:
                require_the_task(contender, setting)
            except RltError:
                contender.end()
                raise
            contenders[name] = contender
            said = contender.introduction["settings"]
        except RltError as error:
            failures[name] = said = str(error)
        except BaseException:
            for contender in contenders.values():
                contender.end()
            raise
        print(f"{name}: {said}", file=sys.stderr)
    return contenders, failures


def one_turn(
    contender: TakesTurns, steps: int, number: int, failures: dict[str, str]
) -> Row | None:
    """None, and the reason among the failures, where it did not answer as it should."""
    try:
        row = {"name": contender.name, "turn": number, **contender.turn(str(steps), TURN_LIMIT_S)}
        if int(row["steps"]) < steps or "cpu_s" not in row:
            raise harness.MeasurementError(f"{contender.name} did {row['steps']} of {steps} steps")
        said = f"{row['steps'] / row['wall_s']:,.0f} steps a second"
    except (KeyError, TypeError, ValueError):
        failures[contender.name] = said = f"{contender.name} gave no result"
        row = None
    except RltError as error:
        failures[contender.name] = said = str(error)
        row = None
    print(f"{contender.name}, turn {number}: {said}", file=sys.stderr)
    return row


def equal_turns(
    contenders: Mapping[str, TakesTurns], steps: int, rounds: int, failures: dict[str, str]
) -> list[Row]:
    """Turn 0 is an iteration to warm up (compilers, caches) and does not count; then the turns."""
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
    """Turns until all have reached the largest return or done the steps: a curve for each.

    The first iteration counts as much as the second one.
    """
    rows: list[Row] = [{"name": name, "curve": [], "train_s": 0.0} for name in contenders]
    number = 0
    while True:
        waiting = [
            row
            for row in rows
            if row["name"] not in failures and not ppo_result.is_done(row["curve"], steps, RETURNS)
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
    """What the first iteration took more than the second: who compiles does so there, as setup."""
    if len(iterations) < 2:
        return 0.0
    first_s, second_s = (float(point["wall_s"]) for point in iterations[:2])
    return max(0.0, first_s - (second_s - first_s))
