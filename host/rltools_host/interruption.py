"""Ctrl-C and other signals while something runs that can be paused; and the end of a child."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Sequence
from types import FrameType
from typing import Any

from rltools_host.system import QUIT_SIGNALS, SIGNALS, kill_child, signal_name


class Interruption:
    """A context in which signals ask for a pause, or raise KeyboardInterrupt.

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
        if (is_first and not self.armed) or (not is_first and number in QUIT_SIGNALS):
            raise KeyboardInterrupt


def end_child(process: subprocess.Popen[bytes], patience_s: float = 1.0) -> None:
    """End a child by SIGTERM, and by SIGKILL where it has not ended after `patience_s`."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            kill_child(process)


def ending(process: subprocess.Popen[bytes]) -> str:
    """Return how a child ended: `it ended with exit code 3`, `it was ended by SIGKILL`."""
    try:
        code = process.wait(0.5)
    except subprocess.TimeoutExpired:
        return "it still runs"
    if name := signal_name(code):
        return f"it was ended by {name}"
    return f"it ended with exit code {code}"
