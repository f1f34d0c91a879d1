"""Policies in the flash of an emulated board: what is there after it was ended, or killed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boards_under_test import LIMIT_S, skip_without_tools
from policy_run import make_policy_run
from policy_samples import patched, sample_images
from rltools_host.boards import policy_session as policy_board
from rltools_host.boards.board_link import Emulator
from rltools_host.boards.policies import PolicyClient
from rltools_host.boards.policy_session import PolicyTarget
from rltools_host.boards.push import PushRequest, push
from rltools_host.build import firmware
from rltools_host.build.boards import load_board
from rltools_host.commands import cli
from rltools_host.errors import LinkLostError
from rltools_host.policies.image import PolicyImage, parse_policy

pytestmark = pytest.mark.all  # another processor
NAME = "qemu-esp32c3"
BOARD = load_board(NAME)
STEP_OFFSET = 32  # of an image's training step, which no action depends on


@pytest.fixture(scope="module")
def program() -> Path:
    skip_without_tools(BOARD)
    return firmware.build_firmware(BOARD, "pendulum", "infer")


@pytest.fixture(autouse=True)
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The board's own file, for this test alone."""
    file = tmp_path / "policies" / "flash, of one board.bin"
    file.parent.mkdir()
    monkeypatch.setattr(policy_board, "storage_file", lambda *_: file)
    return file


@pytest.fixture
def images() -> list[PolicyImage]:
    first = sample_images()["small_pendulum"]
    return [parse_policy(first), parse_policy(patched(first, STEP_OFFSET, "I", 77))]


@pytest.fixture
def runs(images: list[PolicyImage], tmp_path: Path) -> list[Path]:
    """A run of each."""
    return [make_policy_run(tmp_path / f"run{i}", image.data) for i, image in enumerate(images)]


def said(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    contract = [] if words[0] == "push" else ["--contract", "pendulum"]  # a run states its own
    assert cli.run([*words, "--board", NAME, *contract, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return document


def test_policies_outlive_the_emulator(
    program: Path, images: list[PolicyImage], runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command starts the board anew."""
    assert program.exists()
    shas = [image.sha256 for image in images]
    for run, sha256 in zip(runs, shas, strict=True):
        assert said(capsys, "push", str(run))["active_sha256"] == sha256
    document = said(capsys, "policies")
    assert document["slot_bytes"] == 256 * 1024
    assert [slot["use"] for slot in document["slots"]] == ["previous", "active"]
    assert [slot["sha256"] for slot in document["slots"]] == shas
    assert said(capsys, "rollback")["active_sha256"] == shas[0]
    document = said(capsys, "policies")
    assert [slot["sha256"] for slot in document["slots"]] == [shas[0], None]
    assert document["last_drop"] == "rolled_back"


def kills_at(calls: str, number: int, kill: Callable[[], None], patch: pytest.MonkeyPatch) -> None:
    """Before the call with this number of a PolicyClient's method, `kill` is called."""
    real = getattr(PolicyClient, calls)
    done: list[None] = []

    def call(self: PolicyClient, *arguments: Any) -> Any:
        if len(done) == number:
            kill()
        done.append(None)
        return real(self, *arguments)

    patch.setattr(PolicyClient, calls, call)


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("upload", 15),
        ("try_candidate", 0),
        ("forward", 3),
    ],
)
def test_killed_in_the_midst_of_a_push(
    moment: str,
    number: int,
    program: Path,
    storage: Path,
    images: list[PolicyImage],
    runs: list[Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With kill -9; `number`: packets of the upload, or calls of the client."""
    first, second = (image.sha256 for image in images)
    assert said(capsys, "push", str(runs[0]))["active_sha256"] == first
    with (
        Emulator(BOARD, program, LIMIT_S, storage, serves=True) as emulator,
        monkeypatch.context() as patch,
    ):
        packets: list[int] = []

        def kill() -> None:
            os.kill(emulator.process_id, signal.SIGKILL)

        def progress(done: int, _: int) -> None:
            packets.append(done)
            if moment == "upload" and len(packets) == number:
                kill()

        if moment != "upload":
            kills_at(moment, number, kill, patch)
        request = PushRequest(str(runs[1]), PolicyTarget(NAME, emulator.port))
        with pytest.raises(LinkLostError):
            push(request, lambda _: None, progress)
        emulator.wait()
    document = said(capsys, "policies")
    assert document["slots"][0]["use"] == "active"
    assert document["slots"][0]["sha256"] == first
    assert document["slots"][1]["use"] == ("staged" if moment == "try_candidate" else "empty")
    assert document["last_drop"] == ("reset" if moment == "forward" else "none")
    assert said(capsys, "push", str(runs[1]))["active_sha256"] == second
