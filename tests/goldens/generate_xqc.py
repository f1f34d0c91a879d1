"""Makes the golden of test_pytorch.cpp for XQC with PyTorch: whole XQC updates.

Needs and does what generate.py does, and takes the squashed Gaussian from generate_sac.py.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from generate import (
    DIRECTORY,
    INPUT_STRIDE,
    Array,
    adam,
    batches,
    dump_inputs,
    read_arrays,
    write_arrays,
)
from generate_sac import sample
from torch.nn import functional

UPDATES = 6
BATCH = 32
STRIDE = 11
HIDDEN = (20, 13)
EPSILON = 1e-3  # of a normalization
AVERAGED = 100  # updates that running means and variances are averaged over
BINS = torch.linspace(-5, 5, 101, dtype=torch.float64)
HYPERPARAMETERS = (
    *("learning_rate", "beta1", "beta2", "epsilon", "gamma", "tau", "alpha", "target_entropy"),
    *("lr_end_factor", "policy_delay", "gradient_steps", "steps", "learning_starts", "updates"),
)

# Mean and variance of what each normalization sees.
Statistics = list[tuple[torch.Tensor, torch.Tensor]]


class Network(torch.nn.Module):
    """Batch normalization before each layer of a perceptron, on a flat vector.

    For each layer scale and bias of the normalization and weights (in, out), at last the output's
    bias (Palenicek et al. 2025, section 4).
    """

    def __init__(self, widths: tuple[int, ...], parameters: torch.Tensor) -> None:
        super().__init__()
        self.widths = widths
        self.flat = torch.nn.Parameter(parameters.clone())
        self.running: Statistics = [
            (torch.zeros(w, dtype=torch.float64), torch.ones(w, dtype=torch.float64))
            for w in widths[:-1]
        ]
        assert self.flat.numel() == sum(i * (2 + o) for i, o in self.pairs()) + widths[-1]

    def pairs(self) -> list[tuple[int, int]]:
        return list(itertools.pairwise(self.widths))

    def layers(self) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        parts = [size for i, o in self.pairs() for size in (i, i, i * o)]
        pieces = iter(self.flat.split([*parts, self.widths[-1]]))
        return [(next(pieces), next(pieces), next(pieces).view(i, o)) for i, o in self.pairs()]

    def layer_by_layer(
        self, x: torch.Tensor, given: Statistics | None
    ) -> tuple[torch.Tensor, Statistics]:
        """The outputs, and the batch's means and variances, where none are given."""
        seen = []
        for layer, (scale, bias, weights) in enumerate(self.layers()):
            if given is None:
                seen.append((x.detach().mean(0), x.detach().var(0, unbiased=False)))
                x = functional.batch_norm(x, None, None, scale, bias, True, 0.0, EPSILON)
            else:
                mean, variance = given[layer]
                x = functional.batch_norm(x, mean, variance, scale, bias, False, 0.0, EPSILON)
            if layer > 0:
                x = functional.relu(x)
            x = functional.linear(x, weights.T)
        return x + self.flat[-self.widths[-1] :], seen

    def in_training(self, x: torch.Tensor) -> tuple[torch.Tensor, Statistics]:
        return self.layer_by_layer(x, None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """With the running means and variances."""
        return self.layer_by_layer(x, self.running)[0]

    @torch.no_grad()
    def normalize_weights(self) -> None:
        for _, _, weights in self.layers():
            weights.div_(torch.linalg.vector_norm(weights, dim=0, keepdim=True))

    def take_in(self, seen: Statistics, update: int) -> None:
        """What the `update`-th update saw, from 1."""
        share = 1 / min(update, AVERAGED)
        self.running = [
            (torch.lerp(mean, new_mean, share), torch.lerp(variance, new_variance, share))
            for (mean, variance), (new_mean, new_variance) in zip(self.running, seen, strict=True)
        ]


def project(values: torch.Tensor, probability: torch.Tensor) -> torch.Tensor:
    """Equation 7 of Bellemare, Dabney and Munos 2017, of values (rows, bins) with probabilities."""
    values = values.clamp(BINS[0], BINS[-1])
    distance = (values[:, :, None] - BINS).abs() / (BINS[1] - BINS[0])
    return ((1 - distance).clamp(0, 1) * probability[:, :, None]).sum(1)


def reward_factor(rewards: Sequence[float], ended: Sequence[float], gamma: float) -> float:
    """One over the deviation of the returns, or what brings the largest to the last bin."""
    returns, value = [], 0.0
    for reward, end in zip(rewards, ended, strict=True):
        value = gamma * value + reward
        returns.append(value)
        if end:
            value = 0.0
    deviation = math.sqrt(np.var(returns) + 1e-8)
    return 1 / max(deviation, max(map(abs, returns)) / BINS[-1].item())


def xqc_update(
    nets: Mapping[str, Network],
    log_temperature: torch.nn.Parameter,
    optimizers: Mapping[str, torch.optim.Adam],
    hyper: Mapping[str, float],
    batch: Mapping[str, torch.Tensor],
    update: int,
) -> dict[str, float]:
    """Critics and their targets; then, after each `policy_delay` updates, actor and temperature."""
    report = {}
    alpha = log_temperature.exp().item()
    with torch.no_grad():
        next_action, log_probability = sample(
            nets["actor"], batch["next_observation"], batch["target_noise"]
        )
        following = torch.cat([batch["next_observation"], next_action], 1)
        joint = torch.cat([batch["observation_action"], following])
        first, second = (
            nets[f"critic_{i}_target"].in_training(joint)[0][BATCH:].softmax(1) for i in (1, 2)
        )
        is_first = (first @ BINS <= second @ BINS)[:, None]
        discount = hyper["gamma"] * batch["not_terminated"]
        values = batch["reward"] + discount * (BINS - alpha * log_probability)
        target = project(values, torch.where(is_first, first, second))
    for name in ("critic_1", "critic_2"):
        critic = nets[name]
        logits, seen = critic.in_training(joint)
        loss = functional.cross_entropy(logits[:BATCH], target)
        optimizers[name].zero_grad()
        loss.backward()
        optimizers[name].step()
        critic.normalize_weights()
        critic.take_in(seen, update)
        with torch.no_grad():
            nets[f"{name}_target"].flat.lerp_(critic.flat, hyper["tau"])
        report[f"{name}_loss"] = loss.item()
    policy_delay = int(hyper["policy_delay"])
    if update % policy_delay != 0:
        return report
    observation = batch["observation_action"][:, :3]
    actor = nets["actor"]
    output, seen = actor.in_training(observation)
    action, log_probability = sample(lambda _: output, observation, batch["policy_noise"])
    critic_input = torch.cat([observation, action], 1)
    value = torch.min(*(nets[f"critic_{i}"](critic_input).softmax(1) @ BINS for i in (1, 2)))
    actor_loss = (alpha * log_probability[:, 0] - value).mean()
    optimizers["actor"].zero_grad()
    actor_loss.backward()
    optimizers["actor"].step()
    actor.normalize_weights()
    actor.take_in(seen, update // policy_delay)
    report["actor_loss"] = actor_loss.item()
    deviation = (log_probability.detach() + hyper["target_entropy"]).mean()
    optimizers["temperature"].zero_grad()
    (-log_temperature.exp() * deviation).backward()
    optimizers["temperature"].step()
    return report


def xqc(case: str) -> dict[str, Array]:
    arrays = read_arrays(dump_inputs("xqc", case))
    inputs = {name: torch.from_numpy(values) for name, values in arrays.items()}
    hyper = dict(zip(HYPERPARAMETERS, inputs["hyperparameters"].tolist(), strict=True))
    nets = {"actor": Network((3, *HIDDEN, 2), inputs["actor"])}
    for name in ("critic_1", "critic_2"):
        nets[name] = Network((4, *HIDDEN, 101), inputs[name])
    trained = {name: network.flat for name, network in nets.items()}
    for name in ("critic_1", "critic_2"):
        nets[f"{name}_target"] = copy.deepcopy(nets[name])
    log_temperature = torch.nn.Parameter(torch.tensor([hyper["alpha"]], dtype=torch.float64).log())
    trained["temperature"] = log_temperature
    optimizers = {name: adam(parameters, hyper) for name, parameters in trained.items()}
    # By these the test notices that the core draws other inputs than these results are for.
    results = {f"inputs/{name}": values.numpy()[::INPUT_STRIDE] for name, values in inputs.items()}
    gradient_steps, policy_delay = int(hyper["gradient_steps"]), int(hyper["policy_delay"])
    for update, batch in enumerate(batches(inputs, UPDATES, BATCH)):
        step = int(hyper["learning_starts"]) + update // gradient_steps + 1
        factor = reward_factor(arrays["reward"][:step], arrays["ended"][:step], hyper["gamma"])
        batch["reward"] = batch["reward"] * factor
        fallen = (1 - hyper["lr_end_factor"]) * step / hyper["steps"]
        for optimizer in optimizers.values():
            optimizer.param_groups[0]["lr"] = hyper["learning_rate"] * (1 - fallen)
        number = int(hyper["updates"]) + update + 1
        report = xqc_update(nets, log_temperature, optimizers, hyper, batch, number)
        for name, loss in {**report, "reward_factor": factor}.items():
            results[f"{update}/{name}"] = np.array([loss])
        if (update + 1) % max(gradient_steps, policy_delay) != 0:
            continue
        for name, network in nets.items():
            results[f"{update}/{name}"] = network.flat.detach().numpy()[::STRIDE].copy()
            if not name.endswith("_target"):
                for part, index in (("mean", 0), ("variance", 1)):
                    values = [statistics[index] for statistics in network.running]
                    results[f"{update}/{name}_{part}"] = torch.cat(values).numpy()
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
    write_arrays(DIRECTORY / "xqc.bin", {**xqc("default"), **xqc("other")})
