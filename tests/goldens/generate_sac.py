"""Makes the golden of test_pytorch.cpp for SAC with PyTorch: whole SAC updates.

Needs and does what generate.py does, from which it takes what it shares with TD3.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping

import numpy as np
import torch
from generate import (
    DIRECTORY,
    INPUT_STRIDE,
    Array,
    Network,
    adam,
    batches,
    dump_inputs,
    read_arrays,
    smaller_target_value,
    update_critics,
    update_targets,
    write_arrays,
)

UPDATES = 2
STRIDE = 21
HYPERPARAMETERS = (
    *("learning_rate", "beta1", "beta2", "epsilon"),
    *("gamma", "tau", "alpha", "target_entropy"),
)


def sample(
    actor: Network, observation: torch.Tensor, noise: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Action and its log-probability: Haarnoja et al. 2018, appendix C."""
    mean, log_std = actor(observation).chunk(2, dim=1)
    std = log_std.clamp(-20, 2).exp()
    u = mean + std * noise
    # The normal's density at u, with the noise in place of (u - mean) / std, which cancels where
    # std is small.
    log_density = -(noise**2) / 2 - std.log() - math.log(2 * math.pi) / 2
    # log(1 - tanh(u)^2) = -2 log cosh(u)
    log_derivative = -2 * (torch.logaddexp(u, -u) - math.log(2))
    log_probability = (log_density - log_derivative).sum(1, keepdim=True)
    check_density(mean, std, u, log_probability)
    return torch.tanh(u), log_probability


def check_density(
    mean: torch.Tensor, std: torch.Tensor, u: torch.Tensor, log_probability: torch.Tensor
) -> None:
    """The same from torch.distributions, which loses digits for a small std or a large u."""
    normal = torch.distributions.Normal(mean, std)
    squash = torch.distributions.transforms.TanhTransform()
    other = normal.log_prob(u) - squash.log_abs_det_jacobian(u, torch.tanh(u))
    torch.testing.assert_close(log_probability, other.sum(1, keepdim=True), rtol=1e-6, atol=1e-6)


def sac_update(
    nets: Mapping[str, Network],
    log_temperature: torch.nn.Parameter,
    optimizers: Mapping[str, torch.optim.Adam],
    hyper: Mapping[str, float],
    batch: Mapping[str, torch.Tensor],
) -> dict[str, float]:
    """Algorithm 1's gradient step: critics, actor, temperature, targets; one alpha throughout."""
    observation = batch["observation_action"][:, :3]
    alpha = log_temperature.exp().item()
    with torch.no_grad():
        next_action, log_probability = sample(
            nets["actor"], batch["next_observation"], batch["target_noise"]
        )
        value = smaller_target_value(nets, batch["next_observation"], next_action)
        value -= alpha * log_probability
        target = batch["reward"] + hyper["gamma"] * batch["not_terminated"] * value
    report = update_critics(nets, optimizers, batch["observation_action"], target)
    action, log_probability = sample(nets["actor"], observation, batch["policy_noise"])
    critic_input = torch.cat([observation, action], 1)
    value = torch.min(nets["critic_1"](critic_input), nets["critic_2"](critic_input))
    actor_loss = (alpha * log_probability - value).mean()
    optimizers["actor"].zero_grad()
    actor_loss.backward()
    optimizers["actor"].step()
    report["actor_loss"] = actor_loss.item()
    deviation = (log_probability.detach() + hyper["target_entropy"]).mean()
    optimizers["temperature"].zero_grad()
    (-log_temperature.exp() * deviation).backward()
    optimizers["temperature"].step()
    update_targets(nets, hyper["tau"])
    return report


def sac(case: str) -> dict[str, Array]:
    arrays = read_arrays(dump_inputs("sac", case))
    inputs = {name: torch.from_numpy(values) for name, values in arrays.items()}
    hyper = dict(zip(HYPERPARAMETERS, inputs["hyperparameters"].tolist(), strict=True))
    nets = {
        "actor": Network((3, 64, 64, 2), "relu", "identity", inputs["actor"]),
        "critic_1": Network((4, 64, 64, 1), "relu", "identity", inputs["critic_1"]),
        "critic_2": Network((4, 64, 64, 1), "relu", "identity", inputs["critic_2"]),
    }
    trained = {name: network.flat for name, network in nets.items()}
    for name in ("critic_1", "critic_2"):
        nets[f"{name}_target"] = copy.deepcopy(nets[name])
    log_temperature = torch.nn.Parameter(torch.tensor([hyper["alpha"]], dtype=torch.float64).log())
    trained["temperature"] = log_temperature
    optimizers = {name: adam(parameters, hyper) for name, parameters in trained.items()}
    # By these the test notices that the core draws other inputs than these results are for.
    results = {f"inputs/{name}": values.numpy()[::INPUT_STRIDE] for name, values in inputs.items()}
    for update, batch in enumerate(batches(inputs, UPDATES)):
        for name, loss in sac_update(nets, log_temperature, optimizers, hyper, batch).items():
            results[f"{update}/{name}"] = np.array([loss])
        for name, network in nets.items():
            results[f"{update}/{name}"] = network.flat.detach().numpy()[::STRIDE].copy()
        results[f"{update}/log_temperature"] = log_temperature.detach().numpy().copy()
        for name, parameters in trained.items():
            state = optimizers[name].state[parameters]
            for ours, theirs in (("first_moment", "exp_avg"), ("second_moment", "exp_avg_sq")):
                stored = state[theirs].numpy()[::STRIDE].copy()
                results[f"{update}/{name}_optimizer/{ours}"] = stored
    return {f"{case}/{name}": values for name, values in results.items()}


if __name__ == "__main__":
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    write_arrays(DIRECTORY / "sac.bin", {**sac("default"), **sac("bounded")})
