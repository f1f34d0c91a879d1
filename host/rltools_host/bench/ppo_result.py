"""What `rlt bench ppo` measured: medians of the turns, ratios within a turn, table and chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rltools_host.bench import harness
from rltools_host.bench.contenders import ENVPOOL, OURS, ROLLOUT, SIMULATORS, TRAIN
from rltools_host.bench.harness import Row
from rltools_host.bench.training import Bar, bars_of, draw_bars

TITLES = {
    OURS: "this repository, loop alone",
    TRAIN: "this repository, rlt train",
    "rl_games": "rl_games",
    "stable_baselines3": "Stable-Baselines3",
    "pytorch": "PyTorch, single file",
    ENVPOOL: "EnvPool alone",
    ROLLOUT: "mujoco.rollout alone",
}


def rate(row: Mapping[str, Any]) -> float:
    return float(row["steps"] / row["wall_s"])


def rates_by_turn(rows: Sequence[Row], name: str) -> dict[int, float]:
    return {row["turn"]: rate(row) for row in rows if row["name"] == name}


def ratio_of_turns(of: Mapping[int, float], to: Mapping[int, float]) -> float | None:
    """The median ratio of neighbours in time: the machine may have changed from turn to turn."""
    ratios = [of[turn] / to[turn] for turn in of if turn in to]
    return harness.median(ratios) if ratios else None


def summary(
    rows: Sequence[Row],
    introductions: Mapping[str, Mapping[str, Any]],
    failures: Mapping[str, str],
) -> list[Row]:
    """An entry for each contender, the fastest first, those that learn before the simulators."""
    rates = {name: rates_by_turn(rows, name) for name in introductions}
    limit = rates.get(ROLLOUT, {})
    ours = rates.get(OURS, {})
    entries: list[Row] = []
    for name, mine in rates.items():
        if not mine or name in failures:
            continue
        processor_s = [
            row["cpu_s"] / row["steps"]
            for row in rows
            if row["name"] == name and row["cpu_s"] is not None
        ]
        entries.append(
            {
                "name": name,
                "title": TITLES.get(name, name),
                "learns": name not in SIMULATORS,
                "version": introductions[name]["version"],
                "simulator": introductions[name]["simulator"],
                "settings": introductions[name]["settings"],
                "turns": len(mine),
                "steps_s": harness.median(list(mine.values())),
                "cpu_us_a_step": 1e6 * harness.median(processor_s) if processor_s else None,
                "of_rollout": ratio_of_turns(mine, limit),
                "ours_times": ratio_of_turns(ours, mine),
            }
        )
    entries.sort(key=lambda entry: (not entry["learns"], -entry["steps_s"]))
    for name, reason in failures.items():
        entries.append({"name": name, "title": TITLES.get(name, name), "error": reason})
    return entries


def best_peer(entries: Sequence[Row]) -> Row | None:
    """The fastest one that learns and is not ours."""
    peers = [e for e in entries if e.get("learns") and e["name"] not in (OURS, TRAIN)]
    return max(peers, key=lambda entry: float(entry["steps_s"]), default=None)


def title(document: Mapping[str, Any]) -> str:
    return f"PPO on Ant-v4, {document['threads']} threads each"


def machine_line(document: Mapping[str, Any]) -> str:
    return harness.machine_text(document, "at the start ")


def lines(document: Mapping[str, Any]) -> list[str]:
    """What a person reads."""
    entries = document["summary"]
    header = (
        *("library", "version", "simulator", "settings", "steps/s", "of mujoco.rollout"),
        *("our loop is", "processor time a step"),
    )
    best = best_peer(entries)
    ours: Row = next((entry for entry in entries if entry["name"] == OURS), {})
    against = []
    if best is not None and best["ours_times"] is not None:
        against.append(f"Against the fastest library, {best['title']}: {best['ours_times']:.2f} x.")
    if ours.get("of_rollout") is not None:
        share = 100 * ours["of_rollout"]
        against.append(f"Against mujoco.rollout, which only simulates: {share:.0f} %.")
    return [
        f"{title(document)}: steps of the whole loop, median of {document['rounds']} turns of "
        f"{document['turn_steps']:,} steps; settings are environments x steps of a rollout, "
        f"minibatch, epochs, hidden layers, each library's those with which it is quicker; "
        f"{machine_line(document)}",
        "",
        *harness.table(header, entries, cells),
        "",
        *against,
    ]


def cells(entry: Row) -> tuple[str, ...]:
    share = entry["of_rollout"]
    return (
        str(entry["version"]),
        entry["simulator"],
        entry.get("settings", ""),
        f"{entry['steps_s']:,.0f}",
        harness.shown(share if share is None else 100 * share, "{:.0f} %"),
        f"{harness.shown(entry['ours_times'], '{:.2f}')} x",
        harness.shown(entry["cpu_us_a_step"], "{:.0f} us"),
    )


def bars(document: Mapping[str, Any]) -> list[Bar]:
    """A bar for each contender: those that learn, then those that only simulate."""
    return bars_of(document["summary"], "steps_s", "{:,.0f}", (OURS, TRAIN))


def draw_chart(document: Mapping[str, Any], path: Path) -> bool:
    """False where there is nothing to draw."""
    processor, date = document["machine"]["processor"], document["date"]
    drawn = bars(document)
    if drawn:
        draw_bars(drawn, f"{title(document)}, {processor}, {date}", "steps a second", path)
    return bool(drawn)


# ---- Time to a return ---------------------------------------------------------------------------


def reached(curve: Sequence[Row], wanted: float) -> Row | None:
    """The first iteration whose mean training return is as large."""
    for point in curve:
        if point["return_mean"] is not None and point["return_mean"] >= wanted:
            return point
    return None


def is_done(curve: Sequence[Row], steps: int, returns: Sequence[float]) -> bool:
    if not curve:
        return False
    return int(curve[-1]["steps"]) >= steps or reached(curve, max(returns)) is not None


def returns_summary(
    rows: Sequence[Row],
    introductions: Mapping[str, Mapping[str, Any]],
    failures: Mapping[str, str],
    returns: Sequence[float],
) -> list[Row]:
    """For each contender what it took to each of the returns; None where it did not get there."""
    entries: list[Row] = []
    for row in rows:
        name, curve = row["name"], row["curve"]
        if name in failures or not curve:
            continue
        means = [point["return_mean"] for point in curve if point["return_mean"] is not None]
        entries.append(
            {
                "name": name,
                "title": TITLES.get(name, name),
                "version": introductions[name]["version"],
                "settings": introductions[name]["settings"],
                "reached": [
                    None
                    if point is None
                    else {"return": wanted, "train_s": point["train_s"], "steps": point["steps"]}
                    for wanted in returns
                    for point in [reached(curve, wanted)]
                ],
                "best_return": max(means, default=None),
                "train_s": row["train_s"],
                "steps": curve[-1]["steps"],
            }
        )
    for name, reason in failures.items():
        entries.append({"name": name, "title": TITLES.get(name, name), "error": reason})
    return entries


def returns_lines(document: Mapping[str, Any]) -> list[str]:
    columns = [f"to {wanted:,.0f}" for wanted in document["returns"]]
    header = ("library", "settings", *columns, "best mean", "in all")
    return [
        f"{title(document)}, each library with its own settings for the task, seed "
        f"{document['seed']}, {document['steps']:,} steps at most: training time until the mean "
        f"return of the last 100 episodes of training is reached; {machine_line(document)}",
        "",
        *harness.table(header, document["summary"], cells_of_returns),
    ]


def cells_of_returns(entry: Row) -> tuple[str, ...]:
    def there(point: Row | None) -> str:
        if point is None:
            return "not reached"
        return f"{point['train_s']:,.0f} s, {point['steps']:,} steps"

    best = harness.shown(entry["best_return"], "{:,.0f}")
    return (entry["settings"], *map(there, entry["reached"]), best, there(entry))


def draw_returns(document: Mapping[str, Any], path: Path) -> bool:
    """A bar for each contender that reached the first return: the seconds that it took.

    False where none did.
    """
    wanted = document["returns"][0]
    there = [e for e in document["summary"] if "error" not in e and e["reached"][0] is not None]
    there.sort(key=lambda entry: float(entry["reached"][0]["train_s"]))
    drawn = [
        Bar(
            entry["title"],
            entry["reached"][0]["train_s"],
            f"{entry['reached'][0]['train_s']:,.0f} s",
            entry["name"] == OURS,
        )
        for entry in there
    ]
    what = f"{title(document)}: to a mean training return of {wanted:,.0f}"
    processor, date = document["machine"]["processor"], document["date"]
    if drawn:
        draw_bars(drawn, f"{what}, {processor}, {date}", "seconds", path)
    return bool(drawn)
