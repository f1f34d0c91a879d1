"""The comparison of runs and groups, also of different algorithms: figures, and their page."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from rltools_host.documents import shown
from rltools_host.errors import UsageError
from rltools_host.files import write_atomically
from rltools_host.report.group_page import (
    Points,
    VariantCurve,
    curve_of,
    finished_where_any,
    interval_text,
    learning_curves,
    points_of,
    returns_table,
    run_of,
    shown_variants,
)
from rltools_host.report.markup import Section, document, number, table, text
from rltools_host.runs.aggregates import (
    CONFIDENCE,
    RESAMPLES,
    Interval,
    interquartile_mean,
    interval_of_improvement,
    interval_of_mean,
    probability_of_improvement,
)
from rltools_host.runs.checkpoint import CONSTANTS, learning_difference
from rltools_host.runs.contents import Run
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.group import GroupFolder, statistics_of
from rltools_host.runs.names import find_group
from rltools_host.tree import command_line, near_path

OF_EACH_RUN = ("seed", "steps", "report_every")
NOT_KNOWN = "what it does not state"


@dataclass(frozen=True)
class Reached:
    """The first evaluation of each run's training at which it reaches a threshold."""

    threshold: float
    steps: tuple[int | None, ...]  # of each run; None: never
    seconds: tuple[float | None, ...]

    @property
    def count(self) -> int:
        return sum(step is not None for step in self.steps)

    def median(self, values: Sequence[float | None]) -> float | None:
        """Return the median over all runs; None where that is a run which never reaches it."""
        middle = statistics.median(math.inf if value is None else value for value in values)
        return middle if math.isfinite(middle) else None

    def document(self) -> dict[str, object]:
        return {
            "threshold": self.threshold,
            "reached": self.count,
            "steps": list(self.steps),
            "seconds": list(self.seconds),
            "median_steps": self.median(self.steps),
            "median_s": self.median(self.seconds),
        }


@dataclass(frozen=True)
class Contender:
    """A run, or the runs of a group's variant. `returns` are those of the last evaluations."""

    name: str
    runs: tuple[RunFolder, ...]
    contents: tuple[Run, ...]
    returns: tuple[float, ...]
    curve: VariantCurve | None
    reached: Reached | None

    @property
    def first(self) -> Run:
        return self.contents[0]

    @property
    def mean(self) -> float:
        return float(interquartile_mean(np.array(self.returns)))

    @cached_property
    def interval(self) -> Interval | None:
        return interval_of_mean(self.returns)

    @property
    def length(self) -> float | None:
        """Return the mean length in steps of the last evaluations' episodes, over the runs that
        state it."""
        known = [run.length_mean for run in self.contents if run.length_mean is not None]
        return statistics.fmean(known) if known else None

    def document(self) -> dict[str, object]:
        figures = statistics_of(self.returns)
        return {
            "name": self.name,
            "algorithm": self.first.algorithm,
            "experiment": self.first.experiment,
            "paths": [str(run.path) for run in self.runs],
            "returns": list(self.returns),
            "iqm": self.mean,
            "iqm_interval": self.interval,
            "length_mean": self.length,
            **figures,
            **({} if self.reached is None else {"threshold": self.reached.document()}),
        }


@dataclass(frozen=True)
class Improvement:
    """The probability that a run of one has a higher return than a run of the other."""

    of: str
    over: str
    probability: float
    interval: Interval | None


@dataclass(frozen=True)
class Comparison:
    contenders: tuple[Contender, ...]
    notes: tuple[str, ...]

    @cached_property
    def improvements(self) -> list[Improvement]:
        return [
            Improvement(
                a.name,
                b.name,
                probability_of_improvement(a.returns, b.returns),
                interval_of_improvement(a.returns, b.returns),
            )
            for a, b in combinations(self.contenders, 2)
        ]

    @cached_property
    def winner(self) -> Contender | None:
        """Return the contender whose interval lies above all others'; None where there is none, or
        where the runs have trained for other steps."""
        return None if self.undecided else self.best

    @cached_property
    def best(self) -> Contender:
        return max(self.contenders, key=lambda each: each.mean)

    @cached_property
    def undecided(self) -> str:
        """Return a clause on why there is no winner; empty where there is one."""
        steps = sorted({content.step for each in self.contenders for content in each.contents})
        if len(steps) > 1:
            return f"the runs have trained for {steps[0]:,} to {steps[-1]:,} steps"
        others = [each for each in self.contenders if each is not self.best]
        if alone := [each.name for each in self.contenders if each.interval is None]:
            return f"{alone[0]} has too few runs for an interval"
        low = self.best.interval[0] if self.best.interval else math.nan
        near = [each.name for each in others if each.interval and each.interval[1] >= low]
        return f"the intervals of {self.best.name} and {near[0]} overlap" if near else ""

    @property
    def verdict(self) -> str:
        """Return the comparison in one sentence."""
        mean = f"{self.best.mean:,.1f}"
        if self.undecided:
            return f"no winner: {self.undecided}; the highest IQM is {mean}, of {self.best.name}"
        return f"{self.best.name} is best: its interval lies above the others'; IQM {mean}"

    def document(self) -> dict[str, object]:
        return {
            "contenders": [each.document() for each in self.contenders],
            "winner": None if self.winner is None else self.winner.name,
            "verdict": self.verdict,
            "improvements": [asdict(each) for each in self.improvements],
            "differences": differing(self.contenders),
            "confidence": CONFIDENCE,
            "resamples": RESAMPLES,
            "notes": list(self.notes),
        }


