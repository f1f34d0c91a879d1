"""`rlt fly` over the emulated boards: a short flight has the bits of the one on this machine."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from boards_under_test import each, skip_without_tools
from policy_run import make_policy_run
from quadrotor_policies import controller, recurrent_controller
from rltools_host.boards.policy_session import PolicyTarget
from rltools_host.build.boards import load_board
from rltools_host.drones.flight.disturbances import Disturbances, Fault
from rltools_host.drones.flight.in_the_loop import CONTRACT, FlyRequest, fly_over_board, rule_of
from rltools_host.drones.flight.result import LoopResult
from rltools_host.drones.flight.view import PlainFlight
from rltools_host.errors import RefusedError

pytestmark = pytest.mark.all  # of every day: test_hil_on_boards.py, and a flight on this machine

BOARDS = ("qemu-cortex-m7", "qemu-stm32f405")
SETTINGS = {"start_share": 1.0, "start_tilt": 20.0, "start_position": 0.1}


@pytest.fixture(
    params=[
        pytest.param(controller, id="dense"),
        pytest.param(recurrent_controller, id="recurrent", marks=pytest.mark.all),
    ]
)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return make_policy_run(tmp_path / "run", request.param())


def flown(board: str, run: Path, **fields: Any) -> LoopResult:
    place = PolicyTarget(board, None, CONTRACT)
    request = FlyRequest(str(run), place, rule_of(1.0), 1, 0, SETTINGS, **fields)
    results: list[LoopResult] = []
    try:
        return fly_over_board(request, lambda _: None, PlainFlight(io.StringIO()), results.append)
    except RefusedError:
        return results[0]


@pytest.mark.parametrize("board", each(BOARDS))
def test_a_flight_over_an_emulated_board(board: str, run: Path) -> None:
    skip_without_tools(load_board(board))
    result = flown(board, run)
    document = result.document()
    assert document["ticks"] == 500
    assert document["flight_sha256"] == document["host_flight_sha256"]
    assert document["statuses"] == {"acted": 500}
    assert document["success"] == document["kept"]
    assert document["cost"]["unit"] == "instructions"
    assert document["cost"]["max"] < 12_000


@pytest.mark.parametrize("board", each(BOARDS))
def test_the_fail_safe_of_an_emulated_board(board: str, run: Path) -> None:
    skip_without_tools(load_board(board))
    result = flown(board, run, disturbances=Disturbances(faults=(Fault("cut", 20),)))
    assert result.failsafe is not None
    assert (result.failsafe.tick, result.failsafe.status) == (22, "observation_stale")
    assert result.same_bits
