"""Makes the goldens of test_pytorch.cpp with PyTorch: PPO of two choices, DQN of one.

Needs and does what generate.py does. What is allowed is computed here, by what is observed.
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
    adam,
    batches,
    update_targets,
    write_arrays,
)
from generate_ppo import Iteration, dumped_inputs, results_of
from torch.distributions import Categorical, Distribution, kl_divergence, register_kl
from torch.nn import functional

# For each action the observation that allows each of its choices; None: nothing forbids it.
MASKS_OF_TWO = ((3, None, None), (4, 5))
MASKS_OF_ONE = ((3, None, 4, 5, None),)

UPDATES, BATCH, STRIDE = 6, 32, 7
HYPERPARAMETERS = (
    *("learning_rate", "beta1", "beta2", "epsilon", "gamma", "tau", "target_update_interval"),
    *("double_dqn", "lr_end_factor", "steps", "learning_starts", "reward_scale"),
)


def allowed(
    observation: torch.Tensor, masks: tuple[tuple[int | None, ...], ...]
) -> list[torch.Tensor]:
    """For each action (rows, choices); of an action whose choices are all forbidden none is."""
    every = torch.ones(len(observation), dtype=torch.bool)
    parts = []
    for action in masks:
        columns = [every if mask is None else observation[:, mask] >= 0.5 for mask in action]
        part = torch.stack(columns, 1)
        parts.append(part | ~part.any(1, keepdim=True))
    return parts


class Choices(Distribution):
    """Several independent choices, by logits (rows, choices of all), of which some are allowed."""

    def __init__(self, logits: torch.Tensor, allowed: list[torch.Tensor]) -> None:
        super().__init__(validate_args=False)
        parts = logits.split([part.shape[1] for part in allowed], 1)
        self.parts = [
            Categorical(logits=part.masked_fill(~may, -torch.inf))
            for part, may in zip(parts, allowed, strict=True)
        ]

    def log_prob(self, action: torch.Tensor) -> torch.Tensor:
        return sum(part.log_prob(action[:, i]) for i, part in enumerate(self.parts))

    def entropy(self) -> torch.Tensor:
        return sum(part.entropy() for part in self.parts)


@register_kl(Choices, Choices)
def kl_of_choices(before: Choices, now: Choices) -> torch.Tensor:
    return sum(kl_divergence(p, q) for p, q in zip(before.parts, now.parts, strict=True))


class ChoicesIteration(Iteration):
    """Nothing of the policy that acted is the core's but its weights and what it chose."""

    def __init__(self, inputs: Mapping[str, torch.Tensor]) -> None:
        super().__init__(inputs)
        observation = self.rollout.observation.flatten(0, 1)
        self.allowed = allowed(observation, MASKS_OF_TWO)
        with torch.no_grad():
            self.logits = self.actor(self.rollout.normalized(observation))
        action = self.rollout.action.flatten(0, 1)
        chance = Choices(self.logits, self.allowed).log_prob(action)
        assert torch.isfinite(chance).all(), "the core has drawn what is forbidden"

    def policies(
        self, rows: torch.Tensor, outputs: torch.Tensor
    ) -> tuple[Distribution, Distribution]:
        may = [part[rows] for part in self.allowed]
        return Choices(self.logits[rows], may), Choices(outputs, may)


def ppo(case: str) -> dict[str, Array]:
    inputs = dumped_inputs("ppo_choices", case)
    iteration = ChoicesIteration(inputs)
    columns = [iteration.rollout.observation.flatten(0, 1)[:, mask] for mask in (3, 4, 5)]
    assert all(0 < column.sum() < len(column) for column in columns), "a mask has one value"
    assert ((columns[1] < 0.5) & (columns[2] < 0.5)).any(), "no row forbids all of an action"
    return results_of(case, inputs, iteration) | {
        f"{case}/logits": iteration.logits.numpy(),
        f"{case}/allowed": torch.cat(iteration.allowed, 1).double().numpy(),
    }


def dqn_update(
    nets: Mapping[str, Network],
    optimizer: torch.optim.Adam,
    hyper: Mapping[str, float],
    batch: Mapping[str, torch.Tensor],
    update: int,
) -> dict[str, float]:
    """Mnih et al. 2015, algorithm 1, or van Hasselt et al. 2016, equation 4."""
    (may,) = allowed(batch["next_observation"], MASKS_OF_ONE)
    with torch.no_grad():
        values = nets["critic_target"](batch["next_observation"])
        judge = nets["critic"](batch["next_observation"]) if hyper["double_dqn"] else values
        best = judge.masked_fill(~may, -torch.inf).argmax(1, keepdim=True)
        if update == 0:
            assert (best != judge.argmax(1, keepdim=True)).any(), "no mask counts"
        reward = hyper["reward_scale"] * batch["reward"]
        target = reward + hyper["gamma"] * batch["not_terminated"] * values.gather(1, best)
    value = nets["critic"](batch["observation"]).gather(1, batch["action"].long())
    loss = functional.smooth_l1_loss(value, target)
    optimizer.zero_grad()
    loss.backward()
    step = hyper["learning_starts"] + 1 + update
    (group,) = optimizer.param_groups
    fallen = (1 - hyper["lr_end_factor"]) * step / hyper["steps"]
    group["lr"] = hyper["learning_rate"] * (1 - fallen)
    optimizer.step()
    if (update + 1) % int(hyper["target_update_interval"]) == 0:
        update_targets(nets, hyper["tau"])
    near = ((value - target).abs() < 1).double().mean().item()
    assert 0 < near < 1, "all errors lie on one side of Huber's bound"
    return {"loss": loss.item(), "q_value": value.mean().item()}


def dqn(case: str) -> dict[str, Array]:
    inputs = dumped_inputs("dqn", case)
    hyper = dict(zip(HYPERPARAMETERS, inputs["hyperparameters"].tolist(), strict=True))
    nets = {
        name: Network((6, 16, 12, 5), "relu", "identity", inputs[name])
        for name in ("critic", "critic_target")
    }
    flat = nets["critic"].flat
    optimizer = adam(flat, hyper)
    # By these the test notices that the core draws other inputs than these results are for.
    results = {f"inputs/{name}": values.numpy()[::INPUT_STRIDE] for name, values in inputs.items()}
    all_batches = batches(inputs, UPDATES, BATCH)
    assert 0 < sum((batch["not_terminated"] == 0).sum() for batch in all_batches) < 2 * BATCH
    for update, batch in enumerate(all_batches):
        for name, value in dqn_update(nets, optimizer, hyper, batch, update).items():
            results[f"{update}/{name}"] = np.array([value])
        for name, network in nets.items():
            results[f"{update}/{name}"] = network.flat.detach().numpy()[::STRIDE].copy()
        state = optimizer.state[flat]
        for ours, theirs in (("first_moment", "exp_avg"), ("second_moment", "exp_avg_sq")):
            stored = state[theirs].numpy()[::STRIDE].copy()
            results[f"{update}/critic_optimizer/{ours}"] = stored
    return {f"{case}/{name}": values for name, values in results.items()}


if __name__ == "__main__":
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    write_arrays(DIRECTORY / "ppo_choices.bin", {**ppo("default"), **ppo("other"), **ppo("steep")})
    write_arrays(DIRECTORY / "dqn.bin", {**dqn("double"), **dqn("plain")})
