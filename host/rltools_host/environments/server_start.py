"""The start of an environment server, for a new run or for a resumed one: a thread of this process
for a Python function, else a process of its own."""

from __future__ import annotations

import contextlib
import ctypes
import json
import pickle
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rltools_host import errors
from rltools_host.documents import typed
from rltools_host.environments.channels import assumptions
from rltools_host.environments.environment_server import (
    EnvironmentServer,
    PlayState,
    closing_limit_s,
)
from rltools_host.environments.headers import headers_of
from rltools_host.environments.imports import (
    agree,
    install_what_it_needs,
    one_line,
    require_agreement,
    whole_source,
)
from rltools_host.environments.task import MakeEnvironment, TaskRequest, request_of
from rltools_host.errors import BuildError, EnvironmentLostError, RltError, UsageError
from rltools_host.interruption import ending
from rltools_host.lines import aside
from rltools_host.runs.task import PREFIX, Task
from rltools_host.system import SharedMemory, kill_child, readable, start_child
from rltools_host.system.loopback import fastest_listener

if TYPE_CHECKING:
    from rltools_host.environments.player import Player

PROGRAM = "rltools_host.environments.server_socket"
LOOK_S = 0.1  # between two looks at what starts


@contextlib.contextmanager
def environments_of(
    asked: Task | TaskRequest | None,
    make_env: MakeEnvironment | None = None,
    *,
    is_built: bool = False,
) -> Iterator[EnvironmentServer | None]:
    """Provide the environment server of a Gymnasium task; None if the core plays the
    episodes."""
    if asked is None:
        yield None
        return
    server = open_again(asked, make_env) if isinstance(asked, Task) else open_task(asked)
    with contextlib.closing(server):
        if isinstance(asked, TaskRequest):
            task = server.task
            if asked.algorithm is None and any(action.choices for action in task.actions):
                chosen = f"{task.algorithm} learns them"
                aside(f"{task.environment} has choices as its actions: {chosen}")
            aside(*assumptions(task))
        if not is_built:
            headers_of(server.task).write()
        yield server


def open_task(request: TaskRequest) -> EnvironmentServer:
    """Start the server for a new run, or a group's: the environment says what there is to learn."""
    request.checked_sizes()
    if request.make_env is not None:
        return ServerInThread(request)
    if request.source == PREFIX:
        raise UsageError("gym: names no task: write gym:HalfCheetah-v5, for example")
    request = replace(request, source=whole_source(request.source))
    agree(request.source)
    install_what_it_needs(request.source)
    return ServerProcess(request)


def open_again(task: Task, make_env: MakeEnvironment | None = None) -> EnvironmentServer:
    """Start the server for a run that continues, or one of a group: what is compiled is unchanged.

    A task without a name needs the function.
    """
    if make_env is None:
        require_agreement(task.source)
    if make_env is not None:
        return ServerInThread(request_of(task, make_env), task)
    install_what_it_needs(task.source)
    return ServerProcess(request_of(task), task)


