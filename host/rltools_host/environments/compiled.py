"""The compiled environments behind Gymnasium's interfaces: one (gymnasium.Env), or many in one call
(gymnasium.vector.VectorEnv); their registration with Gymnasium."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from rltools_host.build.catalog import NAMESPACE, list_environments
from rltools_host.build.description import Channel, ranges_of
from rltools_host.environments.library import (
    NEXT_STEP,
    SAME_STEP,
    Batch,
    Library,
    checked_seed,
    load_library,
    put_actions,
)
from rltools_host.environments.task import Info
from rltools_host.errors import UsageError

Float32Array = NDArray[np.float32]
BoolArray = NDArray[np.bool_]
AUTORESETS = {AutoresetMode.SAME_STEP: SAME_STEP, AutoresetMode.NEXT_STEP: NEXT_STEP}


def space_of(channels: tuple[Channel, ...]) -> gymnasium.Space[Any]:
    """Return the space of the channels: a Box of their ranges, float32; Discrete for one choice,
    MultiDiscrete for several."""
    counts = [len(channel.choices) for channel in channels]
    if any(counts):
        one = len(counts) == 1
        return (
            gymnasium.spaces.Discrete(counts[0]) if one else gymnasium.spaces.MultiDiscrete(counts)
        )
    return gymnasium.spaces.Box(*ranges_of(channels), dtype=np.float32)


def checked_mode(mode: str | AutoresetMode) -> AutoresetMode:
    with contextlib.suppress(ValueError):
        if (known := AutoresetMode(mode)) in AUTORESETS:
            return known
    names = " or ".join(known.value for known in AUTORESETS)
    raise UsageError(f"autoreset_mode {mode}: choose {names}")


def checked_reset(seed: int | None, options: Info | None) -> int | None:
    """Return the seed of a reset, one for all environments; raise UsageError if it is not below
    2^32."""
    if options:
        raise UsageError(f"reset has no option {next(iter(options))}: it takes a seed only")
    return None if seed is None else checked_seed(seed)


class Compiled:
    """An environment over a batch: its library and channels."""

    _batch: Batch
    _was_reset = False

    @property
    def library(self) -> Library:
        return self._batch.library

    @property
    def observation_channels(self) -> tuple[Channel, ...]:
        """Return name, unit and range of each element of an observation."""
        return self.library.observations

    @property
    def action_channels(self) -> tuple[Channel, ...]:
        """Return name, unit and range of each element of an action."""
        return self.library.actions

    def _begin(self, seed: int | None, random: np.random.Generator) -> None:
        """Begin episodes of this seed; without one the next episodes, or at first those of a random
        seed."""
        if seed is not None:
            self._batch.reset(seed)
        elif self._was_reset:
            self._batch.begin_next()
        else:
            self._batch.reset(int(random.integers(2**32)))
        self._was_reset = True


class CompiledVectorEnv(Compiled, VectorEnv[Any, Any, NDArray[Any]]):
    """`num_envs` environments of the core, each in an episode of its own.

    Observations and actions are float32, (num_envs, channels), in the units and ranges of
    `observation_channels` and `action_channels`; an action beyond its range counts as its bound.
    Where actions are choices they are their numbers, from 0: (num_envs) of one choice, (num_envs,
    channels) of several.
    Rewards are float32, (num_envs), terminations and truncations bool, (num_envs).

    Where an episode ends, the next one begins in the same step (AutoresetMode.SAME_STEP): the
    observation returned is the new episode's first, and infos["final_obs"][i] the last one of the
    episode that ended, where infos["_final_obs"][i]. With NEXT_STEP that last one is returned, and
    the next step ignores the row's action and begins the new episode, with reward 0.

    What environment i draws depends on the seed, on i and on its episode's number or the step: the
    episodes are those of training with this seed, and the first ones those of a larger number of
    environments. reset() without a seed continues with the next episode of each.

    With copy=False all arrays returned are the same ones at each call, and the next call
    overwrites them; nothing is allocated where no episode ends.
    """

    def __init__(
        self,
        name: str,
        num_envs: int = 1,
        *,
        max_episode_steps: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.SAME_STEP,
        copy: bool = True,
        threads: int = 1,
        settings: Mapping[str, float] | None = None,
    ) -> None:
        mode = checked_mode(autoreset_mode)
        library = load_library(name)
        self._batch = Batch(
            library,
            num_envs,
            episode_steps=(
                library.episode_steps if max_episode_steps is None else max_episode_steps
            ),
            autoreset=AUTORESETS[mode],
            threads=threads,
            settings=settings,
        )
        self.metadata = {"render_modes": [], "autoreset_mode": mode}
        self._has_final = mode is AutoresetMode.SAME_STEP
        self.copy = copy
        self.num_envs = self._batch.actions.shape[0]
        self.single_observation_space = space_of(library.observations)
        self.single_action_space = space_of(library.actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.spec = gymnasium.registry.get(NAMESPACE + library.name)
        self._actions = action_view(self._batch)

    @property
    def states(self) -> NDArray[Any]:
        """Return the simulators' states, (num_envs), with the fields of the environment's State by
        their names.

        After writing there, call observe().
        """
        return self._batch.states

    @property
    def final_observations(self) -> Float32Array:
        """Return the last observations, (num_envs, channels), with SAME_STEP; only rows whose
        episode ended in the last step are valid."""
        return self._batch.final_observations

    @property
    def privileged_observations(self) -> Float32Array:
        """Return (num_envs, n) values for the core's critics, beside the policy's observations; n
        is 0 for most environments."""
        return self._batch.privileged_observations

    def observe(self) -> Float32Array:
        """Return the observations of the present states."""
        self._batch.observe()
        return self._batch.observations.copy() if self.copy else self._batch.observations

    def reset(
        self, *, seed: int | None = None, options: Info | None = None
    ) -> tuple[Float32Array, Info]:
        """Return the first observations; raise UsageError if the seed is not below 2^32."""
        seed = checked_reset(seed, options)
        super().reset(seed=seed)
        self._begin(seed, self.np_random)
        observations = self._batch.observations
        return (observations.copy() if self.copy else observations), {}

    def step(
        self, actions: Float32Array
    ) -> tuple[Float32Array, Float32Array, BoolArray, BoolArray, Info]:
        """Return observations, rewards, terminations, truncations and infos.

        Raises UsageError unless the actions are (num_envs, channels).
        """
        if not self._was_reset:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        put_actions(self._actions, actions, self.library.name)
        batch = self._batch
        infos = self._final_infos() if batch.step() and self._has_final else {}
        if not self.copy:
            return batch.observations, batch.rewards, batch.terminated, batch.truncated, infos
        return (
            batch.observations.copy(),
            batch.rewards.copy(),
            batch.terminated.copy(),
            batch.truncated.copy(),
            infos,
        )

    def _final_infos(self) -> Info:
        """Return the infos of Gymnasium's vector environments: an array of rows, or None."""
        ended = self._batch.terminated | self._batch.truncated
        final = np.full(self.num_envs, None, object)
        rows = self._batch.final_observations
        for i in np.flatnonzero(ended):
            final[i] = rows[i].copy() if self.copy else rows[i]
        return {
            "final_obs": final,
            "_final_obs": ended,
            "final_info": {},
            "_final_info": ended.copy(),
        }


