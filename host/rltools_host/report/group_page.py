"""The page about a group of runs: learning curves over its seeds, and the final returns of variants
and runs.

Everything comes from the folders of the group and of its runs.
"""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rltools_host.errors import RltError
from rltools_host.files import write_atomically
from rltools_host.report import markup
from rltools_host.report.markup import Html, Section, Values, document, number, table, text, tile
from rltools_host.report.run_data import values_of
from rltools_host.runs.aggregates import Interval, interquartile_mean, interval_of_mean
from rltools_host.runs.contents import Run, Variant
from rltools_host.runs.folder import REPORT_FILE, RunFolder
from rltools_host.runs.group import GroupFolder, RunName, seed_ranges, statistics_of
from rltools_host.runs.names import is_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# One after the other; who cannot tell two colors apart has the dashes.
COLORS = (markup.FIRST, markup.SECOND, markup.INK, markup.THIRD, markup.GOAL)
DASHES: tuple[Any, ...] = (
    "solid",
    (0, (6, 2.5)),
    (0, (1.2, 1.8)),
    (0, (7, 2, 1.5, 2)),
    (0, (3, 2)),
)
MAX_TRIALS = 5  # of a tuning, that are drawn and compared
MANY_POINTS = 40  # from which on points are not marked
# Numbers stay in one line; on a narrow page the columns behind the interval give way.
NARROW_TABLE = """
table.figures td.number { white-space: nowrap; }
@media (max-width: 480px) {
  table.figures th:nth-child(n + 5), table.figures td:nth-child(n + 5) { display: none; }
  tbody th { overflow-wrap: anywhere; }
  table.figures td.number:nth-child(4) { white-space: normal; overflow-wrap: normal; }
}
"""
SHORT, TALL = 380, 400  # CSS pixels, for a wide and a narrow page


def write_group_report(group: GroupFolder, output: Path | None = None) -> tuple[Path, Path]:
    """Write the page, by default into the group's folder, and the curves; return their paths."""
    path = output or group.report_path
    if path.is_dir():
        path = path / REPORT_FILE
    curves = variant_curves(group)
    drawn = [variant.name for variant in shown_variants(group)]
    write_atomically(group.curves_path, as_csv(curves).encode())
    write_atomically(path, page(group, [c for c in curves if c.name in drawn]).encode())
    return path, group.curves_path


def shown_variants(group: GroupFolder) -> list[Variant]:
    """Return all variants; of a tuning the best trials whose runs have finished, the best first."""
    if group.content.tune is None:
        return group.variants
    finished = finished_runs(group)
    means = {
        variant.name: statistics.fmean(returns)
        for variant in group.variants
        if len(returns := returns_of(finished, variant.name)) == len(group.content.seeds)
    }
    known = [variant for variant in group.variants if variant.name in means]
    return sorted(known, key=lambda variant: means[variant.name], reverse=True)[:MAX_TRIALS]


# -- curves ----------------------------------------------------------------------------------------


Points = Mapping[int, Mapping[int, float]]  # evaluations, mean return by step, of runs by seed


@dataclass(frozen=True)
class VariantCurve:
    """The evaluations of a variant's runs at the steps that all of them have."""

    name: str
    label: str
    seeds: tuple[int, ...]
    steps: Values  # (points)
    returns: Values  # (runs, points): the mean return of each evaluation

    @property
    def mean(self) -> Values:
        return np.asarray(self.returns.mean(axis=0))

    @property
    def std(self) -> Values:
        """Return the standard deviation between the runs; the population's, as boards report it."""
        return np.asarray(self.returns.std(axis=0))


def variant_curves(group: GroupFolder) -> list[VariantCurve]:
    """Return the curve of each variant that has evaluations: of its finished runs, or all where
    none has finished."""
    curves = []
    for variant in group.variants:
        names = [name for name in group.run_names() if name.variant == variant.name]
        begun = {name.seed: run for name in names if (run := run_of(group, name)) is not None}
        points = points_of(finished_where_any(begun))
        curves.append(curve_of(variant.name, variant.label, points))
    return [curve for curve in curves if curve is not None]


def finished_where_any(runs: Mapping[int, RunFolder]) -> Mapping[int, RunFolder]:
    """Return the finished runs by their seeds; all where none has finished."""
    return {seed: run for seed, run in runs.items() if run.content.state == "finished"} or runs


def points_of(runs: Mapping[int, RunFolder]) -> Points:
    """Return the evaluations of the runs that have any."""
    return {seed: values for seed, run in runs.items() if (values := evaluations(run))}


def curve_of(name: str, label: str, points: Points) -> VariantCurve | None:
    """Return the curve at the steps at which each run has an evaluation; None where there are
    none."""
    steps = sorted(set.intersection(*map(set, points.values()))) if points else []
    if not steps:
        return None
    returns = [[values[step] for step in steps] for values in points.values()]
    return VariantCurve(
        name, label, tuple(points), np.array(steps, float), np.array(returns, float)
    )


