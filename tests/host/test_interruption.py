"""Signals that ask for a pause, in the order in which they come."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from rltools_host.interruption import Interruption
from rltools_host.system import SIGNALS


@pytest.fixture(autouse=True)
def _usual_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def handlers() -> list[Any]:
    return [signal.getsignal(number) for number in SIGNALS]


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_interrupts(number: int) -> None:
    """A terminal that closes sends SIGHUP more than once; Ctrl-C interrupts the cleaning up too."""
    before = handlers()
    with Interruption():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert handlers() == before


@pytest.mark.parametrize("number", SIGNALS)
def test_an_armed_one_asks_for_a_pause_and_ctrl_c_after_that_interrupts(number: int) -> None:
    with Interruption() as interruption:
        interruption.armed = True
        os.kill(os.getpid(), number)
        assert interruption.requested
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGHUP)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_what_is_ignored_from_the_start_stays_so() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGHUP)
        assert not interruption.requested
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
