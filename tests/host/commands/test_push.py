"""`rlt push`, `policies`, `confirm` and `rollback` with the board that is a process here."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import math
import os
import re
import signal
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from disturbed_link import DisturbedLink
from policy_samples import patched, sample_images
from rltools_host.boards import connection
from rltools_host.boards import policy_session as policy_board
from rltools_host.boards import push as pushing
from rltools_host.boards.board_link import STORAGE_VARIABLE
from rltools_host.boards.file_transfer import FileClient
from rltools_host.boards.messages import Action, Identity
from rltools_host.boards.policies import PolicyClient
from rltools_host.boards.policy_session import PolicyTarget, policy_session
from rltools_host.boards.push import PushRequest, push, roll_back
from rltools_host.boards.session import BoardSession
from rltools_host.boards.transport import Link, ProcessLink
from rltools_host.build import firmware
from rltools_host.build.boards import load_board
from rltools_host.commands import cli
from rltools_host.commands.policies import list_policies
from rltools_host.errors import (
    BoardMismatchError,
    DamagedFileError,
    Interrupted,
    LinkLostError,
    PortError,
    RefusedError,
)
from rltools_host.policies.core import PolicyRunner
from rltools_host.policies.image import PolicyImage, parse_policy, read_run_policy
from tcp_board import TcpBoard
from training_calls import two_policy_runs
from waiting import wait_for

pytestmark = pytest.mark.usefixtures("storage")

HERE = PolicyTarget("host")
Keys = ["board", "activated", "active_sha256", "slot", "reason", "entry", "assumed"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return two_policy_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def tcp_board(storage: Path) -> Iterator[TcpBoard]:
    program = firmware.build_firmware(load_board("host"), "pendulum", "infer")
    storage.parent.mkdir()
    with TcpBoard(program, {STORAGE_VARIABLE: str(storage)}) as board:
        yield board


def sha_of(run: Path) -> str:
    return read_run_policy(run).sha256


def push_here(run: Path, **options: Any) -> pushing.PushResult:
    return push(PushRequest(str(run), HERE, **options), lambda _: None)


def uses(place: PolicyTarget = HERE) -> list[str]:
    return [slot["use"] for slot in list_policies(place)["slots"]]


def active_of(place: PolicyTarget = HERE) -> str | None:
    for slot in list_policies(place)["slots"]:
        if slot["use"] == "active":
            return str(slot["sha256"])
    return None


def links_made(monkeypatch: pytest.MonkeyPatch, wrap: Any = None) -> list[ProcessLink]:
    """The links to the boards that are started from now on; `wrap` makes others of them."""
    real_open = policy_board.open_board_link
    made: list[ProcessLink] = []

    def open_and_remember(*arguments: Any) -> Link:
        link = real_open(*arguments)
        assert isinstance(link, ProcessLink)
        made.append(link)
        return wrap(link) if wrap else link

    monkeypatch.setattr(policy_board, "open_board_link", open_and_remember)
    return made


def with_image(monkeypatch: pytest.MonkeyPatch, image: bytes) -> PolicyImage:
    """Whatever run is pushed, this is its policy."""
    policy = parse_policy(image, "the run's policy")
    monkeypatch.setattr(pushing, "read_leaving_policy", lambda *_: policy)
    return policy


# -- the whole way ---------------------------------------------------------------------------------


def test_two_pushes_and_the_way_back(
    runs: list[Path], storage: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shas = [sha_of(run) for run in runs]
    for slot, run in enumerate(runs):
        assert cli.run(["push", str(run), "--board", "host", "--json"]) == 0
        document = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert document == {
            "board": "host",
            "activated": True,
            "active_sha256": shas[slot],
            "slot": slot,
            "reason": "confirmed",
            "entry": None,  # of a quadrotor's policy
            "assumed": {},
        }
    assert storage.stat().st_size > 0
    assert uses() == ["previous", "active"]
    capsys.readouterr()
    assert cli.run(["rollback", "--board", "host", "--json"]) == 0
    document = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert list(document) == Keys
    assert (document["active_sha256"], document["slot"]) == (shas[0], 0)
    assert cli.run(["policies", "--board", "host", "--json"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    document = json.loads(last)
    assert (document["contract"], document["last_drop"]) == ("pendulum", "rolled_back")
    assert (document["entry"], document["assumed"]) == (None, {})
    assert document["slots"][0]["experiment"] == "pendulum-td3"
    assert document["slots"][0]["step"] == 120
    assert document["slots"][1] == {
        **dict.fromkeys(document["slots"][1]),
        "slot": 1,
        "use": "empty",
        "bytes": 0,
    }
    assert lines[1].split()[:4] == ["0", "active", "pendulum-td3", "Pendulum-v1"]


def test_the_active_policy_is_not_sent_again(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    push_here(runs[0])
    push_here(runs[1])
    outcome = push_here(runs[1])
    assert (outcome.activated, outcome.reason) == (True, "it was active already")
    assert uses() == ["previous", "active"]  # the way back is still there
    forward = PolicyClient.forward  # it is compared as one that is sent
    monkeypatch.setattr(PolicyClient, "forward", lambda *words: flip_a_bit(forward(*words)))
    with pytest.raises(RefusedError, match="the action differs"):
        push_here(runs[1])


# -- disturbances ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.all)])
def test_a_link_that_loses_frames(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(connection, "ANSWER_TIMEOUT_S", 0.05)
    monkeypatch.setattr(FileClient.__init__, "__defaults__", (0.2,))
    links_made(monkeypatch, lambda link: DisturbedLink(link, 0.1, seed))
    push_here(runs[0])
    assert push_here(runs[1]).active_sha256 == sha_of(runs[1])
    assert roll_back(HERE).active_sha256 == sha_of(runs[0])
    assert uses() == ["active", "empty"]


def test_a_board_that_is_killed_in_the_upload_keeps_the_last_good_one(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    push_here(runs[0])
    made = links_made(monkeypatch)

    def kill_at_half(done: int, whole: int) -> None:
        if done > whole // 2:
            os.kill(made[-1].process_id, signal.SIGKILL)

    with pytest.raises(LinkLostError, match="ended by SIGKILL") as caught:
        push(PushRequest(str(runs[1]), HERE), lambda _: None, kill_at_half)
    assert caught.value.details["activated"] is False
    assert caught.value.details["active_sha256"] == sha_of(runs[0])
    assert uses() == ["active", "empty"]
    assert active_of() == sha_of(runs[0])
    assert push_here(runs[1]).activated


def test_a_board_that_is_killed_in_the_trial_keeps_the_last_good_one(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    push_here(runs[0])
    made = links_made(monkeypatch)

    def kill_in_trial(line: str) -> None:
        if line.startswith("in trial"):
            os.kill(made[-1].process_id, signal.SIGKILL)

    with pytest.raises(LinkLostError, match="the board drops it within 10 s"):
        push(PushRequest(str(runs[1]), HERE), kill_in_trial)
    document = list_policies(HERE)
    assert document["last_drop"] == "reset"
    assert [slot["use"] for slot in document["slots"]] == ["active", "empty"]
    assert document["slots"][0]["sha256"] == sha_of(runs[0])


def test_a_board_that_is_killed_at_the_confirmation(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever became of the command, the sentence does not say more than is known."""
    made = links_made(monkeypatch)
    confirm = PolicyClient.confirm

    def confirm_and_lose(self: PolicyClient, sha256: str) -> Any:
        confirm(self, sha256)
        os.kill(made[-1].process_id, signal.SIGKILL)
        return self.slots()

    monkeypatch.setattr(PolicyClient, "confirm", confirm_and_lose)
    with pytest.raises(LinkLostError, match=r"is not known, .*policies --board"):
        push_here(runs[0])
    assert active_of() == sha_of(runs[0])


