"""`rlt hil` on the emulated boards: every bit is this machine's, and costs are instructions."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from boards_under_test import EMULATED_BOARDS, each, skip_without_tools
from policy_run import make_policy_run
from rltools_host.boards.hil import HilRequest, check_board, require_parity
from rltools_host.boards.hil_result import HilResult
from rltools_host.boards.policy_session import PROGRAM, PolicyTarget
from rltools_host.build import cmake, firmware
from rltools_host.build.boards import load_board

INPUTS, SAMPLES = 60, 64
LARGEST_STACK = 16384
INFERRING_BOARDS = [
    name for name in EMULATED_BOARDS if PROGRAM in cmake.programs_of(load_board(name))
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_policy_run(tmp_path_factory.mktemp("hil") / "run")


def checked(board: str, run: Path) -> HilResult:
    request = HilRequest(PolicyTarget(board), str(run), SAMPLES, INPUTS)
    result = check_board(request, lambda *_: None)
    require_parity(result)
    return result


@pytest.fixture(scope="module")
def here(run: Path) -> HilResult:
    return checked("host", run)


@pytest.mark.parametrize("name", each(INFERRING_BOARDS))
def test_a_board_gives_this_machines_bits(name: str, run: Path, here: HilResult) -> None:
    board = load_board(name)
    skip_without_tools(board)
    document = msgspec.to_builtins(checked(name, run).found)
    assert document["implementation"] == board.device
    assert document["parity"] == msgspec.to_builtins(here.found)["parity"]
    assert document["outputs_sha256"] == here.parity.outputs_sha256
    assert document["max_abs_diff"] == 0.0
    assert "time_us" not in document
    forward, tick = document["instructions"], document["tick"]["instructions"]
    multiply_adds = 3 * 64 + 64 * 64 + 64
    assert multiply_adds // 4 < forward["min"] <= forward["median"] <= forward["max"]
    assert forward["max"] < 100 * multiply_adds
    assert tick["median"] > forward["median"]
    assert 0 < document["overhead"] < 1000
    assert 0 < document["stack_bytes"] < LARGEST_STACK
    program = firmware.program_path(board, "pendulum", PROGRAM)
    usage = {entry["name"]: entry["used_bytes"] for entry in firmware.memory_usage(board, program)}
    code = sum(usage.get(name, 0) for name in ("CODE", "FLASH"))  # of boards whose code stays there
    assert document["ram_bytes"] == sum(usage.values()) - code
    assert document["flash_bytes"] == code or not code
    assert document["flash_bytes"] > 20_000
