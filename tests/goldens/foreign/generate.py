"""Makes the files that `rlt import` is tested with, by the libraries that write them, and the
actions that these libraries give.

Run it where requirements.txt is installed: python tests/goldens/foreign/generate.py [NAME ...]
It writes beside itself <name>.<ending>, as the library saves it, and <name>.npy: the actions
(1000, action_dim) in float32 for `observations`, in the environment's units. Networks are small and
drawn at random: nothing is learned, but normalizers have seen numbers.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import nn

HERE = Path(__file__).resolve().parent
COUNT = 1000
HIDDEN = [12, 8]
# Of the core's contracts: (low, high) of observations and actions.
RANGES = {
    "pendulum": (
        (np.array([-1, -1, -8.0]), np.array([1, 1, 8.0])),
        (np.array([-2.0]), np.array([2.0])),
    ),
    "quadrotor": (
        (
            np.array([-5.0] * 3 + [-10.0] * 3 + [0, -1, -1, -1] + [-35.0] * 3),
            np.array([5.0] * 3 + [10.0] * 3 + [1.0] * 4 + [35.0] * 3),
        ),
        (np.zeros(4), np.ones(4)),
    ),
}
Array = Any
Case = Callable[[Path], Array]


def observations(contract: str) -> Array:
    """As rltools_host.policies.image_writing.sampled() has them, (COUNT, observation_dim)."""
    low, high = RANGES[contract][0]
    primes = np.array([2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41][: low.size], float)
    fractions = np.outer(np.arange(1, COUNT + 1), np.sqrt(primes)) % 1.0
    return (low + fractions * (high - low)).astype(np.float32)


class Task(gymnasium.Env[Any, Any]):
    """Spaces, and observations drawn from them."""

    def __init__(self, contract: str, steps: int = 20) -> None:
        low, high = RANGES[contract][0]
        actions = RANGES[contract][1]
        self.observation_space = gymnasium.spaces.Box(low.astype("f4"), high.astype("f4"))
        self.action_space = gymnasium.spaces.Box(*(end.astype("f4") for end in actions))
        self.steps, self.left = steps, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.left = self.steps
        return self.draw(), {}

    def draw(self) -> Any:
        box = self.observation_space
        return self.np_random.uniform(box.low, box.high).astype(np.float32)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        return self.draw(), -float(np.square(action).sum()), False, self.left == 0, {}


def drawn(module: nn.Module, contract: str | None = None, scale: float = 0.9) -> None:
    """Gives each parameter numbers that saturate little, and are zero nowhere. A layer that takes
    the observations of a contract themselves takes them by their ranges."""
    generator = torch.Generator().manual_seed(1)
    taken = None if contract is None else np.abs(RANGES[contract][0]).max(axis=0)
    with torch.no_grad():
        for parameter in module.parameters():
            width = parameter.shape[-1] if parameter.ndim > 1 else 4
            noise = scale * torch.randn(parameter.shape, generator=generator) * (2.0 / width) ** 0.5
            if taken is not None and parameter.ndim == 2 and width == taken.size:
                noise /= torch.tensor(taken, dtype=torch.float32)
            parameter.copy_(noise)


def centered(last: nn.Linear) -> None:
    """Has the actions in the middle of 0 to 1, where they are in these units."""
    with torch.no_grad():
        last.weight.mul_(0.4)
        last.bias.fill_(0.5)


# ---- Stable-Baselines3 ---------------------------------------------------------------------------


def save(model: Any, stem: Path) -> None:
    """Save the model as a .zip, or its policy alone where the name ends so."""
    if stem.name.endswith("_policy"):
        model.policy.save(stem.with_suffix(".pt"))
    else:
        model.save(stem.with_suffix(".zip"))


def stable_baselines3(
    algorithm: str, contract: str, *, vec_normalize: bool = False, steps: int = 0, **options: Any
) -> Case:
    """TQC, CrossQ and ARS are sb3-contrib's."""

    def make(stem: Path) -> Array:
        from stable_baselines3.common.monitor import Monitor
        from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

        env: Any = DummyVecEnv([lambda: Monitor(Task(contract))])
        if vec_normalize:
            env = VecNormalize(env, clip_obs=options.pop("clip_obs", 10.0))
        policy_kwargs = {"net_arch": HIDDEN, **options.pop("policy_kwargs", {})}
        is_contrib = algorithm in ("TQC", "CrossQ", "ARS")
        library = import_module("sb3_contrib" if is_contrib else "stable_baselines3")
        model = getattr(library, algorithm)(
            "MlpPolicy", env, policy_kwargs=policy_kwargs, seed=0, device="cpu", **options
        )
        if steps:
            model.learn(steps)
        if vec_normalize:
            drawn(model.policy, scale=0.5)
        else:
            drawn(model.policy, contract)
        save(model, stem)
        seen = observations(contract)
        if vec_normalize:
            env.save(str(stem.with_suffix(".pkl")))
            seen = env.normalize_obs(seen)
        return model.predict(seen, deterministic=True)[0]

    return make


