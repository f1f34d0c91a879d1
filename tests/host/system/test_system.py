"""What stands in for Linux's calls where they are missing, and limits."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rltools_host.system import posix
from waiting import wait_for


def test_a_guard_ends_a_child_where_the_kernel_does_not() -> None:
    """As on macOS, where nothing but the guard sees that the parent is killed."""
    program = (
        "import ctypes, sys, time\n"
        "ctypes.CDLL = lambda *_, **__: None\n"
        "from rltools_host.system import start_child\n"
        "child = start_child([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    os.kill(child, 0)
    parent.kill()
    parent.wait()
    parent.stdout.close()  # the guard has not kept it

    def has_ended() -> bool:
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return True
        return False

    wait_for(has_ended, 30)  # it would end by itself after 60 s


def test_a_guard_ends_with_its_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: None)
    command = [sys.executable, "-c", "import os, time; print(os.getpid()); time.sleep(0.1)"]
    child = posix.start_child(command, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.read() == f"{child.pid}\n".encode()  # to its end, so nobody else has it
    child.stdout.close()
    child.wait()

    wait_for(lambda: not in_session(child.pid), 10)


@pytest.mark.parametrize(
    ("limits", "work", "reached"),
    [("10**10, 1, 60", "while True: pass", "processor"), ("10**10, 60, 1", "sleep(50)", "wall")],
)
def test_a_process_ends_at_a_limit_of_its_time(limits: str, work: str, reached: str) -> None:
    """As one that reads a foreign file, which may wait as well as compute."""
    program = (
        "from time import sleep\n"
        "from rltools_host.system import limit\n"
        f"limit({limits}, 10**6)\n"
        f"{work}\n"
    )
    code = subprocess.run([sys.executable, "-c", program], timeout=40).returncode
    assert posix.limit_reached(code) == reached


def in_session(session: int) -> list[str]:
    """The processes of a session."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if os.getsid(int(entry)) == session:
                    found.append(entry)
            except ProcessLookupError:
                continue
    return found
