"""The results of `rlt evaluate` at gates: rates by table, causes of failure, some flights drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rltools_host.drones.flight.gate_result import (
    GateResult,
    part_rows,
    percent,
    read_result,
    table_rows,
)
from rltools_host.drones.flight.simulator import Array, Cause, Rule, flight_library
from rltools_host.policies.image import PolicyImage
from rltools_host.report import markup
from rltools_host.report.airframes import knowledge, maps
from rltools_host.report.markup import Section, Values, number, table, text
from rltools_host.report.run_data import RunData
from rltools_host.runs.names import GATE, result_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_PATHS = 10
STYLE = "section > figure + figure { margin-top: 20px; }\n"
EVERY = 10  # ticks between two points of a curve
ROTORS = ("front right", "rear right", "rear left", "front left")
NEAREST_M = 0.005  # the lower end of the logarithmic axis
MAX_REACH_M = 2.5  # what is farther away is not drawn
COLORS_OF_ROTORS = (markup.FIRST, markup.THIRD, markup.SECOND, markup.GOAL)


@dataclass(frozen=True)
class Drawn:
    """A flight, flown again for its picture; one without a name is drawn among the others only."""

    name: str
    what: str  # its part or its table, and the number of its start
    cause: Cause
    rule: Rule
    trace: Array  # records of SAMPLE, one a tick

    @property
    def points(self) -> Array:
        """Return some of the readings, with the last one."""
        last = len(self.trace) - 1
        points: Array = self.trace["reading"][np.unique([*range(0, last, EVERY), last])]
        return points

    @property
    def time_s(self) -> Values:
        seconds: Values = self.points["tick"] * flight_library().tick_s
        return seconds

    @property
    def target_moves(self) -> bool:
        return bool(np.ptp(self.points["target_position_m"], axis=0).any())

    @property
    def title(self) -> str:
        return f"{self.name} ({self.what})"


def section(data: RunData) -> Section | None:
    image = data.image
    paths = sorted(data.folder.path.glob(result_file(GATE, "*"))) if image is not None else []
    parts = [part for path in paths if image is not None and (part := shown(path, image))]
    if not parts:
        return None
    lead = (
        "By <code>rlt evaluate --gate</code>: simulated flights from held-out starts, tick by tick "
        "of 2\N{NO-BREAK SPACE}ms, with the firmware's executor; <code>docs/gate.md</code> defines "
        "them. Intervals are Wilson's, of 95\N{NO-BREAK SPACE}%."
    )
    return Section("Flights", lead, "".join(parts), STYLE)


def shown(path: Path, image: PolicyImage) -> str:
    """Return a gate's part of the section; a sentence where its file cannot be read, empty where
    it is of another policy, as after a run that went on."""
    try:
        result = read_result(path)
    except (OSError, ValueError) as error:
        return f"<p>{text(path.name)} is damaged ({text(error)}): fly the gate again.</p>"
    if result.policy_sha256 != image.sha256:
        return ""
    gate, share = result.gate, result.all
    low, high = share.interval
    heads, *rows = table_rows(result.by_table)
    rule = "by its part's rule" if gate.parts else gate.rule.text
    body = (
        f"<h3>{text(gate.title)}</h3><p>{text(gate.about)} A flight is a success "
        f"{text(rule)}, with no limit broken. "
        f"<strong>{text(percent(share.rate))}</strong> of {number(share.flights)} flights were "
        f"({text(percent(low))} to {text(percent(high))}).</p>"
        + rate_plot(result)
        + parts(result)
        + table(heads, rows)
        + maps(result)
        + knowledge(result, image)
        + causes(result)
    )
    drawn = drawn_flights(result, image)
    if drawn is None:
        return body + (
            "<p>This tree's simulator gives other flights than those: fly the gate again to see "
            "them.</p>"
        )
    return body + flight_paths(drawn, gate.name) + flight_series(drawn, gate.name)


def parts(result: GateResult) -> str:
    """Return, for each part, its rate, settling times, rule and causes of failure."""
    if not result.gate.parts:
        return ""
    (part, _, *heads, why), *rows = part_rows(result.by_part)
    rules = [kind.rule.text for kind in result.gate.kinds.values()]
    return (
        table((part, *heads), [(name, *cells) for name, _, *cells, _ in rows])
        + f'<p class="caption">Of {number(result.gate.episodes)} flights each. Settled: the median '
        "time, and that of 95\N{NO-BREAK SPACE}% of the successful flights, until they stayed "
        "within the radius, from the start, or from the change of the airframe on.</p>"
        + table(
            (part, "a success is", why),
            [(row[0], rule, row[-1]) for row, rule in zip(rows, rules, strict=True)],
        )
    )


def causes(result: GateResult) -> str:
    """Return a table that explains the causes of failure which occurred."""
    found = {Cause.of(key): count for key, count in result.all.causes.items() if count}
    if not found:
        return ""
    rows = [
        (cause.short, number(count), sentence(cause, result))
        for cause, count in sorted(found.items(), key=lambda item: -item[1])
    ]
    return table(("failure", "flights", "what happened"), rows)


def sentence(cause: Cause, result: GateResult) -> str:
    if cause != Cause.EXECUTOR_FAULT:
        return cause.text
    faults = ", ".join(f"{words} ({number(count)})" for words, count in result.faults.items())
    return f"{cause.text}: {faults}"


def drawn_flights(result: GateResult, image: PolicyImage) -> list[Drawn] | None:
    """Fly some flights again: the median of the successful ones, the slowest, a failure of the
    most frequent cause, and the first others. Return None where they differ from those of the
    result."""
    drawn = []
    for name, episode in chosen(result):
        outcome, trace = result.gate.trace(image, episode)
        stored = result.outcomes[episode]
        if any(outcome[key] != stored[key] for key in ("cause", "ticks", "settling_tick")):
            return None
        part, kind, start = result.gate.flight(episode)
        table_name = flight_library().table_name(int(outcome["table"]))
        what = f"{part}, start {start}" if result.gate.parts else f"{table_name}, start {start}"
        drawn.append(Drawn(name, what, Cause(outcome["cause"]), kind.rule, trace))
    return drawn


def chosen(result: GateResult) -> list[tuple[str, int]]:
    """Return names and numbers of flights: up to three that are described, then some without a
    name. Where a gate has parts, the successful ones are of the first."""
    outcomes = result.outcomes
    named: list[tuple[str, int]] = []
    good = np.flatnonzero(outcomes["cause"][: result.gate.episodes] == Cause.SUCCESS)
    if good.size:
        by_time = good[np.argsort(outcomes["settling_tick"][good], kind="stable")]
        named.append(("median success", int(by_time[(len(by_time) - 1) // 2])))
        if len(by_time) > 1:
            named.append(("slowest success", int(by_time[-1])))
    counts = result.all.causes
    if any(counts.values()):
        worst = Cause.of(max(counts, key=lambda key: counts[key]))
        failed = np.flatnonzero(outcomes["cause"] == worst)
        named.append((f"failure: {worst.short}", int(failed[0])))
    taken = {episode for _, episode in named}
    others = [episode for episode in range(len(outcomes)) if episode not in taken]
    return named + [("", episode) for episode in others[: MAX_PATHS - len(named)]]


# -- plots -----------------------------------------------------------------------------------------


def rate_plot(result: GateResult) -> str:
    """Draw each table's rate of success as a dot on its interval."""
    by_part = [replace(part.all, name=name) for name, part in result.by_part.items()]
    shares = [*by_part, *result.by_table, result.all]

    def draw(figure: Figure, _is_wide: bool) -> None:
        axes = figure.add_subplot()
        for row, share in enumerate(reversed(shares)):
            low, high = share.interval
            color = markup.INK if share is shares[-1] else markup.FIRST
            axes.plot([100 * low, 100 * high], [row, row], color=color, linewidth=2.4)
            axes.plot(100 * share.rate, row, "o", color=color, markersize=8, markeredgewidth=0)
        axes.set_yticks(range(len(shares)), [share.name for share in reversed(shares)])
        axes.set_ylim(-0.6, len(shares) - 0.4)
        low_end = min(100 * share.interval[0] for share in shares)
        axes.set_xlim(max(0.0, 10 * np.floor(low_end / 10)), 100.5)
        axes.set_xlabel("successful flights, %")

    height = 62 + 26 * len(shares)
    return markup.responsive(
        draw, (height, height), f"Rates of success by table, gate {result.gate.name}"
    )


