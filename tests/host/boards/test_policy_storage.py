"""The files in which boards that are started here keep their policies, with the board `host`."""

from __future__ import annotations

from pathlib import Path

import pytest

from policy_run import make_policy_run
from policy_samples import sample_images
from rltools_host.boards import board_link as storage_module
from rltools_host.boards.board_link import STORAGE_VARIABLE
from rltools_host.boards.policy_session import (
    Firmware,
    PolicyTarget,
    policy_session,
    require_kept,
)
from rltools_host.boards.push import PushRequest, policies_on, push
from rltools_host.build import firmware
from rltools_host.build.boards import load_board
from rltools_host.errors import PortError, UsageError
from rltools_host.policies.image import parse_policy
from tcp_board import TcpBoard

HERE = PolicyTarget("host")
OTHER = PolicyTarget("host", contract="quadrotor")
PENDULUM = sample_images()["pendulum"]
QUADROTOR = sample_images()["remembering_quadrotor_4"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of the boards' files: `_own_policies` in conftest.py."""
    return tmp_path / "policies"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_policy_run(tmp_path / "run")


def push_here(run: Path, place: PolicyTarget = HERE) -> str:
    sha256 = push(PushRequest(str(run), place), lambda _: None).active_sha256
    assert sha256 is not None
    return sha256


def active(place: PolicyTarget = HERE) -> str | None:
    slot = policies_on(place).slots.active
    return None if slot is None else slot.sha256


def own_file(folder: Path, image: bytes = PENDULUM) -> Path:
    """Return the file by the checksum of the image's contract, without its past actions."""
    contract = parse_policy(image).contract.without_added_inputs()
    return folder / f"{contract.checksum:08x}.bin"


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def started_firmware(place: PolicyTarget = HERE) -> Firmware:
    board = load_board("host")
    return Firmware(board, firmware.build_firmware(board, place.contract, "infer"), "")


# -- a file for each contract ----------------------------------------------------------------------


def test_the_contract_and_not_its_name_says_where_policies_are(run: Path, folder: Path) -> None:
    sha256 = push_here(run)
    assert list(contents(folder)) == [own_file(folder).name]
    assert active() == sha256


def test_a_policy_of_another_contract_of_this_name_is_kept(run: Path, folder: Path) -> None:
    """A Gymnasium task may have got other channels under the same name."""
    sha256 = push_here(run)
    confirmed = contents(folder)[own_file(folder).name][0]
    assert active(OTHER) is None
    other = make_policy_run(run.parent / "other", QUADROTOR)
    assert push_here(other, OTHER) == parse_policy(QUADROTOR).sha256
    assert contents(folder)[own_file(folder).name][0] == confirmed
    assert sorted(contents(folder)) == sorted(
        [own_file(folder).name, own_file(folder, QUADROTOR).name]
    )
    assert active() == sha256
    assert active(OTHER) == parse_policy(QUADROTOR).sha256


# -- looking ---------------------------------------------------------------------------------------


def test_looking_makes_nothing(folder: Path) -> None:
    assert active() is None
    assert not folder.exists()


def test_looking_changes_no_byte(run: Path, folder: Path) -> None:
    """A start would write here: the trial of a board that was ended is over."""
    sha256 = push_here(run)
    image = sample_images()["small_pendulum"]
    candidate = parse_policy(image).sha256
    with policy_session(HERE) as (session, _):
        session.policies.upload(image, candidate)
        session.policies.try_candidate(candidate, 100.0)
    before = contents(folder)
    for _ in range(2):
        found = policies_on(HERE)
        assert found.slots.trial is None
        assert found.slots.active is not None
        assert found.slots.active.sha256 == sha256
        assert contents(folder) == before
    with policy_session(HERE):  # on the file itself
        pass
    assert contents(folder) != before


def test_looking_waits_for_a_board_that_has_the_file(
    run: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    push_here(run)
    monkeypatch.setattr(storage_module, "PATIENCE_S", 0.1)
    program = started_firmware().program
    assert program is not None
    with (
        TcpBoard(program, {STORAGE_VARIABLE: str(own_file(folder))}) as board,
        policy_session(PolicyTarget("host", board.port)),
        pytest.raises(PortError, match=r"\.bin is in use by another board: end that one"),
    ):
        active()
    assert active() is not None


# -- a storage that a user names -------------------------------------------------------------------


def test_what_a_start_would_drop_is_told(run: Path, folder: Path) -> None:
    push_here(run)
    before = contents(folder)
    require_kept(started_firmware(), own_file(folder))
    with pytest.raises(UsageError, match=r"keeps a policy that this firmware would drop.* name an"):
        require_kept(started_firmware(OTHER), own_file(folder))
    assert contents(folder) == before
