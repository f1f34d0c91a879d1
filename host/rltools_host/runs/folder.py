"""The folder of a run: run.json, metrics.jsonl, the newest save and so on.

Files appear whole or not at all: they are written under another name, synchronized and renamed.
run.json is what counts: a save belongs to the run from the run.json on that names it
(runs/saves.py). metrics.jsonl grows by whole lines.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import structs, to_builtins

from rltools_host.documents import Unfit, shown, typed
from rltools_host.errors import DamagedFileError, RefusedError, UsageError
from rltools_host.files import (
    FolderLock,
    disk_error,
    load_json,
    open_plain,
    parse_json,
    plain_json,
    write_all,
    write_atomically,
)
from rltools_host.runs import saves
from rltools_host.runs.contents import RUN_FORMAT, Group, Row, Run, check_row
from rltools_host.runs.names import BEST, LAST, RUN_FILE, WHICH, begun_us_now, find_run, make_empty
from rltools_host.system import BINARY
from rltools_host.tree import command_line, near_path

MAX_METRICS_BYTES = 1_000_000_000
LONGEST_LINE = 1_000_000  # of metrics.jsonl
METRICS_FILE = "metrics.jsonl"
REPORT_FILE = "report.html"
OWN_FILE = re.compile(  # what a run writes before its first save
    r"\.(checkpoint\.rltc|policy\.rltp)\.part|"  # boards/file_parts.py
    r"run\.json|metrics\.jsonl|report\.html|sources-[0-9a-f]{12}\.tar\.gz|events\.out\.tfevents\..*"
)
UNDER_WAY = ("starting", "training")  # states of a run


class RunFolder:
    """The folder of one run. `content` is its run.json, which `write` replaces."""

    def __init__(self, path: Path, content: Run) -> None:
        self.path = path
        self.content = content
        self._metrics_descriptor: int | None = None
        self._lock = FolderLock(path)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def run_path(self) -> Path:
        return self.path / RUN_FILE

    @property
    def metrics_path(self) -> Path:
        return self.path / METRICS_FILE

    @property
    def save_path(self) -> Path:
        """Return the folder of the newest checkpoint and policies; before the first save, the run's
        folder."""
        return self.path / (self.content.save or "")

    @property
    def checkpoint_path(self) -> Path:
        return self.save_path / saves.CHECKPOINT_FILE

    @property
    def policy_path(self) -> Path:
        return self.save_path / saves.POLICY_FILE

    @property
    def best_path(self) -> Path:
        return self.save_path / saves.BEST_FILE

    @property
    def report_path(self) -> Path:
        return self.path / REPORT_FILE

    @property
    def state(self) -> str:
        """Return the run's state; run.json of a run that was killed says that it trains."""
        state = self.content.state
        if state in UNDER_WAY and not self._lock.is_taken():
            return f"{state}, until its process was ended"
        return state

    @classmethod
    def create(
        cls,
        path: Path,
        run: Run,
        files: Sequence[tuple[str, bytes]] = (),
        restarts: bool = False,
        sibling: Path | None = None,
    ) -> RunFolder:
        """Create a folder with these files, which it shares with a `sibling` that has them.

        An existing folder must be empty, or hold a run without a save that `restarts`: the files of
        that run are removed, all others stay.
        """
        if not restarts:
            make_empty(path)
        folder = cls(path.resolve(), run)
        try:
            folder.lock()
            if restarts:
                remove_unsaved(folder.path)
            for name, data in files:
                folder.keep(name, data, sibling)
            folder.write(structs.replace(run, begun_us=run.begun_us or begun_us_now(folder.path)))
        except BaseException:
            folder.close()
            with contextlib.suppress(OSError):
                for name, _ in files:
                    (path / name).unlink(missing_ok=True)
                path.rmdir()
            raise
        return folder

    @classmethod
    def open(cls, run: str | Path) -> RunFolder:
        """Open the run of this path, of this name among the runs, or the `latest` one."""
        path = find_run(run)
        return cls(path.resolve(), read_run_file(path / RUN_FILE))

    def required(self, name: str) -> str:
        """Return a text of run.json; raise DamagedFileError if it is empty."""
        value = str(getattr(self.content, name))
        if not value:
            raise DamagedFileError(
                f"{self.run_path} is damaged: {name} is missing; restore it or start a new run"
            )
        return value

    def lock(self) -> None:
        """Keep other processes from writing to this run, until this process ends at the latest."""
        self._lock.take()

    def require_unchanged(self) -> None:
        """Raise UsageError if another process has written run.json since this one read it."""
        if read_run_file(self.run_path) != self.content:
            raise UsageError(
                f"another rlt has trained in {self.path} meanwhile: run the command again"
            )

    def write(self, run: Run) -> None:
        """Replace run.json, and `content` once the file is on the disk."""
        self.content = write_document(self.run_path, structs.replace(run, format=RUN_FORMAT))

    def commit(self, step: int, state_sha256: str, files: Mapping[str, bytes], run: Run) -> None:
        """Save the files of a training state, and run.json with the name of the save, in one
        step."""
        if self._metrics_descriptor is not None:
            try:
                os.fsync(self._metrics_descriptor)
            except OSError as error:
                raise disk_error(self.metrics_path, error) from None
        name = saves.write_save(self.path, step, state_sha256, files)
        self.write(structs.replace(run, save=name, state_sha256=state_sha256, checkpoint_step=step))
        saves.remove_others(self.path, name)

    def existing_policy(self, which: str = LAST) -> Path:
        """Return the path of the run's LAST or BEST policy; UsageError if it has none."""
        if which not in WHICH:
            raise UsageError(f'which policy is "{which}"? Give {LAST} or {BEST}')
        if which == BEST:
            if self.content.best is None:
                raise UsageError(
                    f"run {self.name} has no best policy: it was not evaluated in training yet, or "
                    "its board had no memory for a second one; the same training with --board host "
                    "ends in the same bits, and keeps it"
                )
            return self.best_path
        if not self.policy_path.exists():
            command = command_line("train", "--resume", near_path(self.path))
            raise UsageError(f"run {self.name} has no policy yet: resume it with `{command}`")
        return self.policy_path

    def require_state(self, policy_state: str, which: str = LAST) -> None:
        """Raise RefusedError unless the policy is of the state that run.json names."""
        content = self.content
        if which == BEST:
            if content.best is None or content.best.state_sha256 != policy_state:
                raise RefusedError(
                    f"{self.best_path} comes from another training state than {self.run_path} "
                    "names: restore it, or take the last policy"
                )
            return
        if content.state_sha256 and content.state_sha256 != policy_state:
            command = command_line("train", "--resume", near_path(self.path))
            raise RefusedError(
                f"{self.policy_path} comes from another training state than {self.run_path} names: "
                f"fetch it again with `{command}`"
            )

    def keep(self, name: str, data: bytes, sibling: Path | None = None) -> None:
        """Write a file whose name is the hash of its content, unless it exists; where a `sibling`
        has it, as a second name of that file."""
        path = self.path / name
        if path.exists():
            return
        if sibling is not None:
            with contextlib.suppress(OSError):  # it lacks the file, or the disk knows no such names
                os.link(sibling / name, path)
                return
        write_atomically(path, data)

    # -- metrics -----------------------------------------------------------------------------------

    def append_metrics(self, rows: Iterable[Row]) -> None:
        """Append rows to metrics.jsonl, at once and as whole lines."""
        text = "".join(json.dumps(plain_json(row), separators=(",", ":")) + "\n" for row in rows)
        if not text:
            return
        try:
            if self._metrics_descriptor is None:
                if self.metrics_path.is_symlink() and not self.metrics_path.is_char_device():
                    raise OSError(errno.ELOOP, "it is a link to another file")
                self._metrics_descriptor = os.open(
                    self.metrics_path,
                    os.O_WRONLY | os.O_CREAT | os.O_APPEND | BINARY,
                    0o666,
                )
            descriptor = self._metrics_descriptor
            end = os.fstat(descriptor).st_size
            try:
                write_all(descriptor, text.encode())
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, end)
                raise
        except OSError as error:
            raise disk_error(self.metrics_path, error) from None

    def read_metrics(self) -> list[Row]:
        """Return the rows of metrics.jsonl, without a last line that a power failure cut off."""
        rows: list[Row] = []
        try:
            with open_plain(self.metrics_path, self.path) as file:
                if os.fstat(file.fileno()).st_size > MAX_METRICS_BYTES:
                    raise DamagedFileError(
                        f"{self.metrics_path} is damaged: it has more than "
                        f"{MAX_METRICS_BYTES:,} bytes"
                    )
                while line := file.readline(LONGEST_LINE):
                    if line.endswith(b"\n"):
                        rows.append(self._row(line, len(rows) + 1))
                    elif len(line) == LONGEST_LINE:
                        raise self._damaged_in(len(rows) + 1)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise cannot_read(self.metrics_path, error) from None
        return rows

    def _row(self, line: bytes, number: int) -> Row:
        try:
            row: Row = parse_json(line)
            check_row(row)
        except ValueError as error:
            raise self._damaged_in(number, reason_of(error)) from None
        return row

    def _damaged_in(self, number: int, reason: str = "") -> DamagedFileError:
        return DamagedFileError(
            f"{self.metrics_path} is damaged in line {number}{reason}: remove that line"
        )

    def truncate_metrics(self, step: int) -> list[Row]:
        """Remove the rows after `step`, from which a run resumes; return those that stay."""
        rows = [row for row in self.read_metrics() if row["step"] <= step]
        self._close_metrics()
        text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
        write_atomically(self.metrics_path, text.encode())
        return rows

    def close(self) -> None:
        """Close the files and release the lock; a second call does nothing."""
        self._close_metrics()
        self._lock.release()

    def _close_metrics(self) -> None:
        if self._metrics_descriptor is not None:
            os.close(self._metrics_descriptor)
            self._metrics_descriptor = None