def run_of(group: GroupFolder, name: RunName) -> RunFolder | None:
    """Return a run of the group; None where it has not begun or cannot be read."""
    path = group.path / name.folder
    try:
        return RunFolder.open(path) if is_run(path) else None
    except RltError:
        return None


def evaluations(run: RunFolder) -> Mapping[int, float]:
    """Return the mean return by step; a null is left out."""
    rows = [row for row in run.read_metrics() if row.get("kind") == "evaluation"]
    values = values_of(rows, "return_mean")
    return {
        int(row["step"]): float(value)
        for row, value in zip(rows, values, strict=True)
        if np.isfinite(value)
    }


def as_csv(curves: Sequence[VariantCurve]) -> str:
    """Return a row for each variant and step: mean and deviation, then each seed's return."""
    seeds = sorted({seed for curve in curves for seed in curve.seeds})
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["variant", "step", "mean", "deviation", *(f"seed_{seed}" for seed in seeds)])
    for curve in curves:
        by_seed = dict(zip(curve.seeds, curve.returns, strict=True))
        for index, step in enumerate(curve.steps):
            each = [repr(float(by_seed[s][index])) if s in by_seed else "" for s in seeds]
            row = [repr(float(value[index])) for value in (curve.mean, curve.std)]
            writer.writerow([curve.name, int(step), *row, *each])
    return stream.getvalue()


# -- the page --------------------------------------------------------------------------------------


def page(group: GroupFolder, curves: Sequence[VariantCurve]) -> str:
    content = group.content
    finished = finished_runs(group)
    sections = [learning(group, curves), final_returns(group, finished), runs(group)]
    title = text(group.title)
    seeds = text(seed_ranges(content.seeds))
    experiment, board = text(content.experiment), text(content.board)
    return document(
        title=title,
        kicker=f"Training report · {experiment} on {board}, seeds {seeds}",
        heading=title,
        verdict=verdict(group, finished),
        tiles="".join(tiles(group, finished)),
        sections=[section for section in sections if section is not None],
        folder=group.name,
    )


def finished_runs(group: GroupFolder) -> dict[RunName, Run]:
    """Return run.json of the finished runs."""
    found: dict[RunName, Run] = {}
    for name in group.run_names():
        run = run_of(group, name)
        if run is not None and (content := run.content).state == "finished":
            found[name] = content
    return found


def returns_of(finished: Mapping[RunName, Run], variant: str) -> list[float]:
    return [
        run.return_mean
        for name, run in finished.items()
        if name.variant == variant and run.return_mean is not None
    ]


def verdict(group: GroupFolder, finished: Mapping[RunName, Run]) -> str:
    """Return one sentence with how many runs have finished, and their final returns."""
    names = list(group.run_names())
    count_text = f"{len(finished)} of {len(names)} runs have finished"
    if group.content.tune is not None:
        if not (best := shown_variants(group)):
            return f"{count_text}."
        value = statistics.fmean(returns_of(finished, best[0].name))
        return (
            f"{count_text}. The best is <strong>{text(best[0].label)}</strong> with a return of "
            f"<strong>{number(value, 1)}</strong>: {settings_in_words(best[0].settings)}."
        )
    if len(group.variants) > 1:
        means = [
            (float(statistics_of(returns)["mean"] or 0), variant.label)
            for variant in group.variants
            if (returns := returns_of(finished, variant.name))
        ]
        if not means:
            return f"{count_text}."
        (low, low_label), (high, high_label) = min(means), max(means)
        return (
            f"{count_text}. The means of their final returns lie between "
            f"<strong>{number(low, 1)}</strong> ({text(low_label)}) and "
            f"<strong>{number(high, 1)}</strong> ({text(high_label)})."
        )
    figures = statistics_of(returns_of(finished, group.variants[0].name))
    if not figures["runs"]:
        return f"{count_text}."
    mean = f"<strong>{number(figures['mean'], 1)}</strong>"
    if figures["std"] is None:
        return f"{count_text}; the last evaluation of its training returned {mean}."
    return (
        f"{count_text}; the last evaluations of their training returned {mean} ± "
        f"{number(figures['std'], 1)}, mean and standard deviation over the seeds."
    )


def tiles(group: GroupFolder, finished: Mapping[RunName, Run]) -> list[str]:
    shown = [tile("runs finished", number(len(finished)), f"of {len(list(group.run_names()))}")]
    if len(group.variants) == 1 and group.content.tune is None:
        figures = statistics_of(returns_of(finished, group.variants[0].name))
        if figures["runs"]:
            for name, key in (("mean return", "mean"), ("median", "median"), ("worst", "worst")):
                note = f"over {figures['runs']} seeds"
                shown.append(tile(name, number(float(figures[key] or 0), 1), note))
    steps = {run.step for run in finished.values()}
    if steps:
        shown.append(tile("training steps", number(max(steps)), "each"))
    train_s = sum(run.train_s or 0.0 for run in finished.values())
    if train_s:
        shown.append(tile("training time", text(markup.duration(train_s)), "of all runs together"))
    return shown


