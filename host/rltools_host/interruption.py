"""Ctrl-C, SIGTERM and SIGHUP while something runs that can be paused; and child processes.

Child processes (emulators, boards that are programs) cannot outlive the process that started them:
Linux sends them SIGKILL when it ends, even if it was killed (prctl(2), PR_SET_PDEATHSIG). Each
leads a session of its own, so Ctrl-C reaches the command alone, which then pauses the board.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """A context in which Ctrl-C, SIGTERM and SIGHUP ask for a pause, or raise KeyboardInterrupt.

    The first signal sets `requested`. While `armed`, that is all, and Ctrl-C after it raises
    KeyboardInterrupt; otherwise the first signal raises it. Later SIGTERM and SIGHUP do nothing: a
    terminal that closes sends SIGHUP more than once. Signals that are ignored from the start, as
    nohup has it, stay so.
    """

    def __init__(self, signals: Sequence[int] = SIGNALS) -> None:
        self.armed = False
        self.requested = False
        self._signals = signals
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        for number in self._signals:
            if signal.getsignal(number) != signal.SIG_IGN:
                with contextlib.suppress(ValueError):  # raised outside of the main thread
                    self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        is_first, self.requested = not self.requested, True
        if (is_first and not self.armed) or (not is_first and number == signal.SIGINT):
            raise KeyboardInterrupt


PR_SET_PDEATHSIG = 1


def dying_with(parent: int) -> Callable[[], None]:
    """Return the function that a child runs between fork and exec; libc is loaded in the parent."""
    import ctypes  # imported late: it is slow

    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def in_child() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent ended before the line above
            os._exit(1)

    return in_child


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


def end_child(process: subprocess.Popen[bytes], patience_s: float = 1.0) -> None:
    """End a child by SIGTERM, and by SIGKILL where it has not ended after `patience_s`."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            kill_child(process)


def kill_child(process: subprocess.Popen[bytes]) -> None:
    """End a child by SIGKILL, and return when it has ended.

    `process.wait()` would not do: Popen holds a lock while it waits, and an interrupt at the wrong
    moment leaves the lock taken. After that wait() without a limit never returns.
    """
    process.kill()
    if process.returncode is None:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        process.poll()


def ending(process: subprocess.Popen[bytes]) -> str:
    """Return how a child ended: `it ended with exit code 3`, `it was ended by SIGKILL`."""
    try:
        code = process.wait(0.5)
    except subprocess.TimeoutExpired:
        return "it still runs"
    if code < 0:
        return f"it was ended by {signal.Signals(-code).name}"
    return f"it ended with exit code {code}"
