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
    action_of,
    identity_of,
    text_of,
)


def message(kind: str, **fields: Any) -> Message:
    return cast(Message, SimpleNamespace(get_type=lambda: kind, **fields))


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
