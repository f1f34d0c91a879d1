"""What the page flies a quadrotor by: the settings, published tables and records of the flight
library, and the gate that an experiment's policies are to pass."""

from __future__ import annotations

from typing import Any

from rltools_host.build.description import ExperimentDescription
from rltools_host.build.experiments import gate
from rltools_host.build.native import host_library
from rltools_host.flight.gate import load_gate
from rltools_host.flight.simulator import TEXTS, flight_library

CONTRACT = "quadrotor"
USUAL_GATE = "hover"
# The settings that have a slider there, in this order.
SURROUNDINGS = ("wind_m_s2", "gust_m_s2", "latency_ms", "noise")  # which no table has
SLIDERS = (
    *("mass_kg", "inertia_x", "inertia_y", "inertia_z", "lag_up_s", "lag_down_s"),
    *(*SURROUNDINGS, "drag_x", "drag_y", "drag_z"),
)


def is_flown(description: ExperimentDescription) -> bool:
    """Whether its policies fly a quadrotor."""
    return bool(description.environment["contract"] == CONTRACT)


def flight_document() -> dict[str, Any]:
    """Of host/native/flight_module.cpp: `reading` has offset, number and type of each field of a
    Reading, `causes` says how a flight ended, by its number."""
    said = host_library("flight").description
    known = {setting["name"] for setting in said["settings"]}
    assert known.issuperset(SLIDERS), set(SLIDERS) - known
    return {
        "settings": said["settings"],
        "sliders": SLIDERS,
        "surroundings": SURROUNDINGS,
        "tables": said["tables"],
        "reading": {
            field["name"]: [field["offset"], field["elements"] or 1, field["type"]]
            for field in said["records"]["Reading"]["fields"]
        },
        "reading_bytes": said["records"]["Reading"]["bytes"],
        "causes": [sentence for _, sentence in TEXTS.values()],
    }


def gate_of(experiment: str) -> str:
    return gate(experiment) or USUAL_GATE


def gate_document(name: str) -> dict[str, Any]:
    """A gate; `needed` of the `judged` last ticks within the radius are a success."""
    found = load_gate(name)
    ticks, judged, needed = found.rule.in_ticks(flight_library().tick_s)
    return {
        "name": found.name,
        "rule": found.rule.text,
        "settings": found.settings,
        "seed": found.seed,
        "ticks": ticks,
        "judged": judged,
        "needed": needed,
        "radius_m": found.radius_m,
    }
