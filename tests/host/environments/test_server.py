"""The environment server, a thread or a process: its start, its programs, its end."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from msgspec.structs import replace

import gymnasium_points
from choosing_tasks import Corridor
from gymnasium_points import Point
from rltools_host.environments.environment_server import (
    NOTHING,
    STEP,
    PlayState,
)
from rltools_host.environments.headers import headers_of
from rltools_host.environments.imports import maker_of, whole_source
from rltools_host.environments.player import DONE, LOST, OVER, Player
from rltools_host.environments.server_socket import (
    ANSWER,
    ASKED_STEP,
    GREETING,
    MAGIC,
    REQUEST,
    VERSION,
    begin,
    greeting_of,
    serve,
    serve_all,
)
from rltools_host.environments.server_start import (
    ServerProcess,
    open_again,
    open_task,
)
from rltools_host.environments.task import TaskRequest, task_of
from rltools_host.errors import BoardMismatchError, RltError, UsageError
from rltools_host.runs.task import Task
from rltools_host.system import SharedMemory, attached_memory
from rltools_host.system.loopback import AbstractListener, Listener, TcpListener
from rltools_host.tree import TREE
from waiting import wait_for

KILLED = """
import os, signal, sys, tempfile
sys.path.insert(0, {folder!r})
from gymnasium_points import Point
from rltools_host.environments.server_start import ServerInThread, ServerProcess
from rltools_host.environments.task import TaskRequest
tempfile.mkdtemp = lambda *words, **options: os.abort()
servers = [ServerInThread(TaskRequest("f", Point)), ServerProcess(TaskRequest({source!r}))]
print(*(server.address for server in servers), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


POINTS = Path(gymnasium_points.__file__)
TASK = task_of(TaskRequest("gym:Point"), Point())

# -- how it begins ---------------------------------------------------------------------------------

FILE = """
import gymnasium, numpy as np
from gymnasium.spaces import Box

class Base(gymnasium.Env):
    def __init__(self):
        self.observation_space = Box(-1, 1, (2,))
        self.action_space = Box(-1, 1, (1,))
    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

class Raises(Base):
    def reset(self, *, seed=None, options=None):
        raise ValueError("no\\nmap")

class Ends(Base):
    def __init__(self):
        import os
        print("the last words", flush=True)
        os._exit(7)

class Talks(Base):
    def reset(self, *, seed=None, options=None):
        print("hello")
        return super().reset(seed=seed)
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    path = tmp_path / "my_tasks.py"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("{file}:Raises", "Raises cannot be trained: its first reset raised ValueError: no"),
        ("{file}:Raise", r'nothing to call that is named "Raise": did you mean Raises'),
        ("NoSuchTask-v0", 'gymnasium has no environment "NoSuchTask-v0"'),
    ],
)
def test_what_cannot_be_played_is_one_sentence(file: Path, source: str, sentence: str) -> None:
    source = f"gym:{source.format(file=file)}"
    with pytest.raises(UsageError, match=sentence) as raised:
        begin(maker_of(source), TaskRequest(source), None, PlayState())
    assert "\n" not in str(raised.value)


def test_a_process_says_the_same_or_how_it_ended(file: Path) -> None:
    with pytest.raises(UsageError, match=r"its first reset raised ValueError: no map$"):
        ServerProcess(TaskRequest(f"gym:{file}:Raises"))
    ended = 'cannot be played: it ended with exit code 7 and wrote "the last words"'
    with pytest.raises(RltError, match=ended):
        ServerProcess(TaskRequest(f"gym:{file}:Ends"))
    with pytest.raises(UsageError, match="gym: names no task"):
        open_task(TaskRequest("gym:"))


def test_what_an_environment_prints_is_not_taken_for_an_answer(file: Path) -> None:
    server = ServerProcess(TaskRequest(f"gym:{file}:Talks"))
    assert server.task.experiment == "gym-talks-sac"
    assert server.failure() == ""
    process = server._process
    server.close()
    server.close()
    assert process.poll() is not None, "it is waited for"


def test_a_file_is_found_from_any_folder(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    monkeypatch.chdir(file.parent)
    source = whole_source("gym:my_tasks.py:Talks")
    assert source == f"gym:{file}:Talks"
    assert isinstance(maker_of(source)(), gymnasium.Env)
    assert whole_source("gym:module:Id-v0") == "gym:module:Id-v0"
    (file.parent / "my_registered_tasks.py").write_text(
        "import gymnasium, my_tasks\ngymnasium.register('My-v0', my_tasks.Base)\n"
    )
    by_id = "gym:my_registered_tasks:My-v0"
    assert maker_of(by_id)().spec.id == "My-v0"
    server = ServerProcess(TaskRequest(by_id))
    assert server.task.experiment == "gym-my-v0-sac"
    server.close()


@pytest.mark.parametrize(
    ("space", "bounds", "sentence"),
    [
        ("action_space", (-1.0, 1.0, (1,)), "Point has another range of action_0 here than in"),
        (
            "observation_space",
            (-1.0, 1.0, (3,)),
            r"Point has the observation shape \(3,\) here, and the run \(2,\): start a new run",
        ),
    ],
)
def test_another_environment_does_not_go_on(space: str, bounds: Any, sentence: str) -> None:
    def other() -> Any:
        environment = Point()
        setattr(environment, space, gymnasium.spaces.Box(*bounds))
        return environment

    with pytest.raises(BoardMismatchError, match=sentence):
        open_again(TASK, other)
    server = open_again(replace(TASK, source="f"), Point)
    assert server.task == replace(TASK, source="f")
    server.close()


# -- what is known of it ---------------------------------------------------------------------------


def test_a_state_is_seen_through_shared_memory() -> None:
    size = ctypes.sizeof(PlayState)
    shared = SharedMemory(size)
    ours = PlayState.from_buffer(shared.memory)
    theirs = PlayState.from_buffer(attached_memory(str(os.dup(int(shared.name))), size))
    shared.close()
    theirs.count_fault("ä" * 2000)
    theirs.count_fault("later")
    theirs.give_up("enough")
    theirs.call(STEP)
    faults = ours.faults()
    assert (faults.count, faults.given_up, faults.outside) == (2, "enough", 0)
    assert set(faults.first) == {"ä"}
    assert ours.calling == STEP
    assert ours.waited_s >= 0.0
    theirs.answered()
    assert (ours.calling, ours.answers) == (NOTHING, 1)


# -- whom it answers -------------------------------------------------------------------------------


def test_a_greeting_of_another_task_is_not_answered() -> None:
    digest = headers_of(TASK).digest[:16]
    for greeting, expected in (
        (GREETING.pack(MAGIC, VERSION, 2, 1, digest), True),
        (GREETING.pack(MAGIC, VERSION, 3, 1, digest), False),
        (GREETING.pack(MAGIC, VERSION + 1, 2, 1, digest), False),
        (GREETING.pack(MAGIC, VERSION, 2, 1, digest[::-1]), False),
        (b"GET / HTTP/1.1\r\n" * 2, False),
    ):
        ours, theirs = socket.socketpair()
        player = Player(Point, TASK)

        def answer(connection: socket.socket = theirs, player: Player = player) -> None:
            with connection:
                serve(connection, player, TASK)

        thread = threading.Thread(target=answer)
        thread.start()
        ours.sendall(greeting)
        ours.settimeout(5.0)
        assert ours.recv(64) == (greeting if expected else b"")
        ours.close()
        thread.join(5.0)
        assert not thread.is_alive()
        is_other_task = greeting[:8] == GREETING.pack(MAGIC, VERSION, 0, 0, b"")[:8]
        is_refused = "was compiled for another task" in player.faults.given_up
        assert is_refused == (is_other_task and not expected)


def connected(address: str) -> socket.socket:
    """A program's end, as rl/environments/external/connection.h connects."""
    port, _, token = address.rpartition(":")
    if not port:
        program = socket.socket(socket.AF_UNIX)
        program.connect(f"\0{address}")
        return program
    program = socket.create_connection(("127.0.0.1", int(port)))
    program.sendall(token.encode())
    return program


@pytest.mark.parametrize("kind", [AbstractListener, TcpListener])
@pytest.mark.parametrize("is_own", [True, False])
def test_a_program_of_another_user_is_not_answered(
    monkeypatch: pytest.MonkeyPatch, is_own: bool, kind: type[Listener]
) -> None:
    """One that does not know the token is none of this user's either."""
    listener = kind()
    player = Player(Point, TASK)
    has_ended = threading.Event()
    arguments = (listener, player, TASK, lambda: not has_ended.is_set())
    thread = threading.Thread(target=serve_all, args=arguments, daemon=True)
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own if is_own else own + 1)
    thread.start()
    greeting = greeting_of(TASK)
    address = listener.address
    if not is_own and kind is TcpListener:
        address = f"{address[:-1]}x"
    with connected(address) as program:
        program.settimeout(10.0)
        with contextlib.suppress(BrokenPipeError):
            program.sendall(greeting)
        try:
            answer = program.recv(64)
        except ConnectionResetError:
            answer = b""
        assert answer == (greeting if is_own else b"")
    has_ended.set()
    thread.join(10.0)
    listener.close()
    assert not thread.is_alive()


