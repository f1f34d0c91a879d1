"""The settings of a flight: those that the run was trained with, and what is given on top."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rltools_host.errors import UsageError
from rltools_host.flight.simulator import flight_library
from rltools_host.runs.folder import RunFolder
from rltools_host.training.hyperparameters import setting_texts


def settings_of(run: RunFolder) -> dict[str, float]:
    """Of quadrotor/settings.h, as the run has them; none of a run of something else."""
    known = {setting.name for setting in flight_library().settings}
    hyperparameters = run.metadata.get("hyperparameters", {})
    return {name: float(value) for name, value in hyperparameters.items() if name in known}


def given_settings(texts: Sequence[str]) -> dict[str, float]:
    """Of --set, as typed: name=value. Names and bounds are looked at when they are used."""
    found: dict[str, float] = {}
    for name, text in setting_texts(texts).items():
        try:
            found[name] = float(text)
        except ValueError:
            found[name] = math.nan
        if not math.isfinite(found[name]):
            raise UsageError(f"--set {name}={text}: {text or 'nothing'} is not a number")
    return found
