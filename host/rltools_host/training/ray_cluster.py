"""Runs of a group or a tuning on an existing Ray cluster: each a process of its own on some node.

A node needs this Python environment, with the same version of these tools, and no shared disk: an
actor gets the request and its program, relays what the process reports, and sends the run's folder
back when it ends. What a node had of a run is lost with it; the run begins again elsewhere, from
what this machine has of it, and has the same bits.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from rltools_host.build import tools
from rltools_host.errors import LinkLostError, RltError, UsageError
from rltools_host.files import disk_error, partial_path, write_durably
from rltools_host.interruption import end_child
from rltools_host.runs.provenance import version as version_here
from rltools_host.system import readable, send_signal, synchronize_folder
from rltools_host.training.parallel_runs import LONGEST_READ, RunProcess, last_words, start_run
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.progress import FAILED, Member, RunEnd
from rltools_host.tree import PROJECT

GROUP = "ray"  # of Python packages
CONNECT_S = 5.0
READ_S = 0.2  # that a node waits for a report
JOB = "trial.job"
Files = Mapping[str, bytes]  # of a run, by their names within its folder


def files_of(folder: Path) -> dict[str, bytes]:
    """Return all files of a run by their names; links are left out."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def write_files(folder: Path, files: Files) -> None:
    """Replace a run's folder by these files with one rename."""
    partial = partial_path(folder)
    try:
        shutil.rmtree(partial, ignore_errors=True)
        for name, data in files.items():
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts:
                raise UsageError(f"a node sent the file {name}: it is outside the run's folder")
            (partial / path).parent.mkdir(parents=True, exist_ok=True)
            write_durably(partial / path, data)
            synchronize_folder((partial / path).parent)
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(partial, folder)
        synchronize_folder(folder.parent)
    except OSError as error:
        raise disk_error(folder, error) from None


class TrialActor:
    """One run in a process on a node, in a folder that is removed with it."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="rlt-trial-"))
        self._process: subprocess.Popen[bytes]

    def start(
        self, version: str, root: str, request: TrainingRequest, files: Files, program: Files
    ) -> None:
        """Start the process of a run; `root` is the project's, if this node has it as well."""
        if (own := version_here()) != version:
            raise UsageError(
                f"a node of the cluster has version {own} of these tools, and this machine "
                f"{version}: install the same on all"
            )
        run = self._folder / "run"
        for name, data in files.items():
            (run / name).parent.mkdir(parents=True, exist_ok=True)
            (run / name).write_bytes(data)
        for name, data in program.items():
            (self._folder / name).write_bytes(data)
            (self._folder / name).chmod(0o755)
        if request.built is not None and request.built.program is not None:
            own_program = self._folder / request.built.program.name
            request = replace(request, built=replace(request.built, program=own_program))
        if request.resume is not None:
            request = replace(request, resume=str(run))
        else:
            request = replace(request, out=run, restarts=False)
        project = Path(root)
        if not project.is_dir():
            (self._folder / "rlt.toml").touch()
            project = self._folder
        self._process = start_run(self._folder / JOB, request, project)

    def read(self, signals: list[int]) -> bytes | None:
        """Send the signals, and return what the process reports; None at its end."""
        for number in signals:
            if self._process.poll() is None:
                send_signal(self._process, number)
        stream = self._process.stdout
        assert stream is not None
        if not readable([stream], READ_S):
            return b""
        return os.read(stream.fileno(), LONGEST_READ) or None

    def end(self) -> tuple[str, dict[str, bytes]]:
        """Return how the process ended, with its last line, and the run's files."""
        how = last_words(self._process, self._folder / JOB)
        end_child(self._process)
        run = self._folder / "run"
        files = files_of(run) if run.is_dir() else {}
        shutil.rmtree(self._folder, ignore_errors=True)
        return how, files


