"""Baselines that a policy is compared with: random actions, none, or a function of the user's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rltools_host.build import catalog, experiments
from rltools_host.build.description import Channel
from rltools_host.environments.imports import maker_in_file, one_line
from rltools_host.environments.player import ActionSpace
from rltools_host.errors import UsageError
from rltools_host.policies.episodes import (
    MakeEnvironment,
    close_all,
    make_gymnasium_environment,
    name_in_gymnasium,
)
from rltools_host.policies.image import Float32Array, PolicyImage

RANDOM, ZERO = "random", "zero"
OPTION = "--against"
NORMAL_95 = 1.96  # deviations of a normal distribution that have 95 % between them
# An action in the channels' units, for an observation in the episode of this number.
Act = Callable[[Float32Array, int], Float32Array]


@dataclass(frozen=True)
class Baseline:
    """The returns of a baseline's episodes."""

    name: str
    returns: tuple[float, ...]

    def interval(self, returns: Sequence[float]) -> tuple[float, float, float]:
        """Return by how much the mean of a policy's returns is above the baseline's, and the ends
        of a 95 % interval of that."""
        means = float(np.mean(returns)), float(np.mean(self.returns))
        variance = sum(float(np.var(each)) / len(each) for each in (returns, self.returns))
        margin = NORMAL_95 * math.sqrt(variance)
        difference = means[0] - means[1]
        return difference, difference - margin, difference + margin

    def document(self, returns: Sequence[float]) -> dict[str, object]:
        difference, low, high = self.interval(returns)
        return {
            "policy": self.name,
            "return_mean": float(np.mean(self.returns)),
            "return_std": float(np.std(self.returns)),
            "returns": list(self.returns),
            "difference": difference,
            "difference_interval": [low, high],
        }

    def line(self, returns: Sequence[float]) -> str:
        difference, low, high = self.interval(returns)
        ends = f"95 % interval {low:.1f} to {high:.1f}"
        verdict = (
            f"the policy has {abs(difference):.1f} {'more' if difference > 0 else 'less'}, {ends}"
        )
        if low <= 0.0 <= high:
            verdict = f"{len(returns)} episodes show no difference, {ends}"
        return (
            f"  against  {self.name}: return {np.mean(self.returns):.1f} ± "
            f"{np.std(self.returns):.1f}   {verdict}"
        )


def baseline_of(against: str, image: PolicyImage, seed: int) -> Act:
    """Return what acts in place of the policy: RANDOM, ZERO, or a function of FILE.py:NAME, which
    the user names and which is imported."""
    chosen = Choices(image.observations, image.actions)
    if against == ZERO:
        return lambda observation, _: chosen.none(observation)
    if against == RANDOM:
        return lambda observation, episode: chosen.drawn(observation, seed + episode)
    file, colon, name = against.rpartition(":")
    if not colon or not file.endswith(".py"):
        raise UsageError(f"{OPTION} {against}: give {RANDOM}, {ZERO} or FILE.py:FUNCTION")
    function = maker_in_file(Path(file), name)
    width = len(image.actions)

    def called(observation: Float32Array, _: int) -> Float32Array:
        try:
            action = np.asarray(function(observation), np.float32).reshape(-1)  # type: ignore[call-arg]
        except Exception as error:
            raise UsageError(f"{OPTION} {against} raised {one_line(error)}") from None
        if action.shape != (width,):
            raise UsageError(
                f"{OPTION} {against} returned {action.size} numbers, and the policy's actions are "
                f"{width}, in the units of its channels"
            )
        return action

    return called


class Choices:
    """Actions without a policy, of which none is a choice that its mask forbids."""

    def __init__(self, observations: Sequence[Channel], actions: Sequence[Channel]) -> None:
        index = {channel.name: number for number, channel in enumerate(observations)}
        self._actions = actions
        self._masks = [
            [index.get(f"{action.name}:{choice}", -1) for choice in action.choices]
            for action in actions
        ]
        self._random = np.random.default_rng()
        self._seed = -1

    def _allowed(self, observation: Float32Array, action: int) -> list[int]:
        masks = self._masks[action]
        return [n for n, mask in enumerate(masks) if mask < 0 or observation[mask] > 0] or [0]

    def none(self, observation: Float32Array) -> Float32Array:
        """Return zeros, or the ends of ranges that lie nearest, and the first choices."""
        return np.array(
            [
                self._allowed(observation, number)[0]
                if channel.choices
                else min(max(0.0, channel.minimum), channel.maximum)
                for number, channel in enumerate(self._actions)
            ],
            np.float32,
        )

    def drawn(self, observation: Float32Array, seed: int) -> Float32Array:
        """Return evenly drawn actions, in an episode of this seed."""
        if seed != self._seed:
            self._seed, self._random = seed, np.random.default_rng(seed)
        return np.array(
            [
                self._random.choice(self._allowed(observation, number))
                if channel.choices
                else self._random.uniform(channel.minimum, channel.maximum)
                for number, channel in enumerate(self._actions)
            ],
            np.float32,
        )


def play_baseline(
    against: str,
    image: PolicyImage,
    episodes: int,
    seed: int,
    make: MakeEnvironment | None,
    is_in_gymnasium: bool,
    hyperparameters: Mapping[str, float],
) -> Baseline:
    """Play as many episodes as the policy had, from the resets with seed, seed + 1 and so on.

    make: makes the environments of a Gymnasium task. hyperparameters: of the run, whose
    environment settings the core's environment has.
    """
    act = baseline_of(against, image, seed)
    if make is not None:
        environment = make()
    elif is_in_gymnasium:
        environment = make_gymnasium_environment(image)
    else:
        environment = make_core_environment(image, hyperparameters)
    try:
        returns = []
        for episode in range(episodes):
            observation, _ = environment.reset(seed=seed + episode)
            total, is_over = 0.0, False
            while not is_over:
                action = act(np.array(observation, np.float32), episode)
                observation, reward, terminated, truncated, _ = environment.step(action)
                total += float(reward)
                is_over = bool(terminated or truncated)
            returns.append(total)
        return Baseline(against, tuple(returns))
    finally:
        close_all([environment])


def make_core_environment(image: PolicyImage, hyperparameters: Mapping[str, float]) -> Any:
    """Return the core's environment of the image's name, with its experiment's length of episodes
    and the run's settings."""
    import gymnasium

    from rltools_host.environments.compiled import register
    from rltools_host.environments.library import load_library

    known = {each.name: each for each in catalog.list_environments()}
    names = (image.environment, name_in_gymnasium(image.environment))
    name = next((each for each in names if each in known), None)
    if name is None or image.experiment not in experiments.list_experiments():
        raise UsageError(
            f"{OPTION}: {image.environment} of {image.experiment} is no environment of this tree's "
            "that Python steps: evaluate it with --in gymnasium, if Gymnasium has it"
        )
    steps = int(experiments.describe(image.experiment).environment["episode_steps"])
    register()
    own = {setting.name for setting in load_library(name).settings}
    settings = {key: value for key, value in hyperparameters.items() if key in own}
    environment = gymnasium.make(
        known[name].gymnasium_id, max_episode_steps=steps, settings=settings
    )
    return gymnasium.wrappers.TransformAction(
        environment, ActionSpace(environment.action_space).taken, environment.action_space
    )
