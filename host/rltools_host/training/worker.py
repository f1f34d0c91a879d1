"""One run of a group, in a process of its own (training/crew.py starts it).

It trains as `rlt train` does and says how that goes in lines of JSON on its standard output; the
job is the file that its argument names. SIGTERM pauses it, as it does `rlt train`, and SIGINT after
that ends it; so does SIGTERM where there is nothing to pause yet.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rltools_host.clients.messages import Evaluation, StatusText, TrainingProgress
from rltools_host.errors import Interrupted, RltError
from rltools_host.files import plain_json
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.run import train
from rltools_host.training.view import Screen, TrainingView

REPORT_S = 0.2  # between lines


@dataclass(frozen=True)
class Job:
    request: TrainingRequest
    tensorboard: bool


class Reports:
    """Lines to the process that waits for them."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def say(self, kind: str, **values: Any) -> None:
        with contextlib.suppress(OSError):
            print(json.dumps({"kind": kind, **plain_json(values)}), file=self._stream, flush=True)


class ReportingScreen(Screen):
    """What a group's screen shows of a run, a few times a second."""

    def __init__(self, view: TrainingView, reports: Reports) -> None:
        super().__init__(view)
        self._reports = reports
        self._due_at = 0.0
        self._say()

    def take(self, event: TrainingProgress | Evaluation | StatusText) -> None:
        super().take(event)
        if isinstance(event, Evaluation):
            self._due_at = 0.0

    def refresh(self) -> None:
        if time.monotonic() >= self._due_at:
            self._say()

    def activity(self, text: str, share: float | None = None) -> None:
        changed = text != self.view.activity
        super().activity(text, share)
        if changed:
            self._say()

    def close(self) -> None:
        self._say()

    def _say(self) -> None:
        self._due_at = time.monotonic() + REPORT_S
        view = self.view
        evaluation = view.evaluation
        self._reports.say(
            "progress",
            step=view.step,
            steps=view.steps,
            steps_per_s=view.steps_per_s,
            left_s=view.left_s,
            return_mean=evaluation.return_mean if evaluation else None,
            return_std=evaluation.return_std if evaluation else None,
            activity=view.activity,
        )


def work(job: Job, reports: Reports) -> int:
    """Trains; the exit code is that of `rlt train`."""
    try:
        train(job.request, lambda view: ReportingScreen(view, reports), job.tensorboard)
    except Interrupted as error:
        paused = error.details.get("state") == "paused"
        reports.say("paused" if paused else "interrupted", message=str(error))
        return error.exit_code
    except KeyboardInterrupt:  # before there was anything to pause
        reports.say("interrupted", message="interrupted")
        return Interrupted.exit_code
    except RltError as error:
        reports.say("failed", message=str(error), exit_code=error.exit_code)
        return error.exit_code
    except Exception as error:
        reports.say("failed", message=f"internal error ({type(error).__name__}: {error})")
        traceback.print_exc()
        return 1
    reports.say("finished")
    return 0


def main() -> int:
    """Standard output is for reports; what else is printed goes to the error stream."""
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was opened is closed
    job = pickle.loads(Path(sys.argv[1]).read_bytes())
    return work(job, Reports(stream))


if __name__ == "__main__":
    # By its own name, which the job's file has for it.
    from rltools_host.training import worker

    sys.exit(worker.main())
