"""A board's reports as rows of metrics.jsonl and as TensorBoard's scalars.

A message has the algorithm's metrics by place. `names`, of the experiment's description, are what
they are called wherever a person or another program reads them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rltools_host.clients.messages import Evaluation, Report, TrainingProgress

LOSS = "_loss"


def words(name: str) -> str:
    """A metric's name in a sentence: `critic 1 loss`."""
    return name.replace("_", " ")


def row_of(report: Report, names: Sequence[str]) -> dict[str, Any]:
    """A row, without the time: flat, each metric by its name."""
    if isinstance(report, Evaluation):
        return {"kind": "evaluation", **vars(report)}
    row = {"kind": "progress", **vars(report)}
    del row["metrics"]
    return row | named(report, names)


def named(report: TrainingProgress, names: Sequence[str]) -> dict[str, float]:
    """The report's metrics; a message has more places than an algorithm has metrics."""
    return dict(zip(names, report.metrics, strict=False))


def progress_of(row: Mapping[str, Any], names: Sequence[str]) -> TrainingProgress:
    """The report that a row was made of. A metric that the row does not have is not known."""
    known = without_null(row)
    fields = [name for name in TrainingProgress.__dataclass_fields__ if name != "metrics"]
    metrics = tuple(known.get(name, math.nan) for name in names)
    return TrainingProgress(**{name: known[name] for name in fields}, metrics=metrics)


def evaluation_of(row: Mapping[str, Any]) -> Evaluation:
    known = without_null(row)
    return Evaluation(**{name: known[name] for name in Evaluation.__dataclass_fields__})


def last_evaluation(rows: Sequence[Mapping[str, Any]]) -> Evaluation | None:
    for row in reversed(rows):
        if row.get("kind") == "evaluation":
            return Evaluation(**{name: row[name] for name in Evaluation.__dataclass_fields__})
    return None


def without_null(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: math.nan if value is None else value for name, value in row.items()}


def scalars_of(report: Report, names: Sequence[str]) -> dict[str, float]:
    """What TensorBoard plots of a report."""
    if isinstance(report, Evaluation):
        return {
            "evaluation/return_mean": report.return_mean,
            "evaluation/return_std": report.return_std,
            "evaluation/return_min": report.return_min,
            "evaluation/return_max": report.return_max,
        }
    return {
        "training/return": report.last_return,
        "training/best_return": report.best_return,
        "training/episodes": report.episodes,
        **{tag(name): value for name, value in named(report, names).items()},
    }


def tag(name: str) -> str:
    """Of a metric: `loss/critic_1`, `metrics/entropy`."""
    if name.endswith(LOSS):
        return f"loss/{name.removesuffix(LOSS)}"
    return f"metrics/{name}"
