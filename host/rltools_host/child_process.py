"""Child processes (emulators, boards that are programs) that cannot outlive who started them.

Linux sends them SIGKILL when their parent ends, even if the parent itself was killed: prctl(2),
PR_SET_PDEATHSIG. They are leaders of their own session, so that Ctrl-C reaches the command alone,
which then pauses the board.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

PR_SET_PDEATHSIG = 1


def dying_with(parent: int) -> Callable[[], None]:
    """What a child runs between fork and exec; the library is loaded before, in the parent."""
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
) -> subprocess.Popen[bytes]:
    """Starts a program that ends with this process (exactly: with the thread that calls this).

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
        preexec_fn=dying_with(os.getpid()),
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
