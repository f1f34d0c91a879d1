"""`rlt evaluate` of a group of runs: each one's policy, and what they come to."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from rltools_host.errors import RltError, UsageError
from rltools_host.hints import near_path
from rltools_host.policies.evaluation import Evaluation, one_decimal
from rltools_host.policies.run_evaluation import evaluated
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.group import GroupFolder, RunName, statistics_of
from rltools_host.runs.names import is_run
from rltools_host.ui.group_screen import summary_lines
from rltools_host.ui.table import aligned


def evaluate_group(
    name: str,
    episodes: int,
    seed: int,
    simulator: str | None,
    as_json: bool,
    task: str | None = None,
) -> None:
    """Evaluates the policy of each run that has one, and prints a table."""
    group = GroupFolder.open(name)
    found: dict[RunName, Evaluation] = {}
    notes: list[str] = []
    for run_name in group.run_names():
        path = group.path / run_name.folder
        folder = RunFolder.open(path) if is_run(path) else None
        if folder is None or not folder.policy_path.is_file():
            notes.append(f"{run_name.folder} has no policy yet")
            continue
        try:
            found[run_name], own_notes = evaluated(folder, episodes, seed, simulator, task)
        except RltError as error:
            raise type(error)(f"{run_name.folder}: {error}") from None
        notes += [f"{run_name.folder}: {note}" for note in own_notes]
    if not found:
        raise UsageError(f"no run of {near_path(group.path)} has a policy yet: train them first")
    summary = [
        {
            "variant": variant["name"],
            "label": variant["label"],
            **statistics_of(
                [value.mean for key, value in found.items() if key.variant == variant["name"]]
            ),
        }
        for variant in group.variants
    ]
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if as_json:
        print(json.dumps(document_of(group, found, summary, notes)))
    else:
        print("\n".join([*lines_of(found), "", *summary_lines(summary)]))


def document_of(
    group: GroupFolder,
    found: dict[RunName, Evaluation],
    summary: list[dict[str, Any]],
    notes: list[str],
) -> dict[str, Any]:
    evaluations = [
        {**evaluation.document(), "variant": name.variant, "training_seed": name.seed}
        for name, evaluation in found.items()
    ]
    return {
        "group": str(group.path),
        "evaluations": evaluations,
        "summary": summary,
        "notes": notes,
    }


def lines_of(found: dict[RunName, Evaluation]) -> list[str]:
    """A row for each run, over its episodes."""
    first = next(iter(found.values()))
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
        f"{first.episodes} deterministic episodes of each run's {first.experiment} in "
        f"{first.environment} ({first.simulator}, from seed {first.seed})"
    )
    return [heading, *(f"  {line}" for line in aligned(rows))]
