"""Answers the program that trains, over a Unix-domain socket, from environments of this process."""

from __future__ import annotations

import contextlib
import shutil
import socket
import threading
from pathlib import Path
from typing import Any

import numpy as np

from rltools_host.errors import BoardMismatchError, UsageError
from rltools_host.gymnasium_tasks import wire
from rltools_host.gymnasium_tasks.environment_server import EnvironmentServer, Faults, new_folder
from rltools_host.gymnasium_tasks.maker import make_first, one_line
from rltools_host.gymnasium_tasks.player import EnvironmentFault, Player
from rltools_host.gymnasium_tasks.spaces import task_of
from rltools_host.gymnasium_tasks.task import Task, TaskRequest


def listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen()
    return listener


def serve(connection: socket.socket, player: Player, task: Task) -> None:
    """Answers one program until it closes its end."""
    observation_dim, action_dim = len(task.observations), len(task.actions)
    greeting = connection.recv(wire.GREETING.size, socket.MSG_WAITALL)
    expected = wire.GREETING.pack(wire.MAGIC, wire.VERSION, observation_dim, action_dim)
    if greeting != expected:
        return
    connection.sendall(greeting)
    request = bytearray(wire.REQUEST.size + 4 * action_dim)
    action = np.frombuffer(request, np.float32, offset=wire.REQUEST.size)
    answer = bytearray(wire.ANSWER.size + 4 * observation_dim)
    observation = np.frombuffer(answer, np.float32, offset=wire.ANSWER.size)
    while connection.recv_into(request, len(request), socket.MSG_WAITALL) == len(request):
        kind, slot, seed, _ = wire.REQUEST.unpack_from(request)
        if kind == wire.STEP:
            what, reward, terminated, truncated, seen = player.step(slot, action)
        else:
            what, seen = player.reset(slot, seed)
            reward, terminated, truncated = 0.0, False, False
        observation[:] = seen
        wire.ANSWER.pack_into(answer, 0, what, reward, terminated, truncated)
        connection.sendall(answer)
        if what == wire.OVER:
            return


def serve_all(listener: socket.socket, player: Player, task: Task) -> None:
    """One program after the other, until the listener is shut down."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection, contextlib.suppress(OSError):
            serve(connection, player, task)


class ServerInThread(EnvironmentServer):
    """Plays in a thread of this process: environments may be anything that Python has."""

    def __init__(self, request: TaskRequest, task: Task | None = None) -> None:
        """`task` is that of a run that goes on."""
        assert request.make_env is not None
        first = make_first(request.make_env, request.name or request.source)
        found = task_of(request, first)
        self.task = task or found
        self._player = Player(request.make_env, self.task)
        begin(self._player, self.task, found, first)
        self.folder = new_folder()
        self._listener = listen(self.socket_path)
        self._thread = threading.Thread(target=self._run, name="environments", daemon=True)
        self._failure = ""
        self._thread.start()

    def _run(self) -> None:
        try:
            serve_all(self._listener, self._player, self.task)
        except BaseException as error:  # SystemExit, or KeyboardInterrupt, of an environment
            self._failure = f"the environment ended its thread by {type(error).__name__}"

    def faults(self) -> Faults:
        return self._player.faults

    def failure(self) -> str:
        return self._failure or self._player.faults.given_up

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5.0)
        self._player.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def begin(player: Player, task: Task, found: Task, first: Any) -> None:
    """Checks that the environment is still that of the task, and that an episode can begin."""
    for what in ("observation_shape", "action_shape"):
        here, there = getattr(found, what), getattr(task, what)
        if here != there:
            raise BoardMismatchError(
                f"{task.environment} has the {what.replace('_', ' ')} {here} here, and the run "
                f"{there}: start a new run"
            )
    for here, there in zip(found.actions, task.actions, strict=True):
        if (here.minimum, here.maximum) != (there.minimum, there.maximum):
            raise BoardMismatchError(
                f"{task.environment} has another range of {there.name} here than in the run: "
                "start a new run"
            )
    try:
        player.prepare(task.sizes.environments, first)
    except EnvironmentFault as fault:
        raise UsageError(f"{task.environment} cannot be learnt: {fault}") from None
    except Exception as error:
        raise UsageError(
            f"{task.environment} cannot be learnt: its first reset raised {one_line(error)}"
        ) from None