# ---- CleanRL, whose files are the tables of modules with these names -----------------------------


class CleanRlPpo(nn.Module):
    def __init__(self, observation_dim: int, action_dim: int) -> None:
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(observation_dim, 8), nn.Tanh(), nn.Linear(8, 1))
        self.actor_mean = nn.Sequential(
            *(nn.Linear(observation_dim, 12), nn.Tanh(), nn.Linear(12, 8), nn.Tanh()),
            nn.Linear(8, action_dim),
        )
        self.actor_logstd = nn.Parameter(torch.zeros(1, action_dim))

    def act(self, x: Any) -> Any:
        return self.actor_mean(x)


class CleanRlActor(nn.Module):
    """Of SAC (with fc_mean and fc_logstd), and of TD3 and DDPG (with fc_mu)."""

    def __init__(self, last: str, contract: str) -> None:
        super().__init__()
        (low, _), (least, most) = RANGES[contract]
        self.fc1, self.fc2 = nn.Linear(low.size, 12), nn.Linear(12, 8)
        self.last = last
        setattr(self, last, nn.Linear(8, least.size))
        if last == "fc_mean":
            self.fc_logstd = nn.Linear(8, least.size)
        scale = torch.tensor((most - least) / 2, dtype=torch.float32)
        middle = torch.tensor((most + least) / 2, dtype=torch.float32)
        self.register_buffer("action_scale", scale)
        self.register_buffer("action_bias", middle)

    def act(self, x: Any) -> Any:
        x = torch.relu(self.fc2(torch.relu(self.fc1(x))))
        return torch.tanh(getattr(self, self.last)(x)) * self.action_scale + self.action_bias


def recorded(act: Callable[[Any], Any], contract: str) -> Array:
    """What the module gives, within the bounds of the actions."""
    with torch.no_grad():
        actions = act(torch.tensor(observations(contract))).numpy()
    return np.clip(actions, *RANGES[contract][1])


def cleanrl_ppo(stem: Path) -> Array:
    module = CleanRlPpo(3, 1)
    drawn(module, "pendulum")
    torch.save(module.state_dict(), stem.with_suffix(".cleanrl_model"))
    return recorded(module.act, "pendulum")


def cleanrl_actor(last: str, contract: str, *, critic_count: int) -> Case:
    def make(stem: Path) -> Array:
        actor = CleanRlActor(last, contract)
        drawn(actor, contract)
        critics = [nn.Linear(4, 1).state_dict() for _ in range(critic_count)]
        saved = (actor.state_dict(), *critics) if critics else actor.state_dict()
        torch.save(saved, stem.with_suffix(".cleanrl_model"))
        return recorded(actor.act, contract)

    return make


# ---- plain PyTorch, safetensors ------------------------------------------------------------------


def perceptron(contract: str, activation: type[nn.Module], last: type[nn.Module]) -> nn.Module:
    (low, _), (least, _) = RANGES[contract]
    module = nn.Sequential(
        *(nn.Linear(low.size, 12), activation(), nn.Linear(12, 8), activation()),
        *(nn.Linear(8, least.size), last()),
    )
    drawn(module, contract)
    return module


def scaled(actions: Array, contract: str) -> Array:
    """From [-1, 1] to the ranges of the actions."""
    low, high = RANGES[contract][1]
    return (low + (actions + 1) / 2 * (high - low)).astype(np.float32)


def plain(contract: str, activation: type[nn.Module]) -> Case:
    def make(stem: Path) -> Array:
        module = perceptron(contract, activation, nn.Tanh)
        torch.save(module.state_dict(), stem.with_suffix(".pt"))
        with torch.no_grad():
            return scaled(module(torch.tensor(observations(contract))).numpy(), contract)

    return make


