"""What decides how an experiment learns, entry by entry: the fingerprint is computed from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rltools_host.runs.schema import shown

MOST_NAMED = 3


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """`gravity was 10, is 9.81; mass is new`; empty where nothing is known or differs."""
    if not before or not now:
        return ""
    clauses = []
    for name in dict.fromkeys([*before, *now]):
        if name not in now:
            clauses.append(f"{name} was {plain(before[name])}, is gone")
        elif name not in before:
            clauses.append(f"{name} is new, {plain(now[name])}")
        elif before[name] != now[name]:
            clauses.append(f"{name} was {plain(before[name])}, is {plain(now[name])}")
    if len(clauses) > MOST_NAMED:
        clauses[MOST_NAMED:] = [f"and {len(clauses) - MOST_NAMED} more"]
    return "; ".join(clauses)


def plain(value: Any) -> str:
    """A value as a person writes it: text that needs no quotes has none."""
    return value if isinstance(value, str) and value.isprintable() else shown(value)
