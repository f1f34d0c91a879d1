"""Answers the program that trains, over a Unix-domain socket, from environments of this process."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable

import numpy as np

from rltools_host.errors import BoardMismatchError, EnvironmentLostError, RltError, UsageError
from rltools_host.gymnasium_tasks import wire
from rltools_host.gymnasium_tasks.environment_server import EnvironmentServer, new_address
from rltools_host.gymnasium_tasks.header import headers_of
from rltools_host.gymnasium_tasks.maker import make_first, one_line
from rltools_host.gymnasium_tasks.play_state import MAKE, PlayState
from rltools_host.gymnasium_tasks.player import EnvironmentFault, Player
from rltools_host.gymnasium_tasks.spaces import task_of
from rltools_host.gymnasium_tasks.task import MakeEnvironment, Task, TaskRequest

LOOK_S = 0.1  # between two looks at environments that are made
CREDENTIALS = struct.Struct("3i")  # process, user and group: unix(7), SO_PEERCRED


def listen(address: str) -> socket.socket:
    """In the abstract namespace (unix(7)): the name goes with the socket."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"\0{address}")
    listener.listen()
    return listener


def is_of_this_user(connection: socket.socket) -> bool:
    """Names in the abstract namespace are open to every user of the machine."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    return bool(CREDENTIALS.unpack(found)[1] == os.getuid())


def greeting_of(task: Task) -> bytes:
    """Of a program that was compiled for this task, and of no other."""
    dims = len(task.observations), len(task.actions)
    return wire.GREETING.pack(wire.MAGIC, wire.VERSION, *dims, headers_of(task).digest[:16])


def serve(connection: socket.socket, player: Player, task: Task) -> None:
    """Answers one program until it closes its end."""
    observation_dim, action_dim = len(task.observations), len(task.actions)
    greeting = connection.recv(wire.GREETING.size, socket.MSG_WAITALL)
    expected = greeting_of(task)
    if greeting != expected:
        if greeting[: wire.SPEAKER.size] == expected[: wire.SPEAKER.size]:
            player.refuse("the program that was started was compiled for another task")
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


def serve_all(
    listener: socket.socket,
    player: Player,
    task: Task,
    taken: Callable[[socket.socket], object] = lambda _: None,
) -> None:
    """One program after the other, until the listener is shut down; `taken` is told of each."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection, contextlib.suppress(OSError):
            taken(connection)
            if is_of_this_user(connection):
                serve(connection, player, task)


class ServerInThread(EnvironmentServer):
    """Plays in a thread of this process: environments may be anything that Python has. All calls of
    them come from that thread; one that does not return cannot be ended, and is left alone."""

    def __init__(self, request: TaskRequest, task: Task | None = None) -> None:
        """`task` is that of a run that goes on."""
        assert request.make_env is not None
        super().__init__(request.name or request.source, PlayState())
        self.address = new_address()
        self._ending = ""
        self._error: RltError | None = None
        self._is_ready = threading.Event()
        self._lock = threading.Lock()  # of what follows
        self._is_closed = False
        self._open: list[socket.socket] = []
        work = (request.make_env, request, task)
        self._thread = threading.Thread(
            target=self._run, args=work, name="environments", daemon=True
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
            self._break_off()
            raise

    def _run(self, make: MakeEnvironment, request: TaskRequest, task: Task | None) -> None:
        player = None
        try:
            self.task, player = begin(make, request, task, self._state)
            listener = listen(self.address)
            if self._keep(listener):
                self._is_ready.set()
                serve_all(listener, player, self.task, self._keep)
        except RltError as error:
            self._error = error
        except BaseException as error:  # SystemExit, or KeyboardInterrupt, of an environment
            self._ending = f"the environment ended its thread by {one_line(error)}"
        finally:
            self._break_off()
            self._is_ready.set()
            if player is not None:
                player.close()

    def _keep(self, opened: socket.socket) -> bool:
        """For the end to come; whether it has not come yet."""
        with self._lock:
            self._open = [*(one for one in self._open if one.fileno() >= 0), opened]
        if self._is_closed:
            self._break_off()
        return not self._is_closed

    def _ended(self) -> str:
        return self._ending

    def _break_off(self) -> None:
        self._is_closed = True
        with self._lock:
            for one in self._open:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._break_off()
        self._thread.join(0.0 if self._overdue else 5.0)


def begin(
    make: MakeEnvironment, request: TaskRequest, task: Task | None, state: PlayState
) -> tuple[Task, Player]:
    """Makes the environments of a run, and begins an episode; `task` is that of a run that goes on,
    whose environment must still be the same."""
    state.call(MAKE)
    first = make_first(make, request.name or request.source)
    state.answered()
    found = task_of(request, first)
    task = task or found
    require_same(found, task)
    player = Player(make, task, state)
    try:
        player.prepare(task.sizes.environments, first)
    except EnvironmentFault as fault:
        raise UsageError(f"{task.environment} cannot be learnt: {fault}") from None
    except Exception as error:
        raise UsageError(
            f"{task.environment} cannot be learnt: its first reset raised {one_line(error)}"
        ) from None
    return task, player


def require_same(found: Task, task: Task) -> None:
    """That the environment is still that of the task."""
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
