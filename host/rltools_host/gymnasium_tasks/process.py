"""Starts the process that plays a task's episodes, and sees how it fares."""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
import tempfile
from dataclasses import fields
from typing import Any

from rltools_host import errors
from rltools_host.child_process import end_child, ending, start_child
from rltools_host.errors import BuildError, RltError
from rltools_host.gymnasium_tasks.environment_server import EnvironmentServer, new_address
from rltools_host.gymnasium_tasks.play_state import PlayState
from rltools_host.gymnasium_tasks.task import Task, TaskRequest

CHILD = "rltools_host.gymnasium_tasks.child"
LOOK_S = 0.1  # between two looks at a process that starts


class ServerProcess(EnvironmentServer):
    """Plays in a process of its own, which environments cannot take this one with them in."""

    def __init__(self, request: TaskRequest, task: Task | None = None) -> None:
        """`task` is that of a run that goes on."""
        state, memory = PlayState.shared()
        with contextlib.ExitStack() as opened, memory:  # closed where it is interrupted, too
            super().__init__(request.name or request.source, state)
            self.address = new_address()
            self._errors = opened.enter_context(tempfile.TemporaryFile())
            self._process = start_child(
                [sys.executable, "-I", "-m", CHILD],  # -I: nothing of the present folder
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                descriptors=(memory.fileno(),),
            )
            opened.callback(self._end)
            self.task = self._begin(request, task, memory.fileno())
            self._opened = opened.pop_all()

    def _begin(self, request: TaskRequest, task: Task | None, state: int) -> Task:
        assert self._process.stdin is not None
        asked = {
            entry.name: getattr(request, entry.name)
            for entry in fields(request)
            if entry.name != "make_env"
        }
        document = {
            "address": self.address,
            "state": state,
            "request": asked,
            "task": task.document() if task is not None else None,
        }
        with contextlib.suppress(OSError):
            self._process.stdin.write((json.dumps(document) + "\n").encode())
            self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._answer() or "{}")
        if "task" in answer:
            return Task.of_document(answer["task"])
        if "error" in answer:
            kind = getattr(errors, answer["kind"], RltError)
            raise kind(answer["error"])
        raise BuildError(f"{request.source} cannot be played: {self._last_words()}")

    def _answer(self) -> bytes:
        """The process's only line, which comes when its environments have been made."""
        assert self._process.stdout is not None
        while not select.select([self._process.stdout], [], [], LOOK_S)[0]:
            self._require_in_time()
        return self._process.stdout.readline()

    def _last_words(self) -> str:
        text = ending(self._process)
        self._errors.seek(0)
        if lines := self._errors.read().decode(errors="replace").strip().splitlines():
            text += f' and wrote "{lines[-1][:200]}"'
        return text

    @property
    def process_id(self) -> int:
        """Number of the process, for tests that end it."""
        return self._process.pid

    def _ended(self) -> str:
        if self._process.poll() is None:
            return ""
        return f"the process that plays {self.task.environment} is lost: {self._last_words()}"

    def _break_off(self) -> None:
        self._process.kill()

    def _end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()
        end_child(self._process)

    def close(self) -> None:
        self._opened.close()
