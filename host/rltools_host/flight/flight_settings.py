"""The settings of a flight: those that the run was trained with, and what is given on top."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rltools_host.errors import UsageError
from rltools_host.flight.simulator import flight_library
from rltools_host.runs.folder import RunFolder


def settings_of(run: RunFolder) -> dict[str, float]:
    """Of quadrotor/settings.h, as the run has them; none of a run of something else."""
    known = {setting.name for setting in flight_library().settings}
    hyperparameters = run.metadata.get("hyperparameters", {})
    return {name: float(value) for name, value in hyperparameters.items() if name in known}


def given_settings(texts: Sequence[str]) -> dict[str, float]:
    """Of --set, as typed: name=value. Names and bounds are looked at when they are used."""
    found: dict[str, float] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise UsageError(f'--set "{text}" has no value: write --set name=value')
        if name in found:
            raise UsageError(f"{name} is given twice: give it once")
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = math.nan
        if not math.isfinite(found[name]):
            raise UsageError(f"--set {text}: {value or 'nothing'} is not a number")
    return found
