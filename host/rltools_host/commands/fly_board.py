"""`rlt fly RUN --board host`: a flight over a board, as a terminal shows it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rltools_host.commands.fly_px4 import ending_as_by_ctrl_c
from rltools_host.errors import UsageError
from rltools_host.files import write_atomically
from rltools_host.flight.flight_settings import given_settings, settings_of
from rltools_host.flight.gate import hover_rule, load_gate
from rltools_host.flight.in_the_loop import USUAL_SEED, FlyRequest, fly_over_board
from rltools_host.flight.live import make_watcher
from rltools_host.flight.loop_result import LoopResult
from rltools_host.flight.replay import page
from rltools_host.hints import near_path
from rltools_host.policies.board import PolicyPlace
from rltools_host.runs.folder import RunFolder


@dataclass(frozen=True)
class Conditions:
    """What is given of a flight; None: the gate's, or what is usual."""

    gate: str | None
    seconds: float | None
    seed: int | None
    settings: Sequence[str]
    noise: float | None


def request_of(
    run_name: str, place: PolicyPlace, conditions: Conditions, **fields: Any
) -> FlyRequest:
    """The gate's settings hold, or the run's own, where no others are given."""
    settings, noise = conditions.settings, conditions.noise
    given = given_settings(settings)
    if noise is not None and given.setdefault("noise", noise) != noise:
        raise UsageError("noise is given twice: give it once")
    run = RunFolder.open(run_name)
    gate = load_gate(conditions.gate) if conditions.gate is not None else None
    known = dict(gate.settings) if gate is not None else settings_of(run)
    rule = gate.rule if gate is not None else hover_rule()
    if (seconds := conditions.seconds) is not None:
        rule = replace(rule, seconds=seconds, last_seconds=min(rule.last_seconds, seconds))
    seed = conditions.seed
    if seed is None:
        seed = gate.seed if gate is not None else USUAL_SEED
    if "disturbances" in fields:
        fields["disturbances"] = replace(fields["disturbances"], seed=seed)
    return FlyRequest(run_name, place, rule, seed, settings={**known, **given}, **fields)


def run(request: FlyRequest, json_output: bool = False, out: Path | None = None) -> LoopResult:
    """Writes the replay and the result into the run's folder, whatever came of the flight."""
    folder = RunFolder.open(request.run).path
    replay = folder / f"flight-{request.place.board}.html"

    def say(line: str) -> None:
        print(line, flush=True)

    def keep(result: LoopResult) -> None:
        if result.trace is None:
            return
        text = (json.dumps(result.document(), indent=1) + "\n").encode()
        write_atomically(folder / f"flight-{request.place.board}.json", text)
        if out is not None:
            write_atomically(out, text)
        write_atomically(replay, page(result).encode())
        say(f"replay: {near_path(replay)}")

    with ending_as_by_ctrl_c():
        result = fly_over_board(request, say, make_watcher(sys.stdout), keep)
    say(f"kept: {request.place.board} has the policy now")
    if json_output:
        print(json.dumps(result.document()))
    return result
