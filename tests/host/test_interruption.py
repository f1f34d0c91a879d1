"""What signals do, one after the other, and what is as before behind it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from rltools_host.interruption import (
    SIGNALS,
    Interruption,
    interrupt_by_ctrl_c,
    pass_interrupt_on,
)


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Handlers, and what shows what cannot be raised."""
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def handlers() -> list[Any]:
    return [signal.getsignal(number) for number in SIGNALS]


@pytest.mark.parametrize("again", [signal.SIG_IGN, signal.SIG_DFL])
@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_interrupts_and_the_others_do_nothing(
    number: int, again: signal.Handlers
) -> None:
    before = handlers()
    with Interruption(again=again) as interruption:
        assert all(callable(handler) for handler in handlers())
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        assert handlers() == [again, signal.SIG_IGN, signal.SIG_IGN]
        assert not interruption.requested
    assert handlers() == before


@pytest.mark.parametrize("number", SIGNALS)
def test_while_armed_the_first_asks_and_a_ctrl_c_interrupts(number: int) -> None:
    with Interruption() as interruption:
        interruption.armed = True
        os.kill(os.getpid(), number)
        assert interruption.requested
        os.kill(os.getpid(), signal.SIGTERM)  # it has been asked for
        os.kill(os.getpid(), signal.SIGHUP)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_what_is_ignored_from_the_start_stays_so() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGHUP)
        assert not interruption.requested
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


@pytest.mark.parametrize(
    ("handler", "is_taken"),
    [(signal.SIG_DFL, True), (signal.default_int_handler, True), (signal.SIG_IGN, False)],
)
def test_a_second_ctrl_c_ends_a_process(handler: Any, is_taken: bool) -> None:
    signal.signal(signal.SIGINT, handler)
    interrupt_by_ctrl_c()
    assert sys.unraisablehook is pass_interrupt_on
    assert handlers()[1:] == [signal.SIG_DFL] * 2
    if not is_taken:
        assert handlers()[0] == handler
        return
    assert handlers()[0] != handler
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    assert handlers()[0] == signal.SIG_DFL


def test_a_ctrl_c_in_a_destructor_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(sys, "__unraisablehook__", shown.append)
    other: Any = SimpleNamespace(exc_value=ValueError("x"))
    pass_interrupt_on(other)
    assert shown == [other]
    with pytest.raises(KeyboardInterrupt):
        pass_interrupt_on(SimpleNamespace(exc_value=KeyboardInterrupt()))  # type: ignore[arg-type]
    assert shown == [other]
