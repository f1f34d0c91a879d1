"""Airframes of flights: which of them a policy flies, by mass and thrust to weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rltools_host.flight.simulator import Array

# The ends of the map's fields; what is beyond the outer ones is in the outer fields.
MASS_KG = (0.02, 0.08, 0.32, 1.25, 5.0)
LIFT = (1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)  # greatest thrust to weight

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class AirframeMap:
    """Flights and those that succeeded, by mass and thrust to weight: (masses, lifts)."""

    flights: Counts
    successes: Counts

    @property
    def rates(self) -> NDArray[np.float64]:
        """NaN where nobody flew."""
        rates: NDArray[np.float64] = np.full(self.flights.shape, np.nan)
        np.divide(self.successes, self.flights, out=rates, where=self.flights > 0)
        return rates

    def document(self) -> dict[str, Any]:
        return {
            "mass_kg": list(MASS_KG),
            "thrust_to_weight": list(LIFT),
            "flights": self.flights.tolist(),
            "successes": self.successes.tolist(),
        }

    def rows_by_mass(self) -> list[tuple[str, ...]]:
        return rows("mass, kg", MASS_KG, self.flights.sum(axis=1), self.successes.sum(axis=1))

    def rows_by_lift(self) -> list[tuple[str, ...]]:
        return rows("thrust to weight", LIFT, self.flights.sum(axis=0), self.successes.sum(axis=0))


def rows(
    head: str, bounds: tuple[float, ...], flights: Counts, successes: Counts
) -> list[tuple[str, ...]]:
    """Of a table, a row for each field."""
    table: list[tuple[str, ...]] = [(head, "flights", "success")]
    for place, count in enumerate(flights):
        rate = f"{100 * successes[place] / count:.1f} %" if count else "-"
        table.append((field_name(bounds, place), f"{count:,}", rate))
    return table


def field_name(bounds: tuple[float, ...], place: int) -> str:
    return f"{bounds[place]:g} to {bounds[place + 1]:g}"


def map_of(airframes: Array, succeeded: NDArray[np.bool_]) -> AirframeMap:
    """Of flights with these airframes (records of Airframe)."""
    place = tuple(
        np.clip(np.searchsorted(bounds, airframes[name], "right") - 1, 0, len(bounds) - 2)
        for name, bounds in (("mass_kg", MASS_KG), ("lift", LIFT))
    )
    flights = np.zeros((len(MASS_KG) - 1, len(LIFT) - 1), np.int64)
    successes = flights.copy()
    np.add.at(flights, place, 1)
    np.add.at(successes, place, succeeded)
    return AirframeMap(flights, successes)
