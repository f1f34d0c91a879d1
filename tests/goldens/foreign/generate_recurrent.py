"""Makes the files of recurrent policies, with which `rlt import` is tested: as generate.py, but the
observations are the steps of episodes of EPISODE_STEPS, and each begins with a state of zeros.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from generate import (
    COUNT,
    HIDDEN,
    RANGES,
    Array,
    Case,
    Task,
    centered,
    compress,
    drawn,
    main,
    observations,
    rl_games_model,
    save_rsl_rl,
    save_rsl_rl_2,
    scaled,
    seen_before,
)
from torch import nn

EPISODE_STEPS, WIDTH = 100, 10
EPISODES = COUNT // EPISODE_STEPS
KINDS = {"gru": nn.GRU, "lstm": nn.LSTM}


def in_time(contract: str) -> Any:
    """(steps, episodes, observation_dim)."""
    return torch.tensor(
        observations(contract).reshape(-1, EPISODE_STEPS, width(contract))
    ).swapaxes(0, 1)


def width(contract: str) -> int:
    return int(RANGES[contract][0][0].size)


def as_rows(actions: Any) -> Array:
    """(COUNT, action_dim), episode after episode."""
    return np.asarray(actions).swapaxes(0, 1).reshape(COUNT, -1)


def recorded(act: Callable[[Any], Any], contract: str) -> Array:
    """Step by step, of all episodes side by side."""
    with torch.no_grad():
        actions = as_rows(torch.stack([act(seen) for seen in in_time(contract)]).numpy())
    return np.clip(actions, *RANGES[contract][1])


# ---- plain PyTorch, safetensors ------------------------------------------------------------------


class Layers(nn.Module):
    """A dense layer, two recurrent ones in one module, and two dense ones; of the first two dense
    ones the names do not say which is before the recurrent ones."""

    def __init__(self, contract: str, kind: str) -> None:
        super().__init__()
        self.encoder = nn.Linear(width(contract), 12)
        self.memory = KINDS[kind](12, 12, num_layers=2)
        self.dense = nn.Linear(12, 12)
        self.head = nn.Linear(12, RANGES[contract][1][0].size)

    def forward(self, x: Any) -> Any:
        """Whole episodes (steps, episodes, observation_dim)."""
        x = self.memory(torch.relu(self.encoder(x)))[0]
        return torch.tanh(self.head(torch.relu(self.dense(x))))


class Cell(nn.Module):
    """A cell without biases between dense layers, whose names come in another order."""

    def __init__(self, contract: str, kind: str) -> None:
        super().__init__()
        cells = {"gru": nn.GRUCell, "lstm": nn.LSTMCell}
        self.encoder = nn.Linear(width(contract), 12)
        self.recurrent = cells[kind](12, WIDTH, bias=False)
        self.output = nn.Linear(WIDTH, RANGES[contract][1][0].size)

    def forward(self, x: Any) -> Any:
        outputs, state = [], None
        for row in x:
            state = self.recurrent(torch.relu(self.encoder(row)), state)
            outputs.append(torch.tanh(self.output(state if torch.is_tensor(state) else state[0])))
        return torch.stack(outputs)


class Named(nn.Module):
    """Two recurrent layers between dense ones, whose names do not say where they are, and whose
    widths do."""

    def __init__(self, contract: str, kind: str) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width(contract), 12)
        self.rnn = KINDS[kind](12, WIDTH, num_layers=2)
        self.fc2 = nn.Linear(WIDTH, 8)
        self.fc3 = nn.Linear(8, RANGES[contract][1][0].size)

    def forward(self, x: Any) -> Any:
        x = self.rnn(torch.relu(self.fc1(x)))[0]
        return torch.tanh(self.fc3(torch.relu(self.fc2(x))))


def plain(module: type[nn.Module], contract: str, kind: str, ending: str) -> Case:
    def make(stem: Path) -> Array:
        from safetensors.torch import save_file

        network = module(contract, kind)
        drawn(network, contract)
        save = save_file if ending == ".safetensors" else torch.save
        save(network.state_dict(), stem.with_suffix(ending))
        with torch.no_grad():
            return scaled(as_rows(network(in_time(contract)).numpy()), contract)

    return make


# ---- sb3-contrib ---------------------------------------------------------------------------------


def recurrent_ppo(stem: Path) -> Array:
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    env: Any = VecNormalize(DummyVecEnv([lambda: Monitor(Task("quadrotor"))]), clip_obs=100.0)
    keywords = {"net_arch": HIDDEN, "lstm_hidden_size": WIDTH, "n_lstm_layers": 2}
    model = RecurrentPPO(
        "MlpLstmPolicy",
        env,
        policy_kwargs={**keywords, "activation_fn": nn.SiLU},
        seed=0,
        device="cpu",
        n_steps=64,
        batch_size=32,
    )
    model.learn(128)
    drawn(model.policy, scale=0.9)
    centered(model.policy.action_net)
    model.save(stem.with_suffix(".zip"))
    compress(stem.with_suffix(".zip"))
    env.save(str(stem.with_suffix(".pkl")))
    actions, states = [], None
    begins = np.ones(EPISODES, bool)
    for seen in in_time("quadrotor").numpy():
        action, states = model.predict(
            env.normalize_obs(seen), state=states, episode_start=begins, deterministic=True
        )
        begins = np.zeros(EPISODES, bool)
        actions.append(action)
    return as_rows(np.array(actions))


# ---- RSL-RL, rl_games, skrl ----------------------------------------------------------------------


def rsl_rl(kind: str) -> Case:
    def make(stem: Path) -> Array:
        from rsl_rl.models import RNNModel
        from tensordict import TensorDict

        seen = {"policy": torch.tensor(observations("quadrotor"))}
        actor = RNNModel(
            TensorDict(seen, [COUNT]),
            {"actor": ["policy"]},
            "actor",
            4,
            HIDDEN,
            "elu",
            obs_normalization=True,
            distribution_cfg={"class_name": "GaussianDistribution", "init_std": 0.5},
            rnn_type=kind,
            rnn_hidden_dim=WIDTH,
        )
        save_rsl_rl(actor, stem)
        return recorded(lambda x: actor(TensorDict({"policy": x}, [len(x)])), "quadrotor")

    return make


def rsl_rl_2(kind: str) -> Case:
    """By itself, as generate.py's rsl_rl_2."""

    def make(stem: Path) -> Array:
        sys.path.insert(0, os.environ["RSL_RL_2"])
        from rsl_rl.modules.actor_critic_recurrent import ActorCriticRecurrent

        network = ActorCriticRecurrent(
            *(13, 13, 4),
            actor_hidden_dims=HIDDEN,
            critic_hidden_dims=[8],
            activation="elu",
            rnn_type=kind,
            rnn_hidden_dim=WIDTH,
        )
        normalizer = save_rsl_rl_2(network, stem)
        return recorded(lambda x: network.act_inference(normalizer(x)), "quadrotor")

    return make


