"""A row of metrics.jsonl, of one of three kinds, and what it must be to be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from rltools_host.documents import Count, Line, NotNegative, Number, Unfit, Whole, typed, unfit


class ProgressRow(Struct, frozen=True):
    """What the board reported on its way; the row has the algorithm's metrics besides."""

    kind: Literal["progress"]
    time_s: NotNegative
    step: Whole
    counter: Count
    steps: Whole
    updates: Whole
    episodes: Whole
    last_return: Number | None
    best_return: Number | None
    episode_length: Number | None = None


class EvaluationRow(Struct, frozen=True):
    kind: Literal["evaluation"]
    time_s: NotNegative
    step: Whole
    counter: Count
    episodes: Whole
    return_mean: Number | None
    return_std: Number | None
    return_min: Number | None
    return_max: Number | None
    length_mean: Number | None = None


class EventRow(Struct, frozen=True):
    kind: Literal["event"]
    time_s: NotNegative
    step: Whole
    severity: Annotated[int, Meta(ge=0, le=255)]
    text: str


ROWS = {"progress": ProgressRow, "evaluation": EvaluationRow, "event": EventRow}


def metric_names(row: Mapping[str, Any]) -> list[str]:
    """What a progress row has beside the fields of every one: the algorithm's metrics."""
    return [name for name in row if name not in ProgressRow.__struct_fields__]


def check_row(row: Any) -> None:
    """Unfit unless this is a row of metrics.jsonl."""
    if not isinstance(row, dict):
        raise Unfit("it is not one object")
    kind = row.get("kind")
    if not isinstance(kind, str) or kind not in ROWS:
        raise unfit("kind", kind, f"one of {', '.join(ROWS)}")
    typed(row, ROWS[kind])
    if kind == "progress":
        for name in metric_names(row):
            typed(name, Line, "a metric's name")
            typed(row[name], Number | None, name)
