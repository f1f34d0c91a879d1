"""Run folders: whole files or none, also on a full disk; metrics by whole lines; finding runs."""

from __future__ import annotations

import contextlib
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tensorboardX.crc32c import crc32c
from tensorboardX.proto.event_pb2 import Event, SessionLog

from disk_calls import SmallDisk
from rltools_host.errors import DamagedFileError, DiskError, UsageError
from rltools_host.files import FolderLock, write_atomically
from rltools_host.runs.contents import Run
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import now_us
from rltools_host.runs.scalar_logs import TensorBoardLog
from run_folders import change, new_run


def event(step: int) -> dict[str, Any]:
    return {"kind": "event", "time_s": 0.5, "step": step, "severity": 6, "text": "hello"}


def test_create_write_open(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "one"
    folder = new_run(path, {"experiment": "fake-td3"})
    folder.write(structs.replace(folder.content, steps=10, return_mean=math.nan))
    folder.close()
    opened = RunFolder.open(path)
    run = opened.content
    assert 0 <= now_us() - (run.begun_us or 0) < 1e9
    assert (run.experiment, run.steps, run.return_mean, run.format) == ("fake-td3", 10, None, 4)
    assert opened.name == "one"
    assert [entry.name for entry in path.iterdir()] == ["run.json"]


def test_atomic_write_replaces_and_leaves_nothing_beside(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"first")
    write_atomically(path, b"second")
    assert path.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o666 & ~current_umask()


def current_umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def test_device_that_is_always_full(tmp_path: Path) -> None:
    """The kernel's own full device, without a stand-in for os.write."""
    path = tmp_path / "metrics.jsonl"
    path.symlink_to("/dev/full")
    folder = RunFolder(tmp_path, Run())
    with pytest.raises(DiskError, match="No space left on device"):
        folder.append_metrics([{"kind": "progress"}])
    folder.close()


def test_full_disk_leaves_whole_lines_in_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = new_run(tmp_path / "run", {})
    folder.append_metrics([event(1)])
    before = folder.metrics_path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", SmallDisk(7, tmp_path))
        with pytest.raises(DiskError):
            folder.append_metrics([event(2)])
    assert folder.metrics_path.read_bytes() == before
    folder.append_metrics([event(3)])
    assert [row["step"] for row in folder.read_metrics()] == [1, 3]
    folder.close()


def test_metrics_are_readable_at_once_and_valid_json(tmp_path: Path) -> None:
    folder = new_run(tmp_path / "run", {})
    folder.append_metrics([{"loss": math.nan, "best": -math.inf, "last": [1.5, math.inf]}])
    text = folder.metrics_path.read_text()
    assert json.loads(text, parse_constant=fail_on_constant) == {
        "loss": None,
        "best": None,
        "last": [1.5, None],
    }
    folder.close()


def fail_on_constant(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")


def test_truncate_metrics(tmp_path: Path) -> None:
    folder = new_run(tmp_path / "run", {})
    folder.append_metrics([event(step) for step in (100, 200, 300)])
    assert [row["step"] for row in folder.truncate_metrics(200)] == [100, 200]
    folder.append_metrics([event(250)])
    assert [row["step"] for row in folder.read_metrics()] == [100, 200, 250]
    folder.close()


def test_last_line_cut_off_by_a_power_failure(tmp_path: Path) -> None:
    folder = new_run(tmp_path / "run", {})
    lines = [json.dumps(event(step)).encode() for step in (1, 2, 3)]
    folder.metrics_path.write_bytes(lines[0] + b"\n" + lines[1] + b"\n" + lines[2][:9])
    assert [row["step"] for row in folder.read_metrics()] == [1, 2]
    folder.metrics_path.write_bytes(lines[0] + b"\n" + lines[1][:9] + b"\n" + lines[2] + b"\n")
    with pytest.raises(DamagedFileError, match=r"metrics.jsonl is damaged in line 2: remove that"):
        folder.read_metrics()
    folder.close()


def test_a_run_that_saved_nothing_begins_beside_what_a_user_put_there(tmp_path: Path) -> None:
    run = tmp_path / "run"
    new_run(run, {"state": "training"}, [("sources-0123456789ab.tar.gz", b"x")]).close()
    for name in ("metrics.jsonl", "report.html", "events.out.tfevents.1", ".run.json.12.partial"):
        (run / name).write_text("")
    own = {"notes.txt": "mine", ".hidden.partial": "mine", "deep/er/thing": "mine"}
    for name, text in {**own, ".save-4-0123456789ab.12.partial/policy.rltp": ""}.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(text)
    new_run(run, {"seed": 7}, [("sources-ba9876543210.tar.gz", b"y")], restarts=True).close()
    assert RunFolder.open(run).content.seed == 7
    assert {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()} == {
        *own,
        "run.json",
        "sources-ba9876543210.tar.gz",
    }
    assert {name: (run / name).read_text() for name in own} == own


def test_a_run_that_saved_cannot_begin_anew(tmp_path: Path) -> None:
    with contextlib.closing(new_run(tmp_path / "run", {})) as folder:
        folder.commit(4, "ab" * 32, {"policy.rltp": b""}, folder.content)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match="run holds a save: move that away, or resume it"):
        new_run(tmp_path / "run", {}, restarts=True)
    assert sorted(tmp_path.rglob("*")) == before


# -- TensorBoard -----------------------------------------------------------------------------------


def read_events(path: Path) -> list[Event]:
    """By the schema and checksum of tensorboardX."""
    data = path.read_bytes()
    events = []
    while data:
        length = int.from_bytes(data[:8], "little")
        assert int.from_bytes(data[8:12], "little") == masked(crc32c(data[:8]))
        content = data[12 : 12 + length]
        assert int.from_bytes(data[12 + length : 16 + length], "little") == masked(crc32c(content))
        event = Event()
        event.ParseFromString(content)
        events.append(event)
        data = data[16 + length :]
    return events


def masked(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_tensorboard_log(tmp_path: Path) -> None:
    opened = len(os.listdir("/proc/self/fd"))
    log = TensorBoardLog(tmp_path, first_step=301)
    log.add(400, {"loss/actor": -1.5, "loss/critic_1": math.nan, "return": 2.0})
    log.add(4_000_000_000, {"return": 3.0})
    log.add(500, {"return": math.inf})
    log.flush()
    assert log.path.name.startswith("events.out.tfevents.")
    version, session, first, second = read_events(log.path)
    for _ in range(2):
        log.close()
    assert len(os.listdir("/proc/self/fd")) == opened
    assert version.file_version == "brain.Event:2"
    assert (session.step, session.session_log.status) == (301, SessionLog.START)
    assert (first.step, abs(first.wall_time * 1e6 - now_us()) < 60e6) == (400, True)
    scalars = {value.tag: value.simple_value for value in first.summary.value}
    assert scalars == {"loss/actor": -1.5, "return": 2.0}
    assert second.step == 4_000_000_000


def test_tensorboard_log_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = TensorBoardLog(tmp_path)
    before = log.path.read_bytes()
    log.add(1, {"return": 1.0})
    monkeypatch.setattr(os, "write", SmallDisk(10, tmp_path))
    with pytest.raises(DiskError, match="No space left on device"):
        log.flush()
    log.close()
    assert log.path.read_bytes() == before


@pytest.mark.parametrize("state", ["starting", "training"])
def test_a_killed_run_does_not_train(tmp_path: Path, state: str) -> None:
    folder = new_run(tmp_path / "run", {"state": state})
    assert RunFolder.open(tmp_path / "run").state == state
    folder.close()
    opened = RunFolder.open(tmp_path / "run")
    for _ in range(2):  # asking takes no lock that stays
        assert opened.state == f"{state}, until its process was ended"
    opened.lock()
    assert RunFolder.open(tmp_path / "run").state == state
    change(opened, state="paused")
    opened.close()
    assert RunFolder.open(tmp_path / "run").state == "paused"


def test_what_was_open_is_closed_once(tmp_path: Path) -> None:
    """A second release must not close what has the descriptor's number by then."""
    before = len(os.listdir("/proc/self/fd"))
    folder = new_run(tmp_path / "run", {})
    folder.append_metrics([event(1)])
    folder.close()
    assert len(os.listdir("/proc/self/fd")) == before
    with (tmp_path / "other").open("w") as other, (tmp_path / "third").open("w") as third:
        folder.close()
        assert not other.closed
        os.fstat(other.fileno())
        os.fstat(third.fileno())


def test_a_lock_that_is_refused_leaves_nothing_open(tmp_path: Path) -> None:
    folder = new_run(tmp_path / "run", {})
    other = FolderLock(tmp_path / "run")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(UsageError, match="another rlt is training in"):
            other.take()
    assert len(os.listdir("/proc/self/fd")) == before
    folder.close()