class ServerInThread(EnvironmentServer):
    """A server in a thread of this process, so that environments may be any Python objects.

    All calls of them come from that thread. A call that does not return cannot be ended, and is
    left alone.
    """

    def __init__(self, request: TaskRequest, task: Task | None = None) -> None:
        """Start the thread. `task` is that of a run that continues."""
        super().__init__(request.name or request.source, PlayState())
        self._ending = ""
        self._error: RltError | None = None
        self._is_closed = False
        self._player: Player | None = None
        self._open: list[socket.socket] = []  # appended by the thread alone
        self._is_ready = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(request, task), name="environments", daemon=True
        )
        try:
            self._thread.start()
            while not self._is_ready.wait(LOOK_S):
                self._require_in_time()
            if self._error is not None:
                raise self._error
            if self._ending:
                raise EnvironmentLostError(self._ending)
        except BaseException:
            self.close() if self._overdue else self._break_off()
            raise

    def _run(self, request: TaskRequest, task: Task | None) -> None:
        from rltools_host.environments.server_socket import begin, serve_all  # NumPy

        assert request.make_env is not None
        try:
            make = request.make_env
            self.task, player = begin(make, request, task, self._state, self._take)
            with contextlib.closing(fastest_listener()) as listener:
                self.address = listener.address
                self._is_ready.set()
                serve_all(listener, player, self.task, lambda: not self._is_closed, self._keep)
        except RltError as error:
            self._error = error
        except BaseException as error:  # SystemExit, or KeyboardInterrupt, of an environment
            self._ending = f"the environment ended its thread by {one_line(error)}"
        finally:
            self._break_off()
            self._is_ready.set()
            if self._player is not None:
                self._player.close()

    def _take(self, player: Player) -> None:
        self._player = player

    def _keep(self, opened: socket.socket) -> None:
        """Remember a socket to shut down; at once if the end has come meanwhile."""
        self._open = [*(one for one in self._open if one.fileno() >= 0), opened]
        if self._is_closed:
            self._break_off()

    def _ended(self) -> str:
        return self._ending

    def _break_off(self) -> None:
        self._is_closed = True
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._break_off()
        thread, player = self._thread, self._player
        if self._overdue:  # the thread does not return: another one closes what there is
            if player is None:
                return
            self._player = None
            thread = threading.Thread(target=player.close, name="closing", daemon=True)
            thread.start()
        thread.join(closing_limit_s())
        self._report_closing(not thread.is_alive())


class PlayerProcess(EnvironmentServer):
    """A process of its own that calls environments, so that a crash does not end this one.

    It reads what to do, pickled, and answers with one line of JSON.
    """

    def __init__(self, name: str, program: str, *what: Any) -> None:
        """Start the module `program`, which reads the name of the memory with the PlayState, and
        `what`."""
        shared = SharedMemory(ctypes.sizeof(PlayState))
        # Closed where it is interrupted, too.
        with contextlib.ExitStack() as opened, contextlib.closing(shared):
            super().__init__(name, PlayState.from_buffer(shared.memory))
            self._errors = opened.enter_context(tempfile.TemporaryFile())
            self._process = start_child(
                [sys.executable, "-I", "-m", program],  # -I: nothing of the present folder
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                descriptors=shared.descriptors,
                ends_with_input=True,
            )
            opened.callback(self._end)
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):
                pickle.dump((shared.name, *what), self._process.stdin)
                self._process.stdin.flush()
            self.answer = self._answer()
            self._opened = opened.pop_all()

    def _answer(self) -> Mapping[str, Any]:
        """Return the process's only line; empty if it ended without one."""
        assert self._process.stdout is not None
        while not readable([self._process.stdout], LOOK_S):
            self._require_in_time()
        answer: Mapping[str, Any] = json.loads(self._process.stdout.readline() or "{}")
        if "error" in answer:
            raise getattr(errors, answer["kind"], RltError)(answer["error"])
        return answer

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
        return "" if self._process.poll() is None else self._last_words()

    def _break_off(self) -> None:
        self._end()

    def _end(self) -> None:
        """Close its input, so that it closes its environments and ends; kill it if it does not."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        is_closed = True
        try:
            self._process.wait(closing_limit_s())
        except subprocess.TimeoutExpired:
            is_closed = False
        finally:
            kill_child(self._process)
        self._report_closing(is_closed)

    def close(self) -> None:
        self._opened.close()


class ServerProcess(PlayerProcess):
    """A server in a process of its own. Its answer comes when its environments have been made."""

    def __init__(self, request: TaskRequest, task: Task | None = None) -> None:
        """Start the process. `task` is that of a run that continues."""
        super().__init__(request.name or request.source, PROGRAM, request, task)
        if "task" not in self.answer:
            sentence = f"{request.source} cannot be played: {self._last_words()}"
            self.close()
            raise BuildError(sentence)
        self.task = typed(self.answer["task"], Task)
        self.address = str(self.answer["address"])

    def _ended(self) -> str:
        words = super()._ended()
        return f"the process that plays {self.task.environment} is lost: {words}" if words else ""
