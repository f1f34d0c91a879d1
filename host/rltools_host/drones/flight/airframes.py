"""Airframes of flights: a file with one; the map of those that a policy flies, by mass and thrust
to weight; and one that was fitted to a flight's log, with the recipe and the gate for its policy.
The last two cover the drones that the fit's intervals leave open."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from rltools_host.documents import Unfit
from rltools_host.drones.flight.gate import Gate, load_gate
from rltools_host.drones.flight.simulator import Array, flight_library
from rltools_host.errors import DamagedFileError, RltError, unknown_name
from rltools_host.runs.contents import Fitted
from rltools_host.training.hyperparameters import AIRFRAME, load_set_file

if TYPE_CHECKING:
    from rltools_host.drones.fitting.result import FitResult  # with SciPy
    from rltools_host.runs.folder import RunFolder


GRAVITY_M_S2 = 9.81
# A file says these; what it leaves out of the others is the settings' default, as in training.
NEEDED = (
    *("mass_kg", "inertia_x", "inertia_y", "inertia_z", "rotor_x_m", "rotor_y_m"),
    *("thrust_0", "thrust_1", "thrust_2"),
)
OWN = {"airframe": 0.0, "table_share": 1.0}  # the settings' own values, in each flight
# The ends of the map's fields; what is beyond the outer ones is in the outer fields.
MASS_KG = (0.02, 0.08, 0.32, 1.25, 5.0)
LIFT = (1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)  # greatest thrust to weight
Counts = NDArray[np.int64]
GATE_LIKE, GATE_NAME = "hover", "hover-fitted"
# A drone moves as its log shows, whatever its mass and its size are: what is fitted is per mass and
# per distance of the rotors. These stand for them where they are not given.
ANY_MASS_KG, ANY_ROTOR_M = 1.0, 0.1
TURNS_QUICKLY_RAD_S2 = 500.0  # from which on the quick one is sure enough


def read_airframe(path: Path) -> dict[str, float]:
    """Read the settings from a file, which `rlt fit` or somebody by hand wrote; raise
    DamagedFileError where it has no airframe that can fly."""
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
    """Raise Unfit where the airframe cannot fly, as can_fly() of quadrotor/airframe.h."""
    t0, t1, t2 = (values[f"thrust_{power}"] for power in range(3))
    greatest, weight = 4.0 * (t0 + t1 + t2), values["mass_kg"] * GRAVITY_M_S2
    if greatest <= weight:
        raise Unfit(f"its rotors lift {greatest:.3g} N, and it weighs {weight:.3g} N")
    if t1 + 2.0 * t2 <= 0.0:
        raise Unfit("the thrust of its rotors falls where they turn fastest")


@dataclass(frozen=True)
class AirframeMap:
    """The flights and their successes by mass and thrust to weight: (masses, lifts)."""

    flights: Counts
    successes: Counts

    @property
    def rates(self) -> NDArray[np.float64]:
        """Return the rates of success; NaN where nothing flew."""
        rates: NDArray[np.float64] = np.full(self.flights.shape, np.nan)
        np.divide(self.successes, self.flights, out=rates, where=self.flights > 0)
        return rates

    def document(self) -> dict[str, object]:
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
    """Return a table with a row for each field."""
    table: list[tuple[str, ...]] = [(head, "flights", "success")]
    for index, count in enumerate(flights):
        rate = f"{100 * successes[index] / count:.1f} %" if count else "-"
        table.append((f"{bounds[index]:g} to {bounds[index + 1]:g}", f"{count:,}", rate))
    return table


def map_of(airframes: Array, succeeded: NDArray[np.bool_]) -> AirframeMap:
    """Return the map of flights with these airframes (records of Airframe)."""
    cells = tuple(
        np.clip(np.searchsorted(bounds, airframes[name], "right") - 1, 0, len(bounds) - 2)
        for name, bounds in (("mass_kg", MASS_KG), ("lift", LIFT))
    )
    flights = np.zeros((len(MASS_KG) - 1, len(LIFT) - 1), np.int64)
    successes = flights.copy()
    np.add.at(flights, cells, 1)
    np.add.at(successes, cells, succeeded)
    return AirframeMap(flights, successes)


@dataclass(frozen=True)
class Recipe:
    """The experiment, the number of steps and the settings that train a policy, and its speed on an
    idle core."""

    experiment: str
    steps: int
    steps_per_s: float
    settings: tuple[str, ...] = ()  # as of --set


# The experiment's own learning rate is for a drone that lifts twice its weight. Where there is less
# thrust, some seeds end beside the target with it (docs/results.md, "A drone of one's own").
QUICK = Recipe("crazyflie-ppo", 6_000_000, 1.6e6, ("learning_rate=0.005",))
SLOW = Recipe("quadrotor-ppo", 16_000_000, 6e5)


def turns_quickly(result: FitResult) -> bool:
    return result.turning_rad_s2 >= TURNS_QUICKLY_RAD_S2


def fitted_settings(result: FitResult) -> dict[str, float | int]:
    """Return the environment's settings: the fitted airframe, and how far drones may differ from
    it."""
    return {**result.known_settings(), "spread": float(f"{result.spread:.3g}")}


def gate_of(result: FitResult) -> Gate:
    """Return the gate hover, flown by the fitted drone and by those that its intervals leave
    open."""
    gate = load_gate(GATE_LIKE)
    fitted: Gate = structs.replace(
        gate,
        name=GATE_NAME,
        title="Hover, from any attitude, with the fitted drone",
        about="As hover, with the airframe that was fitted to a flight's log.",
        settings={**gate.settings, **fitted_settings(result)},
    )
    return fitted


def fitted_of(result: FitResult) -> Fitted:
    log = result.fit.log
    name = log.path.name
    return Fitted(
        name if name.isprintable() else "",
        log.sha256,
        len(log.time_s),
        log.duration_s,
        {
            value.name: (value.low, value.high)
            for value in result.settings()
            if value.low is not None and value.high is not None
        },
    )


def settings_of(run: RunFolder) -> dict[str, float]:
    """Return the run's settings of quadrotor/settings.h; none where the run is not of a
    quadrotor."""
    known = {setting.name for setting in flight_library().settings}
    hyperparameters = run.content.hyperparameters
    return {name: float(value) for name, value in hyperparameters.items() if name in known}


ANY_CRAZYFLIE = 8  # of the setting `airframe`


def gate_for(gate: Gate, run: RunFolder) -> tuple[Gate, list[str]]:
    """Return the gate completed with the run's settings, and the lines on what was assumed: a gate
    that finds the entry envelope needs an airframe."""
    if gate.entry is None:
        return gate, []
    own = settings_of(run)
    if "airframe" in own or "airframe" in gate.settings:
        return structs.replace(gate, settings={**own, **gate.settings}), []
    note = (
        "assumed: any Crazyflie (airframe 8), state it by a file entry.json that has "
        '{"like": "entry", "title": "...", "settings": {"airframe": ...}}, and --gate ./entry.json'
    )
    return structs.replace(gate, settings={**gate.settings, "airframe": ANY_CRAZYFLIE}), [note]
