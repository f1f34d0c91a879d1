"""One episode over time, beside the environment's picture where it has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rltools_host.policies.evaluation import Episode
from rltools_host.policies.image import PolicyImage
from rltools_host.report import plot
from rltools_host.report.markup import Section, number
from rltools_host.report.picture import Picture, picture_of
from rltools_host.report.plot import Panel, Values
from rltools_host.report.run_data import RunData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLOT_WIDTH = 720  # beside the environment's picture
MOST_IN_ONE_COLUMN = 8  # of more quantities there are three beside each other, thinner
MOST_OBSERVATIONS = 40  # that are shown: Humanoid-v4 has 376


def section(data: RunData) -> Section | None:
    if data.episode is None or data.image is None or data.evaluation is None:
        return None
    episode, image = data.episode, data.image
    step_s = image.step_interval_us * 1e-6
    picture = picture_of(image, episode)
    panels = episode_panels(panels_of(image, episode, picture), step_s)
    lead = (
        f"That of the {data.evaluation.episodes} evaluation episodes whose return is the median, "
        f"from gymnasium's reset with seed {episode.seed}: {len(episode.rewards)} steps of "
        f"{number(step_s * 1000)}\N{NO-BREAK SPACE}ms, return {number(episode.episode_return, 1)}. "
        "The actions are those that the board would take, bit for bit."
    )
    if len(image.observations) > MOST_OBSERVATIONS:
        count = len(image.observations)
        lead += f" Of the {count} observations the first {MOST_OBSERVATIONS} are shown."
    if picture is None:
        return Section("One episode", lead, panels)
    if picture.wide:
        return Section("One episode", lead, picture.figure + panels, picture.style)
    body = f'<div class="beside">{picture.figure}<div>{panels}</div></div>'
    return Section("One episode", lead, body, picture.style)


def panels_of(image: PolicyImage, episode: Episode, picture: Picture | None) -> list[Panel]:
    """Observations, actions and reward; what a picture knows better comes first."""
    panels = list(picture.panels) if picture else []
    replaced = picture.replaced if picture else ()
    for index, channel in enumerate(image.observations[:MOST_OBSERVATIONS]):
        if channel.name not in replaced:
            values = episode.observations[:, index].astype(float)
            panels.append(Panel(label_of(channel.name, channel.unit), values))
    for index, channel in enumerate(image.actions):
        values = episode.actions[:, index].astype(float)
        bounds = (channel.minimum, channel.maximum)
        panels.append(Panel(label_of(channel.name, channel.unit), values, bounds))
    panels.append(Panel("reward", episode.rewards))
    return panels


def label_of(name: str, unit: str) -> str:
    readable = name.replace("_", " ")
    return readable if unit == "1" else f"{readable}, {unit.replace('*', '·')}"


def episode_panels(panels: Sequence[Panel], step_s: float) -> str:
    """Quantities of one episode over time, one below the other; in columns where they are many."""
    many = len(panels) > MOST_IN_ONE_COLUMN
    columns = (3, 2) if many else (1, 1)  # wide and narrow
    rows = tuple(-(-len(panels) // count) for count in columns)

    def draw(figure: Figure, is_wide: bool) -> None:
        place_of = 0 if is_wide else 1
        grid = figure.subplots(rows[place_of], columns[place_of], sharex=True, squeeze=False)
        places = grid.T.ravel()
        colours = (plot.FIRST, plot.THIRD, plot.SECOND, plot.SOFT)
        for axes in places[len(panels) :]:
            axes.set_visible(False)
        for place, (axes, panel) in enumerate(zip(places, panels, strict=False)):
            time_s = np.arange(len(panel.values)) * step_s
            times, values = broken_at_wraps(time_s, panel)
            axes.plot(
                times,
                values,
                color=colours[place % len(colours)],
                linewidth=0.9 if many else 1.8,
                clip_on=False,
            )
            if panel.bounds is not None:
                low, high = panel.bounds
                margin = 0.06 * (high - low)
                axes.set_ylim(low - margin, high + margin)
                axes.set_yticks([low, (low + high) / 2, high])
            axes.yaxis.set_major_formatter(plot.short_number)
            plot.title(axes, panel.label)
            axes.set_xlim(0, time_s[-1] + step_s)
        for axes in grid[-1]:
            axes.set_xlabel("time, s")

    heights = (118 * rows[0], 116 * rows[1])
    width = plot.WIDE if many else PLOT_WIDTH
    return plot.responsive(draw, heights, "One episode over time", width=width)


def broken_at_wraps(time_s: Values, panel: Panel) -> tuple[Values, Values]:
    """A gap where an angle jumps from one end of its circle to the other."""
    if panel.wraps is None:
        return time_s, panel.values
    jumps = np.nonzero(np.abs(np.diff(panel.values)) > panel.wraps / 2)[0] + 1
    return np.insert(time_s, jumps, np.nan), np.insert(panel.values, jumps, np.nan)
