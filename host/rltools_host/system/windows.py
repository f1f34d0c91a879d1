"""Windows.

Child processes cannot outlive the process that started them: they belong to a job, which ends when
the last handle to it is closed. Each leads a group of its own, so Ctrl-C reaches the command alone,
which then pauses the board.
"""

from __future__ import annotations

import _winapi
import contextlib
import ctypes
import errno
import mmap
import msvcrt
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

assert sys.platform == "win32" or not TYPE_CHECKING  # mypy --platform

# -- descriptors and folders -----------------------------------------------------------------------

BINARY = getattr(os, "O_BINARY", 0)  # of os.open(): bytes as they are
READ_PLAIN = os.O_RDONLY | BINARY
NO_FOLLOW = 0  # of os.open(): links are looked at before
LOCKED_BYTE = 0x7FFFFFFE  # behind all that a file has: others may read what is locked
LOOK_S = 0.005
PATIENCE_S = 2.0


def open_folder(path: Path) -> int:
    """Return a descriptor to be locked, of a file beside the folder, which itself cannot be opened;
    the file ends with the last of its descriptors."""
    os.stat(path)  # raises where there is none
    file = path.absolute().with_name(f".{path.absolute().name}.lock")
    return os.open(file, os.O_RDWR | os.O_CREAT | BINARY | getattr(os, "O_TEMPORARY", 0))


def lock(descriptor: int, *, shared: bool = False, waits: bool = False) -> bool:
    """Lock what a descriptor has opened until it is closed, which the system does where this
    process ends. Return whether it is locked now, which `waits` waits for. A shared lock is one
    like others."""
    del shared
    present = os.lseek(descriptor, 0, os.SEEK_CUR)
    try:
        while True:
            os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
            with contextlib.suppress(OSError):
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
                return True
            if not waits:
                return False
            time.sleep(LOOK_S)
    finally:
        os.lseek(descriptor, present, os.SEEK_SET)


def synchronize_folder(path: Path) -> None:
    """Do nothing: NTFS writes names into its journal, and a folder cannot be opened."""


def replace(source: Path, target: Path) -> None:
    """Rename a file, in place of another one; or a folder, where nothing has the name."""
    patiently(os.replace, source, target)


def rename_folder(source: Path, target: Path) -> None:
    """Rename a folder; raise FileExistsError where something has the name."""
    patiently(os.rename, source, target)


def patiently(rename: Callable[[Path, Path], None], source: Path, target: Path) -> None:
    """Call a function that renames again while another program has a file open, as virus scanners
    do, and who reads the target."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return rename(source, target)
        except PermissionError:
            if time.monotonic() >= until:
                raise
        time.sleep(LOOK_S)


def bytes_on_disk(status: os.stat_result) -> int:
    """Return a file's length, as the system tells nothing else of it."""
    return status.st_size


def remove_files(path: Path, is_ours: Callable[[str], bool]) -> None:
    """Remove the files with these names in a folder; of a link, the link itself. A folder that is a
    link is left alone. Raise OSError, whose `filename` is the path that it is about."""
    if path.is_symlink() or not path.is_dir():
        return
    for name in filter(is_ours, os.listdir(path)):
        with contextlib.suppress(FileNotFoundError):
            if (path / name).is_symlink() or not (path / name).is_dir():
                os.unlink(path / name)


@contextlib.contextmanager
def temporary_file() -> Iterator[tuple[IO[bytes], str]]:
    """Open a file that ends with this process; yield it and a path at which others open it."""
    number, path = tempfile.mkstemp()
    try:
        with os.fdopen(number, "w+b") as file:
            yield file, path
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


class SharedMemory:
    """Zeros that a child process can attach to, without a name that could be left over."""

    def __init__(self, count: int) -> None:
        self.name = f"rlt-{secrets.token_hex(16)}"
        self.memory = attached_memory(self.name, count)
        self.descriptors: tuple[int, ...] = ()

    def close(self) -> None:
        """Forget the name, when the child has it; the memory stays."""


