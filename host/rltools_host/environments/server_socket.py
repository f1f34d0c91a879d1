"""The server's end of the socket between the program that trains and the environments of this
process; rl/environments/external/connection.h is the other end and defines the bytes.

`python -m rltools_host.environments.server_socket` is a process that serves (server_start.py).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pickle
import socket
import struct
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import to_builtins

from rltools_host.environments.environment_server import (
    MAKE,
    RESET,
    PlayState,
    closing_limit_s,
)
from rltools_host.environments.headers import headers_of
from rltools_host.environments.imports import make_first, maker_of, one_line, require_agreement
from rltools_host.environments.player import OVER, Player, close_environment
from rltools_host.environments.spaces import EnvironmentFault
from rltools_host.environments.task import MakeEnvironment, TaskRequest, task_of
from rltools_host.errors import BoardMismatchError, RltError, UsageError
from rltools_host.runs.task import Task
from rltools_host.system import attached_memory, leave_nothing_behind
from rltools_host.system.loopback import Listener, fastest_listener

MAGIC, VERSION = 0x45544C52, 3
GREETING = struct.Struct("=4I16s")  # magic, version, observation_dim, action_dim, task
GREETING_HEAD = struct.Struct("=2I")  # its beginning, magic and version
REQUEST = struct.Struct("=4I")  # request, slot, seed, count; then the actions
ANSWER = struct.Struct("=If2I")  # answer, reward, terminated, truncated; then the observation
ASKED_STEP = 2  # else a reset is requested


def begin(
    make: MakeEnvironment,
    request: TaskRequest,
    task: Task | None,
    state: PlayState,
    taken: Callable[[Player], None] = lambda _: None,
) -> tuple[Task, Player]:
    """Make the environments of a run, and begin an episode.

    `task` is that of a run that continues, whose environment must still be the same. `taken` is
    called with the player as soon as it has environments.
    """
    state.call(MAKE)
    first = make_first(make, request.name or request.source)
    state.answered()
    player: Player | None = None
    try:
        state.call(RESET)
        found = task_of(request, first)
        state.answered()
        task = task or found
        require_same(found, task)
        player = Player(make, task, state)
        player.take(first)
        taken(player)
        prepare(player, task, first)
    except BaseException:
        if player is None:
            close_environment(first, state)
        else:
            player.close()
        raise
    return task, player


def prepare(player: Player, task: Task, first: Any) -> None:
    try:
        player.prepare(task.sizes.environments, first)
    except EnvironmentFault as fault:
        raise UsageError(f"{task.environment} cannot be trained: {fault}") from None
    except Exception as error:
        raise UsageError(
            f"{task.environment} cannot be trained: its first reset raised {one_line(error)}"
        ) from None


def require_same(found: Task, task: Task) -> None:
    """Raise BoardMismatchError unless the environment is still that of the task."""
    for what in ("observation_shape", "action_shape"):
        here, there = getattr(found, what), getattr(task, what)
        if here != there:
            raise BoardMismatchError(
                f"{task.environment} has the {what.replace('_', ' ')} {here} here, and the run "
                f"{there}: start a new run"
            )
    if found.has_masks != task.has_masks:
        here, there = ("a" if each.has_masks else "no" for each in (found, task))
        raise BoardMismatchError(
            f'{task.environment} returns {here} info["action_mask"] here, and {there} mask in '
            "the run: start a new run"
        )
    for here, there in zip(found.actions, task.actions, strict=True):
        if (here.minimum, here.maximum) != (there.minimum, there.maximum):
            raise BoardMismatchError(
                f"{task.environment} has another range of {there.name} here than in the run: "
                "start a new run"
            )


def serve_all(
    listener: Listener,
    player: Player,
    task: Task,
    goes_on: Callable[[], bool] = lambda: True,
    taken: Callable[[socket.socket], None] = lambda _: None,
) -> None:
    """Serve one program after the other, as long as it goes on; `taken` is called with each
    connection."""
    while (connection := listener.accept(goes_on)) is not None:
        with connection, contextlib.suppress(OSError):
            taken(connection)
            serve(connection, player, task)


def greeting_of(task: Task) -> bytes:
    """Return the greeting of a program that was compiled for this task, and of no other."""
    dims = len(task.observations), len(task.actions)
    return GREETING.pack(MAGIC, VERSION, *dims, headers_of(task).digest[:16])


def serve(connection: socket.socket, player: Player, task: Task) -> None:
    """Answer one program until it closes its end."""
    greeting = connection.recv(GREETING.size, socket.MSG_WAITALL)
    expected = greeting_of(task)
    if greeting != expected:
        if greeting[: GREETING_HEAD.size] == expected[: GREETING_HEAD.size]:
            player.refuse("the program that was started was compiled for another task")
        return
    connection.sendall(greeting)
    most, dims = task.sizes.environments, (len(task.actions), len(task.observations))
    request = memoryview(bytearray(REQUEST.size + 4 * most * dims[0]))
    actions = np.frombuffer(request, np.float32, offset=REQUEST.size).reshape(most, dims[0])
    answer_bytes = ANSWER.size + 4 * dims[1]
    answers = memoryview(bytearray(most * answer_bytes))
    observations = np.frombuffer(answers, np.float32).reshape(most, -1)[:, ANSWER.size // 4 :]
    while is_received(connection, request, 4 * dims[0]):
        kind, first, seed, count = REQUEST.unpack_from(request)
        what, end = OVER, 0
        for i in range(count if kind == ASKED_STEP else 1):
            if kind == ASKED_STEP:
                what, reward, terminated, truncated, seen = player.step(first + i, actions[i])
            else:
                what, seen = player.reset(first, seed)
                reward, terminated, truncated = 0.0, False, False
            observations[i] = seen
            ANSWER.pack_into(answers, end, what, reward, terminated, truncated)
            end += answer_bytes
            if what == OVER:
                break
        connection.sendall(answers[:end])
        if what == OVER:
            return


def is_received(connection: socket.socket, request: memoryview, action_bytes: int) -> bool:
    """Return whether a whole request has come, with no more actions than there is room for."""
    there = connection.recv_into(request)  # most often all of it
    if 0 < there < REQUEST.size:
        rest = request[there : REQUEST.size]
        there += connection.recv_into(rest, len(rest), socket.MSG_WAITALL)
    if there < REQUEST.size:
        return False
    size: int = REQUEST.size + REQUEST.unpack_from(request)[3] * action_bytes
    if there < size <= len(request):
        rest = request[there:size]
        there += connection.recv_into(rest, len(rest), socket.MSG_WAITALL)
    return there == size


class Ending:
    """The end of this process with its input, which ends with the process that started it, however
    that ended.

    The connections are shut down, so that the environments are closed by the thread that has called
    them. If that is within a call, they are closed all the same.
    """

    def __init__(self) -> None:
        self.player: Any = None  # what has environments to close
        self.is_over = threading.Event()
        self._open: list[socket.socket] = []
        self.has_begun = False
        threading.Thread(target=self._wait, daemon=True).start()

    def take(self, player: Any) -> None:
        self.player = player

    def keep(self, opened: socket.socket) -> None:
        """Remember a socket to shut down; at once if the end has come meanwhile."""
        self._open = [*(one for one in self._open if one.fileno() >= 0), opened]
        if self.has_begun:
            self._shut_down()

    def _shut_down(self) -> None:
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _wait(self) -> None:
        while os.read(0, 4096):
            pass
        self.has_begun = True
        self._shut_down()
        if self.player is not None:
            limit_s = closing_limit_s()
            if not self.is_over.wait(min(1.0, limit_s / 2)):
                self.player.close()
            self.is_over.wait(limit_s / 2)
        os._exit(0)


def main() -> None:
    """Read what to play, write one line with the task or an error, and serve until the input ends.

    What environments print goes to the error stream.
    """
    is_closed = leave_nothing_behind(closing_limit_s())
    output = os.dup(1)
    os.dup2(2, 1)
    name, request, task = pickle.load(sys.stdin.buffer)
    state = PlayState.from_buffer(attached_memory(name, ctypes.sizeof(PlayState)))
    ending = Ending()
    try:
        if task is not None:  # a run's, and not the user's word; this process has its own path
            require_agreement(request.source)
        make = maker_of(
            request.source, request.episode_steps if task is None else task.episode_steps
        )
        task, player = begin(make, request, task, state, ending.take)
    except RltError as error:
        answer = {"error": str(error), "kind": type(error).__name__}
        os.write(output, (json.dumps(answer) + "\n").encode())
        is_closed()
        return
    try:
        with contextlib.closing(fastest_listener()) as listener:
            answer = {"task": to_builtins(task), "address": listener.address}
            os.write(output, (json.dumps(answer) + "\n").encode())
            serve_all(listener, player, task, lambda: not ending.has_begun, ending.keep)
    finally:
        player.close()
        is_closed()
        ending.is_over.set()


if __name__ == "__main__":
    main()
