"""File transfer over a link in memory that loses, repeats, delays, reorders and adds packets."""

from __future__ import annotations

from itertools import pairwise
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


def test_sessions_have_the_numbers_that_the_server_gives() -> None:
    """The numbers are the server's own, other ones are refused."""
    channel = DisorderlyChannel(server_in_memory([]), Random(1), 0.0)
    transfer = on(channel)
    numbers = set()
    for _ in range(20):
        assert transfer.download("/a") == FILES["/a"]
        reads = [r for r in channel.server.requests if r.opcode == Opcode.BURST_READ_FILE]
        opened = [r for r in channel.server.requests if r.opcode == Opcode.OPEN_FILE_RO]
        numbers.add(reads[-1].session)
        assert not channel.server.sessions, "the session is closed"
    assert len(numbers) > 10
    assert len({request.session for request in opened}) > 10
    assert not [r for r in channel.server.requests if r.opcode == Opcode.RESET_SESSIONS]


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


def test_session_of_another_host_that_lasts_is_named() -> None:
    channel = DisorderlyChannel(server_in_memory([]), Random(1), 0.0)
    channel.server.others = [1e9]
    with pytest.raises(
        BoardMismatchError, match="refuses /d: no sessions available; end the other program"
    ):
        on(channel).download("/d")
    assert 15.0 <= channel.now <= 17.0


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
@pytest.mark.parametrize("sequence", [7, *range(0xFFF0, 0x10000)])
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


def test_numbers_of_another_program_differ() -> None:
    """Two programs one after another: no request of theirs has the same bytes by construction."""
    firsts = set()
    for _ in range(20):
        channel = DisorderlyChannel(server_in_memory([]), Random(1), 0.0)
        on(channel).download("/b")
        firsts.add(channel.server.requests[0].sequence)
    assert len(firsts) > 10


@pytest.mark.parametrize("sequence", [7, *range(0xFFF0, 0x10000)])
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


def test_numbers_of_requests_leave_room_for_their_answers() -> None:
    """No request has the number of an answer, over the wrap of the numbers too."""
    channel = DisorderlyChannel(server_in_memory([]), Random(1), 0.0)
    transfer = on(channel)
    transfer._sequence = 0xFFF0
    transfer.upload("/a", FILES["/d"])
    numbers = [request.sequence for request in channel.server.requests]
    assert numbers == [(0xFFF2 + 2 * index) & 0xFFFF for index in range(len(numbers))]
    assert len(numbers) > 20


def test_a_transfer_takes_as_long_as_it_takes() -> None:
    """A megabyte arrives with two seconds before each request."""
    content = bytes(range(256)) * 4000
    channel = DisorderlyChannel(server_in_memory([]), Random(1), 0.0)
    channel.server.read = lambda _: content
    channel.silence_s = 2.0
    assert on(channel).download("/large") == content
    assert channel.now > 400.0
    channel.now = 0.0
    on(channel).upload("/a", content)
    assert channel.now > 7200.0


def test_reads_ask_for_what_is_missing_alone() -> None:
    """The first packet of the burst is lost, and the server reads less than it is asked for."""
    channel = DisorderlyChannel(server_in_memory([]), Random(1), 0.0)
    original = channel.server.answer
    asked: list[tuple[int, int]] = []

    def answer(raw: bytes) -> list[bytes]:
        request = Packet.parse(raw)
        assert request is not None
        answers = original(raw)
        if request.opcode == Opcode.BURST_READ_FILE:
            return answers[1:] or answers
        if request.opcode != Opcode.READ_FILE:
            return answers
        asked.append((request.offset, raw[4]))
        whole = Packet.parse(answers[0])
        assert whole is not None
        return [Packet(**{**vars(whole), "data": whole.data[:100]}).pack()]

    channel.server.answer = answer  # type: ignore[method-assign]
    assert on(channel).download("/d") == FILES["/d"]
    assert asked == [
        (0, DATA_BYTES),
        (100, DATA_BYTES - 100),
        (200, DATA_BYTES - 200),
    ]


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


def test_number_after_a_burst_lies_behind_its_packets() -> None:
    channel = DisorderlyChannel(server_in_memory([]), Random(1), 0.0)
    on(channel).download("/a")
    requests = channel.server.requests
    for burst, following in pairwise(requests):
        if burst.opcode == Opcode.BURST_READ_FILE:
            packets = (len(FILES["/a"]) - burst.offset + DATA_BYTES - 1) // DATA_BYTES
            assert (following.sequence - burst.sequence) & 0xFFFF > packets