def attached_memory(name: str, count: int) -> mmap.mmap:
    """Return the memory of this name that the parent process shares."""
    return mmap.mmap(-1, count, tagname=name)


def readable(streams: Sequence[IO[bytes]], timeout_s: float) -> list[IO[bytes]]:
    """Return the pipes in which something has arrived, or which have ended; none after this
    time."""
    until = time.monotonic() + timeout_s
    while True:
        found = [stream for stream in streams if has_something(stream)]
        if found or time.monotonic() >= until:
            return found
        time.sleep(LOOK_S)


def has_something(pipe: IO[bytes]) -> bool:
    try:
        return bool(_winapi.PeekNamedPipe(msvcrt.get_osfhandle(pipe.fileno()), 0)[0])
    except OSError:  # it has ended
        return True


A_PORT = "COM3"
PORT_IN_USE = (errno.EACCES,)  # errors of opening one


def may_be_port(path: str) -> bool:
    """Return True: opening it tells."""
    del path
    return True


def group_of(path: str) -> str | None:
    """Return None: no port belongs to a group."""
    del path
    return None


# -- processors and users --------------------------------------------------------------------------


def processors() -> int:
    """Return how many processors this process may use."""
    return os.cpu_count() or 1


PF_AVX2 = 40  # of IsProcessorFeaturePresent()
WITH_AVX2 = frozenset(("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"))


def processor_features() -> frozenset[str]:
    """Return what processors with AVX2 have, by Linux' names; the system tells of AVX2 alone."""
    return WITH_AVX2 if kernel().IsProcessorFeaturePresent(PF_AVX2) else frozenset()


def is_root() -> bool:
    """Return False: nothing is installed for all users here."""
    return False


def may_change(path: Path) -> bool:
    """Return True: the system tells when it is changed."""
    del path
    return True


# -- signals ---------------------------------------------------------------------------------------

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGBREAK)  # that end or pause a command
CHILD_SIGNALS = (signal.SIGBREAK,)  # that pause a process of send_signal()
QUIT_SIGNALS = (signal.SIGINT, signal.SIGBREAK)  # that do not wait for a pause, if one is requested


def send_signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a child Ctrl-Break, the only signal that another process takes: the first one pauses it,
    the next one quits."""
    del number
    process.send_signal(signal.CTRL_BREAK_EVENT)


def signal_name(code: int) -> str:
    """Return an empty text: an exit code is all there is."""
    del code
    return ""


# -- child processes -------------------------------------------------------------------------------

ENDS_WITH_HANDLE, MEMORY_LIMIT, TIME_LIMIT = 0x2000, 0x100, 0x2  # JOB_OBJECT_LIMIT_...
EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
ASSIGNABLE = 0x0101  # PROCESS_SET_QUOTA, PROCESS_TERMINATE


class JobLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("process_time_100ns", ctypes.c_int64),
        ("job_time_100ns", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("least_working_set", ctypes.c_size_t),
        ("most_working_set", ctypes.c_size_t),
        ("processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority", ctypes.c_uint32),
        ("scheduling", ctypes.c_uint32),
        ("io", ctypes.c_uint64 * 6),
        ("process_memory_bytes", ctypes.c_size_t),
        ("job_memory_bytes", ctypes.c_size_t),
        ("peak_process_bytes", ctypes.c_size_t),
        ("peak_job_bytes", ctypes.c_size_t),
    )
    process_time_100ns: int
    flags: int
    process_memory_bytes: int


@cache
def kernel() -> Any:
    """Return the library of the calls below, whose handles are pointers."""
    library = ctypes.WinDLL("kernel32", use_last_error=True)
    handle, number = ctypes.c_void_p, ctypes.c_uint32
    library.CreateJobObjectW.restype = handle
    library.CreateJobObjectW.argtypes = (handle, handle)
    library.SetInformationJobObject.argtypes = (handle, number, handle, number)
    library.AssignProcessToJobObject.argtypes = (handle, handle)
    library.OpenProcess.restype = handle
    library.OpenProcess.argtypes = (number, number, number)
    library.CloseHandle.argtypes = (handle,)
    return library


class Job:
    """Processes that share limits; it has this process' only handle."""

    def __init__(self, flags: int, memory_bytes: int = 0, processor_s: int = 0) -> None:
        self._handle = required(kernel().CreateJobObjectW(None, None))
        self.set(flags, memory_bytes, processor_s)

    def set(self, flags: int, memory_bytes: int = 0, processor_s: int = 0) -> None:
        limits = JobLimits()
        limits.flags = flags
        limits.process_memory_bytes = memory_bytes
        limits.process_time_100ns = processor_s * 10_000_000
        size = ctypes.sizeof(limits)
        required(
            kernel().SetInformationJobObject(
                self._handle, EXTENDED_LIMITS, ctypes.byref(limits), size
            )
        )

    def take(self, process_id: int) -> None:
        """Assign a process; raise OSError where it has ended."""
        process = required(kernel().OpenProcess(ASSIGNABLE, False, process_id))
        try:
            required(kernel().AssignProcessToJobObject(self._handle, process))
        finally:
            kernel().CloseHandle(process)