def test_two_boards_do_not_share_a_storage(runs: list[Path], tcp_board: TcpBoard) -> None:
    push(PushRequest(str(runs[0]), PolicyTarget("host", tcp_board.port)), lambda _: None)
    with pytest.raises(PortError, match=r"storage\.bin is in use by another board"):
        uses()
    assert uses(PolicyTarget("host", tcp_board.port)) == ["active", "empty"]


# -- what is refused -------------------------------------------------------------------------------


def tables(image: bytes) -> int:
    """Offset of the channels, behind the header and the layers."""
    (layers,) = struct.unpack_from("<H", image, 20)
    return 144 + 8 * int(layers)


def weights(image: bytes) -> int:
    """Offset of the first weight, behind four channels."""
    return tables(image) + 4 * 48


# What this host does not send comes from another one. A reader of images is compared with the
# board's in test_policy_image.py; here is what only a board knows, and a reason of each check.
DAMAGE = (
    ("wrong_crc", lambda image: image[:-1] + bytes((image[-1] ^ 1,))),
    ("not_finite", lambda image: patched(image, weights(image), "f", math.nan)),
    ("example_not_reproduced", lambda image: patched(image, weights(image), "f", 0.123)),
    ("other_contract", lambda image: patched(image, 28, "I", 10_000)),
    ("other_contract", lambda image: patched(image, tables(image), "24s", b"cosine")),
    ("other_contract", lambda image: patched(image, tables(image) + 40, "f", -2.0)),
    ("other_contract", lambda _: sample_images()["relu"]),
)


