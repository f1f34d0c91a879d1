"""Messages of the dialect as values, and the words for their numbers."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rltools_host.boards import messages
from rltools_host.boards.framing import Message
from rltools_host.boards.messages import (
    Action,
    Evaluation,
    ExecutorCounts,
    TrainingProgress,
    action_of,
    executor_counts_of,
    identity_of,
    policy_slot_of,
    report_of,
    result_of,
    text_of,
)

READERS = (identity_of, report_of, result_of, policy_slot_of, executor_counts_of, action_of)


def message(kind: str, **fields: Any) -> Message:
    return cast(Message, SimpleNamespace(get_type=lambda: kind, **fields))


def test_each_reader_takes_its_own_messages_alone() -> None:
    assert [reader(message("HEARTBEAT")) for reader in READERS] == [None] * 6


IDENTITY: dict[str, Any] = {
    "experiment": b"pendulum-td3\0rest",
    "board": "host",
    "device": "x86\x1b",
    "revision": "abc",
    "fingerprint": 7,
    "protocol_version": 1,
    "state": 2,
    "learner_bytes": 10,
    "replay_bytes": 20,
    "scratch_bytes": 30,
    "unique_id": [0, 171, 255],
}


@pytest.mark.parametrize(("counter", "counts"), [(0, False), (1, True), (2, False)])
def test_identity(counter: int, counts: bool) -> None:
    found = identity_of(message("RLT_IDENTITY", **IDENTITY, counter=counter, program=""))
    assert found is not None
    assert (found.counts_instructions, found.program, found.unique_id) == (
        counts,
        "train",
        "00abff",
    )
    assert (found.experiment, found.board, found.state) == ("pendulum-td3", "host", 2)
    assert "\x1b" not in found.device
    named = identity_of(message("RLT_IDENTITY", **IDENTITY, counter=0, program="infer\0"))
    assert named is not None
    assert named.program == "infer"


def test_reports_and_results() -> None:
    progress = {"counter": 1, "step": 2, "steps": 3, "updates": 4, "episodes": 5}
    returns: dict[str, Any] = {"last_return": -1.0, "best_return": 0.5, "metrics": [0.25, 0.0]}
    assert report_of(message("RLT_PROGRESS", **progress, **returns)) == TrainingProgress(
        1, 2, 3, 4, 5, -1.0, 0.5, (0.25, 0.0)
    )
    evaluation = {"counter": 1, "step": 2, "episodes": 3, "return_mean": -4.0}
    evaluation |= {"return_std": 1.0, "return_min": -6.0, "return_max": -2.0}
    stated = report_of(message("RLT_EVALUATION", **evaluation, length_mean=9.5))
    assert stated == Evaluation(1, 2, 3, -4.0, 1.0, -6.0, -2.0, 9.5)
    result: dict[str, Any] = {"counter": 9, "evaluation_counter": 2, "step": 5}
    result |= {"checkpoint_bytes": 100, "policy_bytes": 50, "state_sha256": [1, 254]}
    for state, finished in ((2, False), (3, True), (4, False)):  # paused, finished, fault
        found = result_of(message("RLT_RESULT", **result, state=state, is_best=int(finished)))
        assert found is not None
        assert found.is_best is finished
        assert (found.finished, found.state_sha256, found.policy_bytes) == (finished, "01fe", 50)


@pytest.mark.parametrize(("size", "expected"), [(0, ("", "")), (1, ("0a", "0b"))])
def test_an_empty_slot_has_no_hashes(size: int, expected: tuple[str, str]) -> None:
    zero = dict.fromkeys(messages.PolicySlot.__dataclass_fields__, 0)
    texts = {"experiment": "e", "environment": "n", "sha256": [10], "state_sha256": [11]}
    found = policy_slot_of(message("RLT_POLICY_SLOT", **{**zero, **texts, "image_bytes": size}))
    assert found is not None
    assert (found.sha256, found.state_sha256) == expected
    assert (found.experiment, found.environment) == ("e", "n")


@pytest.mark.parametrize(("armed", "expected"), [(0, False), (1, True)])
def test_executor_counts(armed: int, expected: bool) -> None:
    fields = {"ticks": 5, "early": 1, "late": 2, "missed": 3, "statuses": [4, 1]}
    found = executor_counts_of(message("RLT_EXECUTOR", **fields, armed=armed))
    assert found == ExecutorCounts(5, 1, 2, 3, (4, 1), expected)


@pytest.mark.parametrize(
    ("dims", "layers", "lengths"), [(0, 0, (0, 0)), (2, 1, (2, 1)), (24, 16, (24, 16))]
)
def test_an_actions_words_are_of_its_payload(
    monkeypatch: pytest.MonkeyPatch, dims: int, layers: int, lengths: tuple[int, int]
) -> None:
    payload = struct.pack("<12s40I", b"", *range(1, 41))
    monkeypatch.setattr(messages, "payload_of", lambda _: payload)
    fields = {"tick": 7, "cost": 8, "status": 1, "action_dim": dims, "layer_count": layers}
    bits, outputs = tuple(range(1, lengths[0] + 1)), tuple(range(25, 25 + lengths[1]))
    assert action_of(message("RLT_ACTION", **fields)) == Action(7, 8, 1, bits, outputs)
    beyond = {**fields, "action_dim": 255, "layer_count": 255}
    found = action_of(message("RLT_ACTION", **beyond))
    assert found is not None
    assert (len(found.action_bits), len(found.layers)) == (24, 16)
    monkeypatch.setattr(messages, "payload_of", lambda _: payload[:16])  # zeros are cut off
    found = action_of(message("RLT_ACTION", **beyond))
    assert found is not None
    assert found.action_bits == (1, *[0] * 23)


def test_texts_end_at_their_first_zero() -> None:
    fields = (b"ab\0cd", "ab\0cd", b"ab", b"\0", b"", b"a\xff\0", 5)
    assert [text_of(field) for field in fields] == ["ab", "ab", "ab", "", "", "a\ufffd", "5"]
