"""Training against other libraries, as measured on this machine: how long it takes, and the steps
a second of PPO's loop."""

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
from rltools_host.report.markup import Section, number, text
from rltools_host.report.run_data import RunData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