# -- what it answers -------------------------------------------------------------------------------

THREE = task_of(TaskRequest("gym:Point", environments=3), Point())


@contextlib.contextmanager
def asked(make: Callable[[], Any], task: Task = THREE) -> Iterator[tuple[socket.socket, PlayState]]:
    """A program's end of a connection whose environments have begun episodes."""
    state = PlayState()
    player = Player(make, task, state)
    player.prepare(task.sizes.environments, make())
    ours, theirs = socket.socketpair()

    def answer() -> None:
        with theirs, contextlib.suppress(OSError):  # as serve_all() does
            serve(theirs, player, task)

    thread = threading.Thread(target=answer)
    thread.start()
    with ours:
        ours.settimeout(120.0)
        ours.sendall(greeting_of(task))
        assert ours.recv(GREETING.size, socket.MSG_WAITALL) == greeting_of(task)
        for slot in range(task.sizes.environments):
            ours.sendall(REQUEST.pack(RESET_ASKED, slot, 1, 0))
            assert answers(ours, 1, task)[0][0] == DONE
        yield ours, state
    thread.join(120.0)
    assert not thread.is_alive()


RESET_ASKED = 1


def steps(actions: Any, first: int = 0) -> bytes:
    array = np.array(actions, np.float32).reshape(len(actions), -1)
    return REQUEST.pack(ASKED_STEP, first, 0, len(array)) + array.tobytes()


