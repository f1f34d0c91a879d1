"""The result of a gate: for people, for `--json`, and as gate-<name>.json in the run's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from rltools_host.documents import Digest, FromOne, Line, NotNegative, Number, Unfit, Whole, typed
from rltools_host.drones.flight.airframes import AirframeMap, map_of
from rltools_host.drones.flight.entry import EntrySearch
from rltools_host.drones.flight.gate import Definition, Gate, gate_of
from rltools_host.drones.flight.simulator import FAILURES, Array, Cause, flight_library
from rltools_host.files import load_json, plain_json, write_atomically
from rltools_host.lines import UNLIMITED, aligned, folded
from rltools_host.policies.contract import EntryEnvelope, entry_text
from rltools_host.policies.image import PolicyImage
from rltools_host.runs.aggregates import wilson_interval
from rltools_host.runs.names import GATE, result_file

FORMAT = 1
SIMULATOR = "the core's flights"


@dataclass(frozen=True)
class Share:
    """The number of some flights, of the successes among them, and of the causes of failure."""

    name: str
    flights: int
    successes: int
    causes: Mapping[str, int]  # each Cause's key but success

    @property
    def rate(self) -> float:
        return self.successes / self.flights

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the rate."""
        return wilson_interval(self.successes, self.flights)

    def document(self, of: str = "table") -> dict[str, object]:
        return {
            of: self.name,
            "episodes": self.flights,
            "success_rate": self.rate,
            "interval": list(self.interval),
            "causes": dict(self.causes),
        }


def share_of(name: str, causes: NDArray[Any]) -> Share:
    counts = np.bincount(causes, minlength=len(Cause))
    return Share(
        name,
        len(causes),
        int(counts[Cause.SUCCESS]),
        {cause.key: int(counts[cause]) for cause in FAILURES},
    )


