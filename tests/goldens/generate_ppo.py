"""Makes the golden of test_pytorch.cpp for PPO with PyTorch: the minibatches of a PPO iteration.

Needs and does what generate.py does, from which it takes what it shares with TD3.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from generate import (
    DIRECTORY,
    INPUT_STRIDE,
    Array,
    Network,
    dump_inputs,
    read_arrays,
    write_arrays,
)
from torch.distributions import Distribution, Independent, Normal, kl_divergence
from torch.nn import Parameter

EPOCHS = 2
STEPS, ENVIRONMENTS, TRUNCATIONS = 16, 4, 4
MINIBATCHES = 4  # of an epoch
STRIDE = 7
TERMINATED, TRUNCATED = 1, 2
NORMALIZER_EPSILON = 1e-4
RATE_FACTOR, SMALLEST_RATE, LARGEST_RATE = 1.5, 1e-6, 1e-2
HYPERPARAMETERS = (
    *("learning_rate", "beta1", "beta2", "epsilon", "gamma", "gae_lambda", "clip_range"),
    *("vf_coef", "ent_coef", "max_grad_norm", "reward_scale", "target_kl"),
    *("norm_obs", "normalize_advantage", "recompute_advantage", "adaptive_lr"),
)


class Rollout:
    """The rows of a rollout, (steps, environments, …), and an observation's normalization."""

    def __init__(self, inputs: Mapping[str, torch.Tensor], hyper: Mapping[str, float]) -> None:
        rows = (STEPS, ENVIRONMENTS)
        self.observation = inputs["observation"].view(*rows, -1)
        self.action = inputs["action"].view(*rows, -1)
        self.mean = inputs["mean"].view(*rows, -1)
        self.reward = inputs["reward"].view(rows) * hyper["reward_scale"]
        self.ending = inputs["ending"].view(rows)
        dim = self.observation.shape[-1]
        self.current_observation = inputs["current_observation"].view(ENVIRONMENTS, dim)
        self.final_observation = inputs["final_observation"].view(ENVIRONMENTS, TRUNCATIONS, dim)
        seen = inputs["seen"].view(-1, dim)
        self.shift, self.scale = torch.zeros(dim), torch.ones(dim)
        if hyper["norm_obs"]:
            variance = seen.var(dim=0, correction=0)
            self.shift, self.scale = seen.mean(0), (variance + NORMALIZER_EPSILON).rsqrt()

    def normalized(self, observation: torch.Tensor) -> torch.Tensor:
        return (observation - self.shift) * self.scale

    def next_values(self, critic: Network) -> torch.Tensor:
        """Of the state after each row's step: none after a terminal one."""
        following = torch.cat([self.observation[1:], self.current_observation[None]])
        values = critic(self.normalized(following)).squeeze(-1)
        final_values = critic(self.normalized(self.final_observation)).squeeze(-1)
        for environment in range(ENVIRONMENTS):
            truncated = (self.ending[:, environment] == TRUNCATED).nonzero().flatten().tolist()
            for number, step in enumerate(truncated):
                values[step, environment] = final_values[environment, number]
        return values * (self.ending != TERMINATED)


def advantages(
    rollout: Rollout, critic: Network, gamma: float, gae_lambda: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Schulman et al. 2016, equation 16, and the values' targets; (steps, environments) each."""
    with torch.no_grad():
        value = critic(rollout.normalized(rollout.observation)).squeeze(-1)
        delta = rollout.reward + gamma * rollout.next_values(critic) - value
    advantage = torch.zeros(STEPS, ENVIRONMENTS)
    for step in reversed(range(STEPS)):
        advantage[step] = delta[step]
        if step + 1 < STEPS:
            goes_on = rollout.ending[step] == 0
            advantage[step] += gamma * gae_lambda * advantage[step + 1] * goes_on
    return advantage, advantage + value


def bound_norm(parameters: list[torch.nn.Parameter], largest: float) -> float:
    """clip_grad_norm_, which scales by largest / (norm + 1e-6), without its 1e-6."""
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters]).item()
    if largest > 0 and norm > largest:
        before = [p.grad.clone() for p in parameters]
        torch.nn.utils.clip_grad_norm_(parameters, largest)
        for p, gradient in zip(parameters, before, strict=True):
            scaled = gradient * (largest / norm)
            torch.testing.assert_close(p.grad, scaled, rtol=2e-6 / norm, atol=0)
            p.grad = scaled
    return norm


