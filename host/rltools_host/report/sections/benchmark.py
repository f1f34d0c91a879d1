"""Training time against other libraries, as measured on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rltools_host.bench import training
from rltools_host.bench.training import Bar
from rltools_host.errors import DamagedFileError
from rltools_host.files import read_json
from rltools_host.report import plot
from rltools_host.report.markup import Section, number, text
from rltools_host.report.run_data import RunData

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def newest_benchmark(algorithm: str) -> Mapping[str, Any] | None:
    """What `rlt bench train` measured last on this machine; None where it never did."""
    if algorithm not in training.ALGORITHMS:
        return None
    try:
        document = read_json(training.result_path(algorithm))
        training.lines(document)  # that of another version lacks what is shown here
    except (DamagedFileError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return document if any("train_s" in entry for entry in document["summary"]) else None


def section(data: RunData) -> Section | None:
    document = newest_benchmark(str(data.metadata.get("algorithm", "")).lower())
    if document is None:
        return None
    entries = document["summary"]
    bars = training.bars(document)
    rows = "".join(benchmark_row(entry) for entry in entries)
    machine, load = document["machine"], document["load_average"]
    lead = (
        f"{text(training.title(document))}, by <code>rlt bench train</code> on "
        f"{text(document['date'])}: one core of {text(machine['processor'])} "
        f"({text(machine['cores'])} cores, {text(machine['system'])}, load average {text(load)}), "
        f"median of {text(document['repetitions'])}; returns of {text(document['episodes'])} "
        "episodes. Only the training loop is timed; imports and compilation are setup. The policy "
        "of this page is not part of it."
    )
    table = f'<table class="stacked"><tbody>{rows}</tbody></table>'
    chart = library_bars(bars, "seconds", f"Training time of {len(bars)} libraries")
    return Section("Training time against other libraries", lead, chart + table)


def benchmark_row(entry: Mapping[str, Any]) -> str:
    """A library's medians, or why there are none."""
    name = f"<tr><th>{text(entry['title'])}</th>"
    if "train_s" not in entry:
        reason = text(entry.get("error", ""))
        return f'{name}<td class="soft sentence" colspan="5">not measured: {reason}</td></tr>'
    mean, ratio = entry.get("return_mean"), entry.get("times_ours")
    cells = (
        text(entry.get("version", "")),
        f"{number(entry['train_s'], 2)} s",
        "" if ratio is None else f"{number(ratio, 1)} \N{MULTIPLICATION SIGN} ours",
        "" if mean is None else f"return {number(mean, 1)}",
        f"setup {number(entry['setup_s'], 1)} s",
    )
    # a space between cells, as a narrow page sets them as a line of text
    return name + "".join(f' <td class="number">{cell}</td>' for cell in cells) + "</tr>"


def library_bars(bars: Sequence[Bar], unit: str, name: str) -> str:
    """A bar for each library, the first on top."""

    def draw(figure: Figure, is_wide: bool) -> None:
        axes = figure.add_subplot()
        places = np.arange(len(bars))[::-1]
        drawn = axes.barh(
            places,
            [bar.value for bar in bars],
            height=0.62 if is_wide else 0.4,
            color=[plot.FIRST if bar.is_ours else plot.SOFT for bar in bars],
        )
        axes.bar_label(drawn, [bar.label for bar in bars], padding=5, color=plot.INK)
        if is_wide:
            axes.set_yticks(places, [bar.title for bar in bars], color=plot.INK)
        else:  # the names stand above their bars, as they would take half of the page's width
            axes.set_yticks([])
            for place, bar in zip(places, bars, strict=True):
                axes.text(0, place + 0.26, bar.title, color=plot.INK, va="bottom")
        axes.margins(x=0.14 if is_wide else 0.24, y=0.04 if is_wide else 0.06)
        axes.grid(False)
        axes.xaxis.set_major_formatter(plot.short_number)
        axes.set_xlabel(unit)

    heights = (round(56 + 32 * len(bars)), round(56 + 44 * len(bars)))
    return plot.responsive(draw, heights, name)
