"""The scalars of TensorBoardLog on Weights & Biases, by the package of that service: online where
the user has logged in, else (WANDB_MODE=offline) in files that `wandb sync` sends later.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rltools_host.errors import RltError
from rltools_host.project import PROJECT

LONGEST_REASON = 200


def name_of(folder: Path) -> str:
    """`first`, or `td3-seeds/s0` of a group."""
    if folder.is_relative_to(PROJECT.runs):
        return str(folder.relative_to(PROJECT.runs))
    return folder.name


class WandbLog:
    """A run of the service for a run here; one that goes on, goes on there."""

    def __init__(self, project: str, folder: Path, begun: str, config: Mapping[str, Any]) -> None:
        """`begun` tells a run from an earlier one of the same folder; `config` has the
        hyperparameters. RltError where the service takes no run."""
        self._run: Any = None
        self._folder = folder
        self._failed = ""
        try:
            import wandb

            self._run = wandb.init(
                project=project,
                name=name_of(folder),
                id=hashlib.sha256(f"{folder} {begun}".encode()).hexdigest()[:16],
                resume="allow",
                config=dict(config),
                dir=os.environ.get("WANDB_DIR", str(PROJECT.build)),
                settings=wandb.Settings(
                    silent=True, console="off", disable_git=True, disable_code=True
                ),
            )
        except Exception as error:  # of the service, of the network, of an account
            reason = " ".join(str(error).split())[:LONGEST_REASON] or type(error).__name__
            raise RltError(
                f"Weights & Biases takes no run ({reason}): log in with `wandb login`, or set "
                "WANDB_MODE=offline"
            ) from None

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Scalars of a step; those that are not finite are left out. What the service does not
        take is lost there, and the run here goes on."""
        known = {name: value for name, value in values.items() if math.isfinite(value)}
        if known and not self._failed:
            try:
                self._run.log(known, step=step)
            except Exception as error:
                self._failed = str(error) or type(error).__name__

    def flush(self) -> None:
        """It sends by itself."""

    def close(self) -> None:
        if self._run is not None:
            run, self._run = self._run, None
            run.finish()
