"""TD3 in one file of plain PyTorch, written after the paper (Fujimoto et al. 2018, algorithm 1).

It stands for single-file implementations in the manner of CleanRL: eager mode, NumPy replay buffer.
"""

from __future__ import annotations

import peer_run  # isort: skip  (first: the stopwatch of the imports below)

import copy
from typing import Any

import numpy as np
import torch
from replay import ReplayBuffer
from torch import nn


def network(inputs: int, settings: peer_run.Settings, last: nn.Module) -> nn.Sequential:
    first, second = settings.hidden
    return nn.Sequential(
        nn.Linear(inputs, first),
        nn.ReLU(),
        nn.Linear(first, second),
        nn.ReLU(),
        nn.Linear(second, 1),
        last,
    )


class Td3:
    """Actor, twin critics, their targets and optimisers; actions lie in [-1, 1]."""

    def __init__(self, settings: peer_run.Settings) -> None:
        self.settings = settings
        self.actor = network(3, settings, nn.Tanh())
        self.critics = [network(4, settings, nn.Identity()) for _ in range(2)]
        self.actor_target = copy.deepcopy(self.actor)
        self.critic_targets = copy.deepcopy(self.critics)
        critic_parameters = [p for critic in self.critics for p in critic.parameters()]
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), settings.learning_rate)
        self.critic_optimizer = torch.optim.Adam(critic_parameters, settings.learning_rate)
        self.updates = 0

    def update(self, batch: list[torch.Tensor]) -> None:
        observation, action, reward, next_observation, terminated = batch
        settings = self.settings
        with torch.no_grad():
            noise = settings.policy_noise * torch.randn_like(action)
            noise = noise.clamp(-settings.noise_clip, settings.noise_clip)
            next_action = (self.actor_target(next_observation) + noise).clamp(-1.0, 1.0)
            next_input = torch.cat([next_observation, next_action], 1)
            next_value = torch.min(*(target(next_input) for target in self.critic_targets))
            target_value = reward + settings.gamma * (1.0 - terminated) * next_value
        critic_input = torch.cat([observation, action], 1)
        losses = [
            nn.functional.mse_loss(critic(critic_input), target_value) for critic in self.critics
        ]
        self.critic_optimizer.zero_grad()
        (losses[0] + losses[1]).backward()
        self.critic_optimizer.step()
        self.updates += 1
        if self.updates % settings.policy_delay == 0:
            self.update_actor(observation)

    def update_actor(self, observation: torch.Tensor) -> None:
        policy_input = torch.cat([observation, self.actor(observation)], 1)
        self.actor_optimizer.zero_grad()
        (-self.critics[0](policy_input).mean()).backward()
        self.actor_optimizer.step()
        pairs = [
            (self.actor, self.actor_target),
            *zip(self.critics, self.critic_targets, strict=True),
        ]
        with torch.no_grad():
            for source, target in pairs:
                for value, average in zip(source.parameters(), target.parameters(), strict=True):
                    average.lerp_(value, self.settings.tau)


def train(settings: peer_run.Settings, stopwatch: peer_run.Stopwatch) -> peer_run.Policy:
    import gymnasium

    torch.set_num_threads(1)
    torch.manual_seed(settings.seed)
    rng = np.random.default_rng(settings.seed)
    environment = gymnasium.make(settings.environment)
    replay = ReplayBuffer(settings.buffer_size, 3, 1)
    td3 = Td3(settings)
    with stopwatch:
        observation, _ = environment.reset(seed=settings.seed)
        for step in range(settings.steps):
            if step < settings.learning_starts:
                action = rng.uniform(-1.0, 1.0, 1).astype(np.float32)
            else:
                with torch.no_grad():
                    action = td3.actor(torch.from_numpy(observation)).numpy()
                noise = settings.action_noise * rng.standard_normal(1, np.float32)
                action = np.clip(action + noise, -1.0, 1.0)
            outcome = environment.step(settings.maximum_action * action)
            next_observation, reward, terminated, truncated, _ = outcome
            replay.add(observation, action, float(reward), next_observation, terminated)
            observation = next_observation
            if terminated or truncated:
                observation, _ = environment.reset()
            if step >= settings.learning_starts:
                td3.update(replay.sample(rng, settings.batch_size))

    def policy(observations: Any) -> Any:
        with torch.no_grad():
            return settings.maximum_action * td3.actor(torch.from_numpy(observations)).numpy()

    return policy


if __name__ == "__main__":
    peer_run.run("torch", train)