def safetensors(stem: Path) -> Array:
    from safetensors.torch import save_file

    module = perceptron("quadrotor", nn.SiLU, nn.Tanh)
    save_file(module.state_dict(), stem.with_suffix(".safetensors"))
    with torch.no_grad():
        return scaled(module(torch.tensor(observations("quadrotor"))).numpy(), "quadrotor")


class Scaled(nn.Module):
    """A network with its normalizer, and with actions in the environment's units."""

    def __init__(self, contract: str, activation: type[nn.Module]) -> None:
        super().__init__()
        self.network = perceptron(contract, activation, nn.Tanh)
        (low, high), (least, most) = RANGES[contract]
        self.register_buffer("mean", torch.tensor((low + high) / 5, dtype=torch.float32))
        self.register_buffer("half_range", torch.tensor((most - least) / 2, dtype=torch.float32))
        self.register_buffer("middle", torch.tensor((most + least) / 2, dtype=torch.float32))

    def forward(self, x: Any) -> Any:
        x = torch.clamp((x - self.mean) / 1.25, -6.0, 6.0)
        return self.network(x) * self.half_range + self.middle


def onnx(contract: str, activation: type[nn.Module], *, dynamo: bool) -> Case:
    def make(stem: Path) -> Array:
        module = Scaled(contract, activation).eval()
        x = torch.tensor(observations(contract))
        path = stem.with_suffix(".onnx")
        torch.onnx.export(
            module,
            (x[:2],),
            path,
            input_names=["obs"],
            dynamic_shapes={"x": {0: torch.export.Dim("n")}} if dynamo else None,
            dynamic_axes=None if dynamo else {"obs": {0: "n"}},
            dynamo=dynamo,
            external_data=False,
        )
        without_places(path)
        return recorded(module, contract)

    return make


def without_places(path: Path) -> None:
    """Drops where in which source each node comes from."""
    import onnx

    model = onnx.load(path)
    for entry in (model, model.graph, *model.graph.node, *model.graph.input, *model.graph.output):
        del entry.metadata_props[:]
        entry.doc_string = ""
    onnx.save(model, path)


# What a user of LEAPP states of a tensor: its elements, and in `extra` what LEAPP has no key for.
STATED: dict[str, tuple[list[str], dict[str, Any]]] = {
    "position": ([*"xyz"], {"units": "m", "minimum": -5.0, "maximum": 5.0}),
    "velocity": ([*"xyz"], {"units": "m/s", "minimum": -10.0, "maximum": 10.0}),
    "attitude": ([*"wxyz"], {"units": "1", "minimum": [0.0, -1.0, -1.0, -1.0], "maximum": 1.0}),
    "rate": ([*"xyz"], {"units": ["rad/s"] * 3, "minimum": -35.0, "maximum": 35.0}),
    "action": ([*"abcd"], {"units": "1", "minimum": 0.0, "maximum": 1.0}),
}


def leapp(*, stated: bool) -> Case:
    """Its folder's files, beside the others; stated: with a contract of its own, at 100 Hz."""

    def make(stem: Path) -> Array:
        import leapp as library
        from leapp import GraphConfigs, TensorSemantics, annotate

        module = perceptron("quadrotor", nn.ELU, nn.Tanh)
        seen = torch.tensor(observations("quadrotor"))
        sizes = {"position": 3, "velocity": 3, "attitude": 4, "rate": 3}

        def joined(parts: Any) -> Any:
            position, velocity, attitude, rate = parts
            return torch.cat([velocity * 0.5, position, attitude, rate - 0.1], -1)

        def described(tensors: dict[str, Any]) -> Any:
            if not stated:
                return tensors
            return [
                TensorSemantics(name=name, ref=ref, element_names=names, extra=extra)
                for name, ref in tensors.items()
                for names, extra in [STATED[name]]
            ]

        with tempfile.TemporaryDirectory() as folder:
            library.start(name=stem.name, save_path=folder)
            first = dict(zip(sizes, torch.split(seen[0], list(sizes.values())), strict=True))
            action = module(joined(annotate.input_tensors("policy", described(first))))
            outputs = described({"action": action * 0.5 + 0.5})
            annotate.output_tensors("policy", outputs, export_with="onnx")
            library.stop()
            configs = GraphConfigs(frequency=100.0) if stated else None
            library.compile_graph(visualize=False, graph_configs=configs)
            (found,) = Path(folder).rglob(f"{stem.name}.yaml")
            model = found.with_name("policy.onnx").read_bytes()
            text = found.read_text()
        named = stem.with_suffix(".onnx")
        named.write_bytes(model)
        without_places(named)
        digest = hashlib.sha256(named.read_bytes()).hexdigest()
        text = re.sub("policy.onnx", named.name, text)
        stem.with_suffix(".yaml").write_text(re.sub("sha256sum: .*", f"sha256sum: {digest}", text))
        return recorded(
            lambda x: module(joined(torch.split(x, list(sizes.values()), -1))) * 0.5 + 0.5,
            "quadrotor",
        )

    return make


