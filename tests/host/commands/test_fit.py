"""What `rlt fit` takes of an airframe, and how it tells of the parameters."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rltools_host.commands import fit
from rltools_host.drones.fitting.result import Value
from rltools_host.errors import UsageError
from rltools_host.tree import command_line

made: Any = SimpleNamespace


@pytest.mark.parametrize("given", [(None, None, None), (20.0, 1.0, 1.0), (1e-6, 0.02, 0.03)])
def test_airframes_at_their_bounds(given: tuple[float | None, ...]) -> None:
    fit.require_airframe(*given)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((0.0, None, None), "--mass 0: choose a number above 0, to 20 kg"),
        ((20.1, None, None), "--mass 20.1: choose a number above 0, to 20 kg"),
        ((float("nan"), None, None), "--mass nan: choose a number above 0, to 20 kg"),
        ((1.0, 1.01, 0.1), "--rotor-x 1.01: choose a number above 0, to 1 m"),
        ((1.0, 0.1, -0.1), "--rotor-y -0.1: choose a number above 0, to 1 m"),
        ((1.0, 0.1, None), "--rotor-x and --rotor-y go together"),
        ((1.0, None, 0.1), "--rotor-x and --rotor-y go together"),
    ],
)
def test_airframes_that_make_no_sense(given: tuple[float | None, ...], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        fit.require_airframe(*given)
    assert str(caught.value).startswith(sentence)


def test_a_file_needs_mass_and_places() -> None:
    for mass_kg, rotor_m in ((None, 0.1), (1.0, None)):
        with pytest.raises(UsageError, match=r"^--out needs --mass, --rotor-x and --rotor-y: "):
            fit.run(Path("x.csv"), mass_kg, rotor_m, rotor_m, Path("out.json"))


PER_MASS = [
    Value("thrust_0", "N/kg", 0.123456, 0.1, 0.23456),
    Value("latency", "ms", None),
    Value("mass_kg", "kg", 0.027, source="given"),
]


def result(is_whole: bool) -> Any:
    log = made(path=Path("x.csv"), time_s=np.zeros(12345), duration_s=24.69, step_s=0.002)
    residuals = {"acceleration": (0.123456, 0.1)}
    return made(
        fit=made(log=log, residuals=residuals, warnings=["little yaw"]),
        per_mass=lambda: PER_MASS,
        settings=lambda: PER_MASS[2:],
        is_whole=is_whole,
    )


def test_what_a_person_reads() -> None:
    text = fit.lines(result(True), Path("out.json"))
    rows = [[word.strip() for word in line.split("  ") if word] for line in text]
    heads = ["parameter", "value", "95 % interval", "unit"]
    mass = ["mass_kg", "0.027", "kg", "given"]
    assert rows == [
        ["x.csv: 12,345 rows, 24.7 s, 500 rows a second"],
        [],
        heads,
        ["thrust_0", "0.1235", "0.1 to 0.2346", "N/kg"],
        ["latency", "-", "ms"],
        mass,
        [],
        heads,
        mass,
        [],
        ["left over (standard deviation)", "sensor's noise"],
        ["acceleration", "0.123", "0.1"],
        ["note: little yaw"],
        [],
        ["wrote out.json"],
        ["next", command_line("train", "quadrotor-ppo", "--set-file", "out.json")],
    ]
    without = fit.lines(result(False), None)
    assert without[7] == "settings of an airframe need --mass, --rotor-x and --rotor-y"
    assert without[-1] == "note: little yaw"
