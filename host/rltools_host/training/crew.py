"""Trains many runs, a few at once, each in a process of its own.

A signal comes to this process alone, as the others are in sessions of their own: it passes the
pause on to each. They cannot outlive it (child_process.py).
"""

from __future__ import annotations

import contextlib
import json
import pickle
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

from rltools_host.child_process import ending, start_child
from rltools_host.errors import DiskError
from rltools_host.files import disk_error
from rltools_host.project import PROJECT, VARIABLE
from rltools_host.training import worker
from rltools_host.training.group_view import (
    FAILED,
    FINISHED,
    PAUSED,
    STARTING,
    TRAINING,
    WAITING,
    GroupScreen,
    Member,
)
from rltools_host.training.interruption import Interruption
from rltools_host.training.worker import Job

TURN_S = 0.2
QUITTING_S = 10.0  # for a run that is told to end
LONGEST_READ = 65536


class Worker:
    """The process of one run."""

    def __init__(self, member: Member, job: Job, folder: Path) -> None:
        self.member = member
        self.result: dict[str, Any] | None = None
        self.ended = False
        job_path = folder / f"{'-'.join(member.name.folder.parts)}.job"
        self._rest = b""
        try:
            job_path.write_bytes(pickle.dumps(job))
            self._errors: IO[bytes] = open(job_path.with_suffix(".log"), "w+b")  # noqa: SIM115
        except OSError as error:
            raise disk_error(job_path, error) from None
        command = [sys.executable, "-I", str(Path(worker.__file__)), str(job_path)]
        self.process = start_child(
            command,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            environment={VARIABLE: str(PROJECT.root)},
        )
        assert self.process.stdout is not None
        self.stream: IO[bytes] = self.process.stdout

    def read(self) -> None:
        """Takes in the reports that have come, or the end."""
        data = self.stream.read1(LONGEST_READ)  # type: ignore[attr-defined]
        self.ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def _take(self, report: dict[str, Any]) -> None:
        member = self.member
        if report["kind"] != "progress":
            self.result = report
            return
        if member.state == STARTING and report["steps_per_s"] is not None:
            member.state = TRAINING
        member.take(report)
        member.activity = report["activity"]

    def outcome(self) -> tuple[str, str, int]:
        """State, sentence and exit code, when the process has ended."""
        how = ending(self.process)
        self.stream.close()
        if self.result is not None:
            kind, message = self.result["kind"], self.result.get("message", "")
            state = {"finished": FINISHED, "paused": PAUSED, "interrupted": WAITING}.get(kind)
            self._errors.close()
            return state or FAILED, message, int(self.result.get("exit_code", 1))
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        self._errors.close()
        return FAILED, f"its process gave no result, {how}{': ' + said[-1] if said else ''}", 1

    def signal(self, number: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)


class Crew:
    """Starts the processes, as many as go on at once, and hears them until all have ended."""

    def __init__(
        self,
        jobs: int,
        folder: Path,
        screen: GroupScreen,
        interruption: Interruption,
        ended: Callable[[Member], None],
    ) -> None:
        self._jobs = jobs
        self._folder = folder  # for what its processes are told
        self._screen = screen
        self._interruption = interruption
        self._ended = ended
        self._selector = selectors.DefaultSelector()
        self._workers: list[Worker] = []
        self._is_pausing = False

    def train(self, work: Iterable[tuple[Member, Job]]) -> None:
        """Trains all, or to a pause; KeyboardInterrupt where somebody does not wait for it."""
        waiting = deque(work)
        try:
            while self._workers or (waiting and not self._interruption.requested):
                while waiting and len(self._workers) < self._jobs and not self._is_pausing:
                    self._start(*waiting.popleft())
                self._hear()
                self._screen.refresh()
                if self._interruption.requested and not self._is_pausing:
                    self._pause()
        except BaseException:
            self._quit()
            raise
        finally:
            self._selector.close()

    def _start(self, member: Member, job: Job) -> None:
        member.state = STARTING
        try:
            started = Worker(member, job, self._folder)
        except DiskError as error:
            member.state, member.error, member.exit_code = FAILED, str(error), error.exit_code
            self._ended(member)
            self._screen.changed(member)
            return
        self._workers.append(started)
        self._selector.register(started.stream, selectors.EVENT_READ, started)
        self._screen.changed(member)

    def _hear(self) -> None:
        for key, _ in self._selector.select(TURN_S):
            heard: Worker = key.data
            was = heard.member.state
            heard.read()
            if heard.ended:
                self._end(heard)
            elif heard.member.state != was:
                self._screen.changed(heard.member)

    def _end(self, heard: Worker) -> None:
        self._selector.unregister(heard.stream)
        self._workers.remove(heard)
        member = heard.member
        member.state, message, code = heard.outcome()
        member.activity = ""
        if self._is_pausing and heard.result is None:  # it had not yet come to training
            member.state = WAITING
        if member.state == FAILED:
            member.error, member.exit_code = message, code
        self._ended(member)
        self._screen.changed(member)

    def _pause(self) -> None:
        self._is_pausing = True
        self._screen.activity("pausing; Ctrl-C once more quits without saving")
        for started in self._workers:
            started.signal(signal.SIGTERM)

    def _quit(self) -> None:
        """Ends all processes: the first signal pauses a run, SIGINT after that does not wait."""
        for started in self._workers:
            started.signal(signal.SIGINT if self._is_pausing else signal.SIGTERM)
        until = time.monotonic() + QUITTING_S
        for started in self._workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                started.process.wait(max(0.0, until - time.monotonic()))
            started.process.kill()
            started.process.wait()
            started.stream.close()
