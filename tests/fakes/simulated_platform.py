"""Linux with what another system lacks taken away: `simulated_platform.py SYSTEM PYTHON-ARGUMENTS`.

SYSTEM is windows or macos. Functions are taken away once libraries have been imported, which have
their own ways there; the package itself does not find the modules either. On `windows`, stand-ins
have what only Windows has: locks of bytes, signals, whether a pipe has something. Jobs take every
process and limit nothing. Children that are Python programs of the package are simulated, too.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import fcntl
import importlib.util
import mmap
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import types
from typing import Any

POSIX_MODULES = {"fcntl", "grp", "pty", "pwd", "resource", "select", "termios", "tty"}
TAKEN = {
    "macos": {
        os: ("memfd_create", "pipe2", "posix_fadvise", "posix_fallocate", "waitid"),
        select: ("epoll",),
        signal: ("sigtimedwait", "sigwaitinfo"),
        socket: ("SO_PEERCRED", "SOCK_CLOEXEC"),
    },
    "windows": {
        os: (
            *("O_CLOEXEC", "O_DIRECTORY", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "P_PID"),
            *("WNOWAIT", "fchmod", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid"),
            *("getpgid", "getpgrp", "getsid", "getuid", "killpg", "memfd_create", "mkfifo"),
            *("openpty", "pipe2", "posix_fadvise", "posix_fallocate", "posix_spawn", "setsid"),
            *("statvfs", "sysconf", "waitid"),
        ),
        select: ("epoll", "poll"),
        signal: (
            *("SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT"),
            *("SIGSTOP", "SIGTSTP", "SIGUSR2", "SIGWINCH", "SIGXCPU", "SIGXFSZ", "alarm"),
            *("pthread_sigmask", "setitimer", "sigtimedwait", "sigwaitinfo"),
        ),
        socket: ("AF_UNIX", "SO_PEERCRED", "SOCK_CLOEXEC"),
    },
}
NEW_GROUP = 0x200  # CREATE_NEW_PROCESS_GROUP
BREAK = signal.SIGUSR1  # in Ctrl-Break's place
KILL = signal.SIGKILL
LOCK, UNLOCK = 2, 0  # LK_NBLCK, LK_UNLCK

find_spec, open_file, import_module = importlib.util.find_spec, os.open, builtins.__import__
poll, control, map_file, library = select.poll, fcntl.fcntl, mmap.mmap, ctypes.CDLL
ioctl, waiting_bytes, hung_up, readable = (
    *(fcntl.ioctl, termios.FIONREAD),
    *(select.POLLHUP, select.POLLIN),
)
close_file, lock_file = os.close, fcntl.flock
shared, alone = fcntl.LOCK_SH, fcntl.LOCK_EX | fcntl.LOCK_NB
lock_bytes = (fcntl.F_OFD_SETLK, fcntl.F_WRLCK, fcntl.F_UNLCK)


def take_away(system: str) -> None:
    """Take away the functions, and set what stands in for others."""
    for module, names in TAKEN[system].items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    for name in [name for name in vars(os) if name.startswith("sched_")]:
        delattr(os, name)
    ctypes.CDLL = LibraryWithoutPrctl  # type: ignore[misc]
    if system == "macos":
        sys.platform = "darwin"
        return
    builtins.__import__ = imported  # type: ignore[assignment]
    importlib.util.find_spec = lambda name, *_: None if name in POSIX_MODULES else find_spec(name)
    sys.modules["msvcrt"] = locks_of_windows()
    sys.modules["_winapi"] = pipes_of_windows()
    files = TemporaryFiles()
    os.open, os.close, os.O_TEMPORARY = files.open, files.close, files.FLAG  # type: ignore
    ctypes.WinDLL = JobsThatLimitNothing  # type: ignore[attr-defined]
    mmap.mmap = named_memory  # type: ignore[assignment, misc]
    signal.SIGBREAK = BREAK  # type: ignore[attr-defined]
    signal.CTRL_BREAK_EVENT = BREAK  # type: ignore[attr-defined]
    subprocess.CREATE_NEW_PROCESS_GROUP = NEW_GROUP  # type: ignore[attr-defined]


class LibraryWithoutPrctl(library):
    """A library that has no prctl."""

    def __getattr__(self, name: str) -> Any:
        if name == "prctl":
            raise AttributeError("dlsym(prctl): symbol not found")
        return super().__getattr__(name)


def imported(name: str, *others: Any, **options: Any) -> Any:
    """Import as usual, but for modules that the package would not find."""
    importer = str((others[0] or {}).get("__name__", "")) if others else ""
    if name in POSIX_MODULES and importer.startswith(("rlt.", "rltools_host")):
        raise ModuleNotFoundError(f"No module named '{name}'", name=name)
    return import_module(name, *others, **options)


def locks_of_windows() -> types.ModuleType:
    module = types.ModuleType("msvcrt")

    def locking(descriptor: int, mode: int, count: int) -> None:
        """Lock bytes from the file's position on for this descriptor."""
        kind = lock_bytes[2] if mode == UNLOCK else lock_bytes[1]
        first = os.lseek(descriptor, 0, os.SEEK_CUR)
        control(
            descriptor, lock_bytes[0], struct.pack("hhqqi4x", kind, os.SEEK_SET, first, count, 0)
        )

    vars(module).update(
        LK_NBLCK=LOCK, LK_UNLCK=UNLOCK, locking=locking, get_osfhandle=lambda number: number
    )
    return module


