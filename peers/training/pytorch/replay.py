"""Replay buffer of the single-file implementations beside this file, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


class ReplayBuffer:
    """The last `capacity` transitions."""

    def __init__(self, capacity: int, observation_dim: int, action_dim: int) -> None:
        self.observation = np.zeros((capacity, observation_dim), np.float32)
        self.action = np.zeros((capacity, action_dim), np.float32)
        self.reward = np.zeros((capacity, 1), np.float32)
        self.next_observation = np.zeros((capacity, observation_dim), np.float32)
        self.terminated = np.zeros((capacity, 1), np.float32)
        self.count = 0

    def add(
        self, observation: Any, action: Any, reward: float, next_observation: Any, terminated: bool
    ) -> None:
        slot = self.count % len(self.reward)
        self.observation[slot] = observation
        self.action[slot] = action
        self.reward[slot] = reward
        self.next_observation[slot] = next_observation
        self.terminated[slot] = terminated
        self.count += 1

    def sample(self, rng: np.random.Generator, size: int) -> list[torch.Tensor]:
        index = rng.integers(0, min(self.count, len(self.reward)), size)
        arrays = (
            self.observation,
            self.action,
            self.reward,
            self.next_observation,
            self.terminated,
        )
        return [torch.from_numpy(array[index]) for array in arrays]
