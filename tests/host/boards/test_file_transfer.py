"""File transfer over a link in memory that loses, repeats, delays, reorders and adds packets."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from disorderly_channel import FILES, DisorderlyChannel, on, server_in_memory
from fake_files import EXPIRY_S
from rltools_host.boards.file_requests import PATIENCE, REPLY_TIMEOUT_S, SessionClosedError
from rltools_host.boards.file_transfer import LARGEST_FILE_BYTES, VAIN_BURSTS
from rltools_host.boards.messages import PACKET_BYTES, Opcode, Packet
from rltools_host.errors import BoardMismatchError, LinkLostError, RefusedError

BURST, READ = Opcode.BURST_READ_FILE, Opcode.READ_FILE


@pytest.fixture
def channel() -> DisorderlyChannel:
    """One without disorder, but for what a test changes."""
    return DisorderlyChannel(server_in_memory([]), Random(1), 0.0)


def requests(channel: DisorderlyChannel, opcode: Opcode) -> list[Packet]:
    return [request for request in channel.server.requests if request.opcode == opcode]


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


# -- files that are not what is stated -------------------------------------------------------------


def test_wrong_crc32_is_refused(channel: DisorderlyChannel) -> None:
    channel.server.wrong_crc32 = True
    with pytest.raises(RefusedError, match=r"/d arrived from the disorderly board with CRC-32"):
        on(channel).download("/d")


@pytest.mark.parametrize(
    ("stated", "options", "most"),
    [(LARGEST_FILE_BYTES + 1, {}, "268,435,456"), (11, {"max_bytes": 10}, "10")],
)
def test_a_size_that_no_file_has_is_refused(
    channel: DisorderlyChannel, stated: int, options: dict[str, int], most: str
) -> None:
    """Before there is memory for it; the session is closed."""

    def boast(request: Packet, answers: list[Packet]) -> list[Packet]:
        is_open = request.opcode == Opcode.OPEN_FILE_RO
        return [replace(answers[0], data=stated.to_bytes(4, "little"))] if is_open else answers

    channel.change = boast
    sentence = rf"states {stated:,} bytes for /d, and it may have {most}: flash it with"
    with pytest.raises(BoardMismatchError, match=sentence):
        on(channel).download("/d", **options)
    assert channel.server.sessions == {}


@pytest.mark.parametrize(("before", "since"), [("/a", "/d"), ("/d", "/a")])
def test_file_that_changes_while_its_session_is_expired(
    channel: DisorderlyChannel, before: str, since: str
) -> None:
    contents = iter([FILES[before], *[FILES[since]] * 99])
    channel.server.read = lambda _: next(contents)
    with pytest.raises(LinkLostError, match="the disorderly board closed /a during its transfer"):
        on(channel).download("/a", lambda *_: setattr(channel, "now", channel.now + EXPIRY_S + 1.0))


def test_file_that_is_dropped_while_it_is_read(channel: DisorderlyChannel) -> None:
    """A policy whose trial ends leaves a session with an empty file."""

    def drop(*_: int) -> None:
        for session in channel.server.sessions.values():
            session.content.clear()

    with pytest.raises(SessionClosedError, match="closed /a during its transfer"):
        on(channel).download("/a", drop)


# -- sessions --------------------------------------------------------------------------------------


def test_session_that_expires_is_opened_again(channel: DisorderlyChannel) -> None:
    """The host was asleep for longer than a server keeps sessions."""
    slept: list[int] = []

    def sleep_once(done: int, _: int) -> None:
        if done > 5000 and not slept:
            slept.append(done)
            channel.now += EXPIRY_S + 1.0

    assert on(channel).download("/a", sleep_once) == FILES["/a"]
    assert len(requests(channel, Opcode.OPEN_FILE_RO)) == 2
    assert slept


def test_session_left_by_an_earlier_program_is_reset(channel: DisorderlyChannel) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        on(channel).download("/a", interrupt)
    assert not channel.server.sessions, "closed although the transfer failed"
    channel.server.answer(Packet(1, 9, Opcode.OPEN_FILE_RO, data=b"/a").pack())
    assert channel.server.sessions
    assert on(channel).download("/d") == FILES["/d"]
    assert channel.now == 0.0


def test_session_of_another_host_expires(channel: DisorderlyChannel) -> None:
    channel.server.others = [4.5]
    assert on(channel).download("/d") == FILES["/d"]
    assert 4.5 <= channel.now <= 6.0
    resets = requests(channel, Opcode.RESET_SESSIONS)
    assert len(resets) == 1 + channel.now / REPLY_TIMEOUT_S, "one at once, and then one a wait"


# -- boards and links that bring nothing -----------------------------------------------------------


def test_a_link_that_is_lost_meanwhile(channel: DisorderlyChannel) -> None:
    def lose(_: bytes) -> None:
        raise LinkLostError("unplugged")

    with pytest.raises(LinkLostError, match="unplugged"):
        on(channel).upload("/a", FILES["/d"], lambda *_: setattr(channel, "send", lose))


@pytest.mark.parametrize("packets", [0, 1])
def test_download_without_progress_ends(channel: DisorderlyChannel, packets: int) -> None:
    """Bursts and reads bring nothing, or no data, although the server answers."""
    channel.silence_s = 0.5

    def empty(request: Packet, answers: list[Packet]) -> list[Packet]:
        if request.opcode not in (BURST, READ):
            return answers
        return [replace(answers[0], data=b"", burst_complete=True)] * packets

    channel.change = empty
    with pytest.raises(LinkLostError, match="disorderly board stopped answering during the trans"):
        on(channel).download("/a")
    assert len(requests(channel, BURST)) == VAIN_BURSTS
    assert PATIENCE <= channel.now < 1.5 * PATIENCE
    assert not channel.server.sessions, "the session is closed"


def test_chatter_that_answers_nothing_is_no_progress(channel: DisorderlyChannel) -> None:
    channel.change = lambda *_: [Packet(9, 1, Opcode.ACK, READ)] * 3
    with pytest.raises(LinkLostError, match=r"stopped answering during the transfer of /a"):
        on(channel).download("/a")
    assert PATIENCE <= channel.now < PATIENCE + 2.0


def test_a_file_whose_bursts_are_lost_is_read(channel: DisorderlyChannel) -> None:
    channel.change = lambda request, answers: [] if request.opcode == BURST else answers
    transfer = on(channel)
    for _ in range(2):
        assert transfer.download("/a") == FILES["/a"]
        assert len(requests(channel, BURST)) == VAIN_BURSTS, "the link is the same"


# -- packets that are no answers -------------------------------------------------------------------


def test_malformed_packets_are_ignored(channel: DisorderlyChannel) -> None:
    channel._answers.append(b"\xff" * PACKET_BYTES)
    assert on(channel).download("/d") == FILES["/d"]
    assert channel.now == 0.0


# Numbers of a first request, some so that those of the next ones begin again at 0.
@pytest.mark.parametrize("sequence", [7, 0xFFF0, 0xFFFE, 0xFFFF])
def test_late_packets_of_one_file_are_not_taken_for_another(
    channel: DisorderlyChannel, sequence: int
) -> None:
    """Both sessions have the same number, as a server may give."""
    transfer = on(channel)
    transfer._sequence = sequence
    channel.server.numbers = lambda: 5
    late: list[Packet] = []

    def keep(request: Packet, answers: list[Packet]) -> list[Packet]:
        if request.opcode == BURST and not late:
            late.extend(answers[:3])
        return answers

    channel.change = keep
    assert transfer.download("/a") == FILES["/a"]
    channel.change = lambda request, answers: (
        [*late, *answers, *late] if request.opcode == BURST else answers
    )
    assert transfer.download("/d") == FILES["/d"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sequence", 2),
        ("request_opcode", Opcode.WRITE_FILE),
        ("session", 77),
        ("opcode", READ),
    ],
)
def test_answer_of_another_request_is_not_taken(
    channel: DisorderlyChannel, field: str, value: int
) -> None:
    """A read that is answered with what differs in one field is asked for again."""
    asked: list[int] = []

    def spoil(request: Packet, answers: list[Packet]) -> list[Packet]:
        if request.opcode == BURST:
            return answers[1:]  # so that the first packet is read on its own
        if request.opcode != READ:
            return answers
        asked.append(request.offset)
        (right,) = answers
        changed = value if field != "sequence" else right.sequence ^ value
        wrong: dict[str, Any] = {"data": b"\xee" * len(right.data), field: changed}
        return [replace(right, **wrong), *(answers if len(asked) > 1 else [])]

    channel.change = spoil
    assert on(channel).download("/a") == FILES["/a"]
    assert asked[:2] == [0, 0]
    assert channel.now >= 1.0


@pytest.mark.parametrize("sequence", [7, 0xFFF0, 0xFFFE, 0xFFFF])
def test_burst_that_ends_with_end_of_file(channel: DisorderlyChannel, sequence: int) -> None:
    """Some servers say so instead of marking the last packet; the gap is then filled at once."""

    def end(request: Packet, answers: list[Packet]) -> list[Packet]:
        if request.opcode != BURST:
            return answers
        sent = [replace(packet, burst_complete=False) for packet in answers]
        number = (sent[-1].sequence + 1) & 0xFFFF
        last = Packet(number, request.session, Opcode.NAK, request.opcode, data=b"\x06")
        return [*sent[request.offset == 0 :], last]  # the file's first packet is lost

    channel.change = end
    transfer = on(channel)
    transfer._sequence = sequence
    assert transfer.download("/d") == FILES["/d"]
    assert channel.now == 0.0


@pytest.mark.parametrize("opcode", [BURST, READ])
def test_reason_of_a_refusal_is_no_data(channel: DisorderlyChannel, opcode: Opcode) -> None:
    """A NAK carries its reason where an ACK has data; the transfer ends with it."""

    def refuse(request: Packet, answers: list[Packet]) -> list[Packet]:
        if request.opcode == opcode:
            return [replace(answers[0], opcode=Opcode.NAK, data=b"\x01")]
        return answers[1:] if request.opcode == BURST else answers

    channel.change = refuse
    with pytest.raises(BoardMismatchError, match="the disorderly board refuses /d: fail; flash"):
        on(channel).download("/d")
    assert not channel.server.sessions
