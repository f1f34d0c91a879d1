"""Wall clock, and the board's own count."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rltools_host.report.markup import Section, duration, number, text
from rltools_host.report.run_data import RunData, values_of


def section(data: RunData) -> Section | None:
    rows = []
    train_s = data.metadata.get("train_s")
    if train_s:
        rows.append(("wall clock of the host", duration(float(train_s))))
        evaluation_s = float(data.metadata.get("evaluation_s") or 0.0)
        if evaluation_s:
            rows.append(("of that, in evaluations", duration(evaluation_s)))
        if float(train_s) > evaluation_s:
            rate = data.steps_done / (float(train_s) - evaluation_s)
            told = f"{number(rate, 1)} steps per second"
            rows.append(("training speed, seen from the host, without them", told))
    progress = data.rows("progress")
    counts = values_of(progress, "counter")
    total = float(data.metadata.get("guest_instructions") or (counts[-1] if counts.size else 0))
    if math.isfinite(total) and total > 0:
        unit = "guest instructions" if data.is_emulated else "µs of the board's clock"
        rows.append((f"{unit}, training and evaluations", number(total)))
        share = number(total / max(data.steps_done, 1))
        rows.append((f"{unit} per environment step, all included", share))
        median = median_of_updates(progress)
        if median is not None:
            rows.append((f"{unit} per step with an update, median", number(median)))
    if not rows:
        return None
    lead = "Evaluations on the board count as well, and so do its messages."
    if data.is_emulated:
        lead = (
            "The board is emulated. Guest instructions are what the emulated processor executed, "
            "its talk with the host included; they are <strong>neither time nor cycles</strong> "
            "of a real board. Wall clock and steps per second say how fast this host emulates."
        )
    body = "".join(
        f'<tr><th>{text(name)}</th><td class="number">{text(value)}</td></tr>'
        for name, value in rows
    )
    return Section("Timings", lead, f"<table><tbody>{body}</tbody></table>")


def median_of_updates(progress: Sequence[Mapping[str, Any]]) -> float | None:
    """Counts per step between two reports, where every step had an update."""
    counts, steps = values_of(progress, "counter"), values_of(progress, "step")
    updates = values_of(progress, "updates")
    step_gains = np.diff(steps)
    training_only = (np.diff(updates) == step_gains) & (step_gains > 0)
    if not training_only.any():
        return None
    return float(np.median(np.diff(counts)[training_only] / step_gains[training_only]))
