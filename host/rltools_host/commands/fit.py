"""`rlt fit`: a quadrotor's parameters from the log of a flight."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rltools_host.build import tools
from rltools_host.commands.options import Json
from rltools_host.errors import UsageError
from rltools_host.files import plain_json, write_atomically
from rltools_host.lines import UNLIMITED, columns, folded, in_columns
from rltools_host.tree import command_line, near_path

if TYPE_CHECKING:
    from rltools_host.drones.fitting.result import FitResult, Value

LARGEST_KG = 20.0  # as far as the settings go
LARGEST_M = 1.0
EXPERIMENT = "quadrotor-ppo"
GROUP = "fit"  # of Python packages


def run(
    log_path: Path,
    mass_kg: float | None = None,
    rotors_m: tuple[float, float] | None = None,
    out: Path | None = None,
    json_output: bool = False,
) -> dict[str, object]:
    """Fit the log and print the parameters; return what `--json` prints."""
    require_airframe(mass_kg, rotors_m)
    if out is not None and (mass_kg is None or rotors_m is None):
        raise UsageError(
            "--out needs --mass and --rotors: a log shows thrust and inertia per mass and per "
            "distance of the rotors"
        )
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: two take longer
    from rltools_host.drones.fitting.log import read_log  # with NumPy, which reads that variable

    log = read_log(log_path)
    tools.ensure_group(GROUP)
    from rltools_host.drones.fitting.fit import fit  # with SciPy
    from rltools_host.drones.fitting.result import FitResult

    x_m, y_m = rotors_m or (None, None)
    result = FitResult(fit(log, x_m, y_m), mass_kg, x_m, y_m)
    document = plain_json(result.document())
    if out is not None:
        write_atomically(out, result.set_file())
    document["out"] = None if out is None else str(out)
    width = columns(sys.stdout)
    print("\n".join(in_columns(lines(result, out, width), width)))
    if json_output:
        print(json.dumps(document))
    return dict(document)


def require_airframe(mass_kg: float | None, rotors_m: tuple[float, float] | None) -> None:
    """Raise UsageError unless the given values of the airframe make sense."""
    require_positive("--mass", mass_kg, LARGEST_KG, "kg")
    for distance in rotors_m or ():
        require_positive("--rotors", distance, LARGEST_M, "m")


def require_positive(option: str, value: float | None, largest: float, unit: str) -> None:
    if value is not None and not (math.isfinite(value) and 0.0 < value <= largest):
        raise UsageError(f"{option} {value:g}: choose a number above 0, to {largest:g} {unit}")


def lines(result: FitResult, out: Path | None, width: int = UNLIMITED) -> list[str]:
    """Return the parameters for people."""
    fitted = result.fit
    log = fitted.log
    text = [
        f"{near_path(log.path)}: {len(log.time_s):,} rows, {log.duration_s:.1f} s, "
        f"{1.0 / log.step_s:.0f} rows a second",
        "",
        *table(result.per_mass(), width),
    ]
    if result.is_whole:
        text += ["", *table(result.settings(), width)]
    else:
        text += ["", "settings of an airframe need --mass and --rotors"]
    text += ["", "left over (standard deviation)  sensor's noise"]
    text += [
        f"  {name:<28}  {left:<9.3g} {noise:.3g}"
        for name, (left, noise) in fitted.residuals.items()
    ]
    text += [f"note: {warning}" for warning in fitted.warnings]
    if out is not None:
        path = near_path(out)
        text += [
            "",
            f"wrote {path}",
            f"  next  {command_line('train', EXPERIMENT, '--set-file', path)}",
        ]
    return text


def table(values: list[Value], width: int) -> list[str]:
    rows = [("parameter", "value", "95 % interval", "unit", "")]
    rows += [
        (
            value.name,
            "-" if value.value is None else f"{value.value:.4g}",
            "" if value.low is None else f"{value.low:.4g} to {value.high:.4g}",
            value.unit,
            value.note,
        )
        for value in values
    ]
    return folded(rows, width)


Log = Annotated[
    Path,
    typer.Argument(
        metavar="LOG", help="CSV (docs/fit.md), or a log of PX4, Betaflight or a Crazyflie."
    ),
]
Mass = Annotated[
    float | None,
    typer.Option("--mass", metavar="KG", help="Mass of the drone in flight, with its battery."),
]
Rotors = Annotated[
    tuple[float, float] | None,
    typer.Option(
        "--rotors", metavar="X Y", help="The front left rotor: meters ahead, meters to the left."
    ),
]
EXAMPLE = "fit flight.csv --mass 0.027 --rotors 0.028 0.028 --out drone.json"


def command(
    log: Log,
    mass: Mass = None,
    rotors: Rotors = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write the settings, for --set-file of `rlt train`."
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    """Print the thrust curve per mass, the lags of the motors, latency, inertia, torque and drag,
    each with its interval of 95 %. Parameters that the log does not show are named, and not
    written."""
    run(log, mass, rotors, out, json_output)
