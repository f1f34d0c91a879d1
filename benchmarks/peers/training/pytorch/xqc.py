"""XQC in plain PyTorch, written after the paper (Palenicek et al., arXiv 2509.25174).

With the settings of experiments/pendulum_xqc.h.
"""

from __future__ import annotations

import peer_run  # isort: skip  (first: the stopwatch of the imports below)

import copy
import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from off_policy import Learner, squashed_sample, train
from torch import nn

BINS, LARGEST = 41, 5.0
GRADIENT_STEPS, LR_END_FACTOR = 2, 0.1
LOG_STD_RANGE = (-20.0, 2.0)


def network(inputs: int, hidden: tuple[int, ...], outputs: int) -> nn.Sequential:
    """Return normalized inputs, blocks of linear layer, normalization and ReLU, and a head."""
    layers: list[nn.Module] = [norm(inputs)]
    for width in hidden:
        layers += [nn.Linear(inputs, width, bias=False), norm(width), nn.ReLU()]
        inputs = width
    layers.append(nn.Linear(inputs, outputs))
    nn.init.zeros_(layers[-1].bias)
    made = nn.Sequential(*layers)
    normalize_weights(made)
    return made


def norm(width: int) -> nn.BatchNorm1d:
    return nn.BatchNorm1d(width, eps=1e-3, momentum=0.01)


@torch.no_grad()
def normalize_weights(made: nn.Sequential) -> None:
    """Scale the weights of each output to unit length."""
    for layer in made:
        if isinstance(layer, nn.Linear):
            layer.weight.div_(layer.weight.norm(dim=1, keepdim=True))


class Xqc(Learner):
    """Its critics give logits of a value's bins."""

    def __init__(self, given: peer_run.Settings) -> None:
        settings = replace(
            given,
            batch_size=48 * GRADIENT_STEPS,
            buffer_size=5_000,
            learning_starts=500,
            learning_rate=3e-3,
            tau=0.05,
            alpha=0.01,
            target_entropy=-0.5,
        )
        self.settings = settings
        self.actor = network(3, settings.hidden, 2)
        self.critics = [network(4, settings.hidden, BINS) for _ in range(2)]
        self.critic_targets = copy.deepcopy(self.critics)
        self.log_temperature = torch.tensor(math.log(settings.alpha), requires_grad=True)
        critic_parameters = [p for critic in self.critics for p in critic.parameters()]
        self.optimizers = [
            torch.optim.Adam(parameters, settings.learning_rate)
            for parameters in (critic_parameters, self.actor.parameters(), [self.log_temperature])
        ]
        updates = GRADIENT_STEPS * max(1, settings.steps - settings.learning_starts)
        self.schedulers = [
            torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, LR_END_FACTOR, updates)
            for optimizer in self.optimizers
        ]
        self.bins = torch.linspace(-LARGEST, LARGEST, BINS)
        self.discounted = self.count = self.mean = self.squares = self.largest = 0.0

    def observe(self, reward: float, ended: bool) -> None:
        """Take in a reward, on which the divisor of later ones depends."""
        self.discounted = self.settings.gamma * self.discounted + reward
        self.count += 1
        difference = self.discounted - self.mean
        self.mean += difference / self.count
        self.squares += difference * (self.discounted - self.mean)
        self.largest = max(self.largest, abs(self.discounted))
        if ended:
            self.discounted = 0.0

    def act(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a drawn action and its log density."""
        return squashed_sample(self.actor(observation), LOG_STD_RANGE)

    def explore(self, observation: torch.Tensor, rng: np.random.Generator) -> Any:  # noqa: ARG002
        self.actor.eval()
        return self.act(observation[None])[0][0].numpy()

    def policy(self, observations: torch.Tensor) -> torch.Tensor:
        self.actor.eval()
        return torch.tanh(self.actor(observations).chunk(2, -1)[0])

    def update(self, batch: list[torch.Tensor]) -> None:
        for parts in zip(*(array.chunk(GRADIENT_STEPS) for array in batch), strict=True):
            self.step(list(parts))

    def step(self, batch: list[torch.Tensor]) -> None:
        observation, action, reward, next_observation, terminated = batch
        deviation = math.sqrt(self.squares / self.count + 1e-8)
        reward = reward / max(deviation, self.largest / LARGEST)
        temperature = self.log_temperature.detach().exp()
        with torch.no_grad():
            self.actor.eval()
            next_action, next_log_density = self.act(next_observation)
            joint = torch.cat(
                [torch.cat([observation, action], 1), torch.cat([next_observation, next_action], 1)]
            )
            logits = torch.stack([target(joint)[len(reward) :] for target in self.critic_targets])
            probability = logits.softmax(-1)
            smaller = (probability @ self.bins).argmin(0)
            chosen = probability[smaller, torch.arange(len(reward))]
            discount = self.settings.gamma * (1.0 - terminated)
            moved = reward + discount * (self.bins - temperature * next_log_density)
            position = (moved.clamp(-LARGEST, LARGEST) + LARGEST) / (self.bins[1] - self.bins[0])
            below = position.floor().clamp(max=BINS - 2)
            above = position - below
            goal = torch.zeros_like(chosen)
            goal.scatter_add_(1, below.long(), chosen * (1.0 - above))
            goal.scatter_add_(1, below.long() + 1, chosen * above)
        critic_loss = sum(
            -(goal * critic(joint)[: len(reward)].log_softmax(-1)).sum(-1).mean()
            for critic in self.critics
        )
        self.take(0, critic_loss)
        for critic in self.critics:
            normalize_weights(critic)
        self.update_targets()

        self.actor.train()
        action, log_density = self.act(observation)
        policy_input = torch.cat([observation, action], 1)
        values = []
        for critic in self.critics:
            critic.eval()
            values.append(critic(policy_input).softmax(-1) @ self.bins)
            critic.train()
        self.take(1, (temperature * log_density[:, 0] - torch.min(*values)).mean())
        normalize_weights(self.actor)
        excess = (log_density.detach() + self.settings.target_entropy).mean()
        self.take(2, -self.log_temperature.exp() * excess)

    def take(self, index: int, loss: Any) -> None:
        self.optimizers[index].zero_grad()
        loss.backward()
        self.optimizers[index].step()
        self.schedulers[index].step()


if __name__ == "__main__":
    peer_run.run("torch", partial(train, Xqc))
