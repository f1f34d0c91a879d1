"""Training of many runs, some at once, each in a process of its own.

`ParallelRuns` starts the processes. Each runs `main()` of this file with the file of its request,
trains as `rlt train` does, and reports in lines of JSON on its standard output.
The processes are in sessions of their own, so a signal reaches the command alone. The command sends
each of them SIGTERM, which pauses a run, and SIGINT, which quits. They cannot outlive it
(system/).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import pickle
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from rltools_host.boards.messages import Evaluation, StatusText, TrainingProgress
from rltools_host.build import cmake
from rltools_host.errors import DiskError, Interrupted, RltError
from rltools_host.files import disk_error, plain_json
from rltools_host.interruption import Interruption, ending
from rltools_host.system import (
    CHILD_SIGNALS,
    SIGNALS,
    kill_child,
    readable,
    send_signal,
    start_child,
)
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.progress import (
    COMPILING,
    FAILED,
    FINISHED,
    PAUSED,
    STARTING,
    WAITING,
    GroupScreen,
    Member,
    RunEnd,
    RunReport,
    Screen,
    TrainingView,
)
from rltools_host.training.run import train
from rltools_host.tree import PROJECT, VARIABLE

REPORT_S = 0.2  # between the lines of a process
TURN_S = 0.2
QUITTING_S = 10.0  # for a run that is to end
LONGEST_READ = 65536
Say = Callable[[RunReport], None]
Next = Callable[[], tuple[Member, TrainingRequest] | None]


# -- the process of a run --------------------------------------------------------------------------


class ReportingScreen(Screen):
    """A screen that reports a run to its group, some times a second."""

    def __init__(self, view: TrainingView, say: Say) -> None:
        super().__init__(view)
        self._say = say
        self._due_at: float
        self._reported_evaluations = 0
        self.close()

    def take(self, event: TrainingProgress | Evaluation | StatusText) -> None:
        super().take(event)
        if isinstance(event, Evaluation):
            self._due_at = -math.inf

    def refresh(self) -> None:
        if time.monotonic() >= self._due_at:
            self.close()

    def activity(self, text: str, share: float | None = None) -> None:
        changed = text != self.view.activity
        super().activity(text, share)
        if changed:
            self.close()

    def close(self) -> None:
        self._due_at = time.monotonic() + REPORT_S
        view = self.view
        points = view.evaluation_points
        report: RunReport = {
            "step": view.step,
            "steps": view.steps,
            "steps_per_s": view.steps_per_s,
            "left_s": view.left_s,
            "activity": view.activity,
            "evaluations": points[self._reported_evaluations :],
        }
        self._reported_evaluations = len(points)
        if view.evaluation is not None:
            report["return_mean"] = view.evaluation.return_mean
            report["return_std"] = view.evaluation.return_std
            report["length_mean"] = view.evaluation.length_mean
        self._say(report)


def train_and_report(
    request: TrainingRequest, say: Say, signals: Sequence[int] = SIGNALS
) -> RunEnd:
    """Train one run, which `signals` pause; return its end, with the exit code of `rlt train`."""
    try:
        train(request, lambda view: ReportingScreen(view, say), signals)
    except (Interrupted, KeyboardInterrupt) as error:  # the latter where it has not begun to train
        saved = getattr(error, "details", {}).get("state") == "paused"
        return RunEnd(PAUSED if saved else WAITING, Interrupted.exit_code)
    except RltError as error:
        return RunEnd(FAILED, error.exit_code, str(error))
    except Exception as error:
        traceback.print_exc()
        return RunEnd(FAILED, 1, f"internal error ({type(error).__name__}: {error})")
    return RunEnd(FINISHED)


def main() -> int:
    """Run the process of a training run: reports go to standard output, everything else that is
    printed to the error stream."""
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    cmake.announce = lambda _: say({"activity": COMPILING})

    def say(report: Any) -> None:
        with contextlib.suppress(OSError):
            print(json.dumps(plain_json(report)), file=stream, flush=True)

    # SIGINT is none of those that pause. Of two that have come, Python takes SIGINT first.
    with Interruption(CHILD_SIGNALS):  # closes what was opened
        request = pickle.loads(Path(sys.argv[1]).read_bytes())
        end = train_and_report(request, say, CHILD_SIGNALS)
        say(asdict(end))
        return end.exit_code


# -- the command -----------------------------------------------------------------------------------


def start_run(job: Path, request: TrainingRequest, project: Path) -> subprocess.Popen[bytes]:
    """Start the process of a run, with the request in the file `job` and a log beside it."""
    job.write_bytes(pickle.dumps(request))
    with job.with_suffix(".log").open("wb") as errors:
        return start_child(
            [sys.executable, "-I", __file__, str(job)],
            stdout=subprocess.PIPE,
            stderr=errors,
            environment={VARIABLE: str(project)},
        )


def last_words(process: subprocess.Popen[bytes], job: Path) -> str:
    """Return how a run's process ended, with the last line of its log."""
    how = ending(process)
    printed = job.with_suffix(".log").read_text("utf-8", "replace").strip().splitlines()
    return f"{how}{': ' + printed[-1] if printed else ''}"


