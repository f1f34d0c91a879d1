"""Foreign files are read in the process of the test, by the same bytes as from one of its own."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from msgspec import msgpack

from rltools_host import confined
from rltools_host.policies.importing import process


def read_here(_program: str, question: Any, kind: Any, _path: Path, _remedy: str) -> Any:
    """Save the time in which such a process starts."""
    arrays: list[Any] = []
    asked = msgpack.decode(msgpack.encode(question), type=process.Question)
    reply = confined.encoded(process.answer(asked), arrays)
    head = msgpack.encode(reply)
    parts = [len(head).to_bytes(4, "little"), head, *(each.tobytes() for each in arrays)]
    received, found = confined.received(io.BytesIO(b"".join(parts)), confined.LIMITS)
    return confined.answered(received.value, found, kind)


@pytest.fixture(autouse=True)
def _reads_here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.path.name != "test_process.py":
        monkeypatch.setattr(process, "read_apart", read_here)
