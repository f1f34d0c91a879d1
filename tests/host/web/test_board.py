"""The page's clients of a board, in node: against programs of the board `host`, strangers and links
that lose bytes or are unplugged."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import board_on_pipes
from policy_samples import examples_here
from programs import in_node, require_node
from rltools_host.boards.framing import FrameEncoder
from rltools_host.build.boards import load_board
from rltools_host.build.cmake import load_dialect
from rltools_host.build.experiments import describe
from rltools_host.build.firmware import build_firmware
from rltools_host.policies.image import parse_policy
from rltools_host.tree import TREE
from rltools_host.web.site import dialect_document

PAGE = TREE.file("host/rltools_host/web/page")
DIALECT: Any = load_dialect()
EXPERIMENT, CONTRACT = "pendulum-td3", "pendulum"
HASH_300 = "1c4d11e54c2ed0c4cc32f7723d81b34e4f39c9fd5d65e6f6d593198ebc4f08e9"
SHORT = {"steps": 300, "report_every": 100}
ENDLESS = {"steps": 1_000_000, "report_every": 20}
EMPTY, ACTIVE, _, TRIAL, PREVIOUS = range(5)
IDLE, PAUSED, FINISHED = 0, 2, 3
SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.all) for seed in range(2, 6))]  # of losses


def on_pipes(board: str, program: Path) -> list[str]:
    """The command of a board that reads its input and writes its output."""
    return [sys.executable, board_on_pipes.__file__, board, str(program)]


def play(scenario: str, command: list[str], **given: Any) -> dict[str, Any]:
    given |= {"page": str(PAGE), "document": dialect_document(), "scenario": scenario}
    given |= {"command": command, "parameters": describe(EXPERIMENT).document["hyperparameters"]}
    script = TREE.root / "tests" / "host" / "web" / "board_in_node.mjs"
    answer: dict[str, Any] = json.loads(in_node(script, given=given))
    return answer


@pytest.fixture(scope="module")
def trainer() -> list[str]:
    require_node()
    return on_pipes("host", build_firmware(load_board("host"), EXPERIMENT))


@pytest.fixture(scope="module")
def policy_board() -> list[str]:
    require_node()
    return on_pipes("host", build_firmware(load_board("host"), CONTRACT, "infer"))


@pytest.fixture(scope="module")
def policies(trainer: list[str]) -> list[dict[str, Any]]:
    """Two policies of short runs, with what their examples give here."""
    return [policy(trainer, seed) for seed in (0, 1)]


def policy(trainer: list[str], seed: int) -> dict[str, Any]:
    found = play("train", trainer, values={"steps": 60, "learning_starts": 20, "seed": seed})
    image = parse_policy(base64.b64decode(found["policy"]))
    return {"image": found["policy"], "examples": examples_here(image), "sha256": image.sha256}


# ---- Training ------------------------------------------------------------------------------------


def test_a_board_trains_to_the_hash_of_this_machine(trainer: list[str]) -> None:
    found = play("train", trainer, values=SHORT)
    assert found["hash"] == found["payload"] == HASH_300
    assert (found["step"], found["state"]) == (300, FINISHED)
    steps = [step for kind, step in found["reports"] if kind == "RLT_PROGRESS"]
    assert steps == [100, 200, 300]
    assert ["RLT_EVALUATION", 300] in found["reports"]
    assert found["values"]["steps"] == 300
    assert found["values"]["gamma"] == pytest.approx(0.99)
    identity = found["identity"]
    assert (identity["board"], identity["program"]) == ("host", "train")
    assert identity["fingerprint"] == describe(EXPERIMENT).fingerprint


def test_a_run_goes_on_on_another_board(trainer: list[str]) -> None:
    """With the bits of one that was never moved; a damaged checkpoint is refused."""
    found = play("takeOver", trainer)
    assert "checkpoint refused: its SHA-256 does not match" in found["refused"]
    assert found["states"] == [IDLE, PAUSED, FINISHED]
    assert (found["there"], found["step"], found["end"]) == (found["hash"], 150, HASH_300)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_link_that_loses_and_changes_bytes_leads_to_the_same_hash(
    trainer: list[str], seed: int
) -> None:
    given = {"values": SHORT, "share": 0.05, "seed": seed, "answerMs": 30}
    found = play("trainOverALossyLink", trainer, **given)
    assert found["hash"] == found["payload"] == HASH_300
    assert found["lost"] + found["skipped"] > 0


def test_a_run_that_is_paused_and_resumed_is_one_that_was_not(trainer: list[str]) -> None:
    found = play("pauseAndResume", trainer, values=ENDLESS)
    assert found["states"] == [PAUSED, FINISHED]
    assert found["steps"][1] == found["steps"][0] + 100
    assert found["hash"] == found["whole"]
    assert "is idle and refuses to pause: reset it" in found["refused"]
    assert "hyperparameter refused: pause training first" in found["whileTraining"]
    assert "refuses /checkpoint.rltc: fail errno" in found["file"]


@pytest.mark.parametrize("is_pressed", [False, True])
def test_the_best_policy_of_a_board_that_keeps_none(trainer: list[str], is_pressed: bool) -> None:
    """It rests for it, and the run goes on unless a pause was pressed; here the board keeps it."""
    emulated = build_firmware(load_board("qemu-cortex-m7"), EXPERIMENT)
    bridge = on_pipes("qemu-cortex-m7", emulated)
    values = {
        "steps": 30,
        "eval_freq": 10,
        "n_eval_episodes": 1,
        "learning_starts": 1000,
        "seed": 1,
    }
    there = play("keepTheBest", bridge, values=values, isPressed=is_pressed)
    here = play("keepTheBest", trainer, values=values)
    assert (there["isKept"], here["isKept"]) == (True, False)
    for key in ("hash", "evaluations", "best"):
        assert there[key] == here[key]
    assert there["states"] == [*([PAUSED] if is_pressed else []), FINISHED]
    assert here["states"] == [FINISHED]


def test_a_run_that_goes_on_already_is_joined(trainer: list[str]) -> None:
    found = play("joinARunThatGoesOn", trainer, values=ENDLESS)
    assert found["hash"] == found["whole"]


def test_what_a_board_refuses_is_said_with_its_reason(trainer: list[str]) -> None:
    found = play("refusals", trainer)
    assert "refuses gamma=2: choose another value (it says " in found["gamma"]
    assert found["values"]["gamma"] == pytest.approx(0.99)
    assert "refuses /nothing.bin: file not" in found["none"]


def test_a_board_that_resets_while_it_trains_has_lost_its_state(trainer: list[str]) -> None:
    found = play("resetWhileTraining", trainer, values=ENDLESS)
    lost = "LinkLost: lost the board on the test's port: unplugged, or without power"
    assert found["lost"] == found["after"] == lost
    assert found["state"] == 0
    assert "restarted and lost its training state: start again" in found["restarted"]


def test_unplugged_in_a_download_nothing_waits(trainer: list[str]) -> None:
    found = play("unpluggedInADownload", trainer, values=SHORT)
    assert found["said"] == found["next"]
    assert found["said"].startswith("LinkLost: lost the board on the test's port")


def test_an_error_of_the_stream_that_the_port_survives_is_survived(trainer: list[str]) -> None:
    found = play("streamThatBreaks", trainer, answerMs=100)
    count = len(describe(EXPERIMENT).document["hyperparameters"])
    assert found == {"count": count, "failure": "null"}


# ---- Policies ------------------------------------------------------------------------------------


def test_a_policy_is_staged_tried_verified_confirmed_and_rolled_back(
    policy_board: list[str], policies: list[dict[str, Any]]
) -> None:
    found = play("push", policy_board, policies=policies)
    first, second = found["all"]
    assert "was not verified in this trial" in first["early"]
    assert first["trial"] == {"uses": [TRIAL, EMPTY], "active": "", "drop": ""}
    assert first["confirmed"]["active"] == policies[0]["sha256"]
    assert second["trial"]["uses"] == [ACTIVE, TRIAL]
    assert second["confirmed"]["uses"] == [PREVIOUS, ACTIVE]
    assert second["confirmed"]["active"] == policies[1]["sha256"]
    assert found["again"] is False
    verified = "8 examples give this machine's bits, in every layer"
    assert found["said"][-1] == f"Active already in slot 1: {verified}."
    assert found["back"]["active"] == found["fetched"] == policies[0]["sha256"]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_push_over_a_link_that_loses_bytes_ends_as_one_over_a_good_one(
    policy_board: list[str], policies: list[dict[str, Any]], seed: int
) -> None:
    given = {"policies": policies, "share": 0.05, "seed": seed, "answerMs": 50}
    found = play("pushOverALossyLink", policy_board, **given)
    assert (found["uses"], found["active"]) == ([ACTIVE, EMPTY], policies[0]["sha256"])
    assert found["skipped"] + found["lost"] > 0


@pytest.mark.parametrize("given", [{"bytesPerSecond": 6000}, {"answerMs": 100}])
def test_a_file_arrives_however_slow_its_link_is_and_without_bursts(
    policy_board: list[str], policies: list[dict[str, Any]], given: dict[str, Any]
) -> None:
    found = play("fetchOverAPoorLink", policy_board, policies=policies, **given)
    assert found["fetched"] == policies[0]["sha256"]


def test_other_bits_than_this_machines_end_the_trial(
    policy_board: list[str], policies: list[dict[str, Any]]
) -> None:
    found = play("otherBits", policy_board, policies=policies)
    said = "BoardError: the board on the test's port computes other bits than this machine: "
    assert found["layer"].startswith(f"{said}example 3, layer 1 has the checksum ")
    assert found["action"].startswith(f"{said}example 0, its action is ")
    assert found["action"].endswith("; no policy acts")
    assert "was not verified" in found["confirm"]
    assert (found["active"], found["drop"]) == ("", "it was rolled back")


def test_a_trial_that_nobody_confirms_ends(
    policy_board: list[str], policies: list[dict[str, Any]]
) -> None:
    found = play("unconfirmed", policy_board, policies=policies)
    assert "refuses to confirm the policy: it was not confirmed in time; no " in found["confirm"]
    assert (found["active"], found["drop"]) == ("", "it was not confirmed in time")


def test_unplugged_at_any_point_of_a_push_the_old_policy_acts(
    policy_board: list[str], policies: list[dict[str, Any]], tmp_path: Path
) -> None:
    storage = {"RLT_POLICY_STORAGE": str(tmp_path / "flash.bin")}
    cuts = [500, 3000, 12_000, 20_800, 21_000, 21_100]
    found = play("unplugged", policy_board, policies=policies, environment=storage, cuts=cuts)
    assert len(found["lines"]) == len(cuts)
    for line in found["lines"]:
        assert line["said"].startswith("LinkLost: lost the board on the test's port: unplugged")
        assert line["active"] == policies[0]["sha256"]
        assert TRIAL not in line["uses"]
    assert found["end"]["active"] == policies[1]["sha256"]


def test_a_board_that_resets_in_a_trial_has_dropped_the_policy(
    policy_board: list[str], policies: list[dict[str, Any]], tmp_path: Path
) -> None:
    storage = {"RLT_POLICY_STORAGE": str(tmp_path / "flash.bin")}
    found = play("resetInTrial", policy_board, policies=policies, environment=storage)
    assert found["lost"].startswith("LinkLost: lost the board on the test's port: unplugged")
    assert found["lost"].endswith(
        "whether it was confirmed is not known: connect again, the slots say it"
    )
    assert (found["active"], found["drop"]) == ("", "the board was reset during the trial")
    assert "refuses to confirm the policy" in found["confirm"]


def test_a_policy_of_another_contract_is_refused_before_it_is_sent(
    policies: list[dict[str, Any]],
) -> None:
    board = on_pipes("host", build_firmware(load_board("host"), "cart-pole", "infer"))
    found = play("pushThatIsRefused", board, policies=policies)
    assert 'acts by the contract "cart-pole", for which this policy is not' in found["refused"]
    assert found["uses"] == [EMPTY, EMPTY]


def test_an_armed_board_is_left_alone(
    policy_board: list[str], policies: list[dict[str, Any]]
) -> None:
    found = play("pushThatIsRefused", policy_board, policies=policies, armed=True)
    assert "is armed: disarm it, then push again" in found["refused"]
    assert found["uses"] == [EMPTY, EMPTY]


def test_a_damaged_image_is_refused_by_the_board(
    policy_board: list[str], policies: list[dict[str, Any]]
) -> None:
    image = bytearray(base64.b64decode(policies[0]["image"]))
    image[-1] ^= 1
    damaged = {**policies[0], "image": base64.b64encode(image).decode()}
    found = play("pushThatIsRefused", policy_board, policies=[damaged])
    assert "refuses the policy (wrong_crc: damaged" in found["refused"]
    assert found["uses"] == [EMPTY, EMPTY]


# ---- Who else may be on the port -----------------------------------------------------------------


def writes(data: bytes) -> list[str]:
    """A program that writes it, and is silent then."""
    script = "import sys, time; sys.stdout.buffer.write(bytes.fromhex(sys.argv[1])); "
    return [sys.executable, "-c", script + "sys.stdout.flush(); time.sleep(60)", data.hex()]


def identity(**fields: Any) -> bytes:
    values = {
        "fingerprint": 1,
        "learner_bytes": 0,
        "replay_bytes": 0,
        "scratch_bytes": 0,
        "protocol_version": 3,
        "state": 0,
        "counter": 0,
        "experiment": b"pendulum-td3",
        "board": b"teensy41",
        "device": b"CortexM7",
        "revision": b"",
        "unique_id": [0] * 16,
        **fields,
    }
    message = DIALECT.MAVLink_rlt_identity_message(**values)
    return FrameEncoder(DIALECT, 1, 191).encode(message)


HEARTBEATS = b"".join(
    FrameEncoder(DIALECT, 1, 1).encode(DIALECT.MAVLink_heartbeat_message(2, 3, 0, 0, 4, 3))
    for _ in range(2)
)


STRANGERS = [
    (b"", "no board answers on the test's port within 2 s: check that it is powered and flashed"),
    (b"boot: ESP-ROM\n" * 9, "the board on the test's port runs other firmware (126 bytes came"),
    (HEARTBEATS, "the device on the test's port speaks MAVLink but is not one of our boards"),
    (
        identity(protocol_version=2),
        "the board on the test's port speaks version 2 of the protocol, this page version 3: "
        "flash it again with `rlt flash teensy41 pendulum-td3`",
    ),
    # Nothing to paste into a shell.
    (
        identity(protocol_version=4, experiment=b"a; rm -rf ~"),
        "this page version 3: flash it again",
    ),
    # Of another dialect: its CRC_EXTRA differs, so no checksum is right.
    (identity()[:-1] + b"\x00", "the board on the test's port runs other firmware"),
]


def test_who_is_no_board_of_ours_is_said_in_a_sentence() -> None:
    commands = [writes(data) for data, _ in STRANGERS]
    found = play("strangers", [], commands=commands, limitMs=2000)["said"]
    assert len(found) == len(STRANGERS)
    for text, (_, said) in zip(found, STRANGERS, strict=True):
        assert text.startswith("BoardError: ")
        assert said in text
    assert found[4].endswith("flash it again")


def test_a_file_that_is_said_to_fill_the_memory_is_not_begun() -> None:
    assert "says that /policy.rltp has 4294967295 bytes: reset it" in play("hugeFile", [])["said"]
