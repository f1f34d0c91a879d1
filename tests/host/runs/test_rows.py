"""What a row of metrics.jsonl must be to be read."""

from __future__ import annotations

from typing import Any

import pytest

from rltools_host.documents import Unfit
from rltools_host.runs.contents import check_row, metric_names

PROGRESS: dict[str, Any] = {
    "kind": "progress",
    "time_s": 0,
    "step": 0,
    "counter": 0,
    "steps": 1,
    "updates": 0,
    "episodes": 0,
    "last_return": None,
    "best_return": -1.5,
    "actor_loss": 0.5,
    "kl": None,
}
EVALUATION: dict[str, Any] = {
    "kind": "evaluation",
    "time_s": 1.5,
    "step": 9,
    "counter": 0,
    "episodes": 2,
    "return_mean": -1.0,
    "return_std": 0,
    "return_min": None,
    "return_max": 1,
}
EVENT: dict[str, Any] = {"kind": "event", "time_s": 0.0, "step": 0, "severity": 255, "text": ""}


def test_rows_that_are_read() -> None:
    for row in (PROGRESS, EVALUATION, EVENT, {**EVENT, "severity": 0}):
        check_row(row)
    assert metric_names({**PROGRESS, "episode_length": 5.0}) == ["actor_loss", "kl"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ([], "it is not a JSON object"),
        ({}, "kind is null, not one of progress, evaluation, event"),
        ({"kind": "other"}, 'kind is "other", not one of progress, evaluation, event'),
        ({"kind": ["event"]}, 'kind is ["event"], not one of'),
        ({**EVENT, "severity": 256}, "severity: Expected"),
        ({**EVENT, "severity": -1}, "severity: Expected"),
        ({**EVENT, "time_s": -1}, "time_s: Expected"),
        ({**EVENT, "step": -1}, "step: Expected"),
        ({**EVENT, "step": 1.5}, "step: Expected"),
        ({**EVENT, "text": None}, "text: Expected"),
        ({"kind": "event", "time_s": 0.0, "step": 0, "severity": 255}, "Object missing"),
        ({**EVALUATION, "return_mean": "x"}, "return_mean: Expected"),
        ({**PROGRESS, "kl": "x"}, "kl: Expected"),
        ({**PROGRESS, "kl": True}, "kl: Expected"),
        ({**PROGRESS, "kl": float("nan")}, "kl: Expected"),
        ({**PROGRESS, "of another algorithm": {}}, "of another algorithm: Expected"),
        ({**PROGRESS, "k\nl": 1}, "a metric's name: Expected `str` in one line"),
        ({name: PROGRESS[name] for name in PROGRESS if name != "updates"}, "Object missing"),
    ],
)
def test_rows_that_are_not(row: Any, reason: str) -> None:
    with pytest.raises(Unfit) as refused:
        check_row(row)
    assert str(refused.value).startswith(reason)