def compare(
    names: Sequence[str], threshold: float | None, takes_any: bool, joins: bool = False
) -> Comparison:
    """Compare runs and groups; raise UsageError where they have different environments, unless
    it `takes_any`. Where it `joins`, runs that differ in their seeds alone become one row."""
    notes: list[str] = []
    found = [each for name in names for each in contenders_of(name, threshold, notes)]
    given = [each.name for each in found]
    if twice := [name for index, name in enumerate(given) if name in given[:index]]:
        raise UsageError(f"{twice[0]} is given twice: give it once")
    found = joined(found, threshold) if joins else found
    if len(found) < 2:
        raise UsageError("a comparison takes two runs or groups, or a group with variants")
    for each in found[1:]:
        clause = other_environment(found[0].first, each.first)
        if not clause:
            continue
        what = f"{found[0].name} and {each.name} are of different environments ({clause})"
        if not takes_any:
            raise UsageError(f"{what}: their returns mean different things; --any compares them")
        notes.append(what)
    steps = sorted({content.step for each in found for content in each.contents})
    if len(steps) > 1:
        notes.append(f"the runs have trained for {steps[0]:,} to {steps[-1]:,} steps")
    return Comparison(tuple(found), tuple(notes))


def joined(found: Sequence[Contender], threshold: float | None) -> list[Contender]:
    """Return the contenders with single runs that differ in their seeds alone joined to one."""
    rows: dict[str, list[Contender]] = {}
    for each in found:
        run = each.first
        values = {k: v for k, v in run.hyperparameters.items() if k not in ("seed", "report_every")}
        what = [run.experiment, run.fingerprint, run.steps, run.gymnasium, sorted(values.items())]
        key = repr(what) if len(each.runs) == 1 else each.name
        seeds = [other.first.seed for other in rows.get(key, ())]
        rows.setdefault(each.name if run.seed in seeds else key, []).append(each)
    result = []
    for row in rows.values():
        runs = dict(enumerate(each.runs[0] for each in row))
        name = f"{row[0].name} and {len(row) - 1} more"
        is_one = len(row) == 1
        result.append(row[0] if is_one else contender(name, "", runs, points_of(runs), threshold))
    return result


def contenders_of(name: str, threshold: float | None, notes: list[str]) -> Iterator[Contender]:
    """Yield the run; or each variant of a group, with its finished runs, or all where none has
    finished."""
    if find_group(name) is None:
        alone = RunFolder.open(name)
        shown_path = str(near_path(alone.path))
        runs = {alone.content.seed or 0: alone}
        points = points_of(runs)
        if not points and not alone.content.sessions:
            raise UsageError(
                f"{shown_path} was made of a file, and has no evaluations of a training: "
                f"see its return by {command_line('evaluate', shown_path)}"
            )
        if not points:
            raise UsageError(f"{shown_path} has no evaluation yet: train it first")
        yield contender(shown_path, "", runs, points, threshold)
        return
    group = GroupFolder.open(name)
    shown_path = str(near_path(group.path))
    variants = shown_variants(group)
    if len(variants) < len(group.variants):
        notes.append(f"{shown_path}: the {len(variants)} best of {len(group.variants)} trials")
    for variant in variants:
        names = [each for each in group.run_names() if each.variant == variant.name]
        begun = {each.seed: run for each in names if (run := run_of(group, each)) is not None}
        chosen = finished_where_any(begun)
        points = points_of(chosen)
        runs = {seed: chosen[seed] for seed in points}
        label = f"{shown_path}/{variant.name}" if variant.name else shown_path
        if len(runs) < len(names):
            notes.append(f"{label}: {len(runs)} of {len(names)} runs have finished evaluations")
        if runs:
            yield contender(label, variant.label, runs, points, threshold)


def contender(
    name: str, label: str, runs: Mapping[int, RunFolder], points: Points, threshold: float | None
) -> Contender:
    """Return the contender of runs by their seeds or numbers, all with points."""
    returns = [values[max(values)] for values in points.values()]
    reached = None if threshold is None else reached_by(tuple(runs.values()), threshold)
    curve = curve_of(name, f"{name}: {label}" if label else name, points)  # as tables name it
    contents = tuple(run.content for run in runs.values())
    return Contender(name, tuple(runs.values()), contents, tuple(returns), curve, reached)


