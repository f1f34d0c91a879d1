"""A connected board with the program infer: `pytest tests/hil --hil`."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest

from policy_run import make_policy_run
from policy_samples import sample_images
from rltools_host.boards import hil
from rltools_host.boards.board_link import find_connected
from rltools_host.boards.hil import HilRequest
from rltools_host.boards.policy_session import PolicyTarget
from rltools_host.boards.push import PushRequest, PushResult, confirm, push, roll_back
from rltools_host.build.boards import list_boards
from rltools_host.commands.policies import list_policies
from rltools_host.errors import BoardMismatchError, RefusedError
from rltools_host.policies.image import read_run_policy
from training_calls import two_policy_runs
from waiting import wait_for

pytestmark = [pytest.mark.hil, pytest.mark.timeout(900)]

BOARD, PORT = os.environ.get("RLT_HIL_BOARD"), os.environ.get("RLT_HIL_PORT")
TRIAL_S = 3.0


def places() -> list[PolicyTarget]:
    if BOARD:
        return [PolicyTarget(BOARD, PORT)]
    boards = [board for board in list_boards() if board.is_flashed]
    return [PolicyTarget(board.name, port) for board in boards for port in find_connected(board)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return two_policy_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module", params=places() or [None], ids=lambda at: at and at.board)
def place(request: pytest.FixtureRequest) -> PolicyTarget:
    if request.param is None:
        pytest.skip("no board is connected; RLT_HIL_BOARD and RLT_HIL_PORT may name one")
    assert isinstance(request.param, PolicyTarget)
    return request.param


def push_to(place: PolicyTarget, run: Path, keep: bool = True) -> PushResult:
    request = PushRequest(str(run), place, None if keep else TRIAL_S, confirm=keep)
    return push(request, lambda _line: None)


def acting(place: PolicyTarget) -> str | None:
    slots = list_policies(place)["slots"]
    found = {slot["use"]: slot["sha256"] for slot in slots}
    return found.get("trial") or found.get("active")


def sha_of(run: Path) -> str:
    return read_run_policy(run).sha256


def test_pushed_verified_confirmed_and_rolled_back(place: PolicyTarget, runs: list[Path]) -> None:
    first = push_to(place, runs[0])
    assert (first.activated, first.active_sha256) == (True, sha_of(runs[0]))
    second = push_to(place, runs[1])
    assert (second.activated, second.active_sha256) == (True, sha_of(runs[1]))
    assert acting(place) == sha_of(runs[1])
    assert roll_back(place).active_sha256 == sha_of(runs[0])
    assert acting(place) == sha_of(runs[0])


def test_a_trial_ends_by_itself(place: PolicyTarget, runs: list[Path]) -> None:
    push_to(place, runs[0])
    assert push_to(place, runs[1], keep=False).reason == "in trial"
    assert acting(place) == sha_of(runs[1])
    wait_for(lambda: acting(place) == sha_of(runs[0]))
    assert list_policies(place)["last_drop"] == "deadline"
    with pytest.raises(RefusedError, match="tries no policy"):
        confirm(place)


def test_a_trial_is_confirmed_by_hand(place: PolicyTarget, runs: list[Path]) -> None:
    push_to(place, runs[0])
    push_to(place, runs[1], keep=False)
    assert confirm(place).active_sha256 == sha_of(runs[1])
    time.sleep(TRIAL_S + 0.5)
    assert acting(place) == sha_of(runs[1])


def test_another_contract_is_refused_before_anything_is_sent(
    place: PolicyTarget, runs: list[Path], tmp_path: Path
) -> None:
    push_to(place, runs[0])
    other = make_policy_run(tmp_path / "other", sample_images()["relu"])
    with pytest.raises(BoardMismatchError, match="is not made: "):
        push_to(place, other)
    assert acting(place) == sha_of(runs[0])


def test_every_bit_and_what_it_costs(place: PolicyTarget, runs: list[Path]) -> None:
    """`rlt hil`, and what its times mean where they are a real clock's."""
    result = hil.check_board(HilRequest(place, str(runs[0])), lambda *_: None)
    hil.require_parity(result)
    document = msgspec.to_builtins(result.found)
    assert document["parity"]["inputs"] >= 1000
    assert document["parity"]["mismatches"] == document["parity"]["executor_mismatches"] == 0
    for statistics in (document[result.found.unit], document["tick"][result.found.unit]):
        ordered = [statistics[name] for name in ("min", "median", "p99", "p999", "max")]
        assert ordered == sorted(ordered)
        assert ordered[-1] > 0
