"""SAC in plain PyTorch, written after the paper (Haarnoja et al., arXiv 1812.05905)."""

from __future__ import annotations

import peer_run  # isort: skip  (first: the stopwatch of the imports below)

import math
from functools import partial
from typing import Any

import numpy as np
import torch
from off_policy import Learner, squashed_sample, train

LOG_STD_RANGE = (-5.0, 2.0)


class Sac(Learner):
    """Its actor's outputs are mean and log_std."""

    def __init__(self, settings: peer_run.Settings) -> None:
        super().__init__(settings, 2)
        self.log_temperature = torch.tensor(math.log(settings.alpha), requires_grad=True)
        self.temperature_optimizer = torch.optim.Adam(
            [self.log_temperature], settings.learning_rate
        )

    def act(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a drawn action and its log density."""
        return squashed_sample(self.actor(observation), LOG_STD_RANGE)

    def explore(self, observation: torch.Tensor, rng: np.random.Generator) -> Any:  # noqa: ARG002
        return self.act(observation)[0].numpy()

    def policy(self, observations: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.actor(observations).chunk(2, -1)[0])

    def update(self, batch: list[torch.Tensor]) -> None:
        observation, _, _, next_observation, _ = batch
        temperature = self.log_temperature.detach().exp()
        with torch.no_grad():
            next_action, next_log_density = self.act(next_observation)
            next_value = self.next_value(next_observation, next_action)
            next_value -= temperature * next_log_density
        self.update_critics(batch, next_value)
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
        self.update_targets()


if __name__ == "__main__":
    peer_run.run("torch", partial(train, Sac))
