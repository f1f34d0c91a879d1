"""Messages of the dialect as values, and the words for their numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rltools_host.boards.messages import (
    identity_of,
    text_of,
)

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
    "counter": 0,
    "program": "",
}


def test_texts_of_a_board_end_with_them_and_command_no_terminal() -> None:
    message: Any = SimpleNamespace(get_type=lambda: "RLT_IDENTITY", **IDENTITY)
    found = identity_of(message)
    assert found is not None
    assert (found.experiment, found.program, found.unique_id) == ("pendulum-td3", "train", "00abff")
    assert "\x1b" not in found.device


def test_texts_end_at_their_first_zero() -> None:
    fields = (b"ab\0cd", "ab\0cd", b"ab", b"\0", b"", b"a\xff\0", 5)
    assert [text_of(field) for field in fields] == ["ab", "ab", "ab", "", "", "a\ufffd", "5"]
