"""The evaluation episodes: the return of each as a dot, and one of them over time, beside the
environment's picture where it has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rltools_host.policies.episodes import Episode
from rltools_host.policies.evaluation import MAX_WORST, Evaluation
from rltools_host.policies.image import PolicyImage
from rltools_host.report import markup, picture
from rltools_host.report.markup import Panel, Section, Values, number, table, text
from rltools_host.report.picture import Picture, shown_picture
from rltools_host.report.run_data import RunData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLOT_WIDTH = 720  # beside the environment's picture
MAX_IN_ONE_COLUMN = 8  # of more quantities there are three beside each other, thinner
MAX_NAMES = 8  # of a choice that are written beside the axis
MIN_SHARE_OF_RANGE = 0.1  # that an observation moves in, for its panel to have all of the range
MAX_OBSERVATIONS = 40  # that are shown: Humanoid-v4 has 376


def one_episode(data: RunData) -> Section | None:
    if data.episode is None or data.image is None or data.evaluation is None:
        return None
    episode, image = data.episode, data.image
    panels = episode_panels(panels_of(image, episode), episode.step_s)
    end = "in a terminal state" if episode.terminated else "where it is cut off"
    lead = (
        f"That of the {data.evaluation.episodes} evaluation episodes whose return is the median, "
        f"{text(episode.origin)}: {number(len(episode.rewards))} steps of "
        f"{number(episode.step_s * 1000)}\N{NO-BREAK SPACE}ms, return "
        f"{number(episode.episode_return, 1)}. It ends {end}. "
        "The actions are those that the board would take, bit for bit. "
        "Scales with three numbers are the contract's ranges."
    )
    if len(image.observations) > MAX_OBSERVATIONS:
        count = len(image.observations)
        lead += f" Of the {count} observations the first {MAX_OBSERVATIONS} are shown."
    picture = picture_of(data, image, episode)
    if picture is None:
        return Section("One episode", lead, panels)
    if picture.wide:
        return Section("One episode", lead, picture.figure + panels, picture.style)
    body = f'<div class="beside">{picture.figure}<div>{panels}</div></div>'
    return Section("One episode", lead, body, picture.style)


def picture_of(data: RunData, image: PolicyImage, episode: Episode) -> Picture | None:
    """Return the picture of the environment's shapes; Gymnasium's tasks of MuJoCo are drawn by
    that."""
    if not data.shapes and picture.is_drawn_by_mujoco(image.environment):
        return picture.draw(image, episode)
    return shown_picture(data.shapes, image, episode)


def panels_of(image: PolicyImage, episode: Episode) -> list[Panel]:
    """Return panels of observations, actions, reward, and the return so far."""
    panels = []
    for index, channel in enumerate(image.observations[:MAX_OBSERVATIONS]):
        values = episode.observations[:, index].astype(float)
        range_of = range_shown(channel.minimum, channel.maximum, values)
        panels.append(Panel(label_of(channel.name, channel.unit), values, range_of))
    for index, channel in enumerate(image.actions):
        values = episode.actions[:, index].astype(float)
        bounds = (channel.minimum, channel.maximum)
        unit = "1" if channel.choices else channel.unit
        panels.append(Panel(label_of(channel.name, unit), values, bounds, channel.choices))
    panels.append(Panel("reward", episode.rewards))
    panels.append(Panel("return so far", np.cumsum(episode.rewards)))
    return panels


def range_shown(low: float, high: float, values: Values) -> tuple[float, float] | None:
    """Return the contract's range of an observation as the scale of its panel; None where the
    values would hardly move in it."""
    moves = float(values.max() - values.min())
    return (low, high) if moves >= MIN_SHARE_OF_RANGE * (high - low) else None


def label_of(name: str, unit: str) -> str:
    readable = name.replace("_", " ")
    return readable if unit == "1" else f"{readable}, {unit.replace('*', '·')}"


def episode_panels(panels: Sequence[Panel], step_s: float) -> str:
    """Draw the quantities of one episode over time, one below the other; in columns where they
    are many."""
    many = len(panels) > MAX_IN_ONE_COLUMN
    columns = (3, 2) if many else (1, 1)  # wide and narrow
    rows = tuple(-(-len(panels) // count) for count in columns)

    def draw(figure: Figure, is_wide: bool) -> None:
        narrow = 0 if is_wide else 1
        grid = figure.subplots(rows[narrow], columns[narrow], sharex=True, squeeze=False)
        cells = grid.T.ravel()
        colors = (markup.FIRST, markup.THIRD, markup.SECOND, markup.SOFT)
        for axes in cells[len(panels) :]:
            axes.set_visible(False)
        for index, (axes, panel) in enumerate(zip(cells, panels, strict=False)):
            time_s = np.arange(len(panel.values)) * step_s
            held = {"drawstyle": "steps-post"} if panel.names else {}
            axes.plot(
                time_s,
                panel.values,
                color=colors[index % len(colors)],
                linewidth=0.9 if many else 1.8,
                clip_on=False,
                **held,
            )
            if panel.bounds is not None:
                low, high = panel.bounds
                margin = 0.06 * (high - low)
                lowest, highest = min(low, panel.values.min()), max(high, panel.values.max())
                axes.set_ylim(lowest - margin, highest + margin)
                axes.set_yticks([low, (low + high) / 2, high])
            axes.yaxis.set_major_formatter(markup.short_number)
            if panel.names and len(panel.names) <= MAX_NAMES:
                names = [name.replace("_", " ") for name in panel.names]
                axes.set_yticks(range(len(names)), names)
            markup.title(axes, panel.label)
            axes.set_xlim(0, time_s[-1] + step_s)
        for axes in grid[-1]:
            axes.set_xlabel("time, s")

    heights = (118 * rows[0], 116 * rows[1])
    width = markup.WIDE if many else PLOT_WIDTH
    return markup.responsive(draw, heights, "One episode over time", width=width)


# -- all episodes ----------------------------------------------------------------------------------


def all_episodes(data: RunData) -> Section | None:
    evaluation = data.evaluation
    if evaluation is None:
        return None
    lead = (
        f"Every one of the {evaluation.episodes} evaluation episodes, {text(evaluation.simulator)}"
        f"{seeds_of(evaluation)}: worst {number(min(evaluation.returns), 1)}, median "
        f"{number(float(np.median(evaluation.returns)), 1)}, best "
        f"{number(max(evaluation.returns), 1)}. Length: {text(', '.join(evaluation.lengths()))}."
    )
    strip = return_strip(evaluation.returns, evaluation.success_return)
    return Section("All evaluation episodes", lead, strip + worst_table(evaluation))


def worst_table(evaluation: Evaluation) -> str:
    """Return a table of the worst episodes, with the start values that differ the most."""
    if evaluation.episodes <= MAX_WORST:
        return ""
    rows = []
    for index in evaluation.worst():
        which, start = evaluation.begun_from(index)
        outcome = evaluation.outcomes[index]
        end = "terminated" if outcome.terminated else "cut off"
        rows.append((which, number(outcome.episode_return, 1), number(outcome.steps), end, start))
    heads = ("worst episodes", "return", "steps", "ended", "began from")
    return table(heads, rows, columns=("number", "number", "number", "soft"))


def seeds_of(evaluation: Evaluation) -> str:
    if evaluation.is_in_gymnasium:
        return f", seeds {evaluation.seed} to {evaluation.seed + evaluation.episodes - 1}"
    return f", seed {evaluation.seed}"


def return_strip(returns: Sequence[float], goal: float | None) -> str:
    """Draw every evaluated episode as a dot over its return, stacked where they meet."""
    values = np.sort(np.asarray(returns, float))
    dots = {markup.WIDE: 9.0, markup.NARROW: 7.0}  # CSS pixels

    def stacked(width: int) -> tuple[Values, Values]:
        """Return position and height of each dot; no column reaches across the goal."""
        column_width = max(values[-1] - values[0], 1.0) / (width / dots[width] - 8)
        origin = values[0] if goal is None else goal
        column = np.floor((values - origin) / column_width)
        height = [int((column[:i] == column[i]).sum()) for i in range(len(values))]
        return origin + (column + 0.5) * column_width, np.array(height, float)

    def draw(figure: Figure, is_wide: bool) -> None:
        axes = figure.add_subplot()
        width = markup.WIDE if is_wide else markup.NARROW
        position, height = stacked(width)
        solved = values >= goal if goal is not None else np.full(len(values), True)
        for chosen, color in ((solved, markup.FIRST), (~solved, markup.SECOND)):
            axes.plot(
                position[chosen],
                height[chosen],
                linestyle="none",
                marker="o",
                markersize=dots[width] - 1.5,
                markeredgewidth=0,
                color=color,
            )
        mean = float(values.mean())
        axes.axvline(mean, color=markup.INK, linewidth=1.2)
        markup.label_line(
            axes, mean, f"mean {number(mean)}", markup.INK, to_left=mean < (goal or mean)
        )
        if goal is not None and values[0] < goal:
            axes.axvline(goal, color=markup.GOAL, linewidth=1.6, linestyle=(0, (5, 4)))
            markup.label_line(
                axes, goal, f"{number(goal)} “solved”", markup.GOAL, to_left=goal <= mean
            )
        axes.set_ylim(-0.8, height.max() + 3.5)
        axes.yaxis.set_visible(False)
        axes.grid(False)
        markup.use_thousands(axes, is_wide)
        axes.set_xlabel("return of an episode")

    heights = [
        round(62 + (stacked(width)[1].max() + 4.3) * dots[width])
        for width in (markup.WIDE, markup.NARROW)
    ]
    label = f"Returns of {len(returns)} evaluation episodes"
    return markup.responsive(draw, (heights[0], heights[1]), label)
