"""Signals that ask for a pause: Ctrl-C, SIGTERM, and SIGHUP of a terminal that closes."""

from __future__ import annotations

import contextlib
import signal
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """While training the first signal asks for a pause, and a Ctrl-C after that ends at once.

    Others do not: a terminal that closes sends SIGHUP more than once. Before training there is
    nothing to pause, and the first signal ends. Signals that are ignored from the start, as nohup
    has it, stay so.
    """

    def __init__(self) -> None:
        self.armed = False  # while training
        self.requested = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        for number in SIGNALS:
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
        for other in self._previous:  # cleaning up takes a moment and must not be cut short
            signal.signal(other, signal.SIG_IGN)
        raise KeyboardInterrupt
