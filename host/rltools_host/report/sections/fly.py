"""The results of `rlt fly`: flights over boards, with links to their replays; with a PX4, each
start beside our simulator's prediction. Both say when and why there was a fail-safe."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import numpy as np
from msgspec import Meta, Struct

from rltools_host.documents import Digest, Line, NotNegative, Whole, typed
from rltools_host.drones.flight.gate import hover_rule
from rltools_host.drones.flight.result import Series
from rltools_host.drones.flight.simulator import Cause
from rltools_host.drones.vehicles.px4_result import (
    FILE,
    MAX_ATTITUDE_DEG,
    MAX_HEIGHT_M,
    MAX_THRUST,
    NOT_FLOWN,
    FlightResult,
    StartResult,
    read_flight,
)
from rltools_host.files import load_json
from rltools_host.report import markup
from rltools_host.report.markup import MINUS, Section, number, table, text
from rltools_host.report.run_data import RunData
from rltools_host.report.sections.flights import NEAREST_M, distance_axes
from rltools_host.runs.names import FLIGHT, result_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOARD_STYLE = "section > table + p { margin-top: 12px; }\nsection a { color: var(--first); }\n"
PX4_STYLE = "section > table + figure, section > table + p { margin-top: 18px; }\n"
CAUSES = "|".join(cause.key for cause in Cause)
CauseName = Annotated[str, Meta(pattern=rf"^({CAUSES})\Z")]
UNITS = {"instructions": "guest instructions", "time_us": "µs"}
COLUMNS = 4  # of a plot, where the page is wide


# -- over boards -----------------------------------------------------------------------------------


class FailSafe(Struct, frozen=True):
    tick: Whole
    time_s: NotNegative
    text: str
    after_fault_ticks: Whole | None


class Cost(Struct, frozen=True):
    unit: Line
    median: Whole
    max: Whole


class Flight(Struct, frozen=True):
    """The fields that are shown of a document of drones/flight/result.py."""

    board: Line
    policy_sha256: Digest
    success: bool
    cause: CauseName | None
    same_bits: bool
    failsafe: FailSafe | None
    ticks: Whole
    seconds: NotNegative
    error_m: NotNegative | None
    settling_s: NotNegative | None
    kept: bool
    reason: str
    airframe: str
    start: Whole
    cost: Cost | None


def over_boards(data: RunData) -> Section | None:
    if data.image is None:
        return None
    found, damaged = flights(data.folder.path, data.image.sha256)
    if not found and not damaged:
        return None
    lead = (
        "By <code>rlt fly RUN --board BOARD</code>: the simulator is on this machine, the policy "
        "acts on the board, tick by tick in the firmware's executor. A flight counts where each of "
        "its ticks has the bits of the same flight on this machine; <code>docs/flight.md</code> "
        "defines it."
    )
    body = "".join(f"<p>{text(sentence)}</p>" for sentence in damaged)
    if found:
        heads = ("board", "outcome", "last second, m", "settled after, s", "ticks", "same bits")
        rows = [board_row(flight) for flight in found]
        body += table((*heads, "kept", "a tick: median, max"), rows)
        body += "".join(f"<p>{sentence_of(flight, data.folder.path)}</p>" for flight in found)
    return Section("Flights over boards", lead, body, BOARD_STYLE)


def flights(folder: Path, policy_sha256: str) -> tuple[list[Flight], list[str]]:
    """Return the flights of this policy, and a sentence for each damaged file."""
    found: list[Flight] = []
    damaged: list[str] = []
    for path in sorted(folder.glob(result_file(FLIGHT, "*"))):
        if path.name == FILE:
            continue
        try:
            flight: Flight = typed(load_json(path, folder), Flight)
        except (OSError, ValueError) as error:
            damaged.append(f"{path.name} is damaged ({error}): fly again.")
            continue
        if flight.policy_sha256 == policy_sha256:
            found.append(flight)
    return found, damaged


def outcome_of(flight: Flight) -> str:
    if flight.success:
        return "success"
    return Cause.of(flight.cause).short if flight.cause else "broken off"


def board_row(flight: Flight) -> Sequence[str]:
    error, settled, cost = flight.error_m, flight.settling_s, flight.cost
    unit = UNITS.get(cost.unit, cost.unit) if cost else ""
    return (
        flight.board,
        outcome_of(flight),
        number(error, 3) if error is not None else "",
        number(settled, 2) if settled is not None else "never",
        number(flight.ticks),
        "yes" if flight.same_bits else "no",
        "yes" if flight.kept else "no",
        f"{number(cost.median)}, {number(cost.max)} {unit}" if cost else "",
    )


def sentence_of(flight: Flight, folder: Path) -> str:
    """Return when and why there was a fail-safe, and the link to the replay, a page beside this
    one."""
    name = result_file(FLIGHT, flight.board, ".html")
    sentence = (
        f"<strong>{text(flight.board)}</strong>, {text(flight.airframe)}, start "
        f"{number(flight.start)}: "
    )
    if (event := flight.failsafe) is not None:
        ticks = event.after_fault_ticks
        after = f", {ticks} ticks after the fault on purpose" if ticks is not None else ""
        sentence += (
            f'<strong class="bad">fail-safe</strong> at {number(event.time_s, 3)} s, tick '
            f"{number(event.tick)}{after}: {text(event.text)}. "
        )
    elif flight.reason:
        sentence += f"{text(flight.reason)}. "
    if (folder / name).is_file():
        return f'{sentence}<a href="{quote(name)}">Replay in 3-D</a>, in the run\'s folder.'
    return sentence


# -- with a PX4 ------------------------------------------------------------------------------------


def with_px4(data: RunData) -> Section | None:
    path = data.folder.path / FILE
    if data.image is None or not path.exists():
        return None
    try:
        flight = read_flight(path)
    except (OSError, ValueError) as error:
        damaged = f"<p>{text(path.name)} is damaged ({text(error)}): fly again.</p>"
        return Section("Flight with PX4", "", damaged)
    starts = flight.starts
    if flight.policy_sha256 != data.image.sha256 or not starts:
        return None  # a run that went on has another policy now
    lead = (
        "By <code>rlt fly RUN --px4 udp:HOST:PORT</code>: PX4 in simulation "
        f"({text(flight.simulated_by)}) takes off, brings the vehicle to each start and gives "
        "it to the policy. What is measured is PX4's own estimate, by telemetry; what is predicted "
        "is our simulator's flight from the same state. <code>docs/flight.md</code> defines all."
    )
    body = (
        f"<p>{verdict(flight)}</p>"
        + "".join(f"<p>{fail_safe(start)}</p>" for start in starts if start.fail_safe)
        + starts_table(starts)
        + distance_plot(starts)
        + hand_backs(starts)
        + "".join(f"<p>Note: {text(note)}.</p>" for note in flight.notes)
        + "".join(f"<p>Not flown: {text(what)}.</p>" for what in NOT_FLOWN)
    )
    return Section("Flight with PX4", lead, body, PX4_STYLE)


def verdict(flight: FlightResult) -> str:
    starts, successes = flight.starts, flight.successes
    css = "good" if successes == len(starts) else "bad"
    flown = (
        f'<strong class="{css}">{successes} of {len(starts)}</strong> starts were '
        f"{text(hover_rule().text)}, with no limit broken"
    )
    kept = "PX4 keeps the policy" if flight.kept else "PX4 gave the policy up again"
    if flight.state == "done":
        return f"{flown}; {kept}."
    cause = next((start.cause for start in starts if start.cause), "")
    because = f": {text(cause)}" if cause else ""
    ended = f"; {text(flight.ended)}" if flight.ended else ""
    return f"{flown}. It ended at the step “{text(flight.state)}”{because}{ended}. {kept}."


def fail_safe(start: StartResult) -> str:
    assert start.fail_safe is not None
    return (
        f'<strong class="bad">Fail-safe</strong> at {number(start.fail_safe.time_s, 2)} s of the '
        f"start ({text(name_of(start))}) m: {text(start.fail_safe.text)}, in the module's words."
    )


def name_of(start: StartResult) -> str:
    return " ".join(f"{value:+.1f}" for value in start.offset_m).replace("-", MINUS)


def starts_table(starts: Sequence[StartResult]) -> str:
    has_prediction = any(start.predicted for start in starts)
    heads = ["start: forward, left, up, m", "outcome", "greatest error, m", "last second, m"]
    heads.append("settled after, s")
    if has_prediction:
        heads += ["predicted: greatest", "last second", "settled after", "max apart, m"]
    return table(heads, [start_row(start, has_prediction) for start in starts])


def start_row(start: StartResult, has_prediction: bool) -> list[str]:
    outcome = "success" if start.success else "broken off" if start.cause else "too far"
    if start.measures is None and not start.cause:
        outcome = "not flown"
    cells = [name_of(start), outcome, *figures(start.measures)]
    if has_prediction:
        apart = start.max_apart_m
        cells += [*figures(start.predicted), number(apart, 3) if apart is not None else ""]
    return cells


def figures(measures: Any) -> list[str]:
    if measures is None:
        return ["", "", ""]
    settled = measures.settling_s
    return [
        number(measures.greatest_error_m, 2),
        number(measures.last_second_error_m, 3),
        number(settled, 2) if settled is not None else "never",
    ]


def distance_plot(starts: Sequence[StartResult]) -> str:
    """Draw the distance from the target over time, a panel for each start."""
    flown = [start for start in starts if start.series is not None]
    if not flown:
        return ""

    def draw(figure: Figure, is_wide: bool) -> None:
        columns = min(COLUMNS, len(flown)) if is_wide else 1
        rows = -(-len(flown) // columns)
        grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for axes, start in zip(grid.flat, flown, strict=False):
            distance_axes(axes, hover_rule())
            for series, color, style in curves(start):
                distance = np.maximum(series.errors_m, NEAREST_M)
                axes.plot(series.times_s, distance, color=color, linewidth=1.5, linestyle=style)
            if start.fail_safe is not None:
                axes.axvline(start.fail_safe.time_s, color=markup.INK, linewidth=1.4)
                markup.label_line(
                    axes, start.fail_safe.time_s, "fail-safe", markup.INK, to_left=False
                )
            axes.set_xlim(0, hover_rule().seconds)
            axes.set_xticks(np.linspace(0, hover_rule().seconds, 3))
            markup.title(axes, f"{name_of(start)} m")
        for axes in list(grid.flat)[len(flown) :]:
            axes.set_axis_off()
        for axes in grid[-1]:
            axes.set_xlabel("time, s")
        handles = [
            grid[0][0].plot([], [], color=color, linestyle=style, label=label)[0]
            for label, color, style in (
                ("measured", markup.FIRST, "solid"),
                ("predicted", markup.SECOND, (0, (3, 2))),
            )
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)

    panels = -(-len(flown) // COLUMNS)
    heights = (150 * panels + 60, 140 * len(flown) + 60)
    picture = markup.responsive(draw, heights, "Distance from the target over time, with PX4")
    caption = (
        "Distance from the target, m. Green, dashed: the radius of success. Shaded: the time in "
        "which it counts."
    )
    return f'<figure>{picture}<figcaption class="caption">{caption}</figcaption></figure>'


def curves(start: StartResult) -> list[tuple[Series, str, Any]]:
    found: list[tuple[Series, str, Any]] = []
    if start.series is not None:
        found.append((start.series, markup.FIRST, "solid"))
    if start.prediction is not None:
        found.append((start.prediction, markup.SECOND, (0, (3, 2))))
    return found


def hand_backs(starts: Sequence[StartResult]) -> str:
    """Return a table of the vehicle's motion after the stock controller took it back."""
    rows = []
    for start in starts:
        back = start.hand_back
        if back is None:
            continue
        change = back.thrust_change
        rows.append(
            (
                name_of(start),
                number(back.time_s, 2),
                number(back.speed_m_s, 2),
                number(100 * change, 1) if change is not None else "not reported",
                number(back.attitude_deg, 1),
                number(back.height_m, 3),
                number(back.away_m, 3),
                "yes" if back.is_bumpless else "no",
            )
        )
    if not rows:
        return ""
    heads = ("start", "at, s", "speed, m/s", "thrust, %", "attitude, °", "height, m", "distance, m")
    about = (
        "When PX4 has the vehicle back: the greatest change of the motors' mean signal between two "
        "reports, up to 0.1 s later, of all of it; the greatest rotation within 0.5 s; the "
        "greatest change of height, and of the position on the ground, within 1 s. Bumpless is up "
        f"to {100 * MAX_THRUST:g} %, {MAX_ATTITUDE_DEG:g}° and {MAX_HEIGHT_M:g} m of height."
    )
    return f"<h3>Handing back</h3><p>{about}</p>" + table((*heads, "bumpless"), rows)
