"""What `rlt fly` with a board found: flights in the loop, fail-safes, and links to the replays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rltools_host.files import parse_json
from rltools_host.flight.simulator import Cause
from rltools_host.report.markup import Section, number, table, text
from rltools_host.report.run_data import RunData
from rltools_host.runs import schema
from rltools_host.vehicles.px4_result import FILE as PX4_FILE

STYLE = "section > table + p { margin-top: 12px; }\nsection a { color: var(--first); }\n"
PATTERN = "flight-*.json"
EVENT: schema.Keys = {
    "tick": schema.whole(),
    "time_s": schema.number(0),
    "text": schema.string,
    "after_fault_ticks": schema.optional(schema.whole()),
}
COST: schema.Keys = {"unit": schema.text(), "median": schema.whole(), "max": schema.whole()}
FLIGHT: schema.Keys = {
    "board": schema.text(),
    "policy_sha256": schema.DIGEST,
    "success": schema.flag,
    "cause": schema.optional(schema.text("|".join(cause.key for cause in Cause), "a cause")),
    "same_bits": schema.flag,
    "failsafe": schema.optional(schema.record(EVENT, required=True)),
    "ticks": schema.whole(),
    "seconds": schema.number(0),
    "error_m": schema.optional(schema.number(0)),
    "settling_s": schema.optional(schema.number(0)),
    "kept": schema.flag,
    "reason": schema.string,
    "airframe": schema.string,
    "start": schema.whole(),
    "cost": schema.optional(schema.record(COST, required=True)),
}
UNITS = {"instructions": "guest instructions", "time_us": "µs"}


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
        rows = [row(document) for document in found]
        body += table((*heads, "kept", "a tick: median, most"), rows)
        body += "".join(f"<p>{told(document, data.folder.path)}</p>" for document in found)
    return Section("Flights over boards", lead, body, STYLE)


def flights(folder: Path, policy_sha256: str) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Those of this policy, and of damaged files a sentence."""
    found: list[Mapping[str, Any]] = []
    damaged: list[str] = []
    for path in sorted(folder.glob(PATTERN)):
        if path.name == PX4_FILE:
            continue
        try:
            document = parse_json(path.read_bytes())
            schema.record(FLIGHT, required=True)("", document)
        except (OSError, ValueError) as error:
            damaged.append(f"{path.name} is damaged ({error}): fly again.")
            continue
        if document["policy_sha256"] == policy_sha256:
            found.append(document)
    return found, damaged


def outcome(document: Mapping[str, Any]) -> str:
    if document["success"]:
        return "success"
    return Cause.of(document["cause"]).short if document["cause"] else "broken off"


def row(document: Mapping[str, Any]) -> Sequence[str]:
    error, settled, cost = document["error_m"], document["settling_s"], document["cost"]
    unit = UNITS.get(cost["unit"], cost["unit"]) if cost else ""
    return (
        document["board"],
        outcome(document),
        number(error, 3) if error is not None else "",
        number(settled, 2) if settled is not None else "never",
        number(document["ticks"]),
        "yes" if document["same_bits"] else "no",
        "yes" if document["kept"] else "no",
        f"{number(cost['median'])}, {number(cost['max'])} {unit}" if cost else "",
    )


def told(document: Mapping[str, Any], folder: Path) -> str:
    """When and why there was a fail-safe, and the link to the replay, a page beside this one."""
    name = f"flight-{document['board']}.html"
    sentence = (
        f"<strong>{text(document['board'])}</strong>, {text(document['airframe'])}, start "
        f"{number(document['start'])}: "
    )
    if (event := document["failsafe"]) is not None:
        ticks = event["after_fault_ticks"]
        after = f", {ticks} ticks after the fault on purpose" if ticks is not None else ""
        sentence += (
            f'<strong class="bad">fail-safe</strong> at {number(event["time_s"], 3)} s, tick '
            f"{number(event['tick'])}{after}: {text(event['text'])}. "
        )
    elif document["reason"]:
        sentence += f"{text(document['reason'])}. "
    if (folder / name).is_file():
        return f'{sentence}<a href="{quote(name)}">Replay in 3-D</a>, in the run\'s folder.'
    return sentence