class TemporaryFiles:
    """Files that end with the last of their descriptors (O_TEMPORARY)."""

    FLAG = 1 << 30

    def __init__(self) -> None:
        self._paths: dict[int, str] = {}

    def open(self, path: Any, flags: int, *others: Any, **options: Any) -> int:
        descriptor = open_file(path, flags & ~self.FLAG, *others, **options)
        if flags & self.FLAG:
            lock_file(descriptor, shared)
            self._paths[descriptor] = os.fspath(path)
        return descriptor

    def close(self, descriptor: int) -> None:
        if path := self._paths.pop(descriptor, ""):
            with contextlib.suppress(BlockingIOError):  # another one has it open
                lock_file(descriptor, alone)
                os.unlink(path)
        close_file(descriptor)


def pipes_of_windows() -> types.ModuleType:
    module = types.ModuleType("_winapi")

    def peek(handle: int, size: int) -> tuple[int, int]:
        assert size == 0
        pipe = poll()
        pipe.register(handle, readable)
        count: int = struct.unpack("i", ioctl(handle, waiting_bytes, bytes(4)))[0]
        if not count and any(events & hung_up for _, events in pipe.poll(0)):
            raise BrokenPipeError("the pipe has been ended")
        return count, 0

    vars(module).update(PeekNamedPipe=peek)
    return module


class JobsThatLimitNothing:
    """The functions of kernel32 that Job calls; a process' number is its handle."""

    class Function:
        def __init__(self, result: Any) -> None:
            self._result = result

        def __call__(self, *arguments: Any) -> Any:
            return self._result(*arguments)

    def __init__(self, name: str, **_: Any) -> None:
        assert name == "kernel32"
        self.CreateJobObjectW = self.Function(lambda *_: 1)
        self.SetInformationJobObject = self.Function(lambda *_: 1)
        self.AssignProcessToJobObject = self.Function(lambda *_: 1)
        self.OpenProcess = self.Function(lambda *arguments: arguments[-1])
        self.CloseHandle = self.Function(lambda *_: 1)
        self.IsProcessorFeaturePresent = self.Function(lambda *_: 0)


def named_memory(number: int, count: int, *others: Any, tagname: str = "", **more: Any) -> Any:
    """Map a file, or memory with a name."""
    if not tagname:
        return map_file(number, count, *others, **more)
    path = f"/dev/shm/{tagname}"
    is_second = os.path.exists(path)
    descriptor = open_file(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.ftruncate(descriptor, count)
        return map_file(descriptor, count)
    finally:
        os.close(descriptor)
        if is_second:
            os.unlink(path)


class SimulatedChildren(subprocess.Popen):  # type: ignore[type-arg]
    """Children, which are simulated if they are programs of the package."""

    system = ""

    def __init__(self, words: Any, *others: Any, creationflags: int = 0, **options: Any) -> None:
        if self.system == "windows":
            unknown = ("pass_fds", "preexec_fn", "process_group", "start_new_session")
            assert not any(options.get(name) for name in unknown), "not on Windows"
            options["start_new_session"] = bool(creationflags & NEW_GROUP)
        if not isinstance(words, str) and list(words)[:2] == [sys.executable, "-I"]:
            words = [sys.executable, "-I", __file__, self.system, *list(words)[2:]]
        super().__init__(words, *others, **options)

    def send_signal(self, number: int) -> None:
        is_end = self.system == "windows" and number != BREAK
        super().send_signal(KILL if is_end else number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        super().send_signal(KILL)


def main() -> None:
    _, system, *words = sys.argv
    sys.argv = [sys.argv[0], *words]
    # Libraries that a program of another system has in that system's way.
    for name in ("rich.live", "rich.console", "serial.tools.list_ports", "click._termui_impl"):
        with contextlib.suppress(ImportError):
            import_module(name)
    SimulatedChildren.system = system
    subprocess.Popen = SimulatedChildren  # type: ignore[misc]
    take_away(system)
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        exec(words[1], {"__name__": "__main__"})
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main()