def adapted(rate: float, kl: float, target: float) -> float:
    if kl > 2 * target:
        return max(rate / RATE_FACTOR, SMALLEST_RATE)
    if kl < target / 2:
        return min(rate * RATE_FACTOR, LARGEST_RATE)
    return rate


class Iteration:
    """Actor and critic of two hidden layers, and what their updates need; a policy derives."""

    def __init__(self, inputs: Mapping[str, torch.Tensor]) -> None:
        values = inputs["hyperparameters"].tolist()
        self.hyper = dict(zip(HYPERPARAMETERS, values, strict=True))
        self.rollout = Rollout(inputs, self.hyper)
        observed, outputs = self.rollout.observation.shape[-1], self.rollout.mean.shape[-1]
        self.actor = Network((observed, 16, 8, outputs), "tanh", "identity", inputs["actor"])
        self.critic = Network((observed, 16, 12, 1), "relu", "identity", inputs["critic"])
        self.parameters = {"actor": self.actor.flat, "critic": self.critic.flat}
        self.inputs = inputs
        self.parameters.update(self.further_parameters())
        self.optimizer = torch.optim.Adam(
            list(self.parameters.values()),
            lr=self.hyper["learning_rate"],
            betas=(self.hyper["beta1"], self.hyper["beta2"]),
            eps=self.hyper["epsilon"],
        )
        self.compute_advantages()

    def further_parameters(self) -> dict[str, Parameter]:
        return {}

    def further_report(self) -> dict[str, float]:
        return {}

    def policies(
        self, rows: torch.Tensor, outputs: torch.Tensor
    ) -> tuple[Distribution, Distribution]:
        """The one that acted and the present one, for rows with these outputs of the actor."""
        raise NotImplementedError

    def compute_advantages(self) -> None:
        self.advantage, self.target = advantages(
            self.rollout, self.critic, self.hyper["gamma"], self.hyper["gae_lambda"]
        )

    def explained_variance(self) -> float:
        return (1 - self.advantage.var() / self.target.var()).item()

    def update(self, rows: torch.Tensor, is_first: bool) -> dict[str, float]:
        """Schulman et al. 2017, equations 7 and 9, on a minibatch."""
        hyper, rollout = self.hyper, self.rollout
        advantage = self.advantage.flatten()[rows]
        if hyper["normalize_advantage"]:
            advantage = (advantage - advantage.mean()) / (advantage.std(correction=0) + 1e-8)
        observation = rollout.normalized(rollout.observation.flatten(0, 1)[rows])
        action = rollout.action.flatten(0, 1)[rows]
        old, new = self.policies(rows, self.actor(observation))
        ratio = (new.log_prob(action) - old.log_prob(action)).exp()
        clip = hyper["clip_range"]
        clipped = ratio.clamp(1 - clip, 1 + clip)
        policy_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
        value = self.critic(observation).squeeze(-1)
        value_loss = torch.nn.functional.mse_loss(value, self.target.flatten()[rows])
        entropy = new.entropy().mean()
        loss = policy_loss + hyper["vf_coef"] * value_loss - hyper["ent_coef"] * entropy
        self.optimizer.zero_grad()
        loss.backward()
        norm = bound_norm(list(self.parameters.values()), hyper["max_grad_norm"])
        kl = kl_divergence(old, new).mean().item()
        group = self.optimizer.param_groups[0]
        if hyper["adaptive_lr"] and not is_first:
            group["lr"] = adapted(group["lr"], kl, hyper["target_kl"])
        report = {
            "policy_loss": policy_loss.item(),
            "value_loss": value_loss.item(),
            "entropy": entropy.item(),
            "kl": kl,
            "clip_fraction": ((ratio - 1).abs() > clip).double().mean().item(),
            "learning_rate": group["lr"],
            **self.further_report(),
            "gradient_norm": norm,
        }
        self.optimizer.step()
        return report


