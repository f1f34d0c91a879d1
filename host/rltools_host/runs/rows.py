"""What a row of metrics.jsonl must look like to be read: see runs/schema.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rltools_host.runs.schema import (
    LARGEST_U64,
    Keys,
    Unfit,
    number,
    optional,
    record,
    string,
    text,
    unfit,
    whole,
)

RETURNS = ("return_mean", "return_std", "return_min", "return_max")
AT = {"time_s": number(0), "step": whole()}
PROGRESS: Keys = {
    **AT,
    "counter": whole(high=LARGEST_U64),
    **dict.fromkeys(("steps", "updates", "episodes"), whole()),
    **dict.fromkeys(("last_return", "best_return"), optional(number())),
}
EVERY_PROGRESS = record(PROGRESS, required=True)


def metric_names(row: Mapping[str, Any]) -> list[str]:
    """What a progress row has beside the keys of every one: the algorithm's metrics."""
    return [name for name in row if name not in PROGRESS and name != "kind"]


def progress(name: str, value: Any) -> None:
    EVERY_PROGRESS(name, value)
    for metric in metric_names(value):
        text()("a metric's name", metric)
        optional(number())(metric, value[metric])


ROWS: Keys = {
    "progress": progress,
    "evaluation": record(
        {
            **AT,
            "counter": whole(high=LARGEST_U64),
            "episodes": whole(),
            **dict.fromkeys(RETURNS, optional(number())),
        },
        required=True,
    ),
    "event": record({**AT, "severity": whole(high=255), "text": string}, required=True),
}


def check_row(row: Any) -> None:
    """Unfit unless this is a row of metrics.jsonl."""
    if not isinstance(row, dict):
        raise Unfit("it is not one object")
    kind = row.get("kind")
    if not isinstance(kind, str) or kind not in ROWS:
        raise unfit("kind", kind, f"one of {', '.join(ROWS)}")
    ROWS[kind]("", row)