class RunElsewhere(RunProcess):
    """A run on a node, as the command sees it: a thread hears its actor, and writes into a pipe
    what a process would have reported."""

    def __init__(
        self, ray: Any, actor: Any, member: Member, request: TrainingRequest, program: Any
    ) -> None:
        self._ray = ray
        self.member = member
        self.end: RunEnd | None = None
        self._rest = b""
        self._actor, self._signals = actor, list[int]()
        self._how = "its node was lost"
        files = files_of(member.path) if request.resume is not None else {}
        reading, self._writing = os.pipe()
        self.stream = os.fdopen(reading, "rb")
        self._thread = threading.Thread(
            target=self._relay, args=(request, files, program), daemon=True
        )
        self._thread.start()

    def _relay(self, request: TrainingRequest, files: Files, program: Any) -> None:
        ray, actor = self._ray, self._actor
        try:
            ray.get(actor.start.remote(version_here(), str(PROJECT.root), request, files, program))
            while True:
                signals, self._signals = self._signals, []
                data = ray.get(actor.read.remote(signals))
                if data is None:
                    break
                os.write(self._writing, data)
            self._how, found = ray.get(actor.end.remote())
            if found:
                write_files(self.member.path, found)
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, RltError):
                self._fail(cause)
            else:  # whatever it reported, its folder did not come
                self._is_lost = True
                self._how = f"its node was lost ({one_line(cause or error)})"
        except RltError as error:
            self._fail(error)
        finally:
            os.close(self._writing)
            with contextlib.suppress(Exception):
                ray.kill(actor)

    def _fail(self, error: RltError) -> None:
        self._failure = RunEnd(FAILED, error.exit_code, str(error))

    _failure: RunEnd | None = None
    _is_lost = False

    def close(self) -> None:
        self._thread.join()
        self.stream.close()
        self.end = None if self._is_lost else self._failure or self.end
        self.settle(self._how)

    def signal(self, number: int) -> None:
        self._signals = [*self._signals, number]

    def kill(self, patience_s: float) -> None:
        until = time.monotonic() + patience_s
        while self._thread.is_alive() and time.monotonic() < until:
            self.stream.read1(LONGEST_READ)  # type: ignore[attr-defined]
        with contextlib.suppress(Exception):
            self._ray.kill(self._actor)
        self._thread.join(patience_s)
        self.stream.close()


def one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def require_listener(address: str) -> None:
    """Raise an error unless the address answers: Ray itself tries for minutes, and ends the
    process."""
    found = re.fullmatch(r"(?:ray://)?\[?([^/\s]+?)\]?:([0-9]{1,5})", address)
    if address == "auto":
        return
    if found is None or not 0 < int(found[2]) < 65536:
        raise UsageError(f"--ray {address}: write HOST:PORT, ray://HOST:PORT, or auto")
    try:
        socket.create_connection((found[1], int(found[2])), CONNECT_S).close()
    except OSError as error:
        raise no_cluster(address, error.strerror or str(error)) from None


def no_cluster(address: str, reason: str) -> LinkLostError:
    return LinkLostError(
        f"no Ray cluster answers at {address} ({reason}): start one with `ray start --head`, and "
        "give the address that it prints"
    )


class RayCluster:
    """A running cluster, seen from this command."""

    def __init__(self, address: str) -> None:
        """Connect to a cluster; LinkLostError if none answers."""
        require_listener(address)
        tools.ensure_group(GROUP)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self._ray: Any = importlib.import_module("ray")  # without types, as it may be missing
        try:
            self._ray.init(
                address=address,
                namespace="rlt",
                log_to_driver=False,
                logging_level=logging.CRITICAL,
                configure_logging=True,
            )
        except Exception as error:  # of many kinds
            raise no_cluster(address, one_line(error)) from None
        self._actor = self._ray.remote(TrialActor)
        self._programs: dict[Path, Any] = {}

    def jobs(self, threads: int | None) -> int:
        """Return how many runs with so many threads train at once: one for each processor."""
        processors = int(self._ray.cluster_resources().get("CPU", 1))
        return max(1, processors // (threads or 1))

    def start(self, member: Member, request: TrainingRequest, _folder: Path) -> RunProcess:
        ray = self._ray
        program = None if request.built is None else request.built.program
        if program is None:
            files = ray.put({})
        elif (files := self._programs.get(program)) is None:
            beside = [path for path in (program, program.with_suffix(".map")) if path.is_file()]
            files = ray.put({path.name: path.read_bytes() for path in beside})
            self._programs[program] = files
        actor = self._actor.options(num_cpus=request.threads or 1, max_restarts=0).remote()
        return RunElsewhere(ray, actor, member, request, files)

    def close(self) -> None:
        self._ray.shutdown()