def answers(connection: socket.socket, count: int, task: Task = THREE) -> list[tuple[Any, ...]]:
    """Up to so many: what, reward, terminated, truncated, observation."""
    size = ANSWER.size + 4 * len(task.observations)
    data, part = b"", b"."
    while part and len(data) < count * size:
        try:
            part = connection.recv(count * size - len(data))
        except ConnectionResetError:  # what was sent has not been read
            part = b""
        data += part
    assert len(data) % size == 0
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return [
        (*ANSWER.unpack_from(each), np.frombuffer(each, np.float32, offset=ANSWER.size))
        for each in pieces
    ]


def test_environments_that_step_together_are_answered_in_their_order() -> None:
    with asked(Point) as (program, _):
        program.sendall(steps([-0.5, 0.5, 1.5]))
        first = answers(program, 3)
        for each in steps([0.5, 0.5, 0.5]):  # as it may arrive
            program.sendall(bytes([each]))
        second = answers(program, 3)
        program.sendall(steps([1.5], 2))
        alone = answers(program, 1)
    assert [each[0] for each in (*first, *second, *alone)] == [DONE] * 7
    places = [[each[4][0] for each in group] for group in (first, second)]
    assert np.allclose(places[0], places[0][1] + np.array([-0.2, 0.0, 0.2]), atol=1e-6)
    assert np.allclose(places[1], places[0])
    assert np.isclose(alone[0][4][0], places[1][2] + 0.2)


def test_a_request_for_more_environments_than_there_are_is_not_answered() -> None:
    with asked(Point) as (program, _):
        program.sendall(steps([0.5] * 4))
        assert answers(program, 1) == []


