"""What was found of a board: the object of `--json`, and lines for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rltools_host.build.memory import Footprint
from rltools_host.clients.messages import Identity
from rltools_host.hil.cost import Cost, bars
from rltools_host.hil.parity import Parity
from rltools_host.policies.image import PolicyImage
from rltools_host.ui.table import aligned

INSTRUCTIONS, TIME = "instructions", "time_us"  # keys, and what their numbers are
UNITS = {INSTRUCTIONS: "guest instructions", TIME: "microseconds"}
STATISTICS = {
    "min": "min",
    "mean": "mean",
    "median": "median",
    "p99": "p99",
    "p999": "p99.9",
    "max": "max",
}


@dataclass(frozen=True)
class Result:
    board: str
    contract: str
    identity: Identity
    image: PolicyImage
    parity: Parity
    cost: Cost | None  # None where the bits are wrong
    samples: int
    footprint: Footprint | None  # None where it is not known
    stack_bytes: int  # the most ever used; 0 where not known

    @property
    def unit(self) -> str:
        return INSTRUCTIONS if self.identity.counts_instructions else TIME

    def document(self) -> dict[str, Any]:
        cost, footprint = self.cost, self.footprint
        return {
            "board": self.board,
            "experiment": self.image.experiment,
            "implementation": self.identity.device,
            "contract": self.contract,
            "network": self.image.shape,
            "policy_sha256": self.image.sha256,
            "samples": self.samples if cost else 0,
            "max_abs_diff": self.parity.max_abs_diff,
            self.unit: cost.forward.document() if cost else None,
            "tick": {self.unit: cost.tick.document() if cost else None},
            "overhead": cost.overhead if cost else None,
            "flash_bytes": footprint.flash_bytes if footprint else None,
            "ram_bytes": footprint.ram_bytes if footprint else None,
            "stack_bytes": self.stack_bytes or None,
            "outputs_sha256": self.parity.outputs_sha256,
            "parity": self.parity.document(),
        }


def unit_of(document: Mapping[str, Any]) -> str:
    return INSTRUCTIONS if INSTRUCTIONS in document else TIME


def number_text(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def costs(document: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """What was measured of a board, with its statistics."""
    unit = unit_of(document)
    both = (("forward", document.get(unit)), ("tick", document.get("tick", {}).get(unit)))
    return [(what, statistics) for what, statistics in both if statistics]


def agreement(parity: Mapping[str, Any]) -> str:
    """For example "1,000 of 1,000"."""
    inputs = parity["inputs"] + parity["not_finite_inputs"]
    calls = parity["executor_calls"]
    return (
        f"{inputs - parity['mismatches']:,} of {inputs:,} inputs, "
        f"{calls - parity['executor_mismatches']:,} of {calls:,} calls"
    )


PARITY_HEADER = ("board", "implementation", "same bits", "outputs", "flash", "RAM", "stack")
COST_HEADER = ("board", "cost of", *STATISTICS.values(), "unit")


def parity_row(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Under PARITY_HEADER."""
    return (
        document["board"],
        document["implementation"],
        agreement(document["parity"]),
        document["outputs_sha256"][:12],
        *(number_text(document[f"{key}_bytes"]) for key in ("flash", "ram", "stack")),
    )


def cost_rows(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Under COST_HEADER."""
    return [
        (
            document["board"],
            what,
            *(number_text(statistics[key]) for key in STATISTICS),
            UNITS[unit_of(document)],
        )
        for what, statistics in costs(document)
    ]


def lines(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """Tables over boards; those that were not measured say why."""
    found = [document for document in documents if "parity" in document]
    text = aligned([PARITY_HEADER, *map(parity_row, found)]) if found else []
    rows = [row for document in found for row in cost_rows(document)]
    if rows:
        text += ["", *aligned([COST_HEADER, *rows])]
    for document in documents:
        if "parity" not in document:
            text.append(f"{document['board']}: {document.get('skipped') or document.get('error')}")
    return text


def histogram_lines(document: Mapping[str, Any]) -> list[str]:
    """The distributions of a board's costs, as bars."""
    text: list[str] = []
    for what, statistics in costs(document):
        unit = UNITS[unit_of(document)]
        histogram = statistics["histogram"]
        text += ["", f"{document['board']}: {unit} of a {what}, {document['samples']:,} samples"]
        text += bars(histogram["edges"], histogram["counts"])
    return text
