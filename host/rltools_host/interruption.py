"""Ctrl-C, SIGTERM, and SIGHUP of a terminal that closes: the one place that handles them.

Before this module can be loaded, __main__.py and build/set_up.py leave Ctrl-C to the system,
which ends the process without a traceback.

Child processes (emulators, boards that are programs) that cannot outlive who started them.

Linux sends them SIGKILL when their parent ends, even if the parent itself was killed: prctl(2),
PR_SET_PDEATHSIG. They are leaders of their own session, so that Ctrl-C reaches the command alone,
which then pauses the board.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """Within, the first of the signals raises KeyboardInterrupt. The others are ignored after that,
    as a terminal that closes sends SIGHUP more than once; `again` is what another Ctrl-C does.

    While `armed`, the first signal asks for a pause instead, and a Ctrl-C after that raises
    KeyboardInterrupt. Signals that are ignored from the start, as nohup has it, stay so.
    """

    def __init__(
        self, signals: Sequence[int] = SIGNALS, again: signal.Handlers = signal.SIG_IGN
    ) -> None:
        self.armed = False
        self.requested = False
        self._signals = signals
        self._again = again
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        for number in self._signals:
            if signal.getsignal(number) != signal.SIG_IGN:
                with contextlib.suppress(ValueError):  # not the main thread: all stays as it is
                    self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self.armed and not (self.requested and number == signal.SIGINT):
            self.requested = True
            return
        for other in self._previous:
            signal.signal(other, self._again if other == signal.SIGINT else signal.SIG_IGN)
        raise KeyboardInterrupt


def interrupt_by_ctrl_c() -> None:
    """For a whole process: a second Ctrl-C ends it at once, without a traceback."""
    if signal.getsignal(signal.SIGINT) in (signal.SIG_DFL, signal.default_int_handler):
        Interruption((signal.SIGINT,), signal.SIG_DFL).__enter__()
    sys.unraisablehook = pass_interrupt_on


def pass_interrupt_on(unraisable: sys.UnraisableHookArgs) -> None:
    """Python drops a Ctrl-C that comes in a destructor, and would show its traceback."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    else:
        sys.__unraisablehook__(unraisable)


PR_SET_PDEATHSIG = 1


def dying_with(parent: int) -> Callable[[], None]:
    """What a child runs between fork and exec; the library is loaded before, in the parent."""
    import ctypes  # which takes longer than all of this

    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def in_child() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent ended before the line above
            os._exit(1)

    return in_child


def die_with(parent: int) -> None:
    """For a child that is this process, such as one of a pool, while it has a task."""
    dying_with(parent)()


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
    """Starts a program that ends with this process (exactly: with the thread that calls this); one
    that `ends_with_input` does so by itself, after what it has to do.

    `environment` is added to that of this process; `directory` is where it runs; `descriptors` are
    open there, too, by the same numbers.
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
    """Ends a child: politely, then not."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            kill_child(process)


def kill_child(process: subprocess.Popen[bytes]) -> None:
    """Ends a child at once, and returns when it has ended.

    Not by `process.wait()`: Popen holds a lock while it asks for a process's end, and an interrupt
    that comes between the taking of it and what gives it back leaves it taken. After that wait()
    without a limit never returns.
    """
    process.kill()
    if process.returncode is None:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        process.poll()


def ending(process: subprocess.Popen[bytes]) -> str:
    """How a child ended, in words: `it ended with exit code 3`, `it was ended by SIGKILL`."""
    try:
        code = process.wait(0.5)
    except subprocess.TimeoutExpired:
        return "it still runs"
    if code < 0:
        return f"it was ended by {signal.Signals(-code).name}"
    return f"it ended with exit code {code}"