class RunProcess:
    """The process of one run, seen from the command."""

    def __init__(self, member: Member, request: TrainingRequest, folder: Path) -> None:
        self.member = member
        self.end: RunEnd | None = None  # the last report of the process
        self._job = folder / f"{'-'.join(member.name.folder.parts)}.job"
        self._rest = b""
        try:
            self.process = start_run(self._job, request, PROJECT.root)
        except OSError as error:
            raise disk_error(self._job, error) from None
        assert self.process.stdout is not None
        self.stream: IO[bytes] = self.process.stdout

    def read(self) -> bool:
        """Read the reports that have come; return False if there will be no more."""
        data: bytes = self.stream.read1(LONGEST_READ)  # type: ignore[attr-defined]
        self.take(data)
        return bool(data)

    def take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for report in map(json.loads, lines):
            if "state" in report:
                self.end = RunEnd(**report)
            else:
                self.member.take(report)

    def close(self) -> None:
        """Close the process, and set the member's end."""
        how = last_words(self.process, self._job)
        self.stream.close()
        self.settle(how)

    def settle(self, how: str) -> None:
        """Set the member's end; `how` says how the process ended, if it gave no result."""
        member = self.member
        member.was_killed = self.end is None
        if self.end is None:
            why = f"its process gave no result, {how}"
            self.end = RunEnd(FAILED, 1, why)
        member.activity = ""
        member.take_end(self.end)

    def signal(self, number: int) -> None:
        if self.process.poll() is None:
            send_signal(self.process, number)

    def kill(self, patience_s: float) -> None:
        """Kill the process if it does not end by itself within this time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(patience_s)
        kill_child(self.process)
        self.stream.close()


class ParallelRuns:
    """The processes of a group, as many as may run at once."""

    def __init__(
        self,
        jobs: int,
        folder: Path,
        screen: GroupScreen,
        interruption: Interruption,
        ended: Callable[[Member], None],
        reported: Callable[[Member], None],
        start: Callable[[Member, TrainingRequest, Path], RunProcess] = RunProcess,
    ) -> None:
        """Prepare to train. `ended` is called with each run that has ended, `reported` after each
        report; `start` may start a process elsewhere."""
        self._reported = reported
        self._start_process = start
        self._jobs = jobs
        self._folder = folder  # for the requests of its processes
        self._screen = screen
        self._interruption = interruption
        self._ended = ended
        self._running: list[RunProcess] = []
        self._is_pausing = False

    def train(self, next_run: Next) -> None:
        """Train the next run whenever there is room, until there is none, or to a pause.

        KeyboardInterrupt: the user did not wait for the pause.
        """
        try:
            while True:
                if self._interruption.requested and not self._is_pausing:
                    self.pause("pausing; Ctrl-C once more quits without saving")
                while len(self._running) < self._jobs and not self._is_pausing:
                    following = next_run()
                    if following is None:
                        break
                    self._start(*following)
                if not self._running:
                    return
                self._hear()
                self._screen.refresh()
        except BaseException:
            self._quit()
            raise

    def _start(self, member: Member, request: TrainingRequest) -> None:
        member.state = STARTING
        try:
            started = self._start_process(member, request, self._folder)
        except DiskError as error:
            member.fail(error)
            self._ended(member)
        else:
            self._running.append(started)
        self._screen.changed(member)

    def _hear(self) -> None:
        ready = readable([started.stream for started in self._running], TURN_S)
        for heard in [started for started in self._running if started.stream in ready]:
            was = heard.member.state
            if heard.read():
                self._reported(heard.member)
            else:
                self._end(heard)
            if heard.member.state != was:
                self._screen.changed(heard.member)

    def _end(self, heard: RunProcess) -> None:
        self._running.remove(heard)
        has_result = heard.end is not None
        heard.close()
        if self._is_pausing and not has_result:  # it had not begun to train
            heard.member.state = WAITING
        self._ended(heard.member)

    def stop(self, members: Sequence[Member]) -> None:
        """Pause these runs."""
        for started in self._running:
            if started.member in members:
                started.signal(signal.SIGTERM)

    def pause(self, why: str) -> None:
        """Pause the runs in training, and start no other. `why` is shown after all have the signal,
        as another Ctrl-C, which it may invite, makes them quit."""
        self._is_pausing = True
        for started in self._running:
            started.signal(signal.SIGTERM)
        self._screen.activity(why)

    def _quit(self) -> None:
        """End all processes: the first signal pauses a run, SIGINT after that does not wait."""
        for started in self._running:
            started.signal(signal.SIGINT if self._is_pausing else signal.SIGTERM)
        until = time.monotonic() + QUITTING_S
        for started in self._running:
            started.kill(max(0.0, until - time.monotonic()))


class RunsInTurn:
    """Training in this process, one run after the other, for environments of a Python function."""

    def __init__(
        self, screen: GroupScreen, interruption: Interruption, ended: Callable[[Member], None]
    ) -> None:
        self._screen, self._interruption, self._ended = screen, interruption, ended

    def train(self, next_run: Next) -> None:
        """Train the next run until there is none, or to a pause."""
        while not self._interruption.requested and (following := next_run()) is not None:
            member, request = following
            member.state = STARTING

            def say(report: RunReport, member: Member = member) -> None:
                was = member.state
                member.take(plain_json(report))
                if member.state != was:
                    self._screen.changed(member)
                self._screen.refresh()

            self._screen.changed(member)
            end = train_and_report(request, say)
            if end.exit_code == Interrupted.exit_code:
                self._interruption.requested = True
            member.activity = ""
            member.take_end(end)
            self._ended(member)
            self._screen.changed(member)


if __name__ == "__main__":
    # By the module's own name, as the pickled request has it.
    from rltools_host.training import parallel_runs

    sys.exit(parallel_runs.main())
