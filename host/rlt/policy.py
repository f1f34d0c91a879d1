"""A trained policy as a function of observations."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rltools_host.build.description import Channel
from rltools_host.documents import optional_path, repr_of, text
from rltools_host.errors import UsageError
from rltools_host.policies.acting import Act, Acting
from rltools_host.policies.image import PolicyImage, read_policy, read_run_policy
from rltools_host.runs.names import LAST


class RunWithPath(Protocol):
    """What Policy.load needs of an rlt.Run."""

    @property
    def path(self) -> Path: ...


class Policy(Acting):
    """Computes actions, with the bits of a board that has this policy.

    `observations` and `actions` are the channels: name, unit, minimum and maximum of each element.
    """

    def __init__(self, image: PolicyImage) -> None:
        """VerificationError if this machine computes other bits than the image's examples."""
        image.verify()
        super().__init__(image)

    @classmethod
    def load(cls, run: str | PathLike[str] | RunWithPath, which: str = LAST) -> Policy:
        """The policy of a run, or a policy image.

        run: the result of rlt.train, a run's folder, its name under runs/, "latest", or a file
        policy.rltp.
        which: "last", or "best": that of the best evaluation in training.

        RltError: there is no policy, it is damaged, or this machine computes other bits with it
        than the device that wrote it.
        """
        place = optional_path("run", getattr(run, "path", run))
        if place is None:
            raise UsageError("run=None: give a run, or a policy image")
        if not place.is_file():
            return cls(read_run_policy(place, text("which", which)))
        if which != LAST:
            raise UsageError(
                f"which={repr_of(which)}: {place} is one policy; give the run's folder"
            )
        return cls(read_policy(place))

    @property
    def observations(self) -> tuple[Channel, ...]:
        return self.image.observations

    @property
    def actions(self) -> tuple[Channel, ...]:
        return self.image.actions

    @property
    def experiment(self) -> str:
        return self.image.experiment

    @property
    def environment(self) -> str:
        return self.image.environment

    @property
    def step(self) -> int:
        """The step of training whose policy it is."""
        return self.image.step

    @property
    def seed(self) -> int:
        """The seed of the training run."""
        return self.image.seed

    @property
    def step_interval_s(self) -> float:
        """The time between two actions that it was trained for."""
        return self.image.step_interval_us / 1e6

    @property
    def shape(self) -> str:
        """The widths of its layers, for example 3-64-64-1."""
        return self.image.shape

    def __call__(self, observation: ArrayLike) -> NDArray[np.float32]:
        """Actions, float32 of shape (actions,) or (n, actions), in the units of `actions`.

        observation: real numbers of shape (observations,) or (n, observations), in the units of
        `observations`, rounded to float32. If one is not finite, the action is the middle of each
        range. UsageError for another shape or type; a recurrent policy acts by episode().
        """
        return self._act(observation)

    @property
    def is_recurrent(self) -> bool:
        """Whether it has a hidden state, and its action depends on what it observed before."""
        return self.image.recurrence is not None

    def episode(self, count: int = 1) -> Act:
        """A function like this policy, for an episode, or `count` of them side by side: a recurrent
        policy's hidden state begins with zeros, and each call is a step of its training's time."""
        return super().episode(count)

    def __repr__(self) -> str:
        return f"Policy({self.experiment}, step {self.step}, {self.shape}, {self.environment})"