# ---- libraries with a normalizer in the file -----------------------------------------------------


def seen_before(contract: str) -> Any:
    """Observations that a normalizer has seen, (300, observation_dim)."""
    low, high = RANGES[contract][0]
    generator = np.random.default_rng(3)
    return torch.tensor(generator.normal((low + high) / 3, (high - low) / 5, (300, low.size)))


def rsl_rl(stem: Path) -> Array:
    from rsl_rl.models import MLPModel
    from tensordict import TensorDict

    seen = {"policy": torch.tensor(observations("quadrotor"))}
    actor = MLPModel(
        TensorDict(seen, [COUNT]),
        {"actor": ["policy"]},
        "actor",
        4,
        HIDDEN,
        "elu",
        obs_normalization=True,
        distribution_cfg={"class_name": "GaussianDistribution", "init_std": 0.5},
    )
    save_rsl_rl(actor, stem)
    return recorded(lambda x: actor(TensorDict({"policy": x}, [COUNT])), "quadrotor")


def save_rsl_rl(actor: Any, stem: Path) -> None:
    drawn(actor, scale=0.5)
    centered(actor.mlp[-1])
    actor.obs_normalizer.train()
    actor.obs_normalizer.update(seen_before("quadrotor").float())
    actor.eval()
    saved = {"actor_state_dict": actor.state_dict(), "critic_state_dict": {}, "iter": 7}
    torch.save({**saved, "optimizer_state_dict": {}, "infos": None}, stem.with_suffix(".pt"))


def save_rsl_rl_2(network: Any, stem: Path) -> Any:
    """The normalizer that is saved with it."""
    from rsl_rl.modules.normalizer import EmpiricalNormalization

    drawn(network, scale=0.5)
    centered(network.actor[-1])
    normalizer = EmpiricalNormalization([13], until=100_000_000)
    normalizer.train()
    normalizer(seen_before("quadrotor").float())
    normalizer.eval()
    saved = {"model_state_dict": network.state_dict(), "optimizer_state_dict": {}, "iter": 5}
    saved["obs_norm_state_dict"] = normalizer.state_dict()
    torch.save({**saved, "infos": None}, stem.with_suffix(".pt"))
    return normalizer


def rsl_rl_2(stem: Path) -> Array:
    """By itself, with rsl-rl-lib 2.3.3 in the folder that RSL_RL_2 names: pip install --no-deps
    --target FOLDER rsl-rl-lib==2.3.3."""
    sys.path.insert(0, os.environ["RSL_RL_2"])
    from rsl_rl.modules.actor_critic import ActorCritic

    network = ActorCritic(
        13, 13, 4, actor_hidden_dims=HIDDEN, critic_hidden_dims=[8], activation="elu"
    )
    normalizer = save_rsl_rl_2(network, stem)
    return recorded(lambda x: network.act_inference(normalizer(x)), "quadrotor")


