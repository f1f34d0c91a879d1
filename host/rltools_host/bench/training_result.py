"""What `rlt bench train` measured: medians, overhead, the table and the chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rltools_host.bench import build_times, harness
from rltools_host.bench.chart import Bar, draw_bars
from rltools_host.ui.table import aligned

OURS = "ours"
LOOP = "ours, loop alone"
TITLES = {
    OURS: "this repository, rlt train",
    LOOP: "this repository, loop alone",
    "pytorch": "PyTorch, single file",
    "rltools": "PyPI rltools, MKL",
    "sbx": "sbx",
    "skrl": "skrl",
    "stable_baselines3": "Stable-Baselines3",
    "tianshou": "Tianshou",
}

Row = dict[str, Any]


def summary(rows: Sequence[Row]) -> list[Row]:
    """One entry for each contender, in the order of the first run: medians over the repetitions."""
    entries: list[Row] = []
    for name in dict.fromkeys(row["name"] for row in rows):
        mine = [row for row in rows if row["name"] == name]
        errors = [row["error"] for row in mine if "error" in row]
        good = [row for row in mine if "error" not in row]
        if not good:
            entries.append({"name": name, "title": TITLES.get(name, name), "error": errors[0]})
            continue
        returns = [row["return_mean"] for row in good if row["return_mean"] is not None]
        processor = [row["cpu_s"] for row in good if row.get("cpu_s") is not None]
        entries.append(
            {
                "name": name,
                "title": TITLES.get(name, name),
                "version": good[0]["version"],
                "runs": len(good),
                "setup_s": harness.median([row["setup_s"] for row in good]),
                "train_s": harness.median([row["train_s"] for row in good]),
                "cpu_s": harness.median(processor) if processor else None,
                "return_mean": harness.median(returns) if returns else None,
            }
        )
    ours = next((entry.get("train_s") for entry in entries if entry["name"] == OURS), None)
    for entry in entries:
        if ours and "train_s" in entry:
            entry["times_ours"] = entry["train_s"] / ours
    return sorted(entries, key=lambda entry: entry.get("train_s", float("inf")))


def overhead(rows: Sequence[Row]) -> dict[str, float] | None:
    """What link, log and screen add to the loop, as shares of the loop's time.

    "wall": the difference of the two times, which what else the machine does blurs. "host_cpu": the
    processor time of the host tools meanwhile, which is what they take from a board that has to
    share its core with them. The returns that a run reports on its way are training's, and do not
    count.
    """
    ours = [row for row in rows if row["name"] == OURS and "error" not in row]
    loops = [row for row in rows if row["name"] == LOOP and "error" not in row]
    if not ours or not loops:
        return None

    def middle(of: Sequence[Row], key: str) -> float:
        return harness.median([row[key] for row in of])

    added_s = middle(ours, "train_s") - middle(loops, "train_s") - middle(loops, "evaluations_s")
    return {
        "wall": added_s / middle(loops, "train_s"),
        "host_cpu": middle(ours, "host_cpu_s") / middle(loops, "cpu_s"),
    }


def title(document: Mapping[str, Any]) -> str:
    return f"{document['algorithm'].upper()} on Pendulum-v1, {document['steps']:,} steps"


def lines(document: Mapping[str, Any]) -> list[str]:
    """What a person reads."""
    machine = document["machine"]
    header = ("library", "version", "training", "processor", "times ours", "return", "setup")
    table = [header]
    reasons = []
    for entry in document["summary"]:
        if "error" in entry:
            table.append((entry["title"], "-", "-", "-", "-", "-", "-"))
            reasons.append(f"{entry['title']}: {entry['error']}")
            continue
        mean, cpu_s, ratio = entry["return_mean"], entry["cpu_s"], entry.get("times_ours")
        table.append(
            (
                entry["title"],
                str(entry["version"]),
                f"{entry['train_s']:.2f} s",
                "-" if cpu_s is None else f"{cpu_s:.2f} s",
                "-" if ratio is None else f"{ratio:.1f}",
                "-" if mean is None else f"{mean:.1f}",
                f"{entry['setup_s']:.1f} s",
            )
        )
    added = document["overhead"]
    logging = []
    if added is not None:
        logging.append(
            f"Link, log and screen add {100 * added['wall']:.1f} % to the loop's time; the host "
            f"tools' processor time is {100 * added['host_cpu']:.1f} % of the loop's."
        )
    return [
        f"{title(document)}, median of {document['repetitions']}, "
        f"{document['episodes']} evaluation episodes; one core of {machine['processor']} "
        f"({machine['cores']} cores, load average {document['load_average']})",
        "",
        *aligned(table),
        *reasons,
        "",
        *logging,
        *build_times.lines(document["build"]),
    ]


def bars(document: Mapping[str, Any]) -> list[Bar]:
    """A bar for each contender, the fastest on top."""
    return [
        Bar(
            entry["title"],
            entry["train_s"],
            f"{entry['train_s']:.2f} s",
            entry["name"] in (OURS, LOOP),
        )
        for entry in document["summary"]
        if "train_s" in entry
    ]


def draw_chart(document: Mapping[str, Any], path: Path) -> None:
    processor, date = document["machine"]["processor"], document["date"]
    heading = f"{title(document)}, one core of {processor}, {date}"
    draw_bars(bars(document), heading, "seconds", path)
