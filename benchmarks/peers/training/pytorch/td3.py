"""TD3 in plain PyTorch, written after the paper (Fujimoto et al. 2018, algorithm 1)."""

from __future__ import annotations

import peer_run  # isort: skip  (first: the stopwatch of the imports below)

import copy
from functools import partial
from typing import Any

import numpy as np
import torch
from off_policy import Learner, train
from torch import nn


class Td3(Learner):
    def __init__(self, settings: peer_run.Settings) -> None:
        super().__init__(settings, 1, nn.Tanh())
        self.actor_target = copy.deepcopy(self.actor)
        self.updates = 0

    def explore(self, observation: torch.Tensor, rng: np.random.Generator) -> Any:
        noise = self.settings.action_noise * rng.standard_normal(1, np.float32)
        return np.clip(self.policy(observation).numpy() + noise, -1.0, 1.0)

    def policy(self, observations: torch.Tensor) -> torch.Tensor:
        actions: torch.Tensor = self.actor(observations)
        return actions

    def update(self, batch: list[torch.Tensor]) -> None:
        observation, action, _, next_observation, _ = batch
        settings = self.settings
        with torch.no_grad():
            noise = settings.target_policy_noise * torch.randn_like(action)
            noise = noise.clamp(-settings.target_noise_clip, settings.target_noise_clip)
            next_action = (self.actor_target(next_observation) + noise).clamp(-1.0, 1.0)
            next_value = self.next_value(next_observation, next_action)
        self.update_critics(batch, next_value)
        self.updates += 1
        if self.updates % settings.policy_delay == 0:
            policy_input = torch.cat([observation, self.actor(observation)], 1)
            self.actor_optimizer.zero_grad()
            (-self.critics[0](policy_input).mean()).backward()
            self.actor_optimizer.step()
            self.update_targets((self.actor, self.actor_target))


if __name__ == "__main__":
    peer_run.run("torch", partial(train, Td3))