@dataclass(frozen=True)
class GateResult:
    """A gate, a policy and the outcome of each flight (records of Outcome), part by part."""

    gate: Gate
    run: str
    experiment: str
    environment: str
    policy_sha256: str
    outcomes: Array
    envelope: EntryEnvelope | None = None  # of a gate that finds it

    @property
    def all(self) -> Share:
        return share_of("all", self.outcomes["cause"])

    @property
    def by_part(self) -> dict[str, GateResult]:
        """Return the result of each part by its name, in order; empty where the gate has no
        parts."""
        if not self.gate.parts:
            return {}
        outcomes = self.outcomes.reshape(len(self.gate.parts), -1)
        kinds = self.gate.kinds.items()
        return {
            name: replace(self, gate=kind, outcomes=of)
            for (name, kind), of in zip(kinds, outcomes, strict=True)
        }

    @property
    def by_table(self) -> list[Share]:
        """Return the share of each table that flew, in the order of quadrotor/airframe.h; drawn
        airframes first."""
        library, tables = flight_library(), self.outcomes["table"]
        names = {0: DRAWN} if self.gate.draws_airframes else {}
        return [
            share_of(
                names.get(int(table)) or library.table_name(int(table)),
                self.outcomes["cause"][tables == table],
            )
            for table in np.unique(tables)
        ]

    @property
    def map(self) -> AirframeMap | None:
        """Return the map of flights with a drawn airframe; None where there is none."""
        if not self.gate.draws_airframes:
            return None
        good = self.outcomes["cause"] == Cause.SUCCESS
        airframes = np.concatenate([kind.airframes() for kind in self.gate.kinds.values()])
        is_drawn = self.outcomes["table"] == 0
        return map_of(airframes[is_drawn], good[is_drawn])

    @property
    def faults(self) -> dict[str, int]:
        """Return how many flights each fault of the executor has ended, by its text."""
        faults = self.outcomes[self.outcomes["cause"] == Cause.EXECUTOR_FAULT]
        numbers, counts = np.unique(faults["status"], return_counts=True)
        statuses = flight_library().statuses
        return {statuses[number]: int(count) for number, count in zip(numbers, counts, strict=True)}

    @property
    def settling_s(self) -> NDArray[np.float64]:
        """Return the times after which successful flights stayed within the radius, since the
        change of the airframe where there is one; 0: they never left it."""
        good = self.outcomes[self.outcomes["cause"] == Cause.SUCCESS]
        seconds: NDArray[np.float64] = good["settling_tick"] * flight_library().tick_s
        return np.maximum(seconds - (self.gate.change_s or 0.0), 0.0)

    @property
    def settles(self) -> bool:
        """Return whether there are successful flights that had to stay within the radius."""
        return bool(self.all.successes) and self.gate.rule.share == 1 and not self.gate.parts

    def document(self) -> dict[str, object]:
        """Return what --json prints."""
        share, returns = self.all, self.outcomes["episode_return"].astype(float)
        document = {
            "run": self.run,
            "experiment": self.experiment,
            "environment": self.environment,
            "simulator": SIMULATOR,
            "seed": self.gate.seed,
            "episodes": len(returns),
            "return_mean": float(returns.mean()),
            "return_std": float(returns.std()),
            "returns": returns.tolist(),
            "success_return": None,
            "gate": self.gate.name,
            "success_rate": share.rate,
            "interval": list(share.interval),
            "causes": dict(share.causes),
            "faults": self.faults,
            "tables": [each.document() for each in self.by_table],
            "settling_s_median": float(np.median(self.settling_s)) if share.successes else None,
            "policy_sha256": self.policy_sha256,
        }
        if self.gate.parts:
            document["settling_s_median"] = None
            document["parts"] = [
                {
                    **replace(part.all, name=name).document("part"),
                    "rule": part.gate.rule.text,
                    "settling_s_median": part._settled(0.5),
                    "settling_s_95": part._settled(0.95),
                }
                for name, part in self.by_part.items()
            ]
        if (found := self.map) is not None:
            document["map"] = found.document()
        if self.envelope is not None:
            document["entry"] = asdict(self.envelope)
        return document

    def _settled(self, quantile: float) -> float | None:
        return float(np.quantile(self.settling_s, quantile)) if self.settles else None

    def lines(self, width: int = UNLIMITED) -> list[str]:
        """Return the result for people."""
        gate, share, rule = self.gate, self.all, self.gate.rule
        low, high = share.interval
        lines = [
            f"{share.flights:,} flights of {self.experiment} through the gate {gate.name}: "
            f"{gate.title} (seed {gate.seed})",
            f"  success  {percent(share.rate)}   95 % interval {percent(low)} to {percent(high)}   "
            + ("in all parts together" if gate.parts else rule.text),
        ]
        if self.envelope is not None:
            lines.append(f"  entry    {entry_text(self.envelope)}")
        if self.settles:
            settling = self.settling_s
            lines.append(
                f"  settled  after {np.median(settling):.2f} s (median), "
                f"{np.quantile(settling, 0.95):.2f} s (95 % of the successful flights)"
            )
        for rows in self.tables():
            lines += ["", *(f"  {line}" for line in folded(rows, width - 2))]
        lines += cause_lines(share, self.faults)
        return lines

    def tables(self) -> list[list[tuple[str, ...]]]:
        """Return the tables by part, by airframe table, and for drawn airframes by mass and by
        thrust to weight."""
        tables = [part_rows(self.by_part)] if self.gate.parts else []
        tables.append(table_rows(self.by_table))
        if (found := self.map) is not None:
            tables += [found.rows_by_mass(), found.rows_by_lift()]
        return tables

    def write(self, folder: Path) -> Path:
        """Write the result beside run.json, with one entry of each column of `flights` for each
        flight in order; return the path."""
        path = folder / result_file(GATE, self.gate.name)
        document = {
            "format": FORMAT,
            "gate": self.gate.name,
            "definition": self.gate.document(),
            **{name: getattr(self, name) for name in ("experiment", "environment")},
            "policy_sha256": self.policy_sha256,
            "flights": {name: plain_json(self.outcomes[name].tolist()) for name in columns()},
        }
        if self.envelope is not None:
            document["entry"] = asdict(self.envelope)
        write_atomically(path, (json.dumps(document) + "\n").encode())
        return path


def columns() -> tuple[str, ...]:
    return flight_library().records["Outcome"].names or ()


DRAWN = "drawn"  # the airframes that are no table's


