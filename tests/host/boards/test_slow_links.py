"""File transfers over links that are narrow, long, lossy, or gone for a while; a file that is
fetched in parts by one tool after another."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from fake_files import FakeFileServer
from rltools_host.boards import file_parts
from rltools_host.boards.file_parts import Keeping, part_path
from rltools_host.boards.file_transfer import FileTransfer
from rltools_host.errors import LinkLostError, RefusedError
from rltools_host.runs.inventory import is_of_run
from slow_link import Line, SlowChannel

# As the state of pendulum-td3 with 10,000 steps in its replay buffer.
CONTENT = Random(7).randbytes(420_000)
RADIO = Line(bytes_per_s=2000.0, delay_s=0.02, room=4000.0)  # 19,200 baud
DISTANT = Line(bytes_per_s=1e5, delay_s=0.3, loss=0.2)
TERMINAL = Line(bytes_per_s=1e6, delay_s=0.1, room=4096.0)
STATE = "5" * 64


def channel_over(line: Line, content: bytes = CONTENT) -> SlowChannel:
    def take(data: bytes) -> None:
        written.append(data)

    written: list[bytes] = []
    server = FakeFileServer(lambda _: content, lambda _: True, take)
    server.burst_packets = 4096  # as our boards
    channel = SlowChannel(server, line)
    channel.written = written  # type: ignore[attr-defined]
    return channel


def on(channel: SlowChannel) -> FileTransfer:
    return FileTransfer(channel, channel.clock)


@pytest.mark.parametrize(
    ("line", "most_s"),
    [
        (RADIO, 300.0),  # 232 s are the bytes' own
        (Line(bytes_per_s=2000.0), 250.0),  # which takes in a whole burst
        (DISTANT, 60.0),
        (TERMINAL, 60.0),
        (Line(delay_s=2.0), 40.0),  # by satellite, twice
    ],
)
def test_a_download(line: Line, most_s: float) -> None:
    channel = channel_over(line)
    assert on(channel).download("/checkpoint.rltc") == CONTENT
    assert channel.now < most_s


@pytest.mark.parametrize(
    ("line", "most_s"), [(RADIO, 300.0), (DISTANT, 120.0), (TERMINAL, 60.0), (Line(), 1.0)]
)
def test_an_upload(line: Line, most_s: float) -> None:
    channel = channel_over(line)
    on(channel).upload("/checkpoint.rltc", CONTENT)
    assert channel.written == [CONTENT]  # type: ignore[attr-defined]
    assert channel.now < most_s


@pytest.mark.parametrize("line", [RADIO, DISTANT, TERMINAL])
def test_what_came_is_not_fetched_again(line: Line, tmp_path: Path) -> None:
    """The link is gone for ten minutes, and its tool with it."""
    channel, keeping = channel_over(line), Keeping(tmp_path, STATE)
    came: list[int] = []

    def cut(done: int, _: int) -> None:
        came.append(done)
        channel.is_gone = done > 250_000

    with pytest.raises(LinkLostError, match="stopped answering during the transfer of /check"):
        on(channel).download("/checkpoint.rltc", cut, keeping=keeping)
    channel.now += 600.0
    channel.is_gone, channel.bytes_sent = False, 0
    assert on(channel).download("/checkpoint.rltc", keeping=keeping) == CONTENT
    assert channel.bytes_sent < 2.2 * (len(CONTENT) - came[-1])
    channel.bytes_sent = 0
    assert on(channel).download("/checkpoint.rltc", keeping=keeping) == CONTENT
    assert channel.bytes_sent < 2000, "a whole one, until it is saved"
    file_parts.remove_parts(tmp_path)
    assert list(tmp_path.iterdir()) == []


def kept_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Leaves a part as a tool that is killed; returns how many bytes of the file it has."""
    monkeypatch.setattr(file_parts, "KEEP_EVERY_S", 0.0)
    channel = channel_over(RADIO)

    class Killed(BaseException):
        pass

    def kill(done: int, _: int) -> None:
        if done > 100_000:
            monkeypatch.setattr(file_parts.Part, "keep", lambda *_, **__: None)
            raise Killed

    with pytest.raises(Killed), monkeypatch.context():
        on(channel).download("/checkpoint.rltc", kill, keeping=Keeping(tmp_path, STATE))
    monkeypatch.undo()
    return part_path(tmp_path, "/checkpoint.rltc").stat().st_size


def test_a_part_that_was_cut_off_is_taken_up_to_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = kept_part(tmp_path, monkeypatch)
    path = part_path(tmp_path, "/checkpoint.rltc")
    path.write_bytes(path.read_bytes()[:-100])
    channel = channel_over(RADIO)
    keeping = Keeping(tmp_path, STATE)
    assert on(channel).download("/checkpoint.rltc", keeping=keeping) == CONTENT
    assert channel.bytes_sent < 1.4 * (len(CONTENT) - size)
    assert on(channel).download("/checkpoint.rltc", keeping=keeping) == CONTENT


@pytest.mark.parametrize("change", ["state", "content", "size", "damage"])
def test_a_stale_part_is_never_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    kept_part(tmp_path, monkeypatch)
    content = CONTENT[:-1] + b"x" if change == "content" else CONTENT
    content = content + b"x" if change == "size" else content
    channel = channel_over(Line(), content=content)
    keeping = Keeping(tmp_path, "6" * 64 if change == "state" else STATE)
    if change == "damage":
        path = part_path(tmp_path, "/checkpoint.rltc")
        data = bytearray(path.read_bytes())
        data[5000] ^= 1
        path.write_bytes(data)
        with pytest.raises(RefusedError, match="run the command again"):
            on(channel).download("/checkpoint.rltc", keeping=keeping)
        assert not path.exists()
    assert on(channel).download("/checkpoint.rltc", keeping=keeping) == content


def test_a_part_is_a_runs_own_and_a_link_is_not(tmp_path: Path) -> None:
    path = part_path(tmp_path, "/checkpoint.rltc")
    assert is_of_run(path.name)
    other = tmp_path / "other"
    other.write_bytes(b"mine")
    path.symlink_to(other)
    channel = channel_over(RADIO)
    assert on(channel).download("/checkpoint.rltc", keeping=Keeping(tmp_path, STATE)) == CONTENT
    assert other.read_bytes() == b"mine"


def test_a_fast_transfer_keeps_nothing_and_a_full_disk_stops_none(tmp_path: Path) -> None:
    channel = channel_over(Line())
    on(channel).download("/checkpoint.rltc", keeping=Keeping(tmp_path, STATE))
    assert list(tmp_path.iterdir()) == []
    slow = channel_over(RADIO)
    gone = Keeping(tmp_path / "gone", STATE)
    assert on(slow).download("/checkpoint.rltc", keeping=gone) == CONTENT
