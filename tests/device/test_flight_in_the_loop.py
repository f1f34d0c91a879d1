"""`rlt fly` over the emulated boards: a short flight has the bits of the one on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boards_under_test import skip_without_tools
from policy_run import make_policy_run
from quadrotor_policies import controller, recurrent_controller
from rltools_host.boards.policy_session import PolicyTarget
from rltools_host.build.boards import load_board
from rltools_host.drones.flight.disturbances import Disturbances, Fault
from rltools_host.drones.flight.in_the_loop import CONTRACT, FlyRequest, fly_over_board, rule_of
from rltools_host.drones.flight.result import LoopResult
from rltools_host.errors import RefusedError

pytestmark = pytest.mark.all  # of every day: test_hil_on_boards.py, and a flight on this machine

SETTINGS = {"start_share": 1.0, "start_tilt": 20.0, "start_position": 0.1}
# Each processor, and each kind of network; the bits of the others: test_hil_on_boards.py and
# test_recurrent_policy_on_boards.py.
FLIGHTS = pytest.mark.parametrize(
    ("board", "network"),
    [
        ("qemu-cortex-m7", recurrent_controller),
        ("qemu-stm32f405", controller),
        pytest.param("qemu-cortex-m7", controller, marks=pytest.mark.slow),
        pytest.param("qemu-stm32f405", recurrent_controller, marks=pytest.mark.slow),
    ],
)


def run_of(network: Callable[[], bytes], folder: Path) -> Path:
    return make_policy_run(folder / "run", network())


def flown(board: str, run: Path, **fields: Any) -> LoopResult:
    place = PolicyTarget(board, None, CONTRACT)
    request = FlyRequest(str(run), place, rule_of(1.0), 1, 0, SETTINGS, **fields)
    results: list[LoopResult] = []
    try:
        return fly_over_board(request, lambda _: None, keep=results.append)
    except RefusedError:
        return results[0]


@FLIGHTS
def test_a_flight_over_an_emulated_board(
    board: str, network: Callable[[], bytes], tmp_path: Path
) -> None:
    skip_without_tools(load_board(board))
    result = flown(board, run_of(network, tmp_path))
    document = result.document()
    assert document["ticks"] == 500
    assert document["flight_sha256"] == document["host_flight_sha256"]
    assert document["statuses"] == {"acted": 500}
    assert document["success"] == document["kept"]
    assert document["cost"]["unit"] == "instructions"
    assert document["cost"]["max"] < 12_000


@FLIGHTS
def test_the_fail_safe_of_an_emulated_board(
    board: str, network: Callable[[], bytes], tmp_path: Path
) -> None:
    skip_without_tools(load_board(board))
    run = run_of(network, tmp_path)
    result = flown(board, run, disturbances=Disturbances(faults=(Fault("cut", 20),)))
    assert result.failsafe is not None
    assert (result.failsafe.tick, result.failsafe.status) == (22, "observation_stale")
    assert result.same_bits
