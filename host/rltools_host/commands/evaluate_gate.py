"""`rlt evaluate` with a gate: the flights of a run's policy, or of each policy of a group."""

from __future__ import annotations

import json
import statistics
import sys

from rltools_host.errors import DiskError, GateError, RltError, UsageError
from rltools_host.flight.gate import Gate, load_gate
from rltools_host.flight.gate_result import GateResult, fly_gate, percent
from rltools_host.hints import near_path
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.group import GroupFolder, RunName
from rltools_host.runs.names import find_group, is_run
from rltools_host.ui.table import aligned


def evaluate_gate(
    name: str,
    gate_name: str,
    episodes: int | None,
    seed: int | None,
    least: float | None,
    as_json: bool,
) -> None:
    """Flies, prints, and keeps the result beside run.json where the gate was flown as defined."""
    if least is not None and not 0 <= least <= 1:
        raise UsageError(f"--least {least:g}: a rate lies between 0 and 1")
    defined = load_gate(gate_name)
    gate = defined.with_starts(episodes, seed)
    notes = []
    if gate != defined:
        notes.append(
            f"the gate {gate.name} is {defined.episodes:,} flights of seed {defined.seed}: these "
            "are others, and are not kept"
        )
    if find_group(name) is not None:
        rate = fly_group(name, gate, gate == defined, notes, as_json)
    else:
        result = fly_run(RunFolder.open(name), gate, gate == defined, notes)
        show(notes)
        document = {**result.document(), "notes": notes}
        print(json.dumps(document) if as_json else "\n".join(result.lines()))
        rate = result.all.rate
    if least is not None and rate < least:
        raise GateError(
            f"{percent(rate)} of the flights through the gate {gate.name} succeed, and "
            f"{percent(least)} were to"
        )


def fly_run(folder: RunFolder, gate: Gate, is_kept: bool, notes: list[str]) -> GateResult:
    image = read_run_policy(folder)
    image.verify()
    steps = int(folder.metadata.get("steps", 0))
    if image.step < steps:
        notes.append(
            f"the policy is of step {image.step:,} of {steps:,}, at which the run was last saved"
        )
    result = fly_gate(gate, image, str(folder.path))
    if is_kept:
        try:
            result.write(folder.path)
        except DiskError as error:
            notes.append(f"the report will not have it: {error}")
    return result


def show(notes: list[str]) -> None:
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def fly_group(name: str, gate: Gate, is_kept: bool, notes: list[str], as_json: bool) -> float:
    """Each seed's rate, and their mean, which is returned."""
    group = GroupFolder.open(name)
    found: dict[RunName, GateResult] = {}
    for run_name in group.run_names():
        path = group.path / run_name.folder
        folder = RunFolder.open(path) if is_run(path) else None
        if folder is None or not folder.policy_path.is_file():
            notes.append(f"{run_name.folder} has no policy yet")
            continue
        own_notes: list[str] = []
        try:
            found[run_name] = fly_run(folder, gate, is_kept, own_notes)
        except RltError as error:
            raise type(error)(f"{run_name.folder}: {error}") from None
        notes += [f"{run_name.folder}: {note}" for note in own_notes]
    if not found:
        raise UsageError(f"no run of {near_path(group.path)} has a policy yet: train them first")
    rates = [result.all.rate for result in found.values()]
    mean = statistics.fmean(rates)
    show(notes)
    if as_json:
        evaluations = [
            {**result.document(), "variant": key.variant, "training_seed": key.seed}
            for key, result in found.items()
        ]
        document = {
            "group": str(group.path),
            "gate": gate.name,
            "success_rate": mean,
            "success_rate_worst": min(rates),
            "evaluations": evaluations,
            "notes": notes,
        }
        print(json.dumps(document))
    else:
        print("\n".join(group_lines(gate, found, mean)))
    return mean


def group_lines(gate: Gate, found: dict[RunName, GateResult], mean: float) -> list[str]:
    rows: list[tuple[str, ...]] = [("run", "success", "95 % interval", "settled, median")]
    for name, result in found.items():
        low, high = result.all.interval
        settled = (
            f"{sorted(result.settling_s)[result.all.successes // 2]:.2f} s"
            if (result.all.successes)
            else "-"
        )
        rows.append(
            (
                str(name.folder),
                percent(result.all.rate),
                f"{100 * low:.1f} to {100 * high:.1f}",
                settled,
            )
        )
    worst = min(result.all.rate for result in found.values())
    return [
        f"{gate.episodes:,} flights of each run's policy through the gate {gate.name}: "
        f"{gate.title} (seed {gate.seed})",
        *(f"  {line}" for line in aligned(rows)),
        "",
        f"  mean of {len(found)} runs {percent(mean)}, worst {percent(worst)}; a success is "
        f"{gate.rule.text}",
    ]
