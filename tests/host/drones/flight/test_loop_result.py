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
    distance,
    figures,
    frames,
    last_event,
    progress,
    rotor_bars,
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


# -- told ------------------------------------------------------------------------------------------

ACTS, STALE = Event(0, "acted", "the policy acts"), "the observation is too old"


def told(error_m: float = 0.125, events: tuple[Event, ...] = (), **fields: Any) -> LoopResult:
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
    result = told(error_m, () if event is None else (event,), **fields)
    assert result.cause is cause
    assert result.success == (text == "success")
    end = "Success"
    if not result.success:
        assert result.cause_text == text
        end = f"No success: {text}"
    flown_s = f"{result.ticks / TICKS_A_S:.2f} s, {result.ticks} ticks over the board"
    assert verdict(result) == f"{end}. {flown_s}, each with the bits of the flight on this machine."


def test_lines_of_a_success() -> None:
    result = told(wall_s=2.0)
    assert result.trace is not None
    sha = result.trace.sha256()[:12]
    assert lines(result) == [
        "success: 0.125 m from the target at most in the last second, settled after 0.00 s",
        f"500 ticks, each with this machine's bits: flight {sha}",
        "2.0 s, 250 ticks a second",
    ]
    result.host_trace, result.wall_s = None, 0.0
    others = "other bits than on this machine from tick 0 on"
    assert lines(result)[1:] == [f"500 ticks, {others}: flight {sha}"]
    assert verdict(result).endswith(f", {others}.")
    end_is_far = replace(RULE, radius_m=0.25, share=0.5)
    result.rule, result.trace.states["position_m"][-1, 1] = end_is_far, 0.5
    assert lines(result)[0].endswith(" in the last second, settled after never")


@pytest.mark.parametrize(
    ("event", "fault", "line"),
    [
        (Event(10, "", "hello"), None, 'at 0.020 s, tick 10: the board says "hello"'),
        (Event(3, "held", "it waits"), None, "at 0.006 s, tick 3: it waits"),
        (Event(0, "no_policy", "none"), None, "at 0.000 s, tick 0: fail-safe, none"),
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
def test_an_event_is_a_line(event: Event, fault: int | None, line: str) -> None:
    result = told(events=(event,))
    if fault is not None:
        result.disturbances = Disturbances(faults=(Fault("cut", 300), Fault("nan", fault)))
    first = 1 if event.tick == 0 else 0  # where nothing acts at first, that is told too
    assert lines(result)[first] == line
    assert result.after_fault_ticks == {100: 0, 102: 2}.get(event.tick)


@pytest.mark.parametrize("count", [8, 9, 1009])
def test_a_few_events_are_told(count: int) -> None:
    events = tuple(Event(tick, "held", "it waits") for tick in range(1, count + 1))
    text = lines(told(events=events))
    more = {8: None, 9: "and 1 more change of", 1009: "and 1,001 more changes"}[count]
    assert text[7] == "at 0.016 s, tick 8: it waits"
    assert text[8].startswith(more or "success")


def test_document() -> None:
    result = told(count=3, planned=3, latency_ms=4.0, wall_s=1.23456, repeated=5, table="t")
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


def test_before_anything_is_flown() -> None:
    result = LoopResult("host", "runs/x", "a policy", "00", RULE, 7, 8, Disturbances())
    assert lines(result) == []
    document = result.document()
    nothing = ("cause", "flight_sha256", "host_flight_sha256", "failsafe", "cost", "error_m")
    assert [document[key] for key in (*nothing, "settling_s")] == [None] * 7
    assert (document["ticks"], document["first_difference"], document["statuses"]) == (0, 0, {})
    assert (document["kept"], document["repeated"], document["settings"]) == (False, 0, {})
    assert (document["seed"], document["start"], document["wall_s"]) == (7, 8, 0.0)
    result.trace = Trace(3)
    assert result.document()["cost"] is None


# -- shown -----------------------------------------------------------------------------------------


def test_figures_of_a_moment() -> None:
    trace = Trace(1000)
    trace.count = 250
    state, half = trace.states[-1:], np.deg2rad(15)
    state["position_m"], state["velocity_m_s"] = (1, -2, 0.5), (3, 4, 0)
    state["attitude"] = (np.cos(half), 0, np.sin(half), 0)
    told = [" from target 2.291 m", " speed 5.00 m/s", " tilt 30.0°", " position +1.00 -2.00 +0.50 m"]
    (line,) = figures(trace, 80)
    assert line.plain.split("  ") == told
    assert [line.plain for line in figures(trace, 60)] == ["  ".join(told[:3]), told[3]]
    assert [line.plain for line in figures(trace, 20)] == told
    assert progress(trace, 60, 0.5).plain.endswith("     0.50 of 2 s   500 ticks/s")
    assert progress(trace, 60, 0.0).plain.endswith(" 0 ticks/s")
    trace.ticks["action"][-1] = (0.1, 0.2, 0.3, 0.4)
    for width in (42, 58, 108):
        lines = [line.plain for line in rotor_bars(trace, width)]
        assert [[word for word in line.split() if word.isalnum()] for line in lines] == [
            ["front", "left", "40", "front", "right", "10"],
            ["rear", "left", "30", "rear", "right", "20"],
        ]
        assert max(map(len, lines)) <= width
    lines = [line.plain for line in rotor_bars(trace, 38)]
    assert [line.split()[1] for line in lines] == ["left", "right", "left", "right"]
    assert max(map(len, lines)) <= 38


def test_the_distance_over_time() -> None:
    """Of a flight of which half is over."""
    trace = Trace(1000)
    trace.count = 500
    trace.states["position_m"][:, 0] = np.linspace(0.9, 0.1, len(trace.states))
    line = distance(trace, 49).plain
    assert line == f" distance, m {'█▇▆▅▄▃▂▁▁':16}  0.1 to 0.85"


@pytest.mark.parametrize(("ticks", "stride", "count"), [(5000, 1, 5000), (5001, 2, 2501)])
def test_a_page_has_5000_frames_at_most(ticks: int, stride: int, count: int) -> None:
    trace = Trace(ticks)
    trace.count = ticks
    found, apart = frames(trace)
    assert (len(found), apart) == (count, stride)


def test_the_last_event_is_shown() -> None:
    assert last_event(told()).plain == " the policy acts"
    bad, good = Event(9, "no_policy", "none"), Event(11, "acted", "it acts")
    assert last_event(told(events=(bad,))).plain == " at 0.018 s, tick 9: fail-safe, none"
    assert last_event(told(events=(bad,))).style == "bold red"
    assert last_event(told(events=(bad, good))).style == "yellow"
