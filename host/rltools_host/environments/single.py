"""One compiled environment behind gymnasium.Env, and the names by which Gymnasium makes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rltools_host.environments.catalogue import list_environments
from rltools_host.environments.library import Batch, checked_seed, load_library, put_actions
from rltools_host.environments.vector import Compiled, begin, require_no_options, space_of

Float32Array = NDArray[np.float32]


class CompiledEnv(Compiled, gymnasium.Env[Any, Any]):
    """One environment of the core, as gymnasium.make("rlt/Pendulum-v1") makes it.

    Spaces, units and seeds are those of CompiledVectorEnv, whose first row it is. Episodes are cut
    off by Gymnasium's TimeLimit, which gymnasium.make adds.
    """

    def __init__(self, name: str, settings: Mapping[str, float] | None = None) -> None:
        library = load_library(name)
        self._batch = Batch(library, 1, settings=settings)
        self.metadata = {"render_modes": []}
        self.observation_space = space_of(library.observations)
        self.action_space = space_of(library.actions)
        self._was_reset = False

    @property
    def states(self) -> NDArray[Any]:
        """The simulator's state, (1), with the fields of the environment's State by their names."""
        return self._batch.states

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32Array, dict[str, Any]]:
        """The first observation; UsageError where the seed is not below 2^32."""
        require_no_options(options)
        if seed is not None:
            seed = checked_seed(seed)
        super().reset(seed=seed)
        begin(self._batch, seed, self._was_reset, self.np_random)
        self._was_reset = True
        return self._batch.observations[0].copy(), {}

    def step(self, action: Float32Array) -> tuple[Float32Array, float, bool, bool, dict[str, Any]]:
        """Observation, reward, terminated, False and nothing; UsageError where the action has
        another shape."""
        batch = self._batch
        put_actions(batch.actions[0], action, self.library.name)
        batch.step()
        observation: Float32Array = batch.observations[0].copy()
        return observation, float(batch.rewards[0]), bool(batch.terminated[0]), False, {}


def register() -> None:
    """Gives Gymnasium the names rlt/...; nothing is built before one is made."""
    for environment in list_environments():
        if environment.gymnasium_id not in gymnasium.registry:
            gymnasium.register(
                environment.gymnasium_id,
                entry_point=f"{__name__}:CompiledEnv",
                vector_entry_point="rltools_host.environments.vector:CompiledVectorEnv",
                max_episode_steps=environment.episode_steps,
                kwargs={"name": environment.name},
            )