def learning(group: GroupFolder, curves: Sequence[VariantCurve]) -> Section | None:
    if not curves:
        return None
    counts = {len(curve.seeds) for curve in curves}
    seeds = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else str(counts.pop())
    lead = (
        "Return of the deterministic evaluations during training: the line is the mean over "
        f"{seeds} seeds, the band one standard deviation to both sides."
    )
    if group.content.tune is not None:
        lead += f" Of the trials, the {len(curves)} best are drawn."
    if len(curves) == 1:
        lead += " Thin lines are the seeds."
    body = learning_curves(curves, group.content.x_axis, group.content.y_axis)
    return Section("Learning curves", lead, body)


def learning_curves(curves: Sequence[VariantCurve], x_axis: str, y_axis: str) -> str:
    """Draw a line and a band for each variant."""

    def draw(figure: Figure, is_wide: bool) -> None:
        axes = figure.add_subplot()
        for index, curve in enumerate(curves):
            color = COLORS[index % len(COLORS)]
            if len(curves) == 1:
                for values in curve.returns:
                    axes.plot(curve.steps, values, color=color, linewidth=0.8, alpha=0.45)
            mean, std = curve.mean, curve.std
            markup.band(axes, curve.steps, mean - std, mean + std, color=color, alpha=0.15)
            axes.plot(
                curve.steps,
                mean,
                color=color,
                linewidth=2.2,
                linestyle=DASHES[index % len(DASHES)],
                marker="o" if curve.steps.size < MANY_POINTS else "",
                markersize=4,
                label=curve.label or "mean ± deviation",
                zorder=3,
            )
        markup.use_thousands(axes, is_wide)
        axes.set_xlabel(x_axis)
        markup.title(axes, y_axis)
        markup.legend(figure, axes, is_wide, below=len(curves) > 1)

    label = f"Learning curves: {y_axis} over {x_axis}, a line for each variant"
    return markup.responsive(draw, (SHORT, TALL), label)


def final_returns(group: GroupFolder, finished: Mapping[RunName, Run]) -> Section | None:
    """Return the table of the variants' final returns."""
    rows = [
        (variant.label or "all seeds", returns)
        for variant in shown_variants(group)
        if (returns := returns_of(finished, variant.name))
    ]
    lead = (
        "The last evaluation of each run's training; deviations are between the seeds. IQM is the "
        "mean of the middle half of the seeds, with its 95 % bootstrap interval."
    )
    return returns_table(rows, lead) if rows else None


def returns_table(rows: Sequence[tuple[str, Sequence[float]]], lead: str) -> Section:
    """Return a table of final returns with a row for each name; each has at least one run."""
    lines = []
    for name, returns in rows:
        figures = statistics_of(returns)
        cells = [number(figures[key], 1) for key in ("mean", "std", "median", "worst")]
        mean = number(float(interquartile_mean(np.array(returns))), 1)
        interval = interval_text(interval_of_mean(returns), 1)
        lines.append((name, str(figures["runs"]), mean, interval, *cells))
    heads = ("", "runs", "IQM", "95 %", "mean", "deviation", "median", "worst")
    return Section("Final returns", lead, table(heads, lines, "figures"), NARROW_TABLE)


def interval_text(interval: Interval | None, digits: int) -> str:
    return "-" if interval is None else " to ".join(number(end, digits) for end in interval)


def runs(group: GroupFolder) -> Section:
    """Return the table of all runs: state, and the hash of the final training state."""
    rows = []
    for name in group.run_names():
        folder = run_of(group, name)
        run = Run(state="not begun") if folder is None else folder.content
        digest = run.state_sha256 or ""
        rows.append(
            (
                str(name.folder),
                run.state,
                number(run.step),
                number(run.return_mean, 1),
                Html(f'<span class="mono" title="{text(digest)}">{text(digest[:12])}</span>'),
            )
        )
    heads = ("run", "", "steps", "return", "state SHA-256")
    lead = "Each is an ordinary run: <code>rlt report</code> and the others take its folder."
    shared = group.content.settings
    if shared:
        lead += f" All have {settings_in_words(shared)}."
    if len(group.variants) > 1:
        each = [
            f"<strong>{text(variant.label)}</strong> has " + settings_in_words(variant.settings)
            for variant in group.variants
        ]
        lead += f" Of the variants, {', '.join(each)}."
    return Section("Runs", lead, table(heads, rows, columns=("", "number", "number", "")))


def settings_in_words(settings: Sequence[str]) -> str:
    if not settings:
        return "no settings of its own"
    return ", ".join(f"<code>{text(setting)}</code>" for setting in settings)
