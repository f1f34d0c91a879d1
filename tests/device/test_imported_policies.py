"""Policies of other libraries on the emulated boards: every bit is this machine's."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from boards_under_test import EMULATED, EMULATED_BOARDS, skip_without_tools
from foreign_files import CHOICES, GOLDENS, RECURRENT, Golden
from rltools_host.boards.hil import HilRequest, check_board, require_parity
from rltools_host.boards.policy_session import PROGRAM, PolicyTarget
from rltools_host.build import cmake
from rltools_host.build.boards import load_board
from rltools_host.policies.importing.run import read_policy, save

pytestmark = pytest.mark.all  # other processors

INPUTS, SAMPLES = 30, 4
# What a board adds are its kernels, whose bits test_processor.py compares on each device: ELU,
# SiLU, GELU and tanh, GRU and LSTM, a normalizer, what cuts off observations and a choice on one,
# two of these on the others. Each source is read and compared on this machine
# (test_checkpoints.py); --exhaustive has more.
CHOOSING = "cleanrl_dqn.cleanrl_model"
OF_EACH_OPERATION = (
    "sb3_ppo_vec_normalize.zip",
    "rsl_rl.pt",
    "pytorch_gelu.pt",
    "safetensors_silu.safetensors",
    "sb3_recurrent_ppo.zip",
    "pytorch_gru.pt",
)
ON_EACH_DEVICE = ("sb3_recurrent_ppo.zip", "pytorch_gelu.pt")


def boards() -> list[str]:
    return [name for name in EMULATED_BOARDS if PROGRAM in cmake.programs_of(load_board(name))]


BOARDS = list({load_board(name).device: name for name in reversed(boards())}.values())
CASES = [
    *((EMULATED, file) for file in (*OF_EACH_OPERATION, CHOOSING)),
    *itertools.product((name for name in BOARDS if name != EMULATED), ON_EACH_DEVICE),
]
# On every emulated board: a file of each of seven sources, and two that choose.
ON_ALL_BOARDS = (
    *("sb3_ppo_vec_normalize.zip", "sbx_ppo.zip", "cleanrl_td3.cleanrl_model", "rsl_rl.pt"),
    *("rl_games.pth", "skrl.pt", "pytorch_gelu.pt", "cleanrl_dqn.cleanrl_model"),
    "sb3_ppo_cart_pole.zip",
)
OTHERS = [
    pytest.param(name, file, marks=pytest.mark.exhaustive)
    for name, file in (
        *itertools.product(boards(), dict.fromkeys((*ON_ALL_BOARDS, *OF_EACH_OPERATION))),
        (EMULATED, "rl_games_gru.pth"),
    )
    if (name, file) not in CASES
]


def golden(file: str) -> Golden:
    (found,) = [each for each in (*GOLDENS, *CHOICES, *RECURRENT) if each.file == file]
    return found


@pytest.mark.parametrize(("board", "file"), [*CASES, *OTHERS])
def test_a_board_gives_this_machines_bits(board: str, file: str, tmp_path: Path) -> None:
    skip_without_tools(load_board(board))
    asked = golden(file)
    folder = save(read_policy(asked.request(tmp_path / "run")))
    place = PolicyTarget(board, contract=asked.contract)
    result = check_board(HilRequest(place, str(folder.path), SAMPLES, INPUTS), lambda *_: None)
    require_parity(result)
    assert result.found.max_abs_diff == 0.0
