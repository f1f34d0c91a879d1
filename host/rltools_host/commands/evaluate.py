"""`rlt evaluate`: deterministic episodes of a run's policy, or its flights through a gate; of a
group of runs each one's, and what they come to."""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import numpy as np
import typer

from rltools_host.commands.options import Json, RunArgument, Which, refuse
from rltools_host.errors import DiskError, RefusedError, RltError, UsageError
from rltools_host.lines import UNLIMITED, aside, columns, folded, in_columns
from rltools_host.policies.evaluation import (
    CORE,
    USUAL_EPISODES,
    USUAL_SEED,
    Evaluation,
    EvaluationRequest,
    evaluated,
    one_decimal,
    unfinished,
)
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.group import TUNE, GroupFolder, RunName, statistics_of
from rltools_host.runs.names import LAST, find_group, is_run, of_one_run
from rltools_host.screen.group_screen import summary_lines
from rltools_host.tree import near_path

if TYPE_CHECKING:
    from rltools_host.drones.flight.gate import Gate
    from rltools_host.drones.flight.gate_result import GateResult
    from rltools_host.policies.contract import EntryEnvelope

Found = TypeVar("Found", Evaluation, "GateResult")
STOPPED = ("fault", "failed")  # states of runs
PASSES = 0.99  # the rate with which a group's run passes a gate where --least does not say


def run(
    run_name: str,
    request: EvaluationRequest | None = None,
    as_json: bool = False,
    least: float | None = None,
) -> Evaluation:
    """Evaluate the policy of a run, and print the outcome."""
    folder = RunFolder.open(run_name)
    request = request or EvaluationRequest()
    evaluation, notes = evaluated(folder, request)
    document, lines = evaluation.document(), evaluation.lines()
    if request.trace is not None:
        document["trace"] = str(request.trace)
        lines.append(f"  trace    {near_path(request.trace)}")
    show(document, notes, lines, as_json)
    require_least(evaluation.mean, least)
    return evaluation


def require_least(mean: float, least: float | None) -> None:
    if least is not None and mean < least:
        raise RefusedError(f"the mean return is {one_decimal(mean)}, and {least:g} was the least")


def show(
    document: Mapping[str, object], notes: Sequence[str], lines: Sequence[str], as_json: bool
) -> None:
    for note in notes:
        aside(f"note: {note}")
    print(
        json.dumps({**document, "notes": notes})
        if as_json
        else "\n".join(in_columns(lines, columns(sys.stdout)))
    )


def of_group(
    group: GroupFolder, notes: list[str], evaluate: Callable[[RunFolder], tuple[Found, list[str]]]
) -> tuple[dict[RunName, Found], list[RunName]]:
    """Return what `evaluate` returns for each run, and the runs that failed: those that a fault
    stopped, and those without a policy. Trials of a tuning that have none were ended early.

    Append the runs' notes to `notes`.
    """
    found: dict[RunName, Found] = {}
    failed: list[RunName] = []
    counts = group.content.kind != TUNE
    for name in group.run_names():
        path = group.path / name.folder
        folder = RunFolder.open(path) if is_run(path) else None
        if (failure := failure_of(folder)) is not None or folder is None:
            if counts:
                failed.append(name)
            notes.append(f"{name.folder} {failure}{', and does not pass' if counts else ''}")
            continue
        try:
            found[name], own_notes = evaluate(folder)
        except RltError as error:
            raise type(error)(f"{name.folder}: {error}") from None
        notes += [f"{name.folder}: {note}" for note in own_notes]
    if not found:
        raise UsageError(f"no run of {near_path(group.path)} has a policy yet: train them first")
    return found, failed


def failure_of(folder: RunFolder | None) -> str | None:
    """Return why a run's policy does not count; None where it does."""
    if folder is not None and folder.content.state in STOPPED:
        faults = [session.fault for session in folder.content.sessions if session.fault]
        return f"stopped at step {folder.content.step:,}: {(faults or ['it failed'])[-1]}"
    if folder is None or not folder.policy_path.exists():
        return "has no policy yet"
    return None


def passed_text(passed: int, count: int, rule: str) -> str:
    return f"{passed} of {count} runs pass, {100 * passed / count:.0f} %: {rule}"


def group_document(
    group: GroupFolder, found: Mapping[RunName, Found], **fields: object
) -> dict[str, object]:
    evaluations = [
        {**each.document(), "variant": name.variant, "training_seed": name.seed}
        for name, each in found.items()
    ]
    return {"group": str(group.path), "evaluations": evaluations, **fields}