def flight_paths(drawn: Sequence[Drawn], gate: str) -> str:
    """Draw the paths of the flights in space."""

    def draw(figure: Figure, is_wide: bool) -> None:
        count = 2 if is_wide else 1
        for column in range(count):
            axes: Any = figure.add_subplot(1, count, column + 1, projection="3d")
            draw_space(axes, drawn, is_seen_from_above=column == 1)
        handles = [
            figure.axes[0].plot([], [], [], color=color, label=label)[0]
            for color, label in ((markup.FIRST, "success"), (markup.SECOND, "failure"))
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)

    caption = (
        f"The paths of {len(drawn)} flights, in meters. A dot is where one begins, the cross is "
        "where the target is at first."
    )
    if any(flight.target_moves for flight in drawn):
        caption += " Green: the target's way."
    picture = markup.responsive(draw, (500, 430), f"Paths of flights in space, gate {gate}")
    return f'<figure>{picture}<figcaption class="caption">{caption}</figcaption></figure>'


def draw_space(axes: Any, drawn: Sequence[Drawn], *, is_seen_from_above: bool) -> None:
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color(markup.CARD)
        axis.line.set_color(markup.LINE)
        axis.set_tick_params(labelsize=10)
    farthest = [float(np.abs(flight.points["position_m"]).max()) for flight in drawn]
    reach = min(MAX_REACH_M, max(farthest))
    for flight in reversed(drawn):
        path = flight.points["position_m"].astype(float)
        path[np.abs(path).max(axis=1) > reach] = np.nan
        x, y, z = path.T
        color = markup.FIRST if flight.cause == Cause.SUCCESS else markup.SECOND
        width = 1.9 if flight.name else 0.9
        axes.plot(x, y, z, color=color, linewidth=width)
        axes.plot(x[:1], y[:1], z[:1], "o", color=color, markersize=4, markeredgewidth=0)
        if flight.target_moves:
            target = flight.points["target_position_m"].astype(float)
            axes.plot(*target.T, color=markup.GOAL, linewidth=0.9)
    axes.plot([0], [0], [0], "+", color=markup.INK, markersize=11, markeredgewidth=1.6)
    for set_limits in (axes.set_xlim, axes.set_ylim, axes.set_zlim):
        set_limits(-reach, reach)
    axes.set_proj_type("ortho")
    axes.set_xlabel("x")
    axes.set_ylabel("y")
    if is_seen_from_above:
        axes.view_init(elev=90, azim=-90)
        axes.set_box_aspect((1, 1, 1), zoom=1.2)
        axes.set_zticks([])
        axes.set_title("from above", color=markup.SOFT, y=0.98)
    else:
        axes.view_init(elev=22, azim=-58)
        axes.set_box_aspect((1, 1, 1), zoom=1.05)
        axes.set_zlabel("z")
        axes.set_title("from the side", color=markup.SOFT, y=1.0)