def test_the_board_names_what_is_wrong_with_an_image(runs: list[Path]) -> None:
    push_here(runs[0])
    with policy_session(HERE) as (session, _):
        for reason, damage in DAMAGE:
            image = damage(read_run_policy(runs[1]).data)
            with pytest.raises(RefusedError, match=rf"refuses the policy \({reason}: "):
                session.policies.upload(image, "00" * 32)
            slots = session.policies.slots()
            assert slots.active is not None
            assert slots.active.sha256 == sha_of(runs[0])


@pytest.mark.parametrize("name", ["qemu-esp32c3", "qemu-cortex-m7"])
def test_a_policy_for_another_board_is_not_sent(
    name: str, runs: list[Path], tcp_board: TcpBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FileClient, "upload", lambda *_: pytest.fail("something was sent"))
    sentence = f'is a "host", not a "{name}": give --board host or another --port'
    if load_board(name).address == load_board("host").address:
        expected = sentence
    else:
        expected = 'is a "host" with system id 1 and component id 191, not '
    with pytest.raises(BoardMismatchError, match=expected):
        push(PushRequest(str(runs[0]), PolicyTarget(name, tcp_board.port)), lambda _: None)


@pytest.mark.parametrize(
    ("offset", "record", "value", "sentence"),
    [
        (28, "I", 20_000, "a step is 50,000 us there, 20,000 here"),
        (
            144 + 44,
            "f",
            3.0,
            'action 0 is "torque" in N.m from -2 to 2 there, .* from -2 to 3 here',
        ),
    ],
)
def test_another_contract_is_named_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
    offset: int,
    record: str,
    value: Any,
    sentence: str,
) -> None:
    image = sample_images()["pendulum"]
    if record != "I":
        offset += tables(image)
    policy = with_image(monkeypatch, patched(image, offset, record, value))
    monkeypatch.setattr(type(policy), "verify", lambda _: None)
    monkeypatch.setattr(FileClient, "upload", lambda *_: pytest.fail("something was sent"))
    with pytest.raises(BoardMismatchError, match=sentence):
        push(PushRequest("any", HERE), lambda _: None)


def test_the_checksum_of_the_contract_is_the_boards() -> None:
    image = parse_policy(sample_images()["pendulum"])
    with policy_session(HERE) as (session, identity):
        assert identity.fingerprint == image.contract.checksum
        assert (identity.program, identity.experiment) == ("infer", "pendulum")
        content = session.policies.contract()
    contract = pushing.parse_contract(content, "here")
    assert contract == image.contract
    with pytest.raises(DamagedFileError, match="the contract of here contradicts itself"):
        pushing.parse_contract(content[1:], "here")
    for other in (
        dataclasses.replace(contract, observations=contract.observations[:2]),
        dataclasses.replace(contract, actions=contract.actions * 2),
    ):
        assert "s there, " in other.difference(contract)
        assert other.checksum != contract.checksum