def evaluate_group(
    name: str, request: EvaluationRequest, as_json: bool, least: float | None = None
) -> None:
    """Evaluate the policy of each run that has one, and print a table."""
    group, notes = GroupFolder.open(name), list[str]()
    found, failed = of_group(group, notes, lambda folder: evaluated(folder, request))
    summary, passes = list[dict[str, object]](), list[str]()
    for variant in group.variants:
        of_variant = [value for key, value in found.items() if key.variant == variant.name]
        lost = sum(key.variant == variant.name for key in failed)
        threshold, passed = least, None
        if least is None and of_variant:
            threshold = of_variant[0].success_return
        if threshold is not None:
            passed = sum(value.mean >= threshold for value in of_variant)
            rule = f"a mean return of at least {threshold:g}"
            text = passed_text(passed, len(of_variant) + lost, rule)
            passes.append(f"  {variant.label}{': ' if variant.label else ''}{text}")
        of_all = {"variant": variant.name, "label": variant.label, "failed": lost}
        figures = statistics_of([value.mean for value in of_variant])
        summary.append({**of_all, **figures, "passed": passed, "least": threshold})
    document = group_document(group, found, summary=summary)
    width = columns(sys.stdout)
    lines = [*lines_of(found, width), "", *summary_lines(summary, width), *passes]
    show(document, notes, lines, as_json)
    require_least(statistics.fmean(each.mean for each in found.values()), least)


def lines_of(found: dict[RunName, Evaluation], width: int = UNLIMITED) -> list[str]:
    """Return a row for each run, over its episodes."""
    first = next(iter(found.values()))
    same = all(each.experiment == first.experiment for each in found.values())
    what = first.experiment if same else "policy"
    rows = [("run", "return", "median", "worst", "success")]
    for name, evaluation in found.items():
        rate = evaluation.success_rate
        rows.append(
            (
                str(name.folder),
                f"{one_decimal(evaluation.mean)} ± {evaluation.std:.1f}",
                one_decimal(float(np.median(evaluation.returns))),
                one_decimal(min(evaluation.returns)),
                "-" if rate is None else f"{100 * rate:.0f} %",
            )
        )
    heading = (
        f"{first.episodes} deterministic episodes of each run's {what} in "
        f"{first.environment} ({first.simulator}, from seed {first.seed})"
    )
    return [heading, *(f"  {line}" for line in folded(rows, width - 2))]


# -- a gate ----------------------------------------------------------------------------------------


def evaluate_gate(
    name: str,
    gate_name: str,
    episodes: int | None,
    seed: int | None,
    least: float | None,
    as_json: bool,
    which: str = LAST,
) -> None:
    """Fly through a gate, and print the result.

    It is kept beside run.json where the last policy flew through the gate as it is defined.
    """
    from rltools_host.drones.flight.gate import load_gate
    from rltools_host.drones.flight.gate_result import percent

    if least is not None and not 0 <= least <= 1:
        raise UsageError(f"--least {least:g}: a rate lies between 0 and 1")
    defined = load_gate(gate_name)
    gate = defined.with_starts(episodes, seed)
    is_kept, notes = gate == defined and which == LAST, list[str]()
    if which != LAST:
        notes.append(f"these flights are of the {which} policy, and are not kept")
    elif not is_kept:
        notes.append(
            f"the gate {gate.name} is {defined.flights:,} flights of seed {defined.seed}: these "
            "are others, and are not kept"
        )
    if find_group(name) is not None:
        group = GroupFolder.open(name)
        found, failed = of_group(group, notes, lambda folder: fly_run(folder, gate, is_kept, which))
        rates = rates_of(found, failed)
        rate, wanted = statistics.fmean(rates), PASSES if least is None else least
        fields = {
            "gate": gate.name,
            "success_rate": rate,
            "success_rate_worst": min(rates),
            "failed": len(failed),
            "passed": sum(each >= wanted for each in rates),
            "least": wanted,
        }
        document = group_document(group, found, **fields)
        lines = gate_lines(gate, found, failed, wanted, columns(sys.stdout))
        show(document, notes, lines, as_json)
    else:
        result, own_notes = fly_run(RunFolder.open(name), gate, is_kept, which)
        notes += own_notes
        show(result.document(), notes, result.lines(columns(sys.stdout)), as_json)
        rate = result.all.rate
    if least is not None and rate < least:
        raise RefusedError(
            f"{percent(rate)} of the flights through the gate {gate.name} succeed, and "
            f"{percent(least)} were to"
        )


def fly_run(
    folder: RunFolder, gate: Gate, is_kept: bool, which: str = LAST
) -> tuple[GateResult, list[str]]:
    from rltools_host.drones.flight.airframes import gate_for
    from rltools_host.drones.flight.gate_result import fly_gate

    image = read_run_policy(folder, which)
    image.verify()
    gate, notes = gate_for(gate, folder)
    notes += unfinished(folder, image)
    result = fly_gate(gate, image, str(folder.path))
    if is_kept:
        try:
            result.write(folder.path)
        except DiskError as error:
            notes.append(f"the report will not have it: {error}")
    return result, notes


def rates_of(found: Mapping[RunName, GateResult], failed: Sequence[RunName]) -> list[float]:
    """Return the rates of success of a group's runs; those that failed have 0."""
    return [*(result.all.rate for result in found.values()), *(0.0 for _ in failed)]


