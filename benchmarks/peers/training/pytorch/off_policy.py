"""What TD3, SAC and XQC beside this file share, in plain PyTorch and in the manner of CleanRL.

Eager mode, a replay buffer in NumPy, the loop. Actions lie in [-1, 1].
"""

from __future__ import annotations

import peer_run  # isort: skip  (first: the stopwatch of the imports below)

import copy
import math
from typing import Any

import numpy as np
import torch
from torch import nn


def network(settings: peer_run.Settings, inputs: int, outputs: int, *last: nn.Module) -> Any:
    first, second = settings.hidden
    return nn.Sequential(
        nn.Linear(inputs, first),
        nn.ReLU(),
        nn.Linear(first, second),
        nn.ReLU(),
        nn.Linear(second, outputs),
        *last,
    )


def squashed_sample(
    output: torch.Tensor, log_std_range: tuple[float, float]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return an action of the squashed Gaussian and its log density (SAC, appendix C)."""
    mean, log_std = output.chunk(2, -1)
    log_std = log_std.clamp(*log_std_range)
    noise = torch.randn_like(mean)
    raw = mean + log_std.exp() * noise
    log_density = -0.5 * noise**2 - log_std - 0.5 * math.log(2.0 * math.pi)
    squashing = 2.0 * (math.log(2.0) - raw - nn.functional.softplus(-2.0 * raw))
    return torch.tanh(raw), (log_density - squashing).sum(-1, keepdim=True)


class ReplayBuffer:
    """The last `capacity` transitions."""

    def __init__(self, capacity: int, observation_dim: int, action_dim: int) -> None:
        # observation, action, reward, next observation, whether the episode terminated
        widths = (observation_dim, action_dim, 1, observation_dim, 1)
        self.arrays = [np.zeros((capacity, width), np.float32) for width in widths]
        self.capacity = capacity
        self.count = 0

    def add(self, *transition: Any) -> None:
        for array, value in zip(self.arrays, transition, strict=True):
            array[self.count % self.capacity] = value
        self.count += 1

    def sample(self, rng: np.random.Generator, size: int) -> list[torch.Tensor]:
        index = rng.integers(0, min(self.count, self.capacity), size)
        return [torch.from_numpy(array[index]) for array in self.arrays]


class Learner:
    """Actor, twin critics, their targets and optimizers."""

    def __init__(self, settings: peer_run.Settings, outputs: int, *last: nn.Module) -> None:
        self.settings = settings
        self.actor = network(settings, 3, outputs, *last)
        self.critics = [network(settings, 4, 1) for _ in range(2)]
        self.critic_targets = copy.deepcopy(self.critics)
        critic_parameters = [p for critic in self.critics for p in critic.parameters()]
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), settings.learning_rate)
        self.critic_optimizer = torch.optim.Adam(critic_parameters, settings.learning_rate)

    def observe(self, reward: float, ended: bool) -> None:
        """Take in what a step gave, for a learner that needs it before it is sampled."""

    def explore(self, observation: torch.Tensor, rng: np.random.Generator) -> Any:
        """Return the action in training."""
        raise NotImplementedError

    def policy(self, observations: torch.Tensor) -> torch.Tensor:
        """Return the actions of the trained policy."""
        raise NotImplementedError

    def update(self, batch: list[torch.Tensor]) -> None:
        raise NotImplementedError

    def next_value(self, next_observation: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        next_input = torch.cat([next_observation, action], 1)
        return torch.min(*(target(next_input) for target in self.critic_targets))

    def update_critics(self, batch: list[torch.Tensor], next_value: torch.Tensor) -> None:
        observation, action, reward, _, terminated = batch
        target_value = reward + self.settings.gamma * (1.0 - terminated) * next_value
        critic_input = torch.cat([observation, action], 1)
        losses = [
            nn.functional.mse_loss(critic(critic_input), target_value) for critic in self.critics
        ]
        self.critic_optimizer.zero_grad()
        (losses[0] + losses[1]).backward()
        self.critic_optimizer.step()

    def update_targets(self, *others: tuple[nn.Module, nn.Module]) -> None:
        """Update the targets of the critics and of `others`: (network, its target)."""
        with torch.no_grad():
            for source, target in (*others, *zip(self.critics, self.critic_targets, strict=True)):
                for value, average in zip(source.parameters(), target.parameters(), strict=True):
                    average.lerp_(value, self.settings.tau)


def train(
    make: type[Any], settings: peer_run.Settings, stopwatch: peer_run.Stopwatch
) -> peer_run.Policy:
    """Train the learner that `make` creates from the settings."""
    import gymnasium

    torch.set_num_threads(1)
    torch.manual_seed(settings.seed)
    rng = np.random.default_rng(settings.seed)
    environment = gymnasium.make(settings.environment)
    learner: Learner = make(settings)
    settings = learner.settings
    replay = ReplayBuffer(settings.buffer_size, 3, 1)
    with stopwatch:
        observation, _ = environment.reset(seed=settings.seed)
        for step in range(settings.steps):
            if step < settings.learning_starts:
                action = rng.uniform(-1.0, 1.0, 1).astype(np.float32)
            else:
                with torch.no_grad():
                    action = learner.explore(torch.from_numpy(observation), rng)
            outcome = environment.step(settings.maximum_action * action)
            next_observation, reward, terminated, truncated, _ = outcome
            replay.add(observation, action, reward, next_observation, terminated)
            observation = next_observation
            learner.observe(float(reward), terminated or truncated)
            if terminated or truncated:
                observation, _ = environment.reset()
            if step >= settings.learning_starts:
                learner.update(replay.sample(rng, settings.batch_size))

    def policy(observations: Any) -> Any:
        with torch.no_grad():
            return settings.maximum_action * learner.policy(torch.from_numpy(observations)).numpy()

    return policy
