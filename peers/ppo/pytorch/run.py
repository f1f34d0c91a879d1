"""PPO in one file of plain PyTorch, in the style of CleanRL's ppo_continuous_action.py.

`published` are that file's own settings: one environment, networks of two layers of 64 with tanh,
rewards normalised, a step size that falls to zero.
"""

from dataclasses import dataclass
from typing import Any

import ppo_run


@dataclass(frozen=True)
class Choice:
    environments: int
    rollout_steps: int
    batch_size: int
    epochs: int
    hidden: tuple[int, int]
    activation: str
    max_grad_norm: float
    initial_log_std: float
    reward_scale: float
    clips_value: bool
    normalises_reward: bool
    anneals: bool


def choice(settings: ppo_run.Settings) -> Choice:
    if settings.published:
        return Choice(1, 2048, 64, 10, (64, 64), "Tanh", 0.5, 0.0, 1.0, True, True, True)
    return Choice(
        settings.environments,
        settings.rollout_steps,
        settings.batch_size,
        settings.epochs,
        settings.hidden,
        "ReLU",
        settings.max_grad_norm,
        settings.initial_log_std,
        settings.reward_scale,
        clips_value=False,
        normalises_reward=False,
        anneals=False,
    )


class Moments:
    """Running mean and variance of rows (Chan et al.)."""

    def __init__(self, width: int) -> None:
        import numpy as np

        self.mean, self.variance, self.count = np.zeros(width), np.ones(width), 1e-4

    def add(self, rows: Any) -> None:
        count = len(rows)
        difference = rows.mean(0) - self.mean
        total = self.count + count
        self.mean = self.mean + difference * count / total
        squares = self.variance * self.count + rows.var(0) * count
        self.variance = (squares + difference**2 * self.count * count / total) / total
        self.count = total


def train(settings: ppo_run.Settings) -> None:
    import numpy as np
    import torch
    from torch import nn

    ppo_run.hold_torch_to(settings.threads)
    torch.manual_seed(settings.seed)
    chosen = choice(settings)
    count, length = chosen.environments, chosen.rollout_steps
    environments = ppo_run.make_environments(count, min(settings.threads, count), settings.seed)
    observation_dim = environments.observation_space.shape[-1]
    action_dim = environments.action_space.shape[-1]
    turns = ppo_run.TrainingTurns(count)
    threads = {"PyTorch": ppo_run.torch_threads()}
    layers = "-".join(map(str, chosen.hidden))
    said = f"{count} x {length}, {chosen.batch_size}, {chosen.epochs} epochs, {layers}"
    ppo_run.introduce(turns, "torch", environments, threads, said)

    def layer(inputs: int, outputs: int, gain: float = 2**0.5) -> nn.Linear:
        linear = nn.Linear(inputs, outputs)
        nn.init.orthogonal_(linear.weight, gain)
        nn.init.constant_(linear.bias, 0.0)
        return linear

    def network(outputs: int, gain: float) -> nn.Sequential:
        activation = getattr(nn, chosen.activation)
        first, second = chosen.hidden
        return nn.Sequential(
            layer(observation_dim, first),
            activation(),
            layer(first, second),
            activation(),
            layer(second, outputs, gain),
        )

    actor, critic = network(action_dim, 0.01), network(1, 1.0)
    log_std = nn.Parameter(torch.full((1, action_dim), chosen.initial_log_std))
    parameters = [*actor.parameters(), log_std, *critic.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=settings.learning_rate, eps=1e-5)
    seen = Moments(observation_dim)
    return_moments = Moments(1)
    discounted = np.zeros(count)

    def normalised(raw: Any) -> Any:
        seen.add(raw)
        value = (raw - seen.mean) / np.sqrt(seen.variance + 1e-8)
        return torch.from_numpy(np.clip(value, -10, 10).astype(np.float32))

    def scaled(reward: Any, ended: Any) -> Any:
        nonlocal discounted
        if not chosen.normalises_reward:
            return torch.from_numpy(reward.astype(np.float32) * chosen.reward_scale)
        discounted = discounted * settings.gamma + reward
        return_moments.add(discounted[:, None])
        discounted[ended] = 0.0
        value = reward / np.sqrt(return_moments.variance[0] + 1e-8)
        return torch.from_numpy(np.clip(value, -10, 10).astype(np.float32))

    observations = torch.zeros((length, count, observation_dim))
    actions = torch.zeros((length, count, action_dim))
    log_probabilities, rewards, dones, values = (torch.zeros((length, count)) for _ in range(4))
    observation = normalised(environments.reset()[0])
    done = torch.zeros(count)
    iteration, iterations = 0, max(1, settings.steps // (count * length))

    while True:
        turns.begin_iteration()
        if chosen.anneals:
            left = max(1.0 - iteration / iterations, 0.0)
            optimiser.param_groups[0]["lr"] = left * settings.learning_rate
        iteration += 1
        for step in range(length):
            observations[step], dones[step] = observation, done
            with torch.no_grad():
                policy = torch.distributions.Normal(actor(observation), log_std.exp())
                action = policy.sample()
                log_probabilities[step] = policy.log_prob(action).sum(1)
                values[step] = critic(observation).flatten()
            actions[step] = action
            clipped = np.clip(action.numpy().astype(np.float64), -1.0, 1.0)
            raw, reward, terminated, truncated, _ = environments.step(clipped)
            ended = terminated | truncated
            turns.add_step(reward, ended)
            rewards[step] = scaled(reward, ended)
            observation, done = normalised(raw), torch.from_numpy(ended.astype(np.float32))

        with torch.no_grad():
            following = critic(observation).flatten()
            advantages = torch.zeros_like(rewards)
            last, next_done = torch.zeros(count), done
            for step in reversed(range(length)):
                goes_on = 1.0 - next_done
                delta = rewards[step] + settings.gamma * following * goes_on - values[step]
                last = delta + settings.gamma * settings.gae_lambda * goes_on * last
                advantages[step], following, next_done = last, values[step], dones[step]
            targets = advantages + values

        rows = count * length
        flat_observations = observations.reshape(rows, -1)
        flat_actions = actions.reshape(rows, -1)
        flat_log, flat_advantages = log_probabilities.reshape(-1), advantages.reshape(-1)
        flat_targets, flat_values = targets.reshape(-1), values.reshape(-1)
        for _ in range(chosen.epochs):
            order = torch.randperm(rows)
            for first in range(0, rows, chosen.batch_size):
                batch = order[first : first + chosen.batch_size]
                policy = torch.distributions.Normal(actor(flat_observations[batch]), log_std.exp())
                log_probability = policy.log_prob(flat_actions[batch]).sum(1)
                ratio = (log_probability - flat_log[batch]).exp()
                advantage = flat_advantages[batch]
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                clip = settings.clip_range
                bounded = torch.clamp(ratio, 1 - clip, 1 + clip)
                policy_loss = torch.max(-advantage * ratio, -advantage * bounded).mean()
                value = critic(flat_observations[batch]).flatten()
                squares = (value - flat_targets[batch]) ** 2
                if chosen.clips_value:
                    change = torch.clamp(value - flat_values[batch], -clip, clip)
                    near = (flat_values[batch] + change - flat_targets[batch]) ** 2
                    squares = torch.max(squares, near)
                loss = policy_loss + settings.value_weight * 0.5 * squares.mean()
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(parameters, chosen.max_grad_norm)
                optimiser.step()


if __name__ == "__main__":
    train(ppo_run.settings())