def test_an_armed_board_gets_nothing(runs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    push_here(runs[0])

    @contextlib.contextmanager
    def armed_session(place: PolicyTarget) -> Iterator[tuple[BoardSession, Identity]]:
        with policy_session(place) as (session, identity):
            arm = session.connection.dialect.MAV_CMD_COMPONENT_ARM_DISARM
            assert session.policies._command(arm, "arm", 1.0)
            yield session, identity

    monkeypatch.setattr(pushing, "policy_session", armed_session)
    with pytest.raises(RefusedError, match="is armed: disarm it, then push again") as caught:
        push_here(runs[1])
    assert caught.value.details["active_sha256"] == sha_of(runs[0])
    with pytest.raises(RefusedError, match="refuses to roll back: it is armed"):
        roll_back(HERE)


def test_a_board_that_trains_takes_no_policies(runs: list[Path]) -> None:
    program = firmware.build_firmware(load_board("host"), "pendulum-td3")
    with (
        TcpBoard(program, {}) as board,
        pytest.raises(BoardMismatchError, match='runs the program "train", not "infer": leave out'),
    ):
        push(PushRequest(str(runs[0]), PolicyTarget("host", board.port)), lambda _: None)


# -- the trial -------------------------------------------------------------------------------------


def flip_a_bit(action: Action) -> Action:
    return dataclasses.replace(action, action_bits=(action.action_bits[0] ^ 1,))


def lose_a_layer(action: Action) -> Action:
    return dataclasses.replace(action, layers=action.layers[:-1])


@pytest.mark.parametrize(
    ("change", "number", "sentence"),
    [
        (flip_a_bit, 0, "the action differs: example 0 gives [0-9a-f]{8}, here"),
        (flip_a_bit, 7, "the action differs: example 7 gives [0-9a-f]{8}, here"),
        (lose_a_layer, 0, "the number of layers differs: example 0 runs through 2, here 3"),
    ],
)
def test_other_bits_are_rolled_back(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch, change: Any, number: int, sentence: str
) -> None:
    """Of one example alone: the first, or the last of those that this library writes."""
    push_here(runs[0])
    forward, answers = PolicyClient.forward, itertools.count()

    def answer(*words: Any) -> Action:
        given = forward(*words)
        return change(given) if next(answers) == number else given

    with monkeypatch.context() as patch:
        patch.setattr(PolicyClient, "forward", answer)
        with pytest.raises(RefusedError, match=sentence) as caught:
            push_here(runs[1])
    assert str(caught.value).endswith(f"; {sha_of(runs[0])[:12]} acts")
    assert caught.value.details["active_sha256"] == sha_of(runs[0])
    document = list_policies(HERE)
    assert document["last_drop"] == "rolled_back"
    assert [slot["use"] for slot in document["slots"]] == ["active", "empty"]


def test_other_bits_in_a_hidden_layer_are_rolled_back(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = PolicyRunner.layer_checksums
    monkeypatch.setattr(
        PolicyRunner,
        "layer_checksums",
        lambda self, values: (layers(self, values)[0] ^ 1, *layers(self, values)[1:]),
    )
    with pytest.raises(RefusedError, match=r"layer 1 of 3 differs: example 0 .*; no policy acts"):
        push_here(runs[0])
    assert uses() == ["empty", "empty"]


def test_a_trial_that_ends_before_the_verification(runs: list[Path]) -> None:
    push_here(runs[0])

    def take_long(line: str) -> None:
        if line.startswith("in trial"):
            time.sleep(0.6)

    sentence = (
        "before it was verified: it was not confirmed in time; give a longer --trial; .* acts"
    )
    with pytest.raises(RefusedError, match=sentence):
        push(PushRequest(str(runs[1]), HERE, trial_s=0.5), take_long)
    assert active_of() == sha_of(runs[0])


def test_a_fault_of_this_program_in_the_trial_rolls_back(runs: list[Path]) -> None:
    """Or an output that nobody takes any more, as of `rlt push | head`."""
    push_here(runs[0])

    def fail(line: str) -> None:
        if line.startswith("in trial"):
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        push(PushRequest(str(runs[1]), HERE), fail)
    assert active_of() == sha_of(runs[0])
    assert list_policies(HERE)["last_drop"] == "rolled_back"  # not by the board's reset


def test_ctrl_c_in_the_trial_rolls_back(runs: list[Path], tcp_board: TcpBoard) -> None:
    place = PolicyTarget("host", tcp_board.port)
    push(PushRequest(str(runs[0]), place), lambda _: None)

    def interrupt(line: str) -> None:
        if line.startswith("in trial"):
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match=f"interrupted; {sha_of(runs[0])[:12]} acts"):
        push(PushRequest(str(runs[1]), place), interrupt)
    document = list_policies(place)
    assert document["last_drop"] == "rolled_back"
    assert [slot["use"] for slot in document["slots"]] == ["active", "empty"]


def test_left_in_trial_and_confirmed_later(
    runs: list[Path], tcp_board: TcpBoard, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--board", "host", "--port", tcp_board.port]
    assert cli.run(["confirm", *where]) == RefusedError.exit_code
    assert "tries no policy" in capsys.readouterr().err
    words = ["push", str(runs[0]), *where, "--no-confirm", "--trial", "60", "--json"]
    assert cli.run(words) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    document = json.loads(last)
    assert list(document) == Keys
    assert (document["activated"], document["reason"]) == (False, "in trial")
    assert document["active_sha256"] is None
    keep, drop = lines[-2:]
    assert keep.endswith(f"rlt confirm --board host --port {tcp_board.port}")
    assert drop.endswith(f"rlt rollback --board host --port {tcp_board.port}")
    assert uses(PolicyTarget("host", tcp_board.port)) == ["trial", "empty"]
    capsys.readouterr()
    assert cli.run(["push", str(runs[1]), *where]) == RefusedError.exit_code
    left = re.search(r"tries another policy, for ([\d.]+) s more", capsys.readouterr().err)
    assert left is not None
    assert 20 < float(left.group(1)) <= 60
    assert cli.run(["confirm", *where, "--json"]) == 0
    document = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert document["active_sha256"] == sha_of(runs[0])
    assert (document["activated"], document["slot"]) == (True, 0)


def test_left_in_trial_and_dropped_when_its_time_is_over(
    runs: list[Path], tcp_board: TcpBoard, capsys: pytest.CaptureFixture[str]
) -> None:
    place = PolicyTarget("host", tcp_board.port)
    push(PushRequest(str(runs[0]), place, 3.0, confirm=False), lambda _: None)
    wait_for(lambda: uses(place) == ["empty", "empty"], 60)
    capsys.readouterr()
    assert list_policies(place)["last_drop"] == "deadline"
    assert "last policy dropped: it was not confirmed in time" in capsys.readouterr().out