class Numbered(Point):
    """The second of those made does in its first step what it is told."""

    made = 0
    fault: Any = None

    def __init__(self) -> None:
        super().__init__()
        Numbered.made += 1
        self.number = Numbered.made

    def step(self, action: Any) -> Any:
        result = super().step(action)
        if self.number != 2 or self.steps > 1:
            return result
        if isinstance(Numbered.fault, BaseException):
            raise Numbered.fault
        return Numbered.fault, *result[1:]


@pytest.mark.parametrize("fault", [RuntimeError("it fell"), np.full(2, np.nan), np.zeros(3)])
def test_an_environment_that_fails_among_others_loses_its_own_step(fault: Any) -> None:
    Numbered.made, Numbered.fault = 0, fault
    with asked(Numbered) as (program, state):
        for expected in ([DONE, LOST, DONE], [DONE] * 3):
            program.sendall(steps([0.5] * 3))
            assert [each[0] for each in answers(program, 3)] == expected
    assert state.faults().count == 1


def test_what_is_given_up_among_others_is_the_last_answer() -> None:
    class Forgetful(Corridor):
        made = 0

        def __init__(self) -> None:
            super().__init__()
            Forgetful.made += 1
            self.number = Forgetful.made

        def step(self, action: Any) -> Any:
            *rest, info = super().step(action)
            return (*rest, {} if self.number == 2 else info)

    task = task_of(TaskRequest("f", name="corridor", environments=3), Corridor())
    with asked(Forgetful, task) as (program, state):
        program.sendall(steps([1.0] * 3))
        assert [each[0] for each in answers(program, 3, task)] == [DONE, OVER]
    assert state.faults().given_up.startswith("step returned no info")


def test_a_program_that_is_killed_within_a_request_is_left() -> None:
    with asked(Point) as (program, _):
        program.sendall(steps([0.5] * 3)[:-1])
    with asked(Point) as (program, _):
        program.sendall(steps([0.5] * 3))  # and reads no answer


def test_requests_and_answers_may_be_larger_than_what_a_socket_holds() -> None:
    wide, count = 4096, 64

    class Wide(gymnasium.Env[Any, Any]):
        def __init__(self) -> None:
            self.observation_space = gymnasium.spaces.Box(-2.0, 2.0, (wide,))
            self.action_space = gymnasium.spaces.Box(-2.0, 2.0, (wide,))

        def reset(self, **_: Any) -> Any:
            return np.zeros(wide, np.float32), {}

        def step(self, action: Any) -> Any:
            return action, 0.0, False, False, {}

    task = task_of(TaskRequest("gym:Wide", environments=count), Wide())
    given = np.random.default_rng(1).uniform(-1.0, 1.0, (count, wide)).astype(np.float32)
    with asked(Wide, task) as (program, _):
        program.sendall(steps(given))
        seen = answers(program, count, task)
    assert np.array_equal([each[4] for each in seen], given)


# -- how it ends -----------------------------------------------------------------------------------


INTERRUPTED = """
import signal, sys
sys.path.insert(0, {folder!r})
import rlt
from gymnasium_points import NeverMade
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
signal.setitimer(signal.ITIMER_REAL, 1.0)
try:
    rlt.train({make}, out={out!r}, quiet=True)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("make", ["NeverMade", "'gym:' + {points!r} + ':NeverMade'"])
def test_ctrl_c_while_a_run_is_prepared_is_one_of_python(tmp_path: Path, make: str) -> None:
    """It ends what was begun: the process that plays, and the wait for a thread."""
    script = INTERRUPTED.format(
        folder=str(POINTS.parent), make=make.format(points=str(POINTS)), out=str(tmp_path / "run")
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=250
    )
    assert (result.stdout, result.returncode) == ("interrupted\n", 0), result.stderr
    assert not (tmp_path / "run").exists()


def test_a_killed_run_leaves_nothing_behind(tmp_path: Path) -> None:
    script = KILLED.format(folder=str(POINTS.parent), source=f"gym:{POINTS}:Point")
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        cwd=TREE.root,
    )
    assert result.returncode == -signal.SIGKILL, result.stderr
    addresses = result.stdout.split()
    assert len(addresses) == 2
    assert list(tmp_path.iterdir()) == []
    names = Path("/proc/net/unix")
    wait_for(lambda: not any(name in names.read_text() for name in addresses), 30)