def reached_by(runs: Sequence[RunFolder], threshold: float) -> Reached:
    steps: list[int | None] = []
    seconds: list[float | None] = []
    for run in runs:
        rows = [row for row in run.read_metrics() if row.get("kind") == "evaluation"]
        good = [r for r in rows if r["return_mean"] is not None and r["return_mean"] >= threshold]
        first = min(good, key=lambda row: row["step"], default=None)
        steps.append(None if first is None else int(first["step"]))
        seconds.append(None if first is None else float(first["time_s"]))
    return Reached(threshold, tuple(steps), tuple(seconds))


# -- what differs ----------------------------------------------------------------------------------


def other_environment(a: Run, b: Run) -> str:
    """Return a clause on how the environments differ; empty where their returns mean the same."""
    names = [environment_of(run) for run in (a, b)]
    if names[0] != names[1]:
        return " and ".join(name or NOT_KNOWN for name in names)
    if not names[0]:
        return NOT_KNOWN
    if a.gymnasium is not None and b.gymnasium is not None:
        lengths = a.gymnasium.episode_steps, b.gymnasium.episode_steps
        if lengths[0] != lengths[1]:
            return f"episodes of {lengths[0]:,} and of {lengths[1]:,} steps"
    constants = [
        {name: value for name, value in run.learning.items() if name.startswith(CONSTANTS)}
        for run in (a, b)
    ]
    return learning_difference(*constants)


def environment_of(run: Run) -> str:
    return run.environment if isinstance(run.environment, str) else ""


def differing(contenders: Sequence[Contender]) -> dict[str, list[Any]]:
    """Return the hyperparameters that all have, with different values: a list in the contenders'
    order."""
    values = [each.first.hyperparameters for each in contenders]
    common = [name for name in values[0] if all(name in each for each in values)]
    return {
        name: [each[name] for each in values]
        for name in common
        if name not in OF_EACH_RUN and len({each[name] for each in values}) > 1
    }


def difference_lines(contenders: Sequence[Contender]) -> list[str]:
    return [
        f"{name}: {', '.join(map(shown, values))}" for name, values in differing(contenders).items()
    ]


# -- the page --------------------------------------------------------------------------------------


def write_comparison(comparison: Comparison, output: Path) -> Path:
    """Write the self-contained page, into a folder as comparison.html; return its path."""
    path = output / "comparison.html" if output.is_dir() else output
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--output {path}: the page is HTML, end its name in .html")
    write_atomically(path, page(comparison).encode())
    return path


def page(comparison: Comparison) -> str:
    contenders = comparison.contenders
    curves = [each.curve for each in contenders if each.curve is not None]
    environments = sorted({environment_of(each.first) or "unknown" for each in contenders})
    lead = (
        "The last evaluation of each run's training. IQM is the mean of the middle half of the "
        f"runs, with its {CONFIDENCE:.0%} bootstrap interval over the runs."
    )
    sections = [
        returns_table([(each.name, each.returns) for each in contenders], lead),
        improvement_section(comparison.improvements),
        threshold_section(contenders),
    ]
    if curves:
        lead = "The line is the mean over the runs, the band one standard deviation to both sides."
        body = learning_curves(curves, "environment steps", "return")
        sections.insert(0, Section("Learning curves", lead, body))
    if lines := [*comparison.notes, *difference_lines(contenders)]:
        items = "".join(f"<li>{text(line)}</li>" for line in lines)
        lead = "What to know beside the figures; hyperparameters are in the order of the table."
        sections.append(Section("Differences", lead, f"<ul>{items}</ul>"))
    return document(
        title="Comparison of runs",
        kicker=f"Comparison · {text(', '.join(environments))}",
        heading=f"{len(contenders)} kinds of runs",
        verdict=text(f"{comparison.verdict[0].upper()}{comparison.verdict[1:]}."),
        tiles="",
        sections=[section for section in sections if section is not None],
        folder=", ".join(each.name for each in contenders),
        command="rlt runs compare",
    )


def improvement_section(improvements: Sequence[Improvement]) -> Section:
    rows = [
        (
            f"{each.of} over {each.over}",
            number(each.probability, 2),
            interval_text(each.interval, 2),
        )
        for each in improvements
    ]
    lead = "How probable it is that a run of the first has a higher return than one of the second."
    return Section("Probability of improvement", lead, table(("", "probability", "95 %"), rows))


def threshold_section(contenders: Sequence[Contender]) -> Section | None:
    rows = []
    for each in contenders:
        if (reached := each.reached) is not None:
            steps, seconds = reached.median(reached.steps), reached.median(reached.seconds)
            share = f"{reached.count} of {len(reached.steps)}"
            rows.append((each.name, share, number(steps), number(seconds, 1)))
    if not rows or contenders[0].reached is None:
        return None
    heads = ("", "runs that reach it", "steps", "seconds")
    lead = (
        f"The first evaluation with a return of at least "
        f"{number(contenders[0].reached.threshold, 1)}: medians over all runs."
    )
    return Section("Threshold", lead, table(heads, rows))
