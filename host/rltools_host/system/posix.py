"""Linux and macOS.

Child processes (emulators, boards that are programs) cannot outlive the process that started them:
Linux sends them SIGKILL when it ends, even if it was killed (prctl(2), PR_SET_PDEATHSIG), and on
macOS a guard looks after each. Each leads a session of its own, so Ctrl-C reaches the command
alone, which then pauses the board.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import grp
import math
import mmap
import os
import resource
import select
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

assert sys.platform != "win32" or not TYPE_CHECKING  # mypy --platform

# -- descriptors and folders -----------------------------------------------------------------------

BINARY = 0  # of os.open(): bytes as they are
READ_PLAIN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY  # without waiting for a pipe or a device
NO_FOLLOW = os.O_NOFOLLOW  # a link is an error


def open_folder(path: Path) -> int:
    """Return a descriptor of a folder, to be locked."""
    return os.open(path, os.O_RDONLY)


def lock(descriptor: int, *, shared: bool = False, waits: bool = False) -> bool:
    """Lock what a descriptor has opened until it is closed, which the system does where this
    process ends. Return whether it is locked now, which `waits` waits for."""
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, kind if waits else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def synchronize_folder(path: Path) -> None:
    """Wait until the names that were created, renamed and removed in a folder are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace(source: Path, target: Path) -> None:
    """Rename a file, in place of another one; or a folder, where nothing has the name."""
    os.replace(source, target)


def rename_folder(source: Path, target: Path) -> None:
    """Rename a folder; raise FileExistsError where something has the name."""
    target.mkdir()  # so that nothing which is there is replaced
    try:
        os.rename(source, target)
    except OSError:
        with contextlib.suppress(OSError):
            target.rmdir()
        raise


def bytes_on_disk(status: os.stat_result) -> int:
    """Return the bytes that a file takes on the disk."""
    return status.st_blocks * 512


def remove_files(path: Path, is_ours: Callable[[str], bool]) -> None:
    """Remove the files with these names in a folder; of a link, the link itself. A folder that is a
    link is left alone. Raise OSError, whose `filename` is the path that it is about."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        if path.is_symlink() or not path.is_dir():
            return
        raise
    name = ""
    try:
        for name in filter(is_ours, os.listdir(descriptor)):
            with contextlib.suppress(FileNotFoundError):
                mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
                if not stat.S_ISDIR(mode):
                    os.unlink(name, dir_fd=descriptor)
    except OSError as error:
        error.filename = os.path.join(path, name)
        raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def temporary_file() -> Iterator[tuple[IO[bytes], str]]:
    """Open a file that ends with this process; yield it and a path at which others open it.

    On Linux it has no name in any folder, so it ends however this process ends.
    """
    if sys.platform == "linux":
        with tempfile.TemporaryFile() as file:
            yield file, f"/proc/{os.getpid()}/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile() as named:
            yield named.file, named.name


class SharedMemory:
    """Zeros that a child process can attach to, without a name that could be left over."""

    def __init__(self, count: int) -> None:
        with tempfile.TemporaryFile() as file:
            file.truncate(count)
            self.memory = mmap.mmap(file.fileno(), count)
            self._descriptor = os.dup(file.fileno())
        self.descriptors = (self._descriptor,)  # that the child inherits
        self.name = str(self._descriptor)

    def close(self) -> None:
        """Forget the name, when the child has it; the memory stays."""
        os.close(self._descriptor)


def attached_memory(name: str, count: int) -> mmap.mmap:
    """Return the memory of this name that the parent process shares; once."""
    descriptor = int(name)
    memory = mmap.mmap(descriptor, count)
    os.close(descriptor)
    return memory


def readable(streams: Sequence[IO[bytes]], timeout_s: float) -> list[IO[bytes]]:
    """Return the pipes in which something has arrived, or which have ended; none after this
    time."""
    poll = select.poll()
    by_number = {stream.fileno(): stream for stream in streams}
    for number in by_number:
        poll.register(number, select.POLLIN)
    return [by_number[number] for number, _ in poll.poll(timeout_s * 1000.0)]


A_PORT = "/dev/ttyACM0"
PORT_IN_USE = (errno.EBUSY, errno.EAGAIN, errno.EWOULDBLOCK)  # errors of opening one


def may_be_port(path: str) -> bool:
    """Return whether a serial port may have this path."""
    return os.path.exists(path)


def group_of(path: str) -> str | None:
    """Return the group whose members may read and write a file; None if no group but root's may."""
    try:
        status = os.stat(path)
        name = grp.getgrgid(status.st_gid).gr_name
    except (OSError, KeyError):
        return None
    return name if status.st_mode & 0o060 == 0o060 and name != "root" else None


# -- processors and users --------------------------------------------------------------------------


def processors() -> int:
    """Return how many processors this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor_features() -> frozenset[str]:
    """Return what the processor can do beyond what all of its kind can, as Linux names it; nothing
    where the system does not tell."""
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        line = next((each for each in text.splitlines() if each.startswith("flags")), "")
        return frozenset(line.partition(":")[2].split())
    return frozenset()


def is_root() -> bool:
    """Return whether this process may do everything."""
    return os.geteuid() == 0


def may_change(path: Path) -> bool:
    """Return whether what lies at a path is this user's, or this user may change all."""
    return os.geteuid() in (0, path.stat().st_uid)


# -- signals ---------------------------------------------------------------------------------------

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # that end or pause a command
CHILD_SIGNALS = (signal.SIGTERM,)  # that pause a process of send_signal()
QUIT_SIGNALS = (signal.SIGINT,)  # that do not wait for a pause


