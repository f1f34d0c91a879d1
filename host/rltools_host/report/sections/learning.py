"""What was learned over training: returns of episodes and evaluations, and what the algorithm
reported of its learning.

Training against other libraries, as measured on this machine: how long it takes, and the steps a
second of PPO's loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rltools_host.bench import ppo, ppo_result, training
from rltools_host.bench.training import Bar
from rltools_host.errors import DamagedFileError
from rltools_host.files import read_json
from rltools_host.report import markup
from rltools_host.report.markup import Curve, Section, number, text, thousands
from rltools_host.report.run_data import RunData, values_of
from rltools_host.runs.contents import metric_names
from rltools_host.training.metrics_log import words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEIGHT = 150  # CSS pixels, of a metric
PAGE = 1020  # of a row of curves
GAP = 20
MOST_EPISODES = 3000  # that are drawn: each is 100 bytes, and more of them hide each other
DECADES = 2  # a positive metric that spans more has a logarithmic axis
STYLE = """
.metrics { display: grid; grid-template-columns: repeat(var(--columns), 1fr); gap: 18px 20px; }
@media (max-width: 720px) { .metrics { grid-template-columns: repeat(2, 1fr); } }
@media (max-width: 480px) { .metrics { grid-template-columns: 1fr; } }
"""


def returns(data: RunData) -> Section | None:
    if not data.rows("progress") and not data.rows("evaluation"):
        return None
    evaluations = data.rows("evaluation")
    lead = "Return of each training episode, which explores"
    if evaluations:
        episodes = number(float(evaluations[-1].get("episodes") or 0))
        lead += (
            f", and of deterministic evaluations on the board, {episodes} episodes each; the "
            "band is one standard deviation, within the smallest and largest return"
        )
    lead += "."
    if data.goal is not None:
        lead += f" A return of {number(data.goal)} is what the environment calls solved."
    return Section("Learning", lead, learning_curve(data))


def learning_curve(data: RunData) -> str:
    """Returns over steps: training episodes, evaluations with a band of one deviation, the goal."""
    progress, evaluations = data.rows("progress"), data.rows("evaluation")
    # Where an episode ended since the row before.
    is_new = np.diff(values_of(progress, "episodes"), prepend=0) > 0
    training = Curve(values_of(progress, "step"), values_of(progress, "last_return"))
    training = Curve(training.steps[is_new], training.values[is_new]).finite()
    drawn = training.thinned(MOST_EPISODES)
    steps = values_of(evaluations, "step")
    mean, std = values_of(evaluations, "return_mean"), values_of(evaluations, "return_std")

    def draw(figure: Figure, is_wide: bool) -> None:
        axes = figure.add_subplot()
        axes.plot(
            drawn.steps,
            drawn.values,
            linestyle="none",
            marker="o",
            markersize=4.5,
            color=markup.SECOND,
            alpha=0.75,
            markeredgewidth=0,
            label="training episode"
            if drawn is training
            else f"{MOST_EPISODES:,} training episodes",
        )
        if steps.size:
            low = np.maximum(mean - std, values_of(evaluations, "return_min"))
            high = np.minimum(mean + std, values_of(evaluations, "return_max"))
            axes.fill_between(steps, low, high, color=markup.FIRST, alpha=0.16, linewidth=0)
            axes.plot(
                steps,
                mean,
                color=markup.FIRST,
                linewidth=2.4,
                marker="o",
                markersize=5,
                label="evaluation, mean ± deviation",
            )
        if data.evaluation is not None:
            axes.errorbar(
                [data.steps_done],
                [data.evaluation.mean],
                [data.evaluation.std],
                color=markup.INK,
                marker="D",
                markersize=6,
                linestyle="none",
                elinewidth=1.6,
                capsize=3,
                label=f"{data.evaluation.episodes} episodes afterwards",
                zorder=5,
            )
        if data.goal is not None:
            is_highest = bool(data.goal >= axes.dataLim.y1)
            axes.axhline(data.goal, color=markup.GOAL, linewidth=1.6, linestyle=(0, (5, 4)))
            axes.annotate(
                f"{thousands(data.goal)} “solved”",
                (0, data.goal),
                xycoords=("axes fraction", "data"),
                xytext=(4, -5 if is_highest else 5),  # the title of the axis is above
                textcoords="offset points",
                va="top" if is_highest else "baseline",
                color=markup.GOAL,
            )
        markup.use_thousands(axes, is_wide)
        axes.set_xlabel("environment steps")
        markup.title(axes, "return")
        legend(figure, axes, is_wide)

    return markup.responsive(draw, (360, 360), "Learning curve: return over environment steps")


def legend(figure: Figure, axes: Axes, is_wide: bool) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper right" if is_wide else "outside lower left",
        ncols=len(labels) if is_wide else 1,
        frameon=False,
        labelcolor=markup.INK,
        handletextpad=0.5,
    )


# -- metrics ---------------------------------------------------------------------------------------


def metrics(data: RunData) -> Section | None:
    progress = data.rows("progress")
    steps = values_of(progress, "step")
    own = dict.fromkeys(name for row in progress for name in metric_names(row))
    names = [*own, "episode_length"]
    curves = {name: Curve(steps, values_of(progress, name)).finite() for name in names}
    evaluations = data.rows("evaluation")
    lengths = Curve(values_of(evaluations, "step"), values_of(evaluations, "length_mean"))
    curves["evaluation_length"] = lengths.finite()
    known = {name: curve for name, curve in curves.items() if curve.steps.size}
    if not known.keys() - {"episode_length", "evaluation_length"}:
        return None
    count = columns(len(known))
    width = (PAGE - (count - 1) * GAP) // count
    meanings = {metric.name: metric.description for metric in data.metrics_described}
    meanings["episode_length"] = "Mean steps of the training episodes that ended lately."
    meanings["evaluation_length"] = "Mean steps of an evaluation's episodes."
    figures = "".join(
        f"<figure>{small_curve(words(name), curve, width)}"
        f"<figcaption>{text(meanings.get(name, ''))}</figcaption></figure>\n"
        for name, curve in known.items()
    )
    lead = "What the algorithm says of its learning: means between two reports."
    body = f'<div class="metrics" style="--columns: {count}">\n{figures}</div>'
    return Section("Metrics", lead, body, STYLE)


def columns(count: int) -> int:
    """Three or four: the number that leaves fewer places empty."""
    return min((4, 3), key=lambda columns: -count % columns)


def small_curve(name: str, curve: Curve, width: int) -> str:
    """A metric over steps."""
    with markup.figure_of(width, HEIGHT) as figure:
        axes = figure.add_subplot()
        axes.plot(curve.steps, curve.values, color=markup.FIRST, linewidth=1.3)
        if is_logarithmic(curve.values.tolist()):
            axes.set_yscale("log")
            axes.yaxis.set_minor_formatter(lambda _value, _position: "")
        axes.yaxis.set_major_formatter(markup.short_number)
        markup.title(axes, name)
        markup.use_thousands(axes, is_wide=False, both=False)
        axes.set_xlabel("environment steps")
        return markup.svg_of(figure, "metric", f"{name} over environment steps")


def is_logarithmic(values: Sequence[float]) -> bool:
    lowest, highest = min(values), max(values)
    return lowest > 0 and highest > lowest * 10**DECADES


PPO_EXPERIMENT = "ant-ppo"


def newest(path: Path, lines: Callable[[Any], object], figure: str) -> Mapping[str, Any] | None:
    """What `rlt bench` measured last on this machine; None where it never did."""
    try:
        document = read_json(path)
        lines(document)  # that of another version lacks what is shown here
    except (DamagedFileError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return document if any(figure in entry for entry in document["summary"]) else None


def libraries(
    document: Mapping[str, Any], figure: str, cells: Callable[[Mapping[str, Any]], Iterable[str]]
) -> str:
    """A row for each, with its medians, or why there are none."""
    rows = []
    for entry in document["summary"]:
        if figure in entry:
            # a space between cells, as a narrow page sets them as a line of text
            told = "".join(f' <td class="number">{text(cell)}</td>' for cell in cells(entry))
        else:
            reason = text(entry.get("error", ""))
            told = f'<td class="soft sentence" colspan="5">not measured: {reason}</td>'
        rows.append(f"<tr><th>{text(entry['title'])}</th>{told}</tr>")
    return f'<table class="stacked"><tbody>{"".join(rows)}</tbody></table>'


def times(data: RunData) -> Section | None:
    algorithm = data.run.algorithm.lower()
    if algorithm not in training.ALGORITHMS:
        return None
    document = newest(training.result_path(algorithm), training.lines, "train_s")
    if document is None:
        return None
    machine, load = document["machine"], document["load_average"]
    lead = (
        f"{text(training.title(document))}, by <code>rlt bench train</code> on "
        f"{text(document['date'])}: one core of {text(machine['processor'])} "
        f"({text(machine['cores'])} cores, {text(machine['system'])}, load average {text(load)}), "
        f"median of {text(document['repetitions'])}; returns of {text(document['episodes'])} "
        "episodes. Only the training loop is timed; imports and compilation are setup. The policy "
        "of this page is not part of it."
    )
    bars = training.bars(document)
    chart = library_bars(bars, "seconds", f"Training time of {len(bars)} libraries")
    rows = libraries(document, "train_s", cells_of_time)
    return Section("Training time against other libraries", lead, chart + rows)


def cells_of_time(entry: Mapping[str, Any]) -> Iterable[str]:
    mean, ratio = entry.get("return_mean"), entry.get("times_ours")
    return (
        entry.get("version", ""),
        f"{number(entry['train_s'], 2)} s",
        "" if ratio is None else f"{number(ratio, 1)} \N{MULTIPLICATION SIGN} ours",
        "" if mean is None else f"return {number(mean, 1)}",
        f"setup {number(entry['setup_s'], 1)} s",
    )


def rates_of_ppo(data: RunData) -> Section | None:
    if data.run.experiment != PPO_EXPERIMENT:
        return None
    document = newest(ppo.result_path(), ppo_result.lines, "steps_s")
    if document is None:
        return None
    lead = (
        f"{text(ppo_result.title(document))}, by <code>rlt bench ppo</code> on "
        f"{text(document['date'])}: steps of the whole loop, collection and learning, median of "
        f"{text(document['rounds'])} turns; {text(ppo_result.machine_line(document))}. EnvPool "
        "alone and <code>mujoco.rollout</code> alone learn nothing. The policy of this page is not "
        "part of it."
    )
    bars = ppo_result.bars(document)
    chart = library_bars(bars, "steps a second", f"Steps a second of {len(bars)} libraries")
    rows = libraries(document, "steps_s", cells_of_rate)
    return Section("Steps a second against other libraries", lead, chart + rows)


def cells_of_rate(entry: Mapping[str, Any]) -> Iterable[str]:
    share = entry["of_rollout"]
    return (
        entry["version"],
        entry["simulator"],
        f"{entry['steps_s']:,.0f} steps/s",
        "" if share is None else f"{number(100 * share, 0)} % of mujoco.rollout",
    )


def library_bars(bars: Sequence[Bar], unit: str, name: str) -> str:
    """A bar for each library, the first on top."""

    def draw(figure: Figure, is_wide: bool) -> None:
        axes = figure.add_subplot()
        places = np.arange(len(bars))[::-1]
        drawn = axes.barh(
            places,
            [bar.value for bar in bars],
            height=0.62 if is_wide else 0.4,
            color=[markup.FIRST if bar.is_ours else markup.SOFT for bar in bars],
        )
        axes.bar_label(drawn, [bar.label for bar in bars], padding=5, color=markup.INK)
        if is_wide:
            axes.set_yticks(places, [bar.title for bar in bars], color=markup.INK)
        else:  # the names stand above their bars, as they would take half of the page's width
            axes.set_yticks([])
            for place, bar in zip(places, bars, strict=True):
                axes.text(0, place + 0.26, bar.title, color=markup.INK, va="bottom")
        axes.margins(x=0.14 if is_wide else 0.24, y=0.04 if is_wide else 0.06)
        axes.grid(False)
        axes.xaxis.set_major_formatter(markup.short_number)
        axes.set_xlabel(unit)

    heights = (round(56 + 32 * len(bars)), round(56 + 44 * len(bars)))
    return markup.responsive(draw, heights, name)
