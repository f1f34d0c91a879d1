"""File transfer over a link in memory that loses, repeats, delays, reorders and adds packets."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from disorderly_channel import FILES, DisorderlyChannel, on, server_in_memory
from fake_files import EXPIRY_S
from rltools_host.boards.file_requests import PATIENCE, SessionClosedError
from rltools_host.boards.file_transfer import REPLY_TIMEOUT_S, VAIN_BURSTS
from rltools_host.boards.messages import DATA_BYTES, Opcode, Packet
from rltools_host.errors import BoardMismatchError, LinkLostError


@given(
    st.integers(0, 2**32),
    st.sampled_from([0.0, 0.02, 0.1]),
    st.lists(st.sampled_from(sorted(FILES)), min_size=1, max_size=4),
)
@example(1091, 0.1, ["/a", "/d", "/d", "/a"])  # a late packet of the last file's burst was taken
def test_transfers_over_a_disorderly_link(seed: int, disorder: float, paths: list[str]) -> None:
    """One transfer after another, each with packets of the ones before; no byte is wrong.

    Where a tenth of the packets is lost, five in a row can be, and the session expires.
    """
    written: list[bytes] = []
    channel = DisorderlyChannel(server_in_memory(written), Random(seed), disorder)
    transfer = on(channel)
    transfer._sequence = seed & 0xFFFF  # not at random, so that a failure can be repeated
    for path in paths:
        try:
            assert transfer.download(path) == FILES[path]
            if path == "/a":
                transfer.upload(path, FILES["/d"])
                assert written[-1] == FILES["/d"]
        except LinkLostError:
            assert disorder > 0.05


def test_session_that_expires_is_opened_again() -> None:
    """The host was asleep for longer than a server keeps sessions."""
    channel = DisorderlyChannel(server_in_memory([]), Random(1), 0.0)
    slept: list[int] = []

    def sleep_once(done: int, _: int) -> None:
        if done > 5000 and not slept:
            slept.append(done)
            channel.now += EXPIRY_S + 1.0

    assert on(channel).download("/a", sleep_once) == FILES["/a"]
    opened = [r for r in channel.server.requests if r.opcode == Opcode.OPEN_FILE_RO]
    assert len(opened) == 2
    assert slept


def test_file_that_changes_while_its_session_is_expired() -> None:
    channel = DisorderlyChannel(server_in_memory([]), Random(1), 0.0)
    sizes = iter([FILES["/a"], FILES["/d"], FILES["/d"]])
    channel.server.read = lambda _: next(sizes)
    with pytest.raises(LinkLostError, match="the disorderly board closed /a during its transfer"):
        on(channel).download("/a", lambda *_: setattr(channel, "now", channel.now + EXPIRY_S + 1.0))


def test_file_that_is_dropped_while_it_is_read() -> None:
    """A policy whose trial ends leaves a session with an empty file."""
    channel = DisorderlyChannel(server_in_memory([]), Random(1), 0.0)

    def drop(*_: int) -> None:
        for session in channel.server.sessions.values():
            session.content.clear()

    with pytest.raises(SessionClosedError, match="closed /a during its transfer"):
        on(channel).download("/a", drop)


def test_session_left_by_an_earlier_program_is_reset() -> None:
    channel = DisorderlyChannel(server_in_memory([]), Random(1), 0.0)
    with pytest.raises(KeyboardInterrupt):
        on(channel).download("/a", interrupt)
    assert not channel.server.sessions, "closed although the transfer failed"
    channel.server.answer(Packet(1, 9, Opcode.OPEN_FILE_RO, data=b"/a").pack())
    assert channel.server.sessions
    assert on(channel).download("/d") == FILES["/d"]
    assert channel.now == 0.0


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_session_of_another_host_expires() -> None:
    channel = DisorderlyChannel(server_in_memory([]), Random(1), 0.0)
    channel.server.others = [4.5]
    assert on(channel).download("/d") == FILES["/d"]
    assert 4.5 <= channel.now <= 6.0
    resets = [r for r in channel.server.requests if r.opcode == Opcode.RESET_SESSIONS]
    assert len(resets) == 1 + channel.now / REPLY_TIMEOUT_S, "one at once, and then one a wait"


@pytest.mark.parametrize("packets", [0, 1])
def test_download_without_progress_ends(packets: int) -> None:
    """Bursts and reads bring nothing, or no data, although the server answers."""
    channel = DisorderlyChannel(server_in_memory([]), Random(1), 0.0)
    channel.silence_s = 0.5
    original = channel.server.answer

    def answer(raw: bytes) -> list[bytes]:
        request = Packet.parse(raw)
        assert request is not None
        answers = original(raw)
        if request.opcode not in (Opcode.BURST_READ_FILE, Opcode.READ_FILE):
            return answers
        first = Packet.parse(answers[0])
        assert first is not None
        return [Packet(**{**vars(first), "data": b"", "burst_complete": True}).pack()] * packets

    channel.server.answer = answer  # type: ignore[method-assign]
    with pytest.raises(LinkLostError, match="disorderly board stopped answering during the trans"):
        on(channel).download("/a")
    bursts = [r for r in channel.server.requests if r.opcode == Opcode.BURST_READ_FILE]
    assert len(bursts) == VAIN_BURSTS
    assert PATIENCE <= channel.now < 1.5 * PATIENCE
    assert not channel.server.sessions, "the session is closed"


# Numbers of a first request, some so that those of the next ones begin again at 0.
@pytest.mark.parametrize("sequence", [7, 0xFFF0, 0xFFFE, 0xFFFF])
def test_late_packets_of_one_file_are_not_taken_for_another(sequence: int) -> None:
    """Both sessions have the same number, as a server may give."""
    channel = DisorderlyChannel(server_in_memory([]), Random(1), 0.0)
    transfer = on(channel)
    transfer._sequence = sequence
    channel.server.numbers = lambda: 5
    assert transfer.download("/a") == FILES["/a"]
    burst = next(r for r in channel.server.requests if r.opcode == Opcode.BURST_READ_FILE)
    original = channel.server.answer

    def answer(raw: bytes) -> list[bytes]:
        answers = original(raw)
        if Packet.parse(raw).opcode != Opcode.BURST_READ_FILE:  # type: ignore[union-attr]
            return answers
        late = [
            Packet(
                (burst.sequence + 1 + index) & 0xFFFF,
                5,
                Opcode.ACK,
                Opcode.BURST_READ_FILE,
                False,
                index * DATA_BYTES,
                FILES["/a"][index * DATA_BYTES :][:DATA_BYTES],
            ).pack()
            for index in range(3)
        ]
        return late + answers + late

    channel.server.answer = answer  # type: ignore[method-assign]
    assert transfer.download("/d") == FILES["/d"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sequence", 2),
        ("request_opcode", Opcode.WRITE_FILE),
        ("session", 77),
        ("opcode", Opcode.READ_FILE),
    ],
)
def test_answer_of_another_request_is_not_taken(field: str, value: int) -> None:
    """A read that is answered with what differs in one field is asked for again."""
    channel = DisorderlyChannel(server_in_memory([]), Random(1), 0.0)
    original = channel.server.answer
    asked: list[int] = []

    def answer(raw: bytes) -> list[bytes]:
        request = Packet.parse(raw)
        assert request is not None
        answers = original(raw)
        if request.opcode == Opcode.BURST_READ_FILE:
            return answers[1:]  # so that the first packet is read on its own
        if request.opcode != Opcode.READ_FILE:
            return answers
        asked.append(request.offset)
        right = Packet.parse(answers[0])
        assert right is not None
        changed = value if field != "sequence" else right.sequence ^ value
        wrong = {**vars(right), "data": b"\xee" * len(right.data), field: changed}
        return [Packet(**wrong).pack(), *(answers if len(asked) > 1 else [])]

    channel.server.answer = answer  # type: ignore[method-assign]
    assert on(channel).download("/a") == FILES["/a"]
    assert asked[:2] == [0, 0]
    assert channel.now >= 1.0


@pytest.mark.parametrize("sequence", [7, 0xFFF0, 0xFFFE, 0xFFFF])
def test_burst_that_ends_with_end_of_file(sequence: int) -> None:
    """Some servers say so instead of marking the last packet; the gap is then filled at once."""
    channel = DisorderlyChannel(server_in_memory([]), Random(1), 0.0)
    original = channel.server.answer

    def answer(raw: bytes) -> list[bytes]:
        request = Packet.parse(raw)
        assert request is not None
        packets = [Packet.parse(payload) for payload in original(raw)]
        if request.opcode != Opcode.BURST_READ_FILE:
            return [packet.pack() for packet in packets if packet]
        sent = [Packet(**{**vars(p), "burst_complete": False}) for p in packets if p]
        number = (sent[-1].sequence + 1) & 0xFFFF
        last = Packet(number, request.session, Opcode.NAK, request.opcode, data=b"\x06")
        first = 1 if request.offset == 0 else 0  # the file's first packet is lost
        return [packet.pack() for packet in [*sent[first:], last]]

    channel.server.answer = answer  # type: ignore[method-assign]
    transfer = on(channel)
    transfer._sequence = sequence
    assert transfer.download("/d") == FILES["/d"]
    assert channel.now == 0.0


@pytest.mark.parametrize("opcode", [Opcode.BURST_READ_FILE, Opcode.READ_FILE])
def test_reason_of_a_refusal_is_no_data(opcode: Opcode) -> None:
    """A NAK carries its reason where an ACK has data; the transfer ends with it."""
    channel = DisorderlyChannel(server_in_memory([]), Random(1), 0.0)
    original = channel.server.answer

    def answer(raw: bytes) -> list[bytes]:
        request = Packet.parse(raw)
        assert request is not None
        answers = original(raw)
        if request.opcode == opcode:
            number, session = request.sequence + 1, request.session
            refusal = {"request_opcode": opcode, "offset": request.offset, "data": b"\x01"}
            return [Packet(number & 0xFFFF, session, Opcode.NAK, **refusal).pack()]  # type: ignore[arg-type]
        return answers[1:] if request.opcode == Opcode.BURST_READ_FILE else answers

    channel.server.answer = answer  # type: ignore[method-assign]
    with pytest.raises(BoardMismatchError, match="the disorderly board refuses /d: fail; flash"):
        on(channel).download("/d")
    assert not channel.server.sessions