def remove_unsaved(path: Path) -> None:
    """Remove the files of a run without a save; UsageError if it has one."""
    if saves.holds_save(path):
        raise UsageError(f"{path} holds a save: move that away, or resume it")
    saves.remove_partials(path)
    for name in saves.names_in(path):
        if OWN_FILE.fullmatch(name):
            try:
                (path / name).unlink()
            except OSError as error:
                raise disk_error(path / name, error) from None


def read_run_file(path: Path) -> Run:
    return read_checked(path, Run, RUN_FORMAT, "restore it or start a new run")


T = TypeVar("T", Run, Group)


def write_document(path: Path, document: T) -> T:
    """Write run.json or group.json; return the document as it is read again.

    Numbers that are not finite become null. A field that could not be read again is an Unfit, and
    nothing is written.
    """
    plain = plain_json(to_builtins(document))
    again: T = typed(plain, type(document))
    write_atomically(path, (json.dumps(plain, indent=2) + "\n").encode())
    return again


def read_checked(path: Path, kind: type[T], read: int, remedy: str) -> T:
    """Return run.json or group.json of the format that is read.

    DamagedFileError names the other format, or the field that does not fit.
    """
    try:
        document = load_json(path, path.parent)
        stated = document.get("format", read) if isinstance(document, dict) else None
        is_other = type(stated) is int and stated != read  # what else it says may differ, too
        content: T | None = None if is_other else typed(document, kind)
    except OSError as error:
        raise cannot_read(path, error) from None
    except ValueError as error:
        raise DamagedFileError(f"{path} is damaged{reason_of(error)}; {remedy}") from None
    if content is None:
        raise DamagedFileError(
            f"{path} has format {shown(stated)}, this host reads {read}: "
            "use the host tools that wrote it"
        )
    return content


def reason_of(error: ValueError) -> str:
    """Return a clause with the field that does not fit; empty if the file is not JSON at all."""
    return f" ({error})" if isinstance(error, Unfit) else ""


def cannot_read(path: Path, error: OSError) -> DamagedFileError:
    return DamagedFileError(
        f"cannot read {path}: {error.strerror or error}; restore it or start a new run"
    )
