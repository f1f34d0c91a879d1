"""Logs of simulated flights and what `rlt fit` makes of them, once in a process.

A flight is a function of what simulates it and is kept in build/, as objects are by a compiler's
cache: to fly it again takes longer than to fit it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import quadrotor_drones
import quadrotor_flight
from quadrotor_drones import DRONES, Drone
from quadrotor_flight import STEP_S, Flight, Records, fly, write_log
from rltools_host.drones.fitting.fit import fit
from rltools_host.drones.fitting.log import read_log
from rltools_host.drones.fitting.result import FITTED, FitResult, Value
from rltools_host.tree import PROJECT

NAMES = tuple(DRONES)
KEPT = PROJECT.build / "flights"  # of this tree, wherever a test's project is
SIMULATOR = (quadrotor_drones.__file__, quadrotor_flight.__file__)


def kept_folder() -> Path:
    """Of this simulator's flights; those of others are removed."""
    digest = hashlib.sha256(np.__version__.encode())
    for source in SIMULATOR:
        digest.update(Path(source).read_bytes())
    kept = KEPT / digest.hexdigest()[:16]
    for other in KEPT.glob("*"):
        if other != kept:
            shutil.rmtree(other, ignore_errors=True)
    kept.mkdir(parents=True, exist_ok=True)
    return kept


@cache
def records(names: tuple[str, ...] = NAMES, seed: int = 0, flight: Flight | None = None) -> Records:
    """A flight of each drone, at the same time."""
    key = hashlib.sha256(repr((names, seed, flight)).encode()).hexdigest()[:16]
    path = kept_folder() / f"{key}.npz"
    if path.is_file():
        with np.load(path) as arrays:
            return Records(**arrays)
    flown = fly([DRONES[name] for name in names], seed, flight)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        np.savez(file, **{each.name: getattr(flown, each.name) for each in fields(flown)})
    os.replace(file.name, path)  # another worker may write the same
    return flown


def columns_of(name: str, commands: str = "thrust", flight: Flight | None = None) -> Any:
    return records(flight=flight).columns(NAMES.index(name), commands)


def result_of(log: Path, drone: Drone) -> FitResult:
    return FitResult(fit(read_log(log), *drone.rotor), drone.mass, *drone.rotor)


def result_of_columns(columns: Any, drone: Drone) -> FitResult:
    with tempfile.TemporaryDirectory() as folder:
        return result_of(write_log(Path(folder) / "log.csv", columns), drone)


@cache
def flown(name: str, commands: str = "thrust", flight: Flight | None = None) -> FitResult:
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


def fitted(result: FitResult) -> dict[str, Value]:
    """What is from the log, each parameter once."""
    values = {value.name: value for value in [*result.per_mass(), *result.settings()]}
    return {name: value for name, value in values.items() if value.source == FITTED}


def covered(result: FitResult, truth: dict[str, float]) -> list[bool]:
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