def fly_gate(gate: Gate, image: PolicyImage, run: str) -> GateResult:
    """Fly a policy through a gate; raise an RltError where it is not a quadrotor's."""
    envelope = None
    if gate.entry is None:
        outcomes = gate.fly(image)
    else:
        gate, outcomes, envelope = EntrySearch(gate, image).found()
    fields = (image.experiment, image.environment, image.sha256)
    return GateResult(gate, run, *fields, outcomes, envelope)


def percent(rate: float) -> str:
    return f"{100 * rate:.1f} %"


def table_rows(shares: Sequence[Share]) -> list[tuple[str, ...]]:
    """Return a row for each share, with its causes of failure, the most frequent first."""
    heads = ("table", "flights", "success", "95 % interval", "failures")
    return [heads, *((*share_cells(share), failures(share)) for share in shares)]


def part_rows(parts: Mapping[str, GateResult]) -> list[tuple[str, ...]]:
    heads = ("part", "flights", "success", "95 % interval", "settled", "95 % of them", "failures")
    rows: list[tuple[str, ...]] = [heads]
    for name, part in parts.items():
        times = [part._settled(quantile) for quantile in (0.5, 0.95)]
        settled = ("-" if seconds is None else f"{seconds:.2f} s" for seconds in times)
        share = replace(part.all, name=name)
        rows.append((*share_cells(share), *settled, failures(share)))
    return rows


def share_cells(share: Share) -> tuple[str, ...]:
    low, high = share.interval
    interval = f"{100 * low:.1f} to {100 * high:.1f}"
    return share.name, f"{share.flights:,}", percent(share.rate), interval


def failures(share: Share) -> str:
    causes = sorted(share.causes.items(), key=lambda item: -item[1])
    return ", ".join(f"{count} {Cause.of(key).short}" for key, count in causes if count)


def cause_lines(share: Share, faults: Mapping[str, int]) -> list[str]:
    """Return a line in words for each cause of failure."""
    rows = [
        (f"  {count:,}", Cause.of(key).text)
        for key, count in sorted(share.causes.items(), key=lambda item: -item[1])
        if count
    ]
    if not rows:
        return []
    lines = ["", "  failures", *aligned([(f"  {number}", text) for number, text in rows])]
    for text, count in faults.items():
        lines.append(f"      of the executor's, {count:,}: {text}")
    return lines


# -- read back ---------------------------------------------------------------------------------


class StoredResult(Struct, frozen=True):
    format: FromOne
    gate: Annotated[str, Meta(pattern=r"^[\w.-]{1,100}\Z")]
    definition: Definition
    experiment: Line
    environment: Line
    policy_sha256: Digest
    flights: dict[str, object]  # by columns()
    entry: EntryEnvelope | None = None


def column_type(name: str) -> Any:
    kinds = {"error_m": NotNegative | None, "episode_return": Number}
    return list[kinds.get(name, Whole)]  # type: ignore[misc]


def read_result(path: Path) -> GateResult:
    """Read a file that write() wrote; raise ValueError (Unfit, with the field) or OSError for
    others."""
    stored: StoredResult = typed(load_json(path, path.parent), StoredResult)
    if stored.format != FORMAT:
        raise Unfit(f"format is {stored.format}, not {FORMAT}")
    gate = gate_of(stored.gate, stored.definition)
    outcomes = np.zeros(gate.flights, flight_library().records["Outcome"])
    for name in columns():
        if name not in stored.flights:
            raise Unfit(f"flights.{name} is missing")
        values: list[float | None] = typed(
            stored.flights[name], column_type(name), f"flights.{name}"
        )
        if len(values) != gate.flights:
            raise Unfit(f"flights.{name} has {len(values)} values, not {gate.flights}")
        outcomes[name] = [np.nan if value is None else value for value in values]
    library = flight_library()
    for name, limit in (
        ("cause", len(Cause) - 1),
        ("status", len(library.statuses) - 1),
        ("table", len(library.tables)),
    ):
        if (largest := int(outcomes[name].max())) > limit:
            raise Unfit(f"flights.{name} has {largest}, not {limit} at most")
    return GateResult(
        gate,
        str(path.parent),
        stored.experiment,
        stored.environment,
        stored.policy_sha256,
        outcomes,
        stored.entry,
    )
