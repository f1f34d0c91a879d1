"""A flight with PX4 as flight-px4.json has it, read back for the report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rltools_host.files import parse_json
from rltools_host.flight.hand_back import HandBack
from rltools_host.flight.px4_result import FailSafe, StartResult
from rltools_host.flight.series import Measures, Series
from rltools_host.flight.simulator import flight_library
from rltools_host.runs import schema
from rltools_host.runs.schema import Check, Unfit

MEASURES: schema.Keys = {
    "success": schema.flag,
    "last_second_error_m": schema.number(0),
    "greatest_error_m": schema.number(0),
    "settling_s": schema.optional(schema.number(0)),
}
HAND_BACK: schema.Keys = {
    **dict.fromkeys(
        ("time_s", "speed_m_s", "attitude_deg", "height_m", "away_m"), schema.number(0)
    ),
    "thrust_change": schema.optional(schema.number(0)),
}
FAIL_SAFE: schema.Keys = {"time_s": schema.number(0), "text": schema.text()}
SERIES: schema.Keys = {
    "time_s": schema.list_of(schema.number()),
    # null: what was told was not a number
    "rows": schema.list_of(schema.list_of(schema.optional(schema.number()))),
}


def given(keys: schema.Keys) -> Check:
    """An object with all of these keys, or null."""
    return schema.optional(schema.record(keys, required=True))


START: schema.Keys = {
    "offset_m": schema.list_of(schema.number()),
    "cause": schema.string,
    "failsafe": given(FAIL_SAFE),
    "measures": given(MEASURES),
    "hand_back": given(HAND_BACK),
    "predicted": given(MEASURES),
    "series": given(SERIES),
    "prediction": given(SERIES),
}
FLIGHT: schema.Keys = {
    "vehicle": schema.string,
    "policy_sha256": schema.DIGEST,
    "simulated_by": schema.string,
    "state": schema.string,
    "ended": schema.string,
    "kept": schema.flag,
    "predicted_with": schema.values_of(schema.number()),
    "starts": schema.list_of(schema.record(START, required=True)),
    "notes": schema.list_of(schema.string),
}


def read_flight(path: Path) -> tuple[Mapping[str, Any], list[StartResult]]:
    """The document and its starts. ValueError (Unfit, with the place) or OSError where the file is
    not what `rlt fly` with a PX4 writes."""
    document = parse_json(path.read_bytes())
    schema.record(FLIGHT, required=True)("", document)
    return document, [start_of(start) for start in document["starts"]]


def start_of(document: Mapping[str, Any]) -> StartResult:
    if len(document["offset_m"]) != 3:
        raise Unfit(f"offset_m has {len(document['offset_m'])} values, not 3")
    x, y, z = document["offset_m"]

    def read(name: str, keys: schema.Keys, make: Any) -> Any:
        """Where the document has it."""
        values = document[name]
        return None if values is None else make(**{key: values[key] for key in keys})

    return StartResult(
        (x, y, z),
        series_of(document["series"]),
        read("measures", MEASURES, Measures),
        document["cause"],
        read("failsafe", FAIL_SAFE, FailSafe),
        read("hand_back", HAND_BACK, HandBack),
        series_of(document["prediction"]),
        read("predicted", MEASURES, Measures),
    )


def series_of(document: Mapping[str, Any] | None) -> Series | None:
    if document is None:
        return None
    columns = len(flight_library().contract.observations)
    times, rows = document["time_s"], document["rows"]
    if not rows or len(times) != len(rows) or any(len(row) != columns for row in rows):
        raise Unfit(f"a series is not rows of {columns} numbers, each with its time")
    return Series(np.array(times, float), np.array(rows, float))