def gate_lines(
    gate: Gate,
    found: Mapping[RunName, GateResult],
    failed: Sequence[RunName],
    least: float,
    width: int = UNLIMITED,
) -> list[str]:
    """Return each run's rate, their mean and how many pass, or the entry envelopes where the gate
    measures these. Runs that failed count as 0."""
    from rltools_host.drones.flight.gate_result import percent

    entries = {name: each.envelope for name, each in found.items() if each.envelope is not None}
    if entries:
        return entry_lines(gate, entries, failed, width)
    rows: list[tuple[str, ...]] = [("run", "success", "95 % interval", "settled, median")]
    for name, result in found.items():
        low, high = result.all.interval
        settled = "-"
        if result.all.successes and not gate.parts:
            settled = f"{sorted(result.settling_s)[result.all.successes // 2]:.2f} s"
        interval = f"{100 * low:.1f} to {100 * high:.1f}"
        rows.append((str(name.folder), percent(result.all.rate), interval, settled))
    rows += [(str(name.folder), percent(0), "-", "-") for name in failed]
    rates = rates_of(found, failed)
    passed = sum(rate >= least for rate in rates)
    return [
        f"{gate.flights:,} flights of each run's policy through the gate {gate.name}: "
        f"{gate.title} (seed {gate.seed})",
        *(f"  {line}" for line in folded(rows, width - 2)),
        "",
        f"  mean of {len(rates)} runs {percent(statistics.fmean(rates))}, "
        f"worst {percent(min(rates))}; "
        + ("in all parts together" if gate.parts else f"a success is {gate.rule.text}"),
        f"  {passed_text(passed, len(rates), f'{100 * least:g} % or more succeed')}",
    ]


def entry_lines(
    gate: Gate, entries: Mapping[RunName, EntryEnvelope], failed: Sequence[RunName], width: int
) -> list[str]:
    """Return each run's entry envelope, 0 where there is none, and the median."""
    from rltools_host.policies.contract import EntryEnvelope

    entries = {**entries, **dict.fromkeys(failed, EntryEnvelope(0.0, 0.0, 0.0, 0.0, 0.0))}
    rows: list[tuple[str, ...]] = [("run", "m/s", "m", "tilt, deg", "rad/s", "from m up")]
    for name, entry in entries.items():
        speed, offset, tilt, rate, height = astuple(entry)
        bounds = (speed, offset, math.degrees(tilt), rate, height)
        rows.append((str(name.folder), *(f"{bound:.3g}" for bound in bounds)))
    speeds = [entry.speed_m_s for entry in entries.values()]
    offset_m = statistics.median(entry.offset_m for entry in entries.values())
    return [
        f"{gate.title}, as the gate {gate.name} finds it (seed {gate.seed}): at most",
        *(f"  {line}" for line in folded(rows, width - 2)),
        "",
        f"  median of {len(entries)} runs {statistics.median(speeds):.3g} m/s, {offset_m:.3g} m; "
        f"{min(speeds):g} to {max(speeds):g} m/s; {speeds.count(0.0)} have no entry envelope",
    ]


# -- the command -----------------------------------------------------------------------------------


EXAMPLE = "evaluate latest --in gymnasium"


def command(
    context: typer.Context,
    run_name: RunArgument,
    episodes: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of episodes. [default: 100, or the gate's]"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="Seed of the initial states. [default: 0, or the gate's]"),
    ] = None,
    simulator: Annotated[
        str | None,
        typer.Option(
            "--in",
            metavar="SIMULATOR",
            help="core, or gymnasium as the reference. [default: core; gymnasium for its tasks]",
        ),
    ] = None,
    gate: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Fly a quadrotor through a gate of docs/gate.md: hover, another of "
            "experiments/gates, or your own file.",
        ),
    ] = None,
    least: Annotated[
        float | None,
        typer.Option(
            metavar="VALUE",
            help="Fail if less: the share that succeeds, as 0.95, with --gate, else the mean "
            "return. Of a group's runs, those that have it pass. [default of a group: 0.99, or "
            "the return that counts as solved]",
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            metavar="gym:…",
            help="The run's task, if you have not named its Python file here before.",
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write every step of every episode: FILE.csv, .npz or .parquet."
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="BASELINE",
            help="Compare with random actions, with zero, or with FILE.py:FUNCTION of an "
            "observation.",
        ),
    ] = None,
    which: Which = LAST,
    json_output: Json = False,
) -> None:
    """Evaluate the policy of each run where RUN is a group, and show the mean."""
    if gate is not None:
        refuse(context, "with --gate", "simulator", "task", "trace", "against")
        evaluate_gate(run_name, gate, episodes, seed, least, json_output, which)
        return
    if task is not None and simulator == CORE:
        raise UsageError("--task: the core's simulator plays no Gymnasium task")
    count = USUAL_EPISODES if episodes is None else episodes
    first = USUAL_SEED if seed is None else seed
    request = EvaluationRequest(count, first, simulator, task, trace, which, against)
    group = find_group(run_name)
    if group is None:
        run(run_name, request, json_output, least)
        return
    for option, given in (("--trace", trace), ("--against", against)):
        if given is not None:
            raise of_one_run(option, group)
    evaluate_group(run_name, request, json_output, least)
