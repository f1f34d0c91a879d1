"""Logs of simulated flights and what `rlt fit` makes of them, once in a process."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from quadrotor_drones import DRONES, Drone
from quadrotor_flight import STEP_S, Flight, Records, fly, write_log
from rltools_host.fitting.fit import fit
from rltools_host.fitting.log import read_log
from rltools_host.fitting.result import FITTED, Result, Value

NAMES = tuple(DRONES)


@cache
def records(names: tuple[str, ...] = NAMES, seed: int = 0, flight: Flight | None = None) -> Records:
    """A flight of each drone, at the same time."""
    return fly([DRONES[name] for name in names], seed, flight)


def columns_of(name: str, commands: str = "thrust", flight: Flight | None = None) -> Any:
    return records(flight=flight).columns(NAMES.index(name), commands)


def without_accelerometer(columns: Any) -> Any:
    return {name: values for name, values in columns.items() if not name.startswith("acceleration")}


def result_of(log: Path, drone: Drone) -> Result:
    return Result(fit(read_log(log), *drone.rotor), drone.mass, *drone.rotor)


def result_of_columns(columns: Any, drone: Drone) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        return result_of(write_log(Path(folder) / "log.csv", columns), drone)


@cache
def flown(name: str, commands: str = "thrust", flight: Flight | None = None) -> Result:
    """Of the first flight of a drone."""
    return result_of_columns(columns_of(name, commands, flight), DRONES[name])


def truth_of(drone: Drone, latency_s: float = 0.0) -> dict[str, float]:
    """The parameters by the names of the result."""
    values = {
        "lag_up_s": drone.lag[0],
        "lag_down_s": drone.lag[1],
        "drag_rotation": 1e3 * drone.drag_rotation,
        "latency of the commands": latency_s,
        "greatest thrust of a rotor / mass": drone.greatest / drone.mass,
        "torque / thrust": drone.torque[2] / drone.thrust[2],
        "mass torque / (thrust inertia_z)": drone.torque[2]
        / drone.thrust[2]
        * drone.mass
        / drone.inertia[2],
    }
    for index, axis in enumerate("xyz"):
        values[f"inertia_{axis}"] = 1e6 * drone.inertia[index]
        values[f"drag_{axis}"] = drone.drag[index]
        values[f"thrust_{index}"] = drone.thrust[index]
        values[f"torque_{index}"] = 1e3 * drone.torque[index]
    return values


def fitted(result: Result) -> dict[str, Value]:
    """What is from the log, each parameter once."""
    values = {value.name: value for value in [*result.per_mass(), *result.settings()]}
    return {name: value for name, value in values.items() if value.source == FITTED}


def covered(result: Result, truth: dict[str, float]) -> list[bool]:
    values = fitted(result)
    return [
        bool(value.low <= truth[name] <= value.high)
        for name, value in values.items()
        if name in truth and value.low is not None and value.high is not None
    ]


def off(value: Value, truth: float) -> float:
    assert value.value is not None
    return abs(value.value / truth - 1.0)


def share_covered(
    names: tuple[str, ...], kinds: tuple[str, ...], seed: int, flight: Flight
) -> tuple[float, int]:
    """Of intervals, in a flight of each name with commands of each kind; and how many there are."""
    flights = records(names, seed, flight)
    found: list[bool] = []
    for commands in kinds:
        for index, name in enumerate(names):
            result = result_of_columns(flights.columns(index, commands), DRONES[name])
            found += covered(result, truth_of(DRONES[name], STEP_S * flight.latency_steps))
    return sum(found) / len(found), len(found)
