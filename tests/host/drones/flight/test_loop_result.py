"""What comes of a flight over a board, from its trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rltools_host.boards.push import PushResult
from rltools_host.drones.flight.disturbances import TICKS_A_S, Disturbances, Fault
from rltools_host.drones.flight.loop import Event, Trace
from rltools_host.drones.flight.result import TIME_OVER, LoopResult, lines
from rltools_host.drones.flight.simulator import Cause, Rule
from rltools_host.drones.flight.view import (
    frames,
    verdict,
)

RULE = Rule(seconds=1.0, last_seconds=0.4, radius_m=0.2)


def flown(errors_m: np.ndarray[tuple[int], np.dtype[np.float64]]) -> LoopResult:
    """A whole flight that was this far from its target before each tick, and at its end."""
    trace = Trace(len(errors_m) - 1)
    trace.count = trace.planned
    trace.states["position_m"][:, 1] = errors_m
    result = LoopResult("host", "runs/x", "a policy", "00", RULE, 0, 0, Disturbances())
    result.trace = trace
    return result


@pytest.mark.parametrize(("share", "expected_m"), [(0.25, 0.1), (0.95, 0.3)])
def test_the_error_is_that_of_the_end(share: float, expected_m: float) -> None:
    """It began nearer; of its last 0.4 s the first half was at 0.3 m, the second at 0.1 m."""
    errors = np.full(TICKS_A_S + 1, 0.05)
    errors[-round(0.4 * TICKS_A_S) :] = 0.3
    errors[-round(0.2 * TICKS_A_S) :] = 0.1
    result = flown(errors)
    result.rule = Rule(seconds=1.0, last_seconds=0.4, radius_m=0.2, share=share)
    assert result.error_m == pytest.approx(expected_m)
    assert result.cause is (Cause.SUCCESS if expected_m < 0.2 else Cause.TOO_FAR)
    assert result.settling_s == pytest.approx(1.0 - 0.2 + 1.0 / TICKS_A_S)


def test_a_flight_that_is_not_whole_has_no_error() -> None:
    result = flown(np.zeros(TICKS_A_S + 1))
    assert result.trace is not None
    result.trace.count -= 1
    assert result.error_m is None


# -- causes and documents --------------------------------------------------------------------------

ACTS, STALE = Event(0, "acted", "the policy acts"), "the observation is too old"


def whole(error_m: float = 0.125, events: tuple[Event, ...] = (), **fields: Any) -> LoopResult:
    """A whole flight of a second at this distance, with the same one on this machine."""
    result = flown(np.full(TICKS_A_S + 1, error_m))
    assert result.trace is not None
    result.rule, result.host_trace = replace(RULE, radius_m=0.25), result.trace
    result.trace.events += [ACTS, *events]
    for name, value in fields.items():
        setattr(result if hasattr(result, name) else result.trace, name, value)
    return result


@pytest.mark.parametrize(
    ("error_m", "event", "fields", "cause", "text"),
    [
        (0.25, None, {}, Cause.SUCCESS, "success"),
        (0.251, None, {}, Cause.TOO_FAR, f"{Cause.TOO_FAR.text}, 0.251 m away"),
        (
            *(0.0, Event(402, "observation_stale", STALE), {}, Cause.EXECUTOR_FAULT),
            "fail-safe at 0.804 s, as the observation is too old",
        ),
        (0.0, Event(402, "held", "it waits"), {}, Cause.SUCCESS, "success"),
        (0.0, None, {"count": 250}, None, "it was broken off at 0.500 s"),
        (
            *(0.0, None, {"count": 250, "broken": Cause.RATE_LIMIT}, Cause.RATE_LIMIT),
            "the limit of the angular velocity was broken, at 0.500 s",
        ),
        (
            *(0.0, Event(9, "", "policy dropped: it is slow"), {}, Cause.SUCCESS),
            "the board ended the policy's trial",
        ),
        (
            *(0.0, Event(250, "", TIME_OVER), {}, Cause.SUCCESS),
            "the policy's trial was over before the flight: give a longer --trial",
        ),
    ],
)
def test_why_it_is_no_success(
    error_m: float, event: Event | None, fields: dict[str, Any], cause: Cause | None, text: str
) -> None:
    result = whole(error_m, () if event is None else (event,), **fields)
    assert result.cause is cause
    assert result.success == (text == "success")
    end = "Success"
    if not result.success:
        assert result.cause_text == text
        end = f"No success: {text}"
    flown_s = f"{result.ticks / TICKS_A_S:.2f} s, {result.ticks} ticks over the board"
    assert verdict(result) == f"{end}. {flown_s}, each with the bits of the flight on this machine."


@pytest.mark.parametrize(
    ("event", "fault", "line"),
    [
        (
            Event(102, "observation_stale", STALE),
            100,
            "at 0.204 s, tick 102: fail-safe, the observation is too old; 2 ticks after an "
            "observation was not a number",
        ),
        (
            Event(100, "observation_stale", STALE),
            100,
            "at 0.200 s, tick 100: fail-safe, the observation is too old, as soon as an "
            "observation was not a number",
        ),
        (
            Event(99, "observation_stale", STALE),
            100,
            "at 0.198 s, tick 99: fail-safe, the observation is too old",
        ),
    ],
)
def test_an_event_is_a_line(event: Event, fault: int, line: str) -> None:
    result = whole(events=(event,))
    result.disturbances = Disturbances(faults=(Fault("cut", 300), Fault("nan", fault)))
    assert lines(result)[0] == line
    assert result.after_fault_ticks == {100: 0, 102: 2}.get(event.tick)


def test_document() -> None:
    result = whole(count=3, planned=3, latency_ms=4.0, wall_s=1.23456, repeated=5, table="t")
    assert result.trace is not None
    result.rule = replace(result.rule, seconds=0.006, last_seconds=0.006)
    result.trace.ticks["status"], result.trace.ticks["cost"] = [0, 0, 4], [10, 30, 20]
    result.trace.events.append(Event(2, "observation_stale", STALE))
    result.settings, result.disturbances = {"noise": 0.5}, Disturbances(faults=(Fault("nan", 1),))
    result.take(PushResult("host", active_sha256="00"), "why")
    sha = result.trace.sha256()
    stale = {"tick": 2, "time_s": 0.004, "status": "observation_stale", "text": STALE}
    assert result.document() == {
        "board": "host",
        "run": "runs/x",
        "policy_sha256": "00",
        "success": False,
        "cause": "executor_fault",
        "flight_sha256": sha,
        "host_flight_sha256": sha,
        "same_bits": True,
        "first_difference": None,
        "failsafe": {**stale, "after_fault_ticks": 1},
        "events": [
            {"tick": 0, "time_s": 0.0, "status": "acted", "text": "the policy acts"},
            stale,
        ],
        "ticks": 3,
        "seconds": 0.006,
        "error_m": 0.125,
        "settling_s": 0.0,
        "kept": True,
        "reason": "why",
        "seed": 0,
        "start": 0,
        "airframe": "t",
        "command_latency_ms": 4.0,
        "settings": {"noise": 0.5},
        "disturbances": result.disturbances.document(),
        "statuses": {"acted": 2, "observation_stale": 1},
        "cost": {"unit": "time_us", "median": 20, "max": 30},
        "repeated": 5,
        "wall_s": 1.235,
    }
    result.counts_instructions = True
    assert result.document()["cost"]["unit"] == "instructions"
    result.take(PushResult("host", active_sha256="01"))
    assert (result.kept, result.error) == (False, "")
    assert Event(5, "", "hello").document()["status"] is None


@pytest.mark.parametrize(("ticks", "stride", "count"), [(5000, 1, 5000), (5001, 2, 2501)])
def test_a_page_has_5000_frames_at_most(ticks: int, stride: int, count: int) -> None:
    trace = Trace(ticks)
    trace.count = ticks
    found, apart = frames(trace)
    assert (len(found), apart) == (count, stride)
