"""Files that other libraries wrote (tests/goldens/foreign), and what has to be said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rltools_host.build import tools
from rltools_host.policies.importing.onnx_files import GROUP
from rltools_host.policies.importing.run import ImportRequest
from rltools_host.policies.importing.state_dicts import Given
from rltools_host.tree import TREE

needs_onnx = pytest.mark.skipif(
    not tools.group_is_installed(GROUP),
    reason=f"the group {GROUP} of packages is not installed: rlt test --all installs it",
)
NOTHING = Given()
FOLDER = TREE.root / "tests" / "goldens" / "foreign"


@dataclass(frozen=True)
class Golden:
    """A file, and what has to be said of it."""

    file: str
    contract: str | None  # None: the file states one
    library: str
    shape: str
    given: Given = NOTHING
    normalizer: str | None = None
    actions: str | None = None

    def request(self, output: Path | None = None) -> ImportRequest:
        normalizer = None if self.normalizer is None else FOLDER / self.normalizer
        return ImportRequest(
            FOLDER / self.file,
            contract=self.contract,
            normalizer=normalizer,
            given=self.given,
            actions=self.actions,
            output=output,
        )

    @property
    def recorded(self) -> Path:
        return (FOLDER / self.file).with_suffix(".npy")


TASKS = TREE.root / "tests" / "fakes" / "choosing_tasks.py"


@dataclass(frozen=True)
class GoldenChoices(Golden):
    """Of a policy that chooses; without a contract it is for a task of choosing_tasks.py."""

    task: str = ""

    def request(self, output: Path | None = None) -> ImportRequest:
        asked = super().request(output)
        if self.contract:
            return asked
        return replace(asked, contract=None, environment=f"gym:{TASKS}:{self.task}", flies=False)


GOLDENS: Sequence[Golden] = (
    Golden("sb3_ppo.zip", "pendulum", "Stable-Baselines3 PPO", "3-12-8-1"),
    Golden(
        "sb3_ppo_vec_normalize.zip",
        "quadrotor",
        "Stable-Baselines3 PPO",
        "13-13-12-8-4",  # with what clips the observations
        normalizer="sb3_ppo_vec_normalize.pkl",
    ),
    Golden("sb3_sac.zip", "pendulum", "Stable-Baselines3 SAC", "3-12-8-1"),
    Golden("sb3_sac_sde.zip", "quadrotor", "Stable-Baselines3 SAC", "13-12-8-4-4"),
    Golden("sb3_ppo_squashed.zip", "quadrotor", "Stable-Baselines3 PPO", "13-12-8-4"),
    Golden("sb3_sac_clip_mean.zip", "quadrotor", "Stable-Baselines3 SAC", "13-12-8-4-4"),
    Golden("sb3_td3.zip", "quadrotor", "Stable-Baselines3 TD3", "13-12-8-4"),
    Golden("sb3_crossq.zip", "pendulum", "Stable-Baselines3 CrossQ", "3-12-8-1"),
    Golden("sb3_ars.zip", "quadrotor", "Stable-Baselines3 ARS", "13-12-8-4"),
    Golden("sb3_ppo_relu_policy.pt", "pendulum", "Stable-Baselines3 PPO", "3-12-8-1"),
    Golden("sb3_td3_policy.pt", "quadrotor", "Stable-Baselines3 TD3", "13-12-8-4"),
    Golden("sb3_crossq_policy.pt", "pendulum", "Stable-Baselines3 CrossQ", "3-12-8-1"),
    Golden("cleanrl_ppo.cleanrl_model", "pendulum", "CleanRL PPO", "3-12-8-1", actions="same"),
    Golden("cleanrl_sac.cleanrl_model", "quadrotor", "CleanRL SAC", "13-12-8-4"),
    Golden("cleanrl_td3.cleanrl_model", "pendulum", "CleanRL TD3", "3-12-8-1"),
    Golden("pytorch_gelu.pt", "pendulum", "PyTorch", "3-12-8-1", Given("gelu", "tanh")),
    Golden(
        "safetensors_silu.safetensors", "quadrotor", "PyTorch", "13-12-8-4", Given("silu", "tanh")
    ),
    Golden("rsl_rl.pt", "quadrotor", "RSL-RL", "13-12-8-4", actions="same"),
    Golden("rl_games.pth", "quadrotor", "rl_games", "13-13-12-8-4", Given("elu"), actions="same"),
    Golden("skrl.pt", "quadrotor", "skrl", "13-13-12-8-4", Given("silu"), actions="same"),
    Golden("sbx_ppo.zip", "pendulum", "sbx PPO", "3-12-8-1"),
    Golden("sbx_ppo_relu.zip", "pendulum", "sbx PPO", "3-12-8-1"),
    Golden("sbx_sac.zip", "pendulum", "sbx SAC", "3-12-8-1"),
    Golden("onnx_gelu.onnx", "pendulum", "ONNX", "3-3-12-8-1", actions="same"),
    Golden("onnx_elu.onnx", "quadrotor", "ONNX", "13-13-12-8-4", actions="same"),
    Golden("onnx_silu_old_exporter.onnx", "quadrotor", "ONNX", "13-13-12-8-4", actions="same"),
    Golden("leapp.yaml", "quadrotor", "LEAPP", "13-12-8-4", actions="same"),
    Golden("rsl_rl_2.pt", "quadrotor", "RSL-RL", "13-12-8-4", actions="same"),
    # By the kind of the actor: TQC's is SAC's, DDPG's is TD3's.
    Golden("sb3_ddpg.zip", "pendulum", "Stable-Baselines3 TD3", "3-12-8-1"),
    Golden("sb3_tqc.zip", "quadrotor", "Stable-Baselines3 SAC", "13-12-8-4"),
    Golden("cleanrl_ddpg.cleanrl_model", "quadrotor", "CleanRL TD3", "13-12-8-4"),
    Golden("sbx_tqc.zip", "pendulum", "sbx SAC", "3-12-8-1"),
    Golden("sbx_td3.zip", "pendulum", "sbx TD3", "3-12-8-1"),
    Golden("sbx_ddpg.zip", "pendulum", "sbx TD3", "3-12-8-1"),
    Golden("leapp_stated.yaml", None, "LEAPP", "13-12-8-4"),
)

# Of policies with a hidden state; the actions are those of episodes of 100 steps.
RECURRENT: Sequence[Golden] = (
    Golden(
        "pytorch_gru.pt", "quadrotor", "PyTorch", "13-12-GRU12-GRU12-12-4", Given("relu", "tanh")
    ),
    Golden(
        "safetensors_gru_cell.safetensors",
        "pendulum",
        "PyTorch",
        "3-12-GRU10-1",
        Given("relu", "tanh"),
    ),
    Golden("rsl_rl_gru.pt", "quadrotor", "RSL-RL", "13-GRU10-12-8-4", actions="same"),
    Golden("rsl_rl_2_gru.pt", "quadrotor", "RSL-RL", "13-GRU10-12-8-4", actions="same"),
    Golden(
        "rl_games_gru.pth",
        "quadrotor",
        "rl_games",
        "13-13-12-8-GRU10-4",
        Given("elu"),
        actions="same",
    ),
    Golden(
        "skrl_gru.pt",
        "quadrotor",
        "skrl",
        "13-13-GRU10-GRU10-12-4",
        Given("elu"),
        actions="same",
    ),
    Golden("pytorch_lstm_cell.pt", "pendulum", "PyTorch", "3-12-LSTM10-1", Given("relu", "tanh")),
    Golden(
        "safetensors_lstm.safetensors",
        "quadrotor",
        "PyTorch",
        "13-12-LSTM10-LSTM10-8-4",
        Given("relu", "tanh"),
    ),
    Golden(
        "sb3_recurrent_ppo.zip",
        "quadrotor",
        "sb3-contrib RecurrentPPO",
        "13-LSTM10-LSTM10-12-8-4",
        normalizer="sb3_recurrent_ppo.pkl",
    ),
    Golden("rsl_rl_lstm.pt", "quadrotor", "RSL-RL", "13-LSTM10-12-8-4", actions="same"),
    Golden("rsl_rl_2_lstm.pt", "quadrotor", "RSL-RL", "13-LSTM10-12-8-4", actions="same"),
    Golden(
        "rl_games_lstm.pth",
        "quadrotor",
        "rl_games",
        "13-13-LSTM10-12-8-4",
        Given("elu"),
        actions="same",
    ),
)

CHOICES: Sequence[GoldenChoices] = (
    GoldenChoices("sb3_ppo_cart_pole.zip", "cart-pole", "Stable-Baselines3 PPO", "4-12-8-2"),
    GoldenChoices(
        "sb3_ppo_two_gears.zip", "", "Stable-Baselines3 PPO", "8-12-8-5", task="TwoGears"
    ),
    GoldenChoices("sb3_a2c_lander.zip", "", "Stable-Baselines3 PPO", "8-12-8-4", task="Lander"),
    GoldenChoices("sb3_dqn_lander.zip", "", "Stable-Baselines3 DQN", "8-12-8-4", task="Lander"),
    GoldenChoices(
        "sb3_qrdqn_lander.zip", "", "Stable-Baselines3 QR-DQN", "8-12-8-4", task="Lander"
    ),
    GoldenChoices("sb3_qrdqn_policy.pt", "", "Stable-Baselines3 QR-DQN", "8-12-8-4", task="Lander"),
    GoldenChoices("cleanrl_ppo_choices.cleanrl_model", "cart-pole", "CleanRL PPO", "4-12-8-2"),
    GoldenChoices("cleanrl_dqn.cleanrl_model", "cart-pole", "CleanRL DQN", "4-12-8-2"),
    GoldenChoices(
        "pytorch_logits.pt", "", "PyTorch", "8-12-8-5", Given("elu", "identity"), task="TwoGears"
    ),
    GoldenChoices(
        "safetensors_logits.safetensors",
        "cart-pole",
        "PyTorch",
        "4-12-8-2",
        Given("silu", "identity"),
    ),
    GoldenChoices("onnx_logits.onnx", "", "ONNX", "8-12-8-4", task="Lander"),
)
