"""What `rlt bench environments` measured: medians of the turns, ratios within a turn, the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rltools_host.bench import harness
from rltools_host.ui.table import aligned

OURS, OURS_THREADS = "ours", "ours-threads"
GYMNASIUM = "gymnasium"
ENVPOOL, ENVPOOL_THREADS = "envpool", "envpool-threads"
ORDER = (OURS, GYMNASIUM, ENVPOOL, OURS_THREADS, ENVPOOL_THREADS)
PAIRS = ((OURS, GYMNASIUM), (OURS, ENVPOOL), (OURS_THREADS, ENVPOOL_THREADS))

Row = dict[str, Any]


def summary(rows: Sequence[Row]) -> list[Row]:
    """An entry for each task and number of environments: medians, and medians of the ratios."""
    entries: list[Row] = []
    for task, count in dict.fromkeys((row["task"], row["count"]) for row in rows):
        mine = [row for row in rows if (row["task"], row["count"]) == (task, count)]
        rates = {
            name: {row["turn"]: row["steps"] / row["wall_s"] for row in mine if row["name"] == name}
            for name in ORDER
        }
        entry: Row = {"task": task, "count": count, "steps_s": {}, "ratios": {}}
        for name, by_turn in rates.items():
            if by_turn:
                entry["steps_s"][name] = harness.median(list(by_turn.values()))
        for one, other in PAIRS:
            both = rates[one].keys() & rates[other].keys()
            if both:
                ratios = [rates[one][turn] / rates[other][turn] for turn in sorted(both)]
                entry["ratios"][f"{one}/{other}"] = harness.median(ratios)
        entries.append(entry)
    return entries


def lines(document: Mapping[str, Any]) -> list[str]:
    """What a person reads."""
    machine, threads = document["machine"], document["threads"]
    titles = {
        OURS: "this repository",
        GYMNASIUM: "Gymnasium",
        ENVPOOL: "EnvPool",
        OURS_THREADS: f"this, {threads} threads",
        ENVPOOL_THREADS: f"EnvPool, {threads} threads",
    }
    present = [name for name in ORDER if any(name in e["steps_s"] for e in document["summary"])]
    pairs = [(a, b) for a, b in PAIRS if a in present and b in present]
    table = [
        (
            *("task", "environments", *(titles[name] for name in present)),
            *(f"to {titles[other]}" for _, other in pairs),
        )
    ]
    for entry in document["summary"]:
        rates = [entry["steps_s"].get(name) for name in present]
        ratios = [entry["ratios"].get(f"{one}/{other}") for one, other in pairs]
        table.append(
            (
                entry["task"],
                f"{entry['count']:,}",
                *("-" if value is None else f"{value:,.0f}" for value in rates),
                *("-" if value is None else f"{value:.2f} x" for value in ratios),
            )
        )
    loops = [
        f"{task}: {row['environment_steps_s']:,} steps a second of a core's time, "
        f"{100 * row['ratio']:.1f} % of MuJoCo's own loop"
        for task, row in document["loops"].items()
    ]
    versions = ", ".join(
        f"{titles[name]} {version}" if name == GYMNASIUM else version
        for name, version in document["versions"].items()
        if name in (GYMNASIUM, ENVPOOL)
    )
    return [
        f"Steps a second with observation, reward and new episodes, one thread where none is "
        f"named, median of {document['rounds']} turns; {versions}; {machine['processor']} "
        f"({machine['cores']} cores, load average {document['load_average']})",
        "",
        *aligned(table),
        *(f"{titles.get(name, name)}: {reason}" for name, reason in document["errors"].items()),
        "",
        *loops,
    ]
