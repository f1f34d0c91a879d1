"""What decides how an experiment learns, item by item: the fingerprint is the hash over them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rltools_host.documents import shown

MOST_NAMED = 3
# Items that are hashes over much: they are named where no other item says what has changed.
HASHES = {
    "environment.behaviour": "the environment's step has changed",
    "state_layout": "the layout of the training state has changed",
}
# Of environments with settings. Runs from before there was this item are of a fingerprint that saw
# the environment with its settings' defaults alone: how it compares with today's is not known.
CONSTANTS = "environment."
PROBES = "environment.probes"
NOT_COVERED = (
    "the run's fingerprint does not cover the effects of the environment's settings, "
    "which may have changed since"
)


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """`environment.gravity_m_s2 was 10, is 9.81`; empty where nothing is known or differs."""
    if not before or not now:
        return ""
    clauses, hashes = [], []
    is_covered = PROBES in before or PROBES not in now
    if not is_covered:
        hashes.append(NOT_COVERED)
    for name in dict.fromkeys([*before, *now]):
        old, new = before.get(name), now.get(name)
        if old == new or (not is_covered and name.startswith(CONSTANTS)):
            continue
        if name in HASHES:
            hashes.append(HASHES[name])
        elif name not in now:
            clauses.append(f"{name} was {plain(old)}, is gone")
        elif name not in before:
            clauses.append(f"{name} is new, {plain(new)}")
        else:
            clauses.append(f"{name} was {different(old, new)}")
    clauses = clauses or hashes
    if len(clauses) > MOST_NAMED:
        clauses[MOST_NAMED:] = [f"and {len(clauses) - MOST_NAMED} more"]
    return "; ".join(clauses)


def different(old: Any, new: Any) -> str:
    """`10, is 9.81`: with as many digits as it takes to tell them apart."""
    short = plain(old), plain(new)
    return (
        f"{shown(old)}, is {shown(new)}" if short[0] == short[1] else f"{short[0]}, is {short[1]}"
    )


def plain(value: Any) -> str:
    """A value as a person writes it: a float of 32 bits with its digits, text without quotes."""
    if isinstance(value, float):
        return f"{value:.7g}"
    return value if isinstance(value, str) and value.isprintable() else shown(value)