def flight_series(drawn: Sequence[Drawn], gate: str) -> str:
    """Draw distance, tilt and rotors of the flights that have a name, beside each other."""
    flights = [flight for flight in drawn if flight.name]
    if not flights:
        return ""
    longest_s = max(flight.rule.seconds for flight in flights)
    rows: tuple[tuple[str, Callable[[Any, Drawn], None]], ...] = (
        ("distance from the target, m", draw_distance),
        ("tilt, degrees", draw_tilt),
        ("thrust commanded, of the greatest", draw_thrust),
    )

    def draw(figure: Figure, is_wide: bool) -> None:
        columns = len(flights) if is_wide else 1
        count = len(rows) * len(flights)
        grid = figure.subplots(count // columns, columns, squeeze=False, sharex=True)
        for column, flight in enumerate(flights):
            for row, (label, draw_row) in enumerate(rows):
                axes = grid[row][column] if is_wide else grid[column * len(rows) + row][0]
                draw_row(axes, flight)
                axes.set_xlim(0, longest_s)
                markup.title(axes, f"{flight.title}\n{label}" if row == 0 else label)
        for axes in grid[-1]:
            axes.set_xlabel("time, s")
        handles = [
            grid[0][0].plot([], [], color=color, label=name)[0]
            for color, name in zip(COLORS_OF_ROTORS, ROTORS, strict=True)
        ]
        figure.legend(
            handles=handles, loc="outside lower center", ncols=4 if is_wide else 2, frameon=False
        )

    heights = (150 * len(rows) + 60, 140 * len(rows) * len(flights) + 60)
    picture = markup.responsive(draw, heights, f"Flights over time, gate {gate}")
    caption = "Dashed: the radius of success. Shaded: the time in which it counts."
    return f'<figure>{picture}<figcaption class="caption">{caption}</figcaption></figure>'


def draw_distance(axes: Any, flight: Drawn) -> None:
    error = flight.points["position_m"].astype(float) - flight.points["target_position_m"]
    distance = np.maximum(np.linalg.norm(error, axis=1), NEAREST_M)
    distance_axes(axes, flight.rule)
    axes.plot(flight.time_s, distance, color=markup.FIRST, linewidth=1.6)


def distance_axes(axes: Any, rule: Rule) -> None:
    """Set up the axes with the radius of success, and the time in which it counts."""
    axes.set_yscale("log")
    axes.axhline(rule.radius_m, color=markup.GOAL, linewidth=1.4, linestyle=(0, (5, 4)))
    axes.axvspan(
        rule.seconds - rule.last_seconds, rule.seconds, color=markup.LINE, alpha=0.45, linewidth=0
    )
    axes.set_ylim(NEAREST_M, 10)
    axes.set_yticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
    axes.minorticks_off()


def draw_tilt(axes: Any, flight: Drawn) -> None:
    _, x, y, _ = flight.points["attitude"].T.astype(float)
    tilt = np.degrees(np.arccos(np.clip(1 - 2 * (x * x + y * y), -1, 1)))
    axes.plot(flight.time_s, tilt, color=markup.FIRST, linewidth=1.6)
    axes.set_ylim(-4, 184)
    axes.set_yticks([0, 90, 180])


def draw_thrust(axes: Any, flight: Drawn) -> None:
    thrusts = flight.trace["action"][::EVERY].astype(float)
    time_s = np.arange(len(thrusts)) * EVERY * flight_library().tick_s
    for rotor, color in enumerate(COLORS_OF_ROTORS):
        axes.plot(time_s, thrusts[:, rotor], color=color, linewidth=0.8)
    axes.set_ylim(-0.04, 1.04)
    axes.set_yticks([0, 0.5, 1])
