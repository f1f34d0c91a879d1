"""`rlt fit`: what is found in simulated flights is what was simulated, as sure as it says."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quadrotor_drones import DRONES
from quadrotor_fit import (
    NAMES,
    columns_of,
    covered,
    fitted,
    flown,
    off,
    truth_of,
)
from quadrotor_flight import EXAMPLE_DRONE, Flight, example_text, write_log
from rltools_host.build import experiments
from rltools_host.commands import cli
from rltools_host.commands.fit import EXPERIMENT
from rltools_host.drones.fitting.fit import fit
from rltools_host.drones.fitting.log import read_log
from rltools_host.drones.fitting.result import ASSUMED, UNKNOWN
from rltools_host.errors import DamagedFileError, DiskError, UsageError
from rltools_host.tree import TREE

EXAMPLE = TREE.root / "examples" / "fit" / "flight.csv"


# -- what was simulated is found -------------------------------------------------------------------


@pytest.mark.all  # every day the example, below
@pytest.mark.parametrize(("name", "commands"), list(itertools.product(NAMES, ("thrust", "speed"))))
def test_what_was_simulated_is_found(name: str, commands: str) -> None:
    drone = DRONES[name]
    values, truth = fitted(flown(name, commands)), truth_of(drone)
    within = {"inertia_x": 0.03, "inertia_y": 0.03, "greatest thrust of a rotor / mass": 0.015}
    if drone.lag[0] > 0.0:
        within |= {"lag_up_s": 0.04, "lag_down_s": 0.04}
    for parameter, limit in within.items():
        assert off(values[parameter], truth[parameter]) < limit, parameter
    if drone.lag[0] == 0.0:
        assert (values["lag_up_s"].value, values["lag_down_s"].value) == (0.0, 0.0)
    assert (
        off(
            values["mass torque / (thrust inertia_z)"],
            truth_of(drone)["mass torque / (thrust inertia_z)"],
        )
        < 0.15
    )
    latency = values["latency of the commands"]
    assert latency.value is not None
    assert abs(latency.value) < 0.0005
    assert values.get("thrust_0") is None or (values["thrust_0"].value or 0.0) >= 0.0
    if commands == "speed":  # the curve, where it was flown
        hover = np.sqrt(0.5)
        curve = sum((values[f"thrust_{i}"].value or 0.0) * hover**i for i in range(3))
        assert curve == pytest.approx(sum(drone.thrust[i] * hover**i for i in range(3)), rel=0.02)


@pytest.mark.all
def test_latency_does_not_become_lag() -> None:
    """Ten milliseconds, and commands at each step of which the log has every second one."""
    flight = Flight(latency_steps=5, control_steps=2)
    drone = DRONES["decks"]
    values = fitted(flown("decks", flight=flight))
    assert values["latency of the commands"].value == pytest.approx(0.01, abs=0.0005)
    assert off(values["lag_up_s"], drone.lag[0]) < 0.03
    assert off(values["lag_down_s"], drone.lag[1]) < 0.03


# The second has intervals of noise alone.
@pytest.mark.all
@pytest.mark.parametrize("name", ["large", "raptor"])
def test_a_log_without_yaw_says_so(name: str) -> None:
    result = flown(name, flight=Flight(yaw=0.0))
    assert "it has too little yaw motion" in result.fit.warnings[0]
    by_name = {value.name: value for value in result.settings()}
    assert by_name["torque_2"].source == UNKNOWN
    assert by_name["inertia_z"].source == ASSUMED
    written = json.loads(result.set_file())
    assert "torque_2" not in written
    assert written["inertia_z"] == pytest.approx(
        0.87 * (written["inertia_x"] + written["inertia_y"]), rel=0.01
    )


@pytest.mark.all
def test_true_values_are_within_the_intervals() -> None:
    """Those of all flights above; of other flights in test_intervals.py."""
    found = [
        within
        for name in NAMES
        for commands in ("thrust", "speed")
        for within in covered(flown(name, commands), truth_of(DRONES[name]))
    ]
    assert len(found) > 80
    assert np.mean(found) >= 0.85  # of 95 %, few flights


# -- what a log does not show ----------------------------------------------------------------------


@pytest.mark.all
def test_gentle_flight_is_refused(tmp_path: Path) -> None:
    flight = Flight(excitation=0.0, seconds=5.0)
    log = write_log(tmp_path / "log.csv", columns_of("decks", flight=flight))
    with pytest.raises(DamagedFileError, match=r"log\.csv: it"):
        fit(read_log(log))


@pytest.mark.all
def test_rotors_that_turn_the_other_way_are_named(tmp_path: Path) -> None:
    """With the same places: yaw answers with the other sign."""
    columns = columns_of("learning-to-fly")
    names = [name for name in columns if name.startswith("thrust_")]
    yaw = sum(
        sign * columns[name] for sign, name in zip((-1.0, 1.0, -1.0, 1.0), names, strict=True)
    )
    mirrored = {
        name: np.clip(columns[name] - 0.5 * sign * yaw, 0.0, 1.0)
        for sign, name in zip((-1.0, 1.0, -1.0, 1.0), names, strict=True)
    }
    log = write_log(tmp_path / "log.csv", columns | mirrored)
    with pytest.raises(DamagedFileError, match="yaw answers to the commands with the opposite"):
        fit(read_log(log))


# -- the command -----------------------------------------------------------------------------------

PLACES = ("--mass", "0.0306", "--rotors", "0.028", "0.028")


@pytest.mark.parametrize("seconds", [1.5, pytest.param(10.5, marks=pytest.mark.all)])
def test_example_is_what_the_simulator_writes(seconds: float) -> None:
    shipped, made = EXAMPLE.read_text(), example_text(seconds)
    assert len(shipped.encode()) <= 200_000
    assert shipped.splitlines()[0] == made.splitlines()[0]
    rows = len(made.splitlines()) if seconds == 1.5 else len(shipped.splitlines())
    values = [
        np.array([line.split(",") for line in text.splitlines()[1:rows]], float)
        for text in (shipped, made)
    ]
    assert np.abs(values[0] - values[1]).max() < 0.011  # the last digit


def test_example_becomes_a_file_of_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "drone.json"
    assert cli.run(["fit", str(EXAMPLE), *PLACES, "--out", str(out), "--json"]) == 0
    printed = capsys.readouterr().out
    assert f"wrote {out}" in printed
    assert f"train quadrotor-ppo --set-file {out}" in printed
    document = json.loads(printed.splitlines()[-1])
    assert document["rows"] == 1750
    assert document["warnings"] == []
    written = json.loads(out.read_text())
    assert (written["airframe"], written["mass_kg"], written["rotor_x_m"]) == (0, 0.0306, 0.028)
    assert {"sag_load", "sag_per_min"}.isdisjoint(written)
    known = {
        entry.name: (entry.minimum, entry.maximum)
        for entry in experiments.describe(EXPERIMENT).hyperparameters
    }
    for name, value in written.items():  # as `rlt train --set-file` takes them
        assert known[name][0] <= value <= known[name][1], name
    drone = DRONES[EXAMPLE_DRONE]
    assert written["inertia_x"] == pytest.approx(1e6 * drone.inertia[0], rel=0.03)
    assert written["inertia_z"] == pytest.approx(1e6 * drone.inertia[2], rel=0.1)
    assert written["lag_down_s"] == pytest.approx(drone.lag[1], rel=0.03)
    assert written["drag_x"] == pytest.approx(drone.drag[0], rel=0.25)
    thrust = sum(written[f"thrust_{i}"] for i in range(3))
    assert thrust == pytest.approx(drone.greatest, rel=0.02)
    torque = sum(written[f"torque_{i}"] for i in range(3))
    assert torque == pytest.approx(1e3 * sum(drone.torque), rel=0.1)
    (latency,) = [v for v in document["per_mass"] if v["name"] == "latency of the commands"]
    assert latency["low"] < 0.0025
    assert latency["value"] == pytest.approx(0.002, abs=0.0005)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--mass", "1", "--rotors", "1", "2"], UsageError, "--rotors 2: choose a number above 0"),
        ([*PLACES, "--out", "no/such/folder"], DiskError, "cannot write no/such/folder"),
    ],
)
def test_what_makes_no_sense(
    capsys: pytest.CaptureFixture[str], words: list[str], code: Any, sentence: str
) -> None:
    assert cli.run(["fit", str(EXAMPLE), *words]) == code.exit_code
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
