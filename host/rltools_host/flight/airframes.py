"""Airframes of flights: a file with one; which of them a policy flies, by mass and thrust to
weight."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rltools_host.documents import Unfit
from rltools_host.errors import DamagedFileError, RltError, unknown_name
from rltools_host.flight.simulator import Array, flight_library
from rltools_host.training.hyperparameters import AIRFRAME, load_set_file

GRAVITY_M_S2 = 9.81
# A file says these; what it leaves out of the others is the settings' default, as in training.
NEEDED = (
    *("mass_kg", "inertia_x", "inertia_y", "inertia_z", "rotor_x_m", "rotor_y_m"),
    *("thrust_0", "thrust_1", "thrust_2"),
)
OWN = {"airframe": 0.0, "table_share": 1.0}  # the settings' own values, in each flight


def read_airframe(path: Path) -> dict[str, float]:
    """The settings of a file that `rlt fit` writes, or somebody by hand; one sentence where
    it has no airframe that can fly."""
    given = load_set_file(path, AIRFRAME).texts
    library = flight_library()
    try:
        for name in given:
            if name not in (*library.airframe, "airframe"):
                raise unknown_name("value of an airframe", name, library.airframe)
        values = {name: float(text) for name, text in given.items()}
        if missing := [name for name in NEEDED if name not in values]:
            raise Unfit(f"{', '.join(missing)} missing: an airframe has {', '.join(NEEDED)}")
        if values.pop("airframe", 0.0) != 0.0:
            raise Unfit("airframe is not 0, which takes the values beside it")
        library.setting_bits(values)
        check_thrust(values)
    except (RltError, ValueError) as error:
        raise DamagedFileError(f"{AIRFRAME} {path} has no airframe: {error}") from None
    return {**OWN, **values}


def check_thrust(values: dict[str, float]) -> None:
    """As can_fly() of quadrotor/airframe.h has it."""
    t0, t1, t2 = (values[f"thrust_{power}"] for power in range(3))
    greatest, weight = 4.0 * (t0 + t1 + t2), values["mass_kg"] * GRAVITY_M_S2
    if greatest <= weight:
        raise Unfit(f"its rotors lift {greatest:.3g} N, and it weighs {weight:.3g} N")
    if t1 + 2.0 * t2 <= 0.0:
        raise Unfit("the thrust of its rotors falls where they turn fastest")


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
