"""The folder of a run: run.json, metrics.jsonl, checkpoint.safetensors, policy.rltp and so on.

Files appear whole or not at all: they are written beside their place, synchronised and renamed.
metrics.jsonl grows by whole lines.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rltools_host.errors import DamagedFileError, UsageError, unknown_name
from rltools_host.files import disk_error, plain_json, write_atomically
from rltools_host.paths import RUNS_DIRECTORY

RUN_FILE = "run.json"


METRICS_FILE = "metrics.jsonl"


CHECKPOINT_FILE = "checkpoint.safetensors"


POLICY_FILE = "policy.rltp"


REPORT_FILE = "report.html"


LATEST = "latest"


class RunFolder:
    """One run's folder; `metadata` is the content of run.json, written by `save`."""

    def __init__(self, path: Path, metadata: dict[str, Any]) -> None:
        self.path = path
        self.metadata = metadata
        self._metrics_descriptor: int | None = None
        self._lock_descriptor: int | None = None

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
    def checkpoint_path(self) -> Path:
        return self.path / CHECKPOINT_FILE

    @property
    def policy_path(self) -> Path:
        return self.path / POLICY_FILE

    @property
    def report_path(self) -> Path:
        return self.path / REPORT_FILE

    @classmethod
    def create(cls, path: Path, metadata: dict[str, Any]) -> RunFolder:
        """A new folder; an existing one must be empty."""
        try:
            path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            pass  # no folder: `require_empty` says so
        except OSError as error:
            raise disk_error(path, error) from None
        require_empty(path)
        folder = cls(path.resolve(), metadata)
        try:
            folder.lock()
            folder.save()
        except BaseException:
            folder.close()
            with contextlib.suppress(OSError):
                path.rmdir()
            raise
        return folder

    @classmethod
    def open(cls, run: str | Path, runs_directory: Path = RUNS_DIRECTORY) -> RunFolder:
        """The run of this path, of this name among the runs, or the `latest` one."""
        path = cls.find(run, runs_directory)
        run_path = path / RUN_FILE
        try:
            metadata = json.loads(run_path.read_bytes())
        except (OSError, ValueError):
            metadata = None
        if not isinstance(metadata, dict):
            raise DamagedFileError(f"{run_path} is damaged: start a new run")
        return cls(path.resolve(), metadata)

    @staticmethod
    def find(run: str | Path, runs_directory: Path = RUNS_DIRECTORY) -> Path:
        """Where a run lies; UnknownNameError when there is none."""
        names = run_names(runs_directory)
        if str(run) == LATEST and names:
            return runs_directory / names[-1]
        for candidate in (Path(run), runs_directory / run):
            if (candidate / RUN_FILE).is_file():
                return candidate
        raise unknown_name("run", str(run), names[-5:])

    def lock(self) -> None:
        """Keeps other processes from writing to this run; the system lets go when this one ends."""
        try:
            self._lock_descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(self._lock_descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise UsageError(
                f"another rlt is training in {self.path}: wait for it or stop it first"
            ) from None
        except OSError as error:
            raise disk_error(self.path, error) from None

    def save(self) -> None:
        """Writes run.json."""
        text = json.dumps(plain_json(self.metadata), indent=2) + "\n"
        write_atomically(self.run_path, text.encode())

    def append_metrics(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Adds rows to metrics.jsonl, at once and as whole lines."""
        text = "".join(json.dumps(plain_json(row), separators=(",", ":")) + "\n" for row in rows)
        if not text:
            return
        try:
            if self._metrics_descriptor is None:
                self._metrics_descriptor = os.open(
                    self.metrics_path,
                    os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC,
                    0o666,
                )
            descriptor = self._metrics_descriptor
            end = os.fstat(descriptor).st_size
            try:
                rest = memoryview(text.encode())
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, end)
                raise
        except OSError as error:
            raise disk_error(self.metrics_path, error) from None

    def read_metrics(self) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl, without a last line that a power failure cut off."""
        try:
            lines = self.metrics_path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        rows: list[dict[str, Any]] = []
        for number, line in enumerate(lines[:-1], start=1):
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if not isinstance(row, dict):
                raise DamagedFileError(
                    f"{self.metrics_path} is damaged in line {number}: remove that line"
                )
            rows.append(row)
        return rows

    def truncate_metrics(self, step: int) -> list[dict[str, Any]]:
        """Drops the rows behind `step`, where a resumed run goes on; returns those that stay."""
        rows = [row for row in self.read_metrics() if int(row.get("step") or 0) <= step]
        self._close_metrics()
        text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
        write_atomically(self.metrics_path, text.encode())
        return rows

    def close(self) -> None:
        """Closes files and lets others write; a second time does nothing."""
        self._close_metrics()
        if self._lock_descriptor is not None:
            os.close(self._lock_descriptor)
            self._lock_descriptor = None

    def _close_metrics(self) -> None:
        if self._metrics_descriptor is not None:
            os.close(self._metrics_descriptor)
            self._metrics_descriptor = None


def require_empty(path: Path) -> None:
    """UsageError unless a new run may be written to `path`: nothing, or an empty folder."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is not a folder: choose another with --out")
    if path.is_dir() and any(path.iterdir()):
        raise UsageError(
            f"{path} is not empty: choose another folder with --out, or go on with --resume {path}"
        )


def run_names(runs_directory: Path = RUNS_DIRECTORY) -> list[str]:
    """The runs in `runs_directory`, oldest first, as their names begin with date and time."""
    return sorted(path.parent.name for path in runs_directory.glob(f"*/{RUN_FILE}"))


def new_run_path(name: str, runs_directory: Path = RUNS_DIRECTORY) -> Path:
    """Makes the folder `runs/<name>`, or `runs/<name>-2` and so on when that is taken."""
    path = runs_directory / name
    number = 2
    while True:
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            path = runs_directory / f"{name}-{number}"
            number += 1
        except OSError as error:
            raise disk_error(path, error) from None
        else:
            return path
