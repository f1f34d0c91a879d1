"""PPO in one file of plain PyTorch, in the style of CleanRL's ppo_continuous_action.py.

`published` are that file's own settings: one environment, networks of two layers of 64 with tanh,
rewards normalized, a step size that falls to zero.
"""

from dataclasses import replace
from typing import Any

import ppo_run


def own(settings: ppo_run.Settings) -> ppo_run.Settings:
    """Return the settings, changed by those of the file where it has some."""
    if not settings.published:
        return settings
    return replace(
        settings,
        environments=1,
        n_steps=2048,
        batch_size=64,
        n_epochs=10,
        hidden=(64, 64),
        max_grad_norm=0.5,
        log_std_init=0.0,
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
    settings = own(settings)
    count, length = settings.environments, settings.n_steps
    environments = ppo_run.make_environments(count, min(settings.threads, count), settings.seed)
    observation_dim = environments.observation_space.shape[-1]
    action_dim = environments.action_space.shape[-1]
    turns = ppo_run.TrainingTurns(count)
    threads = {"PyTorch": ppo_run.torch_threads()}
    ppo_run.introduce(turns, "torch", environments, threads, settings.text())

    def layer(inputs: int, outputs: int, gain: float = 2**0.5) -> nn.Linear:
        linear = nn.Linear(inputs, outputs)
        nn.init.orthogonal_(linear.weight, gain)
        nn.init.constant_(linear.bias, 0.0)
        return linear

    def network(outputs: int, gain: float) -> nn.Sequential:
        activation = nn.Tanh if settings.published else nn.ReLU
        first, second = settings.hidden
        return nn.Sequential(
            layer(observation_dim, first),
            activation(),
            layer(first, second),
            activation(),
            layer(second, outputs, gain),
        )

    actor, critic = network(action_dim, 0.01), network(1, 1.0)
    log_std = nn.Parameter(torch.full((1, action_dim), settings.log_std_init))
    parameters = [*actor.parameters(), log_std, *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=settings.learning_rate, eps=1e-5)
    seen = Moments(observation_dim)
    return_moments = Moments(1)
    discounted = np.zeros(count)

    def normalized(raw: Any) -> Any:
        seen.add(raw)
        value = (raw - seen.mean) / np.sqrt(seen.variance + 1e-8)
        return torch.from_numpy(np.clip(value, -10, 10).astype(np.float32))

    def scaled(reward: Any, ended: Any) -> Any:
        nonlocal discounted
        if not settings.published:
            return torch.from_numpy(reward.astype(np.float32) * settings.reward_scale)
        discounted = discounted * settings.gamma + reward
        return_moments.add(discounted[:, None])
        discounted[ended] = 0.0
        value = reward / np.sqrt(return_moments.variance[0] + 1e-8)
        return torch.from_numpy(np.clip(value, -10, 10).astype(np.float32))

    observations = torch.zeros((length, count, observation_dim))
    actions = torch.zeros((length, count, action_dim))
    log_probabilities, rewards, dones, values = (torch.zeros((length, count)) for _ in range(4))
    observation = normalized(environments.reset()[0])
    done = torch.zeros(count)
    iteration, iterations = 0, max(1, settings.steps // (count * length))

    while True:
        turns.begin_iteration()
        if settings.published:
            left = max(1.0 - iteration / iterations, 0.0)
            optimizer.param_groups[0]["lr"] = left * settings.learning_rate
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
            observation, done = normalized(raw), torch.from_numpy(ended.astype(np.float32))

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
        for _ in range(settings.n_epochs):
            order = torch.randperm(rows)
            for first in range(0, rows, settings.batch_size):
                batch = order[first : first + settings.batch_size]
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
                if settings.published:
                    change = torch.clamp(value - flat_values[batch], -clip, clip)
                    near = (flat_values[batch] + change - flat_targets[batch]) ** 2
                    squares = torch.max(squares, near)
                loss = policy_loss + settings.vf_coef * 0.5 * squares.mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(parameters, settings.max_grad_norm)
                optimizer.step()


if __name__ == "__main__":
    train(ppo_run.settings())
