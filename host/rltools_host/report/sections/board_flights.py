"""What `rlt fly` with a board found: flights in the loop, fail-safes, and links to the replays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from msgspec import Meta, Struct

from rltools_host.documents import Digest, Line, NotNegative, Whole, typed
from rltools_host.files import parse_json
from rltools_host.flight.simulator import Cause
from rltools_host.report.markup import Section, number, table, text
from rltools_host.report.run_data import RunData
from rltools_host.vehicles.px4_result import FILE as PX4_FILE

STYLE = "section > table + p { margin-top: 12px; }\nsection a { color: var(--first); }\n"
PATTERN = "flight-*.json"
CAUSES = "|".join(cause.key for cause in Cause)
CauseName = Annotated[str, Meta(pattern=rf"^({CAUSES})\Z", description="a cause")]
UNITS = {"instructions": "guest instructions", "time_us": "µs"}


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
    """What is shown of a document of flight/loop_result.py."""

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


def section(data: RunData) -> Section | None:
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
        rows = [row(flight) for flight in found]
        body += table((*heads, "kept", "a tick: median, most"), rows)
        body += "".join(f"<p>{told(flight, data.folder.path)}</p>" for flight in found)
    return Section("Flights over boards", lead, body, STYLE)


def flights(folder: Path, policy_sha256: str) -> tuple[list[Flight], list[str]]:
    """Those of this policy, and of damaged files a sentence."""
    found: list[Flight] = []
    damaged: list[str] = []
    for path in sorted(folder.glob(PATTERN)):
        if path.name == PX4_FILE:
            continue
        try:
            flight: Flight = typed(parse_json(path.read_bytes()), Flight)
        except (OSError, ValueError) as error:
            damaged.append(f"{path.name} is damaged ({error}): fly again.")
            continue
        if flight.policy_sha256 == policy_sha256:
            found.append(flight)
    return found, damaged


def outcome(flight: Flight) -> str:
    if flight.success:
        return "success"
    return Cause.of(flight.cause).short if flight.cause else "broken off"


def row(flight: Flight) -> Sequence[str]:
    error, settled, cost = flight.error_m, flight.settling_s, flight.cost
    unit = UNITS.get(cost.unit, cost.unit) if cost else ""
    return (
        flight.board,
        outcome(flight),
        number(error, 3) if error is not None else "",
        number(settled, 2) if settled is not None else "never",
        number(flight.ticks),
        "yes" if flight.same_bits else "no",
        "yes" if flight.kept else "no",
        f"{number(cost.median)}, {number(cost.max)} {unit}" if cost else "",
    )


def told(flight: Flight, folder: Path) -> str:
    """When and why there was a fail-safe, and the link to the replay, a page beside this one."""
    name = f"flight-{flight.board}.html"
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