def required(result: int | None) -> int:
    if not result:
        raise ctypes.WinError(ctypes.get_last_error())
    return result


@cache
def children() -> Job:
    """Return the job of this process' children; its handle is closed when this process ends."""
    return Job(ENDS_WITH_HANDLE)


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
    """Start a program that ends with this process.

    A program that `ends_with_input` ends by itself when its input does. `environment` is added to
    that of this process, and `directory` is where it runs. No descriptors can be inherited.
    """
    del descriptors
    process = subprocess.Popen(
        command,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env={**os.environ, **(environment or {})},
        cwd=directory,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )
    if not ends_with_input:
        try:
            children().take(process.pid)
        except OSError:
            if process.poll() is None:
                kill_child(process)
                raise
    return process


def inheriting(descriptors: Sequence[int]) -> dict[str, Any]:
    """Return no arguments of Popen: descriptors are not inherited, and a lock ends with this
    process."""
    del descriptors
    return {}


def kill_child(process: subprocess.Popen[bytes]) -> None:
    """End a child, and return when it has ended."""
    process.kill()
    process.wait()


def commands_of_children(process_id: int) -> list[bytes]:
    """Return none: the system does not tell."""
    del process_id
    return []


def leave_nothing_behind(limit_s: float) -> Callable[[], None]:
    """End what this process has started with the process, however that ends.

    The function returned is to be called when all has been closed: then nothing else is ended.
    """
    del limit_s
    job = Job(ENDS_WITH_HANDLE)
    job.take(os.getpid())
    return lambda: job.set(0)


# -- limits ----------------------------------------------------------------------------------------

ERROR_NOT_ENOUGH_QUOTA = 1816  # exit code of a process that a job's limit of time has ended
WALL_TIME_OVER = 72


def limit(memory_bytes: int, processor_s: int, wall_s: int, file_bytes: int) -> tuple[bool, bool]:
    """Limit this process; return whether its memory is limited, and its time on a processor."""
    del file_bytes
    timer = threading.Timer(wall_s, os._exit, (WALL_TIME_OVER,))
    timer.daemon = True
    timer.start()
    try:
        Job(MEMORY_LIMIT | TIME_LIMIT, memory_bytes, processor_s).take(os.getpid())
    except OSError:
        return False, False
    return True, True


def limit_reached(code: int) -> Literal["", "processor", "wall"]:
    """Return which limit of its time ended a process with this exit code."""
    if code == ERROR_NOT_ENOUGH_QUOTA:
        return "processor"
    return "wall" if code == WALL_TIME_OVER else ""