class GaussianIteration(Iteration):
    """Also learns the logarithm of each action's deviation."""

    def further_parameters(self) -> dict[str, Parameter]:
        self.log_std = torch.nn.Parameter(self.inputs["log_std"].clone())
        self.acting_std = self.inputs["log_std"].exp()
        return {"log_std": self.log_std}

    def further_report(self) -> dict[str, float]:
        return {"action_std": self.log_std.exp().mean().item()}

    def policies(
        self, rows: torch.Tensor, outputs: torch.Tensor
    ) -> tuple[Distribution, Distribution]:
        old = Independent(Normal(self.rollout.mean.flatten(0, 1)[rows], self.acting_std), 1)
        return old, Independent(Normal(outputs, self.log_std.exp()), 1)


def dumped_inputs(algorithm: str, case: str) -> dict[str, torch.Tensor]:
    arrays = read_arrays(dump_inputs(algorithm, case))
    return {name: torch.from_numpy(values) for name, values in arrays.items()}


def results_of(
    case: str, inputs: Mapping[str, torch.Tensor], iteration: Iteration
) -> dict[str, Array]:
    ending = iteration.rollout.ending
    assert (ending == TERMINATED).sum() >= 3
    assert (ending == TRUNCATED).sum(dim=0).max() >= 2
    # By these the test notices that the core draws other inputs than these results are for.
    results = {f"inputs/{name}": values.numpy()[::INPUT_STRIDE] for name, values in inputs.items()}
    results["explained_variance"] = np.array([iteration.explained_variance()])
    for update in range(EPOCHS * MINIBATCHES):
        begins_epoch = update % MINIBATCHES == 0
        if update > 0 and begins_epoch and iteration.hyper["recompute_advantage"]:
            iteration.compute_advantages()
        report = iteration.update(inputs[f"{update}/row"].long(), update == 0)
        for name, value in report.items():
            results[f"{update}/{name}"] = np.array([value])
        if begins_epoch:
            results[f"{update}/advantage"] = iteration.advantage.numpy().copy()
            results[f"{update}/target"] = iteration.target.numpy().copy()
        for name, parameters in iteration.parameters.items():
            results[f"{update}/{name}"] = parameters.detach().numpy()[::STRIDE].copy()
            state = iteration.optimizer.state[parameters]
            for ours, theirs in (("first_moment", "exp_avg"), ("second_moment", "exp_avg_sq")):
                stored = state[theirs].numpy()[::STRIDE].copy()
                results[f"{update}/{name}_optimizer/{ours}"] = stored
    # What the next iteration normalizes by.
    if iteration.hyper["norm_obs"]:
        dim = iteration.rollout.observation.shape[-1]
        seen = torch.cat([inputs["seen"], inputs["observation"]]).view(-1, dim)
        results["normalizer/mean"] = seen.mean(0).numpy()
        results["normalizer/variance"] = seen.var(dim=0, correction=0).numpy()
    return {f"{case}/{name}": values for name, values in results.items()}


def ppo(case: str) -> dict[str, Array]:
    inputs = dumped_inputs("ppo", case)
    return results_of(case, inputs, GaussianIteration(inputs))


if __name__ == "__main__":
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    write_arrays(DIRECTORY / "ppo.bin", {**ppo("default"), **ppo("other"), **ppo("steep")})