def rl_games_model(stem: Path, sequences: int = 1, **memory: Any) -> Any:
    """Saved; memory: what its network has beside layers."""
    from rl_games.algos_torch.model_builder import ModelBuilder

    initializer = {"name": "default"}
    space = {
        "mu_activation": "None",
        "sigma_activation": "None",
        "mu_init": initializer,
        "sigma_init": {"name": "const_initializer", "val": 0},
        "fixed_sigma": True,
    }
    network = {
        "name": "actor_critic",
        "separate": False,
        "space": {"continuous": space},
        "mlp": {"units": HIDDEN, "activation": "elu", "initializer": initializer},
        **memory,
    }
    parameters = {"model": {"name": "continuous_a2c_logstd"}, "network": network}
    model = (
        ModelBuilder()
        .load(parameters)
        .build(
            {
                "actions_num": 4,
                "input_shape": (13,),
                "num_seqs": sequences,
                "value_size": 1,
                "normalize_value": True,
                "normalize_input": True,
            }
        )
    )
    drawn(model, scale=0.5)
    centered(model.a2c_network.mu)
    model.running_mean_std.train()
    # Less spread than what is asked: some are cut off.
    model.running_mean_std(0.4 * seen_before("quadrotor").float())
    model.eval()
    saved = {"model": model.state_dict(), "epoch": 3, "frame": 4000, "optimizer": {}}
    torch.save(saved, stem.with_suffix(".pth"))
    return model


def rl_games(stem: Path) -> Array:
    model = rl_games_model(stem)

    def act(x: Any) -> Any:
        return model({"is_train": False, "prev_actions": None, "obs": x})["mus"]

    return recorded(act, "quadrotor")


def skrl(stem: Path) -> Array:
    from skrl.agents.torch.ppo import PPO, PPO_CFG
    from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
    from skrl.resources.preprocessors.torch import RunningStandardScaler

    env = Task("quadrotor")

    class Policy(GaussianMixin, Model):  # type: ignore[misc]
        def __init__(self) -> None:
            Model.__init__(
                self,
                observation_space=env.observation_space,
                action_space=env.action_space,
                device="cpu",
            )
            GaussianMixin.__init__(self, clip_actions=False)
            self.net_container = perceptron("quadrotor", nn.SiLU, nn.SiLU)[:4]
            self.policy_layer = nn.Linear(8, 4)
            self.log_std_parameter = nn.Parameter(torch.zeros(4))

        def compute(self, inputs: Any, role: str = "") -> Any:  # noqa: ARG002
            x = self.policy_layer(self.net_container(inputs["observations"]))
            return x, {"log_std": self.log_std_parameter}

    class Value(DeterministicMixin, Model):  # type: ignore[misc]
        def __init__(self) -> None:
            Model.__init__(
                self,
                observation_space=env.observation_space,
                action_space=env.action_space,
                device="cpu",
            )
            DeterministicMixin.__init__(self)
            self.net = nn.Linear(13, 1)

        def compute(self, inputs: Any, role: str = "") -> Any:  # noqa: ARG002
            return self.net(inputs["observations"]), {}

    models = {"policy": Policy(), "value": Value()}
    scaler = {"size": env.observation_space, "device": "cpu"}
    agent = PPO(
        models=models,
        observation_space=env.observation_space,
        action_space=env.action_space,
        device="cpu",
        cfg=PPO_CFG(
            observation_preprocessor=RunningStandardScaler, observation_preprocessor_kwargs=scaler
        ),
    )
    drawn(models["policy"], scale=0.5)
    centered(models["policy"].policy_layer)
    agent._observation_preprocessor(0.4 * seen_before("quadrotor").float(), train=True)
    agent.save(str(stem.with_suffix(".pt")))

    def act(x: Any) -> Any:
        inputs = {"observations": agent._observation_preprocessor(x)}
        return models["policy"].compute(inputs)[0]

    return recorded(act, "quadrotor")


def sbx(algorithm: str, contract: str, activation: str = "", **options: Any) -> Case:
    """activation: a function of JAX's, or "lambda"; the policy is then not trained."""

    def make(stem: Path) -> Array:
        import jax
        import sbx as library

        keywords: dict[str, Any] = {"net_arch": HIDDEN}
        if activation == "lambda":
            keywords["activation_fn"] = lambda x: jax.numpy.maximum(x, 0.1 * x)
        elif activation:
            keywords["activation_fn"] = getattr(jax.nn, activation)
        model = getattr(library, algorithm)(
            "MlpPolicy", Task(contract), policy_kwargs=keywords, seed=0, **options
        )
        if not activation:
            model.learn(40)
        path = stem.with_suffix(".zip")
        model.save(path)
        compress(path)
        return model.predict(observations(contract), deterministic=True)[0]

    return make


