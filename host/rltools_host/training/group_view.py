"""What a group of runs looks like while it trains, for whatever shows it."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rltools_host.runs.group import RunName

WAITING = "waiting"
STARTING = "starting"
TRAINING = "training"
FINISHED = "finished"
PAUSED = "paused"
FAILED = "failed"
RUNNING = (STARTING, TRAINING)
STATES = (FINISHED, TRAINING, STARTING, PAUSED, WAITING, FAILED)


@dataclass
class Member:
    """One run of a group, and how it stands."""

    name: RunName
    label: str  # of its variant; empty where there is but one
    path: Path
    steps: int
    state: str = WAITING
    step: int = 0
    steps_per_s: float = math.nan
    left_s: float = math.nan
    return_mean: float = math.nan
    return_std: float = math.nan
    train_s: float = math.nan
    state_sha256: str = ""
    activity: str = ""
    error: str = ""
    exit_code: int = 0
    environment_faults: int | None = None  # of a task of Gymnasium's
    observations_outside: int | None = None  # the same

    @property
    def seed(self) -> int:
        return self.name.seed

    @property
    def title(self) -> str:
        """`seed 3`, with its variant where there are several."""
        return f"{self.label}, seed {self.seed}" if self.label else f"seed {self.seed}"

    @property
    def is_running(self) -> bool:
        return self.state in RUNNING

    @property
    def share(self) -> float:
        return min(1.0, self.step / self.steps) if self.steps else 1.0

    def take(self, values: Mapping[str, Any]) -> None:
        """Takes in numbers by their names; null is what is not known."""
        self.step = int(values["step"])
        self.steps = int(values["steps"])
        for name in ("steps_per_s", "left_s", "return_mean", "return_std", "train_s"):
            if name in values:
                value = values[name]
                setattr(self, name, math.nan if value is None else float(value))

    def document(self) -> dict[str, Any]:
        """What group.json says of it."""
        return {
            "folder": str(self.name.folder),
            "variant": self.name.variant,
            "seed": self.seed,
            "state": self.state,
            "step": self.step,
            "steps": self.steps,
            "train_s": self.train_s,
            "steps_per_s": self.steps_per_s,
            "return_mean": self.return_mean,
            "return_std": self.return_std,
            "state_sha256": self.state_sha256 or None,
            "error": self.error or None,
            **{
                name: count
                for name in ("environment_faults", "observations_outside")
                if (count := getattr(self, name)) is not None
            },
        }


@dataclass
class GroupView:
    """Everything that the screen shows of a group."""

    title: str
    board: str
    path: Path
    members: Sequence[Member]
    jobs: int
    activity: str = ""
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.began = self.clock()

    @property
    def elapsed_s(self) -> float:
        return self.clock() - self.began

    @property
    def left_s(self) -> float:
        """As long as all that are waiting go as fast as those that train."""
        rate = sum(member.steps_per_s for member in self.members if member.state == TRAINING)
        missing = sum(
            member.steps - member.step
            for member in self.members
            if member.state not in (FINISHED, FAILED)
        )
        return max(0, missing) / rate if rate > 0 else math.nan

    def standing(self) -> str:
        return self.standing_of(self.members)

    @staticmethod
    def standing_of(members: Sequence[Member]) -> str:
        """`3 finished, 2 training, 5 waiting`."""
        counts = Counter(member.state for member in members)
        return ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])


class GroupScreen:
    """Shows a group; this base class shows nothing."""

    def __init__(self, view: GroupView) -> None:
        self.view = view

    def changed(self, member: Member) -> None:
        """A run of the group is in another state now."""

    def refresh(self) -> None:
        """Called often; draws as often as is good."""

    def activity(self, text: str) -> None:
        """Shows what goes on besides training; an empty text: nothing."""
        self.view.activity = text

    def close(self) -> None:
        """Leaves the last picture."""