def action_view(batch: Batch) -> NDArray[Any]:
    """Return a view of the batch's actions: (count) of one choice, else (count, channels)."""
    channels = batch.library.actions
    return batch.actions[:, 0] if len(channels) == 1 and channels[0].choices else batch.actions


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

    @property
    def states(self) -> NDArray[Any]:
        """Return the simulator's state, (1), with the fields of the environment's State by their
        names."""
        return self._batch.states

    def reset(
        self, *, seed: int | None = None, options: Info | None = None
    ) -> tuple[Float32Array, Info]:
        """Return the first observation; raise UsageError if the seed is not below 2^32."""
        seed = checked_reset(seed, options)
        super().reset(seed=seed)
        self._begin(seed, self.np_random)
        (observation,) = self._batch.observations.copy()
        return observation, {}

    def step(self, action: Float32Array) -> tuple[Float32Array, float, bool, bool, Info]:
        """Return observation, reward, terminated, False and nothing.

        Raises UsageError if the action has another shape.
        """
        batch = self._batch
        put_actions(batch.actions.reshape(self.action_space.shape), action, self.library.name)
        batch.step()
        (observation,) = batch.observations.copy()
        return observation, batch.rewards.item(), bool(batch.terminated.item()), False, {}


def register() -> None:
    """Register the names rlt/... with Gymnasium; nothing is built before one is made."""
    for environment in list_environments():
        if environment.gymnasium_id not in gymnasium.registry:
            gymnasium.register(
                environment.gymnasium_id,
                entry_point=f"{__name__}:CompiledEnv",
                vector_entry_point=f"{__name__}:CompiledVectorEnv",
                max_episode_steps=environment.episode_steps,
                kwargs={"name": environment.name},
            )