def compress(path: Path) -> None:
    """The same archive in less place: compressed, and without networks that it has twice."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    data = json.loads(entries["data"])
    for name in ("actor", "vf", "qf", "ent_coef_state", "policy_class"):
        data.pop(name, None)
    entries["data"] = json.dumps(data).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


CASES: dict[str, Case] = {
    "sb3_ppo": stable_baselines3("PPO", "pendulum"),
    "sb3_ppo_vec_normalize": stable_baselines3(
        "PPO",
        "quadrotor",
        vec_normalize=True,
        clip_obs=1.5,
        steps=128,
        n_steps=64,
        batch_size=32,
        policy_kwargs={"activation_fn": nn.ELU},
    ),
    "sb3_sac": stable_baselines3("SAC", "pendulum", steps=120, buffer_size=200),
    "sb3_sac_sde": stable_baselines3("SAC", "quadrotor", use_sde=True, buffer_size=200),
    # Without a class among them policy_kwargs are plain JSON.
    "sb3_ppo_squashed": stable_baselines3(
        "PPO", "quadrotor", use_sde=True, policy_kwargs={"squash_output": True}
    ),
    "sb3_sac_clip_mean": stable_baselines3(
        "SAC", "quadrotor", use_sde=True, buffer_size=200, policy_kwargs={"clip_mean": 0.5}
    ),
    "sb3_td3": stable_baselines3("TD3", "quadrotor", buffer_size=200),
    "sb3_ddpg": stable_baselines3("DDPG", "pendulum", buffer_size=200),
    "sb3_tqc": stable_baselines3("TQC", "quadrotor", buffer_size=200),
    "sb3_crossq": stable_baselines3(
        "CrossQ", "pendulum", steps=60, learning_starts=10, batch_size=8, buffer_size=100
    ),
    "sb3_ars": stable_baselines3("ARS", "quadrotor"),
    "sb3_ppo_relu_policy": stable_baselines3(
        "PPO", "pendulum", policy_kwargs={"activation_fn": nn.ReLU}
    ),
    "sb3_td3_policy": stable_baselines3("TD3", "quadrotor", buffer_size=100),
    "sb3_crossq_policy": stable_baselines3(
        "CrossQ", "pendulum", steps=60, learning_starts=10, batch_size=8, buffer_size=100
    ),
    "cleanrl_ppo": cleanrl_ppo,
    "cleanrl_sac": cleanrl_actor("fc_mean", "quadrotor", critic_count=0),
    "cleanrl_td3": cleanrl_actor("fc_mu", "pendulum", critic_count=2),
    "cleanrl_ddpg": cleanrl_actor("fc_mu", "quadrotor", critic_count=1),
    "pytorch_gelu": plain("pendulum", nn.GELU),
    "safetensors_silu": safetensors,
    "onnx_gelu": onnx("pendulum", nn.GELU, dynamo=True),
    "onnx_elu": onnx("quadrotor", nn.ELU, dynamo=True),
    "onnx_silu_old_exporter": onnx("quadrotor", nn.SiLU, dynamo=False),
    "leapp": leapp(stated=False),
    "leapp_stated": leapp(stated=True),
    "rsl_rl": rsl_rl,
    "rsl_rl_2": rsl_rl_2,
    "rl_games": rl_games,
    "skrl": skrl,
    "sbx_ppo": sbx("PPO", "pendulum", n_steps=32, batch_size=16),
    "sbx_ppo_relu": sbx("PPO", "pendulum", "relu", n_steps=32, batch_size=16),
    "sbx_ppo_lambda": sbx("PPO", "pendulum", "lambda", n_steps=32, batch_size=16),
    "sbx_sac": sbx("SAC", "pendulum", buffer_size=100, learning_starts=30),
    **{
        f"sbx_{name.lower()}": sbx(name, "pendulum", buffer_size=100, learning_starts=30)
        for name in ("TQC", "TD3", "DDPG")
    },
}


def main(cases: dict[str, Case], names: list[str]) -> None:
    """Make the files of these names, or of all but those that are made by themselves."""
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    for name in names or [name for name in cases if not name.startswith("rsl_rl_2")]:
        actions = np.asarray(cases[name](HERE / name), np.float32)
        np.save(HERE / f"{name}.npy", actions)
        print(f"{name}: {actions.shape} from {actions.min():g} to {actions.max():g}")


if __name__ == "__main__":
    main(CASES, sys.argv[1:])