def rl_games(kind: str, *, before_mlp: bool) -> Case:
    def make(stem: Path) -> Array:
        memory = {"name": kind, "units": WIDTH, "layers": 1, "before_mlp": before_mlp}
        model = rl_games_model(stem, EPISODES, rnn=memory)
        states = model.get_default_rnn_state()

        def act(x: Any) -> Any:
            nonlocal states
            found = model({"is_train": False, "prev_actions": None, "obs": x, "rnn_states": states})
            states = found["rnn_states"]
            return found["mus"]

        return recorded(act, "quadrotor")

    return make


def skrl(kind: str) -> Case:
    def make(stem: Path) -> Array:
        from skrl.agents.torch.ppo import PPO_CFG, PPO_RNN
        from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
        from skrl.resources.preprocessors.torch import RunningStandardScaler

        env = Task("quadrotor")
        spaces = {"observation_space": env.observation_space, "action_space": env.action_space}

        class Policy(GaussianMixin, Model):  # type: ignore[misc]
            def __init__(self) -> None:
                Model.__init__(self, **spaces, device="cpu")
                GaussianMixin.__init__(self, clip_actions=False)
                self.memory = KINDS[kind](13, WIDTH, num_layers=2)
                self.net = nn.Sequential(nn.Linear(WIDTH, 12), nn.ELU(), nn.Linear(12, 4))
                self.log_std_parameter = nn.Parameter(torch.zeros(4))

            def get_specification(self) -> dict[str, Any]:
                sizes = [(2, EPISODES, WIDTH)] * (2 if kind == "lstm" else 1)
                return {"rnn": {"sequence_length": 1, "sizes": sizes}}

            def compute(self, inputs: Any, role: str = "") -> Any:  # noqa: ARG002
                before = inputs["rnn"] if kind == "lstm" else inputs["rnn"][0]
                x, after = self.memory(inputs["observations"][None], before)
                own = {"log_std": self.log_std_parameter}
                return self.net(x[0]), own | {"rnn": after if kind == "lstm" else [after]}

        class Value(DeterministicMixin, Model):  # type: ignore[misc]
            def __init__(self) -> None:
                Model.__init__(self, **spaces, device="cpu")
                DeterministicMixin.__init__(self)
                self.net = nn.Linear(13, 1)

            def compute(self, inputs: Any, role: str = "") -> Any:  # noqa: ARG002
                return self.net(inputs["observations"]), {}

        models = {"policy": Policy(), "value": Value()}
        scaler = {"size": env.observation_space, "device": "cpu"}
        agent = PPO_RNN(
            models=models,
            **spaces,
            device="cpu",
            cfg=PPO_CFG(
                observation_preprocessor=RunningStandardScaler,
                observation_preprocessor_kwargs=scaler,
            ),
        )
        drawn(models["policy"], scale=0.5)
        centered(models["policy"].net[-1])
        agent._observation_preprocessor(0.4 * seen_before("quadrotor").float(), train=True)
        agent.save(str(stem.with_suffix(".pt")))
        states: Any = [torch.zeros(2, EPISODES, WIDTH)] * 2

        def act(x: Any) -> Any:
            nonlocal states
            inputs = {"observations": agent._observation_preprocessor(x), "rnn": states}
            actions, outputs = models["policy"].compute(inputs)
            states = outputs["rnn"]
            return actions

        return recorded(act, "quadrotor")

    return make


CASES: dict[str, Case] = {
    "pytorch_gru": plain(Layers, "quadrotor", "gru", ".pt"),
    "safetensors_gru_cell": plain(Cell, "pendulum", "gru", ".safetensors"),
    "rsl_rl_gru": rsl_rl("gru"),
    "rsl_rl_2_gru": rsl_rl_2("gru"),
    "rl_games_gru": rl_games("gru", before_mlp=False),
    "skrl_gru": skrl("gru"),
    "pytorch_lstm_cell": plain(Cell, "pendulum", "lstm", ".pt"),
    "safetensors_lstm": plain(Named, "quadrotor", "lstm", ".safetensors"),
    "sb3_recurrent_ppo": recurrent_ppo,
    "rsl_rl_lstm": rsl_rl("lstm"),
    "rsl_rl_2_lstm": rsl_rl_2("lstm"),
    "rl_games_lstm": rl_games("lstm", before_mlp=True),
}


if __name__ == "__main__":
    main(CASES, sys.argv[1:])
