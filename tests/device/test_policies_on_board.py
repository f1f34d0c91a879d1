"""Policies on the emulated Cortex-M7, which keeps them from one command to the next."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from boards_under_test import EMULATED, LIMIT_S
from rltools_host import cli
from rltools_host.boards.description import load_board
from rltools_host.boards.emulator import Emulator
from rltools_host.build import firmware
from rltools_host.policies.board import PolicyPlace, policy_session
from rltools_host.policies.image import read_run_policy
from training_calls import two_policy_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return two_policy_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def port() -> Iterator[str]:
    board = load_board(EMULATED)
    program = firmware.build_firmware(board, "pendulum", "infer")
    with Emulator(board, program, LIMIT_S) as emulator:
        yield emulator.port


def test_policies_last_from_command_to_command(
    port: str, runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each push compares the processor's bits with this machine's, layer by layer."""
    where = ["--board", EMULATED, "--port", port]
    first, second = (read_run_policy(run).sha256 for run in runs)

    def said(*words: str) -> dict[str, object]:
        assert cli.run([*words, *where, "--json"]) == 0
        document: dict[str, object] = json.loads(capsys.readouterr().out.splitlines()[-1])
        return document

    assert said("push", str(runs[0]))["active_sha256"] == first
    in_trial = said("push", str(runs[1]), "--no-confirm", "--trial", "1000")
    assert (in_trial["activated"], in_trial["active_sha256"]) == (False, first)
    assert said("confirm")["active_sha256"] == second
    document = said("policies")
    assert document["device"] == "CortexM7"
    slots = document["slots"]
    assert isinstance(slots, list)
    assert [slot["use"] for slot in slots] == ["previous", "active"]
    assert [slot["sha256"] for slot in slots] == [first, second]
    assert said("rollback")["active_sha256"] == first
    with policy_session(PolicyPlace(EMULATED, port)) as (session, _):
        assert session.files.download("/policy.rltp") == read_run_policy(runs[0]).data
        assert session.node.stack_use()["stack_peak"] < session.node.stack_use()["stack"]
