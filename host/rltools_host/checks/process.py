"""The process in which an environment is examined, so that a crash or an endless loop is a finding.

`python -m rltools_host.checks.process` is that process.
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import sys
import traceback
from dataclasses import replace
from typing import Any

import msgspec

from rltools_host.checks.findings import CompiledRequest, Examination, Finding
from rltools_host.documents import typed
from rltools_host.environments.environment_server import (
    CLOSE,
    MAKE,
    RESET,
    STEP,
    PlayState,
    closing_limit_s,
)
from rltools_host.environments.imports import (
    agree,
    install_what_it_needs,
    maker_of,
    require_agreement,
    whole_source,
)
from rltools_host.environments.server_start import PlayerProcess
from rltools_host.environments.task import TaskRequest
from rltools_host.errors import EnvironmentLostError, RltError
from rltools_host.system import attached_memory, leave_nothing_behind

PROGRAM = "rltools_host.checks.process"
OWN_FAULT = 70  # EX_SOFTWARE of sysexits.h
CALLED = {
    MAKE: "as the environment was made",
    RESET: "in reset",
    STEP: "in step",
    CLOSE: "in close",
}


def examine_task(request: TaskRequest) -> Examination:
    """Examine a task. Its code runs because the user names it here, as in training."""
    request.checked_sizes()
    request = replace(request, source=whole_source(request.source))
    agree(request.source)
    install_what_it_needs(request.source)
    return examine(request.source, request)


def examine(name: str, request: TaskRequest | CompiledRequest) -> Examination:
    """Return the findings of the process, or the finding that the process was lost."""
    try:
        process = ExaminerProcess(name, request)
    except EnvironmentLostError as error:
        return lost("hangs", str(error).partition(": ")[0], "end every loop in it")
    with process:
        return process.examination()


def lost(check: str, what: str, remedy: str) -> Examination:
    return Examination([Finding(check, what, remedy)])


class ExaminerProcess(PlayerProcess):
    """A process whose answer is an examination."""

    def __init__(self, name: str, request: TaskRequest | CompiledRequest) -> None:
        super().__init__(name, PROGRAM, request)

    def __enter__(self) -> ExaminerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def examination(self) -> Examination:
        if self.answer:
            return typed(self.answer, Examination)
        if self._process.wait() == OWN_FAULT:
            raise RuntimeError(self._last_words())
        call = CALLED.get(self._state.calling, "between two calls")
        return lost(
            "crashes",
            f"the process that examines it was lost {call}: {self._last_words()}",
            "look for what writes beyond an array, or divides whole numbers by 0",
        )


def main() -> None:
    """Read what to examine, and write one line. What environments print goes to the error
    stream."""
    is_closed = leave_nothing_behind(closing_limit_s())
    output = os.dup(1)
    os.dup2(2, 1)
    name, request = pickle.load(sys.stdin.buffer)
    state = PlayState.from_buffer(attached_memory(name, ctypes.sizeof(PlayState)))
    try:
        answer: Any = msgspec.to_builtins(examined(request, state))
        is_closed()
    except RltError as error:
        answer = {"error": str(error), "kind": type(error).__name__}
    except Exception:
        traceback.print_exc()
        os._exit(OWN_FAULT)
    os.write(output, (json.dumps(answer) + "\n").encode())


def examined(request: TaskRequest | CompiledRequest, state: PlayState) -> Examination:
    if isinstance(request, CompiledRequest):
        from rltools_host.checks import compiled
        from rltools_host.environments.library import library_at

        return compiled.examine(library_at(request.library), request.values, state)
    from rltools_host.checks import task
    from rltools_host.environments.server_socket import Ending

    require_agreement(request.source)  # this process has its own path
    ending = Ending()
    examiner = task.Examiner(maker_of(request.source, request.episode_steps), request, state)
    ending.take(examiner)
    try:
        return examiner.run()
    finally:
        examiner.close()
        ending.is_over.set()


if __name__ == "__main__":
    main()
