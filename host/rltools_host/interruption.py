"""Ctrl-C, SIGTERM, and SIGHUP of a terminal that closes: the one place that handles them.

Before this module can be loaded, __main__.py and toolchain/set_up.py leave Ctrl-C to the system,
which ends the process without a traceback.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

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
