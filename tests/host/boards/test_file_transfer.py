"""File transfer with the fake board: damaged files, foreign packets, an unplugged board."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fake_board import FakeBoard, initial_state
from fake_faults import Faults
from fake_files import FakeFileServer
from rltools_host.boards.connection import Connection
from rltools_host.boards.file_requests import PATIENCE
from rltools_host.boards.file_transfer import (
    LARGEST_FILE_BYTES,
    VAIN_BURSTS,
    FileClient,
    FileTransfer,
)
from rltools_host.boards.messages import (
    DATA_BYTES,
    PACKET_BYTES,
    Opcode,
    Packet,
    State,
)
from rltools_host.build.cmake import load_dialect
from rltools_host.errors import BoardMismatchError, LinkLostError, RefusedError

DIALECT: Any = load_dialect()
CLEAN = Faults()


def paused_board(faults: Faults = CLEAN) -> FakeBoard:
    board = FakeBoard(DIALECT, faults=faults)
    board._payload, board._step, board.state = initial_state(3), 7, State.PAUSED
    return board


def transfer_with(board: FakeBoard, reply_timeout_s: float = 0.1) -> FileClient:
    return FileClient(Connection(board.link, DIALECT, board.address), reply_timeout_s)


def test_wrong_crc32_is_refused() -> None:
    with (
        paused_board(Faults(wrong_crc32=True)) as board,
        pytest.raises(RefusedError, match=r"/policy.rltp arrived from the fake board with CRC"),
    ):
        transfer_with(board).download("/policy.rltp")


def test_unplugged_while_transferring() -> None:
    with paused_board() as board:
        transfer = transfer_with(board)

        def pull(done: int, _: int) -> None:
            if done > 1000:
                board.unplug()

        with pytest.raises(LinkLostError, match="lost the board on the fake board: unplugged"):
            transfer.download("/checkpoint.rltc", pull)


class ChattyChannel:
    """Answers at once, but never with what was asked for."""

    description = "a chatty board"

    def __init__(self, answer: Callable[[], bytes]) -> None:
        self._answer = answer

    def send(self, payload: bytes) -> None:
        pass

    def receive(self, timeout_s: float) -> bytes | None:  # noqa: ARG002
        return self._answer()


def test_chatter_that_answers_nothing_is_no_progress() -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 0.001
        return now

    chatter = Packet(9, 1, Opcode.ACK, Opcode.READ_FILE).pack()
    transfer = FileTransfer(ChattyChannel(lambda: chatter), 0.05, clock)
    with pytest.raises(LinkLostError, match=r"a chatty board stopped answering .* of /policy.rltp"):
        transfer.download("/policy.rltp")
    assert PATIENCE * 0.05 <= now < PATIENCE * 0.05 + 1.0


def test_malformed_packets_are_ignored() -> None:
    assert Packet.parse(b"") == Packet(0, 0, 0)
    assert Packet.parse(bytes(4) + bytes((DATA_BYTES + 1,)) + bytes(246)) is None
    garbage = iter(range(100))

    def answer() -> bytes:
        next(garbage)
        return b"\xff" * PACKET_BYTES

    with pytest.raises(StopIteration):
        FileTransfer(ChattyChannel(answer)).download("/policy.rltp")


class ScriptedChannel:
    """A file server whose clock goes on by each answer that does not come."""

    description = "a scripted board"

    def __init__(self, content: bytes, loses: Callable[[Packet], bool]) -> None:
        self.now_s = 0.0
        self.lost = 0
        self._loses = loses
        self._server = FakeFileServer(lambda _: content, clock=lambda: 0.0)
        self._answers: list[bytes] = []

    def send(self, payload: bytes) -> None:
        request = Packet.parse(payload)
        assert request is not None
        if self._loses(request):
            self.lost += 1
        else:
            self._answers += self._server.answer(payload)

    def receive(self, timeout_s: float) -> bytes | None:
        if self._answers:
            return self._answers.pop(0)
        self.now_s += timeout_s
        return None


class Boasting(FakeFileServer):
    """States another size than that of what it has."""

    stated = 0

    def _answer(self, request: Packet, size: int) -> tuple[int, int, bytes]:
        session, offset, data = super()._answer(request, size)
        is_open = request.opcode == Opcode.OPEN_FILE_RO
        return session, offset, self.stated.to_bytes(4, "little") if is_open else data


@pytest.mark.parametrize(
    ("stated", "options", "most"),
    [
        (0xFFFF_FFFF, {}, "268,435,456"),
        (LARGEST_FILE_BYTES + 1, {}, "268,435,456"),
        (11, {"max_bytes": 10}, "10"),
    ],
)
def test_a_size_that_no_file_has_is_refused(
    stated: int, options: dict[str, int], most: str
) -> None:
    """Before there is memory for it; the session is closed."""
    channel = ScriptedChannel(bytes(10), lambda _: False)
    server = Boasting(lambda _: bytes(10), clock=lambda: 0.0)
    channel._server, server.stated = server, stated
    transfer = FileTransfer(channel, clock=lambda: channel.now_s)
    sentence = rf"states {stated:,} bytes for /a, and it may have {most}: flash it with"
    with pytest.raises(BoardMismatchError, match=sentence):
        transfer.download("/a", **options)
    assert server.sessions == {}
    server.stated = 10
    assert transfer.download("/a", max_bytes=10) == bytes(10)


def test_a_file_whose_bursts_are_lost_is_read() -> None:
    channel = ScriptedChannel(b"x" * 5000, lambda r: r.opcode == Opcode.BURST_READ_FILE)
    transfer = FileTransfer(channel, 0.01, lambda: channel.now_s)
    assert transfer.download("/checkpoint.rltc") == b"x" * 5000
    assert channel.lost == VAIN_BURSTS
    assert transfer.download("/policy.rltp") == b"x" * 5000
    assert channel.lost == VAIN_BURSTS, "the link is the same"
