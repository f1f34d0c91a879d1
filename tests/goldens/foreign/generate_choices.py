"""Makes the files of policies that choose, with which `rlt import` is tested: as generate.py, but
<name>.npy has the choices that the library takes, and behind them the network's outputs, (1000,
actions + outputs).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from generate import COUNT, HERE, HIDDEN, Array, Case, drawn, main, save, without_places
from gymnasium import spaces
from torch import nn

sys.path.insert(0, str(HERE.parents[1] / "fakes"))
from choosing_tasks import Lander, TwoGears

CART_POLE = np.array([4.8, 10, 0.41887903, 10], np.float32)  # of the core's contract


class CartPole(Lander):
    observation_space = spaces.Box(-CART_POLE, CART_POLE)
    action_space = spaces.Discrete(2)


def observations(task: type[gymnasium.Env]) -> Array:
    """As rltools_host.policies.image_writing.sampled() has them, (COUNT, observation_dim)."""
    high = np.array([float(f"{end:.9g}") for end in task.observation_space.high])
    primes = np.array([2, 3, 5, 7, 11, 13, 17, 19][: high.size], float)
    fractions = np.outer(np.arange(1, COUNT + 1), np.sqrt(primes)) % 1.0
    return (-high + fractions * 2 * high).astype(np.float32)


def scaled_to(
    module: nn.Module, task: type[gymnasium.Env], forward: Callable[[Any], Any], last: nn.Linear
) -> None:
    """Draws all numbers, and takes observations by their ranges; of no choice the outputs are
    larger on the whole."""
    drawn(module)
    high = torch.tensor(task.observation_space.high)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.ndim == 2 and parameter.shape[1] == len(high):
                parameter /= high
        mean = forward(torch.tensor(observations(task))).mean(0)
        last.bias -= mean.repeat(len(last.bias) // len(mean))  # of QR-DQN for each quantile


def stable_baselines3(algorithm: str, task: type[gymnasium.Env], **options: object) -> Case:
    def make(stem: Path) -> Array:
        library = "sb3_contrib" if algorithm == "QRDQN" else "stable_baselines3"
        kind = getattr(import_module(library), algorithm)
        quantiles = {"n_quantiles": 10} if algorithm == "QRDQN" else {}
        keywords = {"net_arch": HIDDEN, **quantiles}
        model = kind("MlpPolicy", task(), policy_kwargs=keywords, seed=0, device="cpu", **options)
        policy = model.policy

        def forward(x: Any) -> Any:
            if algorithm == "DQN":
                return policy.q_net(x)
            if algorithm == "QRDQN":
                return policy.quantile_net(x).mean(dim=1)
            return policy.action_net(policy.mlp_extractor.forward_actor(x))

        last = policy.action_net if hasattr(policy, "action_net") else None
        if last is None:
            name = "q_net" if algorithm == "DQN" else "quantile_net"
            last = getattr(getattr(policy, name), name)[-1]
        scaled_to(policy, task, forward, last)
        save(model, stem)
        seen = observations(task)
        chosen = model.predict(seen, deterministic=True)[0].reshape(COUNT, -1)
        with torch.no_grad():
            outputs = forward(torch.tensor(seen))
        return np.hstack([chosen, outputs.numpy()])

    return make


def network(task: type[gymnasium.Env], activation: type[nn.Module]) -> nn.Sequential:
    inputs = task.observation_space.shape[0]
    space = task.action_space
    count = int(space.n if isinstance(space, spaces.Discrete) else space.nvec.sum())
    return nn.Sequential(
        *(nn.Linear(inputs, 12), activation(), nn.Linear(12, 8), activation()),
        nn.Linear(8, count),
    )


class PpoAgent(nn.Module):
    """CleanRL's of ppo.py, by its names."""

    def __init__(self, task: type[gymnasium.Env]) -> None:
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(task.observation_space.shape[0], 1))
        self.actor = network(task, nn.Tanh)


class QNetwork(nn.Module):
    """CleanRL's of dqn.py, by its names."""

    def __init__(self, task: type[gymnasium.Env]) -> None:
        super().__init__()
        self.network = network(task, nn.ReLU)


def chosen(module: nn.Module, task: type[gymnasium.Env]) -> Array:
    with torch.no_grad():
        outputs = module(torch.tensor(observations(task)))
    space = task.action_space
    counts = [int(space.n)] if isinstance(space, spaces.Discrete) else space.nvec.tolist()
    parts = outputs.split(counts, 1)
    best = torch.stack([part.argmax(1) for part in parts], 1)
    return np.hstack([best.numpy(), outputs.numpy()])


def cleanrl_ppo(stem: Path) -> Array:
    agent = PpoAgent(CartPole)
    scaled_to(agent, CartPole, agent.actor, agent.actor[-1])
    torch.save(agent.state_dict(), stem.with_suffix(".cleanrl_model"))
    return chosen(agent.actor, CartPole)


def cleanrl_dqn(stem: Path) -> Array:
    agent = QNetwork(CartPole)
    scaled_to(agent, CartPole, agent.network, agent.network[-1])
    torch.save(agent.state_dict(), stem.with_suffix(".cleanrl_model"))
    return chosen(agent.network, CartPole)


def plain(task: type[gymnasium.Env], activation: type[nn.Module], ending: str) -> Case:
    def make(stem: Path) -> Array:
        module = network(task, activation)
        scaled_to(module, task, module, module[-1])
        path = stem.with_suffix(ending)
        if ending == ".onnx":
            x = torch.tensor(observations(task)[:2])
            names = {"input_names": ["obs"], "dynamic_axes": {"obs": {0: "n"}}}
            torch.onnx.export(module, (x,), path, dynamo=False, **names)
            without_places(path)
        elif ending == ".safetensors":
            from safetensors.torch import save_file

            save_file(module.state_dict(), path)
        else:
            torch.save(module.state_dict(), path)
        return chosen(module, task)

    return make


CASES: dict[str, Case] = {
    "sb3_ppo_cart_pole": stable_baselines3("PPO", CartPole),
    "sb3_ppo_two_gears": stable_baselines3("PPO", TwoGears),
    "sb3_a2c_lander": stable_baselines3("A2C", Lander),
    "sb3_dqn_lander": stable_baselines3("DQN", Lander, buffer_size=100),
    "sb3_qrdqn_lander": stable_baselines3("QRDQN", Lander, buffer_size=100),
    "sb3_qrdqn_policy": stable_baselines3("QRDQN", Lander, buffer_size=100),
    "cleanrl_ppo_choices": cleanrl_ppo,
    "cleanrl_dqn": cleanrl_dqn,
    "pytorch_logits": plain(TwoGears, nn.ELU, ".pt"),
    "safetensors_logits": plain(CartPole, nn.SiLU, ".safetensors"),
    "onnx_logits": plain(Lander, nn.ReLU, ".onnx"),
}


if __name__ == "__main__":
    main(CASES, sys.argv[1:])
