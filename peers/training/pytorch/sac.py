"""SAC in one file of plain PyTorch, written after the paper (Haarnoja et al., arXiv 1812.05905).

It stands for single-file implementations in the manner of CleanRL: eager mode, NumPy replay buffer.
"""

from __future__ import annotations

import peer_run  # isort: skip  (first: the stopwatch of the imports below)

import copy
import math
from typing import Any

import numpy as np
import torch
from replay import ReplayBuffer
from torch import nn

LOG_STD_RANGE = (-5.0, 2.0)


def network(inputs: int, settings: peer_run.Settings, outputs: int) -> nn.Sequential:
    first, second = settings.hidden
    return nn.Sequential(
        nn.Linear(inputs, first),
        nn.ReLU(),
        nn.Linear(first, second),
        nn.ReLU(),
        nn.Linear(second, outputs),
    )


class Sac:
    """Actor, twin critics, their targets, temperature and optimisers; actions lie in [-1, 1]."""

    def __init__(self, settings: peer_run.Settings) -> None:
        self.settings = settings
        self.actor = network(3, settings, 2)  # mean and log_std
        self.critics = [network(4, settings, 1) for _ in range(2)]
        self.critic_targets = copy.deepcopy(self.critics)
        self.log_temperature = torch.tensor(math.log(settings.alpha), requires_grad=True)
        critic_parameters = [p for critic in self.critics for p in critic.parameters()]
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), settings.learning_rate)
        self.critic_optimizer = torch.optim.Adam(critic_parameters, settings.learning_rate)
        self.temperature_optimizer = torch.optim.Adam(
            [self.log_temperature], settings.learning_rate
        )

    def act(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """An action of the squashed Gaussian, and the logarithm of its density (appendix C)."""
        mean, log_std = self.actor(observation).chunk(2, -1)
        log_std = log_std.clamp(*LOG_STD_RANGE)
        noise = torch.randn_like(mean)
        raw = mean + log_std.exp() * noise
        log_density = -0.5 * noise**2 - log_std - 0.5 * math.log(2.0 * math.pi)
        squashing = 2.0 * (math.log(2.0) - raw - nn.functional.softplus(-2.0 * raw))
        return torch.tanh(raw), (log_density - squashing).sum(-1, keepdim=True)

    def update(self, batch: list[torch.Tensor]) -> None:
        observation, action, reward, next_observation, terminated = batch
        temperature = self.log_temperature.detach().exp()
        with torch.no_grad():
            next_action, next_log_density = self.act(next_observation)
            next_input = torch.cat([next_observation, next_action], 1)
            next_value = torch.min(*(target(next_input) for target in self.critic_targets))
            next_value -= temperature * next_log_density
            target_value = reward + self.settings.gamma * (1.0 - terminated) * next_value
        critic_input = torch.cat([observation, action], 1)
        losses = [
            nn.functional.mse_loss(critic(critic_input), target_value) for critic in self.critics
        ]
        self.critic_optimizer.zero_grad()
        (losses[0] + losses[1]).backward()
        self.critic_optimizer.step()
        self.update_actor(observation, temperature)
        with torch.no_grad():
            for critic, target in zip(self.critics, self.critic_targets, strict=True):
                for value, average in zip(critic.parameters(), target.parameters(), strict=True):
                    average.lerp_(value, self.settings.tau)

    def update_actor(self, observation: torch.Tensor, temperature: torch.Tensor) -> None:
        action, log_density = self.act(observation)
        policy_input = torch.cat([observation, action], 1)
        value = torch.min(*(critic(policy_input) for critic in self.critics))
        self.actor_optimizer.zero_grad()
        (temperature * log_density - value).mean().backward()
        self.actor_optimizer.step()
        excess = (log_density.detach() + self.settings.target_entropy).mean()
        self.temperature_optimizer.zero_grad()
        (-self.log_temperature * excess).backward()
        self.temperature_optimizer.step()


def train(settings: peer_run.Settings, stopwatch: peer_run.Stopwatch) -> peer_run.Policy:
    import gymnasium

    torch.set_num_threads(1)
    torch.manual_seed(settings.seed)
    rng = np.random.default_rng(settings.seed)
    environment = gymnasium.make(settings.environment)
    replay = ReplayBuffer(settings.buffer_size, 3, 1)
    sac = Sac(settings)
    with stopwatch:
        observation, _ = environment.reset(seed=settings.seed)
        for step in range(settings.steps):
            if step < settings.learning_starts:
                action = rng.uniform(-1.0, 1.0, 1).astype(np.float32)
            else:
                with torch.no_grad():
                    action = sac.act(torch.from_numpy(observation))[0].numpy()
            outcome = environment.step(settings.maximum_action * action)
            next_observation, reward, terminated, truncated, _ = outcome
            replay.add(observation, action, float(reward), next_observation, terminated)
            observation = next_observation
            if terminated or truncated:
                observation, _ = environment.reset()
            if step >= settings.learning_starts:
                sac.update(replay.sample(rng, settings.batch_size))

    def policy(observations: Any) -> Any:
        with torch.no_grad():
            mean = sac.actor(torch.from_numpy(observations)).chunk(2, -1)[0]
            return settings.maximum_action * torch.tanh(mean).numpy()

    return policy


if __name__ == "__main__":
    peer_run.run("torch", train)