def send_signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a child SIGTERM, which pauses it, or SIGINT, which quits."""
    process.send_signal(number)


def signal_name(code: int) -> str:
    """Return which signal ended a process with this exit code; empty if none did."""
    return signal.Signals(-code).name if code < 0 else ""


# -- child processes -------------------------------------------------------------------------------

PR_SET_PDEATHSIG = 1
GUARD_LOOK_S = 0.5


def dying_with(parent: int) -> Callable[[], None]:
    """Return the function that a child runs between fork and exec; libc is loaded in the parent."""
    import ctypes  # imported late: it is slow

    prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)

    def in_child() -> None:
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        elif os.fork() == 0:
            guard(parent)
        if os.getppid() != parent:  # the parent ended before the line above
            os._exit(1)

    return in_child


def guard(parent: int) -> None:
    """Kill the process that has forked this one where `parent` ends before it."""
    child = os.getppid()
    try:
        os.closerange(0, 4096)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        while os.getppid() == child:
            os.kill(parent, 0)  # OSError: it is gone
            time.sleep(GUARD_LOOK_S)
    except OSError:
        if os.getppid() == child:
            os.kill(child, signal.SIGKILL)
    finally:
        os._exit(0)


def start_child(
    command: Sequence[str],
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int | IO[Any] = subprocess.DEVNULL,
    stderr: int | IO[Any] = subprocess.DEVNULL,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    descriptors: Sequence[int] = (),
    ends_with_input: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a program that ends with this process (exactly: with the calling thread).

    A program that `ends_with_input` ends by itself when its input does. `environment` is added to
    that of this process, `directory` is where it runs, and `descriptors` are inherited.
    """
    return subprocess.Popen(
        command,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env={**os.environ, **(environment or {})},
        cwd=directory,
        start_new_session=True,
        pass_fds=descriptors,
        preexec_fn=None if ends_with_input else dying_with(os.getpid()),
    )


def inheriting(descriptors: Sequence[int]) -> dict[str, Any]:
    """Return the arguments of Popen by which a program inherits descriptors."""
    return {"pass_fds": descriptors}


def kill_child(process: subprocess.Popen[bytes]) -> None:
    """End a child by SIGKILL, and return when it has ended.

    `process.wait()` would not do: Popen holds a lock while it waits, and an interrupt at the wrong
    moment leaves the lock taken. After that wait() without a limit never returns.
    """
    process.kill()
    if sys.platform == "darwin":  # its Python has no waitid
        process.wait()
    elif process.returncode is None:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        process.poll()


def commands_of_children(process_id: int) -> list[bytes]:
    """Return the command lines of a process' children, its own where a child is not yet its
    command; none where the system does not tell."""
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()
        commands = [Path(f"/proc/{child}/cmdline").read_bytes() for child in children]
        itself = Path(f"/proc/{process_id}/cmdline").read_bytes()
        return [command for command in commands if command not in (b"", itself)]
    return []


def leave_nothing_behind(limit_s: float) -> Callable[[], None]:
    """End what this process has started with the process, however that ends.

    To be called before the process has threads. It ends with its input, is killed, or crashes; a
    second process in the same session, as they are, looks after that, `limit_s` after the end of
    the input at the latest. The function returned is to be called when all has been closed: then
    nothing else is ended.
    """
    process, group = os.getpid(), os.getpgrp()
    finished, done = os.pipe()
    if group != process or os.fork():  # not a session of its own: a test's, or a user's
        os.close(finished)

        def is_closed() -> None:
            with contextlib.suppress(OSError):  # nobody looks after it
                os.write(done, b".")

        return is_closed
    try:
        look_after(process, finished, limit_s)
    finally:
        os._exit(0)


def look_after(process: int, finished: int, limit_s: float) -> None:
    for number in (*SIGNALS, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(1, 2)
    os.closerange(3, finished)
    os.closerange(finished + 1, 4096)
    wait = select.poll()
    wait.register(0, 0)  # that its other end is closed
    wait.register(finished, select.POLLIN)
    deadline = math.inf
    while os.getppid() == process and time.monotonic() < deadline:
        happened = dict(wait.poll(1000))
        if finished in happened:
            break
        if 0 in happened:
            wait.unregister(0)
            deadline = time.monotonic() + limit_s + 1.0
    if select.select([finished], [], [], 0)[0] and os.read(finished, 1):
        return
    os.killpg(process, signal.SIGTERM)
    time.sleep(1.0)
    os.killpg(process, signal.SIGKILL)


# -- limits ----------------------------------------------------------------------------------------

HARD_LATER_S = 5  # from SIGXCPU to SIGKILL


def limit(memory_bytes: int, processor_s: int, wall_s: int, file_bytes: int) -> tuple[bool, bool]:
    """Limit this process, and the files that it writes; return whether its memory is limited, and
    its time on a processor."""

    def limited(what: int, soft: int, hard: int) -> bool:
        allowed = resource.getrlimit(what)[1]
        if allowed != resource.RLIM_INFINITY:
            soft, hard = min(soft, allowed), min(hard, allowed)
        try:
            resource.setrlimit(what, (soft, hard))
        except (OSError, ValueError):
            return False
        return True

    limited(resource.RLIMIT_CORE, 0, 0)
    limited(resource.RLIMIT_FSIZE, file_bytes, file_bytes)
    has_time = limited(resource.RLIMIT_CPU, processor_s, processor_s + HARD_LATER_S)
    signal.alarm(wall_s)
    # macOS takes the limit and does not keep it.
    has_memory = sys.platform != "darwin" and limited(
        resource.RLIMIT_AS, memory_bytes, memory_bytes
    )
    return has_memory, has_time


def limit_reached(code: int) -> Literal["", "processor", "wall"]:
    """Return which limit of its time ended a process with this exit code."""
    if code == -signal.SIGXCPU:
        return "processor"
    return "wall" if code == -signal.SIGALRM else ""
