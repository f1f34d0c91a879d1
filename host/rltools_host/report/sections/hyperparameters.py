"""The run's hyperparameters against the experiment's defaults."""

from __future__ import annotations

from typing import Any

import numpy as np

from rltools_host.report.markup import Section, text
from rltools_host.report.run_data import RunData


def section(data: RunData) -> Section | None:
    values = data.metadata.get("hyperparameters") or {}
    if not values:
        return None
    described = {entry.name: entry for entry in data.hyperparameters}
    changed = [name for name in values if name in described and not is_default(data, name)]
    chosen = [name for name in changed if not is_the_boards(data, name)]
    rows = []
    for name, value in values.items():
        entry = described.get(name)
        mark, sentence, unit = "", "", ""
        if entry is not None:
            mark = "default" if is_default(data, name) else f"default {plain(entry.default)}"
            if name in changed and is_the_boards(data, name):
                mark += ", set by the board"
            sentence, unit = entry.description, entry.unit
        weight = "strong" if name in changed else "span"
        rows.append(
            f'<tr><th><code>{text(name)}</code></th><td class="number"><{weight}>'
            f"{text(plain(value))}</{weight}> {text(unit)}</td>"
            f'<td class="soft">{text(mark)}</td>'
            f'<td class="soft sentence">{text(sentence)}</td></tr>'
        )
    lead = "All are the experiment's defaults."
    if chosen:
        lead = f"Other than the experiment's defaults: <strong>{text(', '.join(chosen))}</strong>."
    if not described:
        lead = "The experiment has changed since, so its defaults are not shown."
    table = (
        '<table class="stacked"><thead><tr><th>name</th><th>value</th><th></th><th>meaning</th>'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
    return Section("Hyperparameters", lead, table)


def is_default(data: RunData, name: str) -> bool:
    """Whether the run's value is the default, to the precision of a float."""
    value = (data.metadata.get("hyperparameters") or {}).get(name)
    for entry in data.hyperparameters:
        if entry.name == name:
            return bool(np.float32(entry.default) == np.float32(value))
    return False


def is_the_boards(data: RunData, name: str) -> bool:
    """Whether the value is what the board's description gives; it does not influence training."""
    values = data.metadata.get("hyperparameters") or {}
    environments = (data.metadata.get("learning") or {}).get("environments", 1)
    return (
        name == "report_every"
        and data.board is not None
        and values.get(name) == data.board.report_every * environments
    )


def plain(value: Any) -> str:
    """The shortest decimal that is the same float."""
    if isinstance(value, float):
        short = str(np.float32(value))
        return short.removesuffix(".0")
    return str(value)
