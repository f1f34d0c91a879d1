"""A vehicle's flight over time, its measures, and the prediction of our simulator from the same
start; the result of a flight over a board, as keys of `--json` and as lines.

A prediction flies the same policy from the same state, in the code that boards run
(policy/deployment.h), 500 times a second. What is not known of the beginning is as in hover: the
rotors turn at hover's speed, and the policy's past actions are those of its beginning. There is no
wind and no noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rltools_host.boards.messages import EXECUTOR_STATUSES
from rltools_host.boards.push import PushResult, short
from rltools_host.documents import NotNegative
from rltools_host.drones.flight.disturbances import (
    TICKS_A_S,
    Disturbances,
    DisturbedLink,
)
from rltools_host.drones.flight.gate import hover_rule
from rltools_host.drones.flight.loop import Event, HostPilot, Trace, fly
from rltools_host.drones.flight.simulator import (
    ANGULAR_VELOCITY,
    ATTITUDE,
    POSITION,
    VELOCITY,
    Array,
    Cause,
    Flight,
    Rule,
    SignalledFlight,
    Signals,
    flight_library,
    settled_from,
)
from rltools_host.files import plain_json
from rltools_host.policies.image import PolicyImage

FloatArray = NDArray[np.float64]
# From a row of 13 observations on, rows (n, 13) at these times; fewer where a limit was broken.
Predict = Callable[[FloatArray, FloatArray], FloatArray]
# What the contract bounds, by the observations that say it.
BOUNDED = (
    ("position error", POSITION),
    ("velocity", VELOCITY),
    ("angular velocity", ANGULAR_VELOCITY),
)


@dataclass(frozen=True)
class Series:
    """Rows over time; time 0 is when the policy took over."""

    times_s: FloatArray  # (n,)
    rows: FloatArray  # (n, 13)

    @property
    def errors_m(self) -> FloatArray:
        errors: FloatArray = np.linalg.norm(self.rows[:, POSITION], axis=1)
        return errors

    def document(self) -> dict[str, object]:
        return {
            "time_s": np.round(self.times_s, 4).tolist(),
            "rows": np.round(self.rows, 6).tolist(),
        }


@dataclass(frozen=True)
class Measures:
    """The figures by which a flight is judged, by the gate's rule and by people."""

    success: bool
    last_second_error_m: NotNegative  # the greatest
    greatest_error_m: NotNegative
    settling_s: NotNegative | None  # after that it stayed near; None: it did not


def limit_broken(row: FloatArray) -> str:
    """Return the first of the contract's limits that a row breaks, in words; empty where it breaks
    none."""
    for what, part in BOUNDED:
        values = row[part]
        if not np.isfinite(values).all():
            return f"its {what} is not a number"
        channel = flight_library().contract.observations[part.start]
        limit, unit = channel.maximum, channel.unit
        if (worst := float(np.abs(values).max())) > limit:
            return f"its {what} was {worst:.2g} {unit}, beyond {limit:g} {unit}"
    return ""


def measure(series: Series) -> Measures:
    """Measure a whole flight by the rule of the gate hover."""
    rule = hover_rule()
    errors, times = series.errors_m, series.times_s
    last = errors[times >= times[-1] - rule.last_seconds]
    settled = settled_from(errors, rule.radius_m)
    is_whole = times[-1] >= rule.seconds
    broken = any(limit_broken(row) for row in series.rows)
    return Measures(
        success=bool(is_whole and not broken and (last <= rule.radius_m).all()),
        last_second_error_m=float(last.max()),
        greatest_error_m=float(errors.max()),
        settling_s=None if settled is None else float(times[settled]) if settled else 0.0,
    )


# -- a prediction ---------------------------------------------------------------------------------


def undisturbed(settings: Mapping[str, float]) -> dict[str, float]:
    """Return the settings with hover at the target as the beginning, and the contract's limits."""
    contract = flight_library().contract
    return {
        "start_share": 0.0,
        "limit_position": contract.observations[POSITION.start].maximum,
        "limit_velocity": contract.observations[VELOCITY.start].maximum,
        "limit_rate": contract.observations[ANGULAR_VELOCITY.start].maximum,
        **settings,
    }


def predictor(
    image: PolicyImage, settings: Mapping[str, float], signals: Signals | None = None
) -> Predict:
    """Return a function that predicts a flight with these settings of quadrotor/settings.h, which
    describe the vehicle. `signals` is what its flight controller makes of thrusts; None: the rotors
    receive the thrusts themselves."""
    given = undisturbed(settings)
    flight_library().setting_bits(given)  # an error in a sentence, before anything flies

    def predict(first: FloatArray, times_s: FloatArray) -> FloatArray:
        ticks = max(math.ceil(float(times_s[-1]) * TICKS_A_S), 1)
        flight = SignalledFlight(given, signals) if signals else Flight(0, 0, given)
        flight.set_state(first)
        link = DisturbedLink(Disturbances(), ticks)
        trace = fly(flight, HostPilot(image, in_trial=False), link, ticks)
        reached = rows_of(trace.states)
        at = np.rint(times_s * TICKS_A_S).astype(int)
        chosen: FloatArray = reached[at[at < len(reached)]]
        return chosen

    return predict


def rows_of(states: Array) -> FloatArray:
    """Return records of Reading as rows of the contract's observations."""
    rows = np.empty((len(states), len(flight_library().contract.observations)))
    rows[:, POSITION] = states["position_m"] - states["target_position_m"].astype(float)
    rows[:, VELOCITY] = states["velocity_m_s"] - states["target_velocity_m_s"].astype(float)
    attitude = states["attitude"].astype(float)
    rows[:, ATTITUDE] = np.where(attitude[:, :1] < 0.0, -attitude, attitude)
    rows[:, ANGULAR_VELOCITY] = states["angular_velocity_rad_s"]
    return rows


MAX_EVENTS = 8  # that are printed; the JSON and the replay have all
DROPPED = "policy dropped"  # the beginning of a text of the board
TIME_OVER = f"{DROPPED}: it was not confirmed in time"


@dataclass
class LoopResult:
    """The result of a flight over a board, as far as it was flown."""

    board: str
    run: str
    policy_name: str  # what trained it
    policy_sha256: str
    rule: Rule
    seed: int
    start: int
    disturbances: Disturbances
    settings: dict[str, float] = field(default_factory=dict)  # those that are not the defaults
    table: str = ""  # of the airframe
    latency_ms: float = 0.0  # of the commands, drawn from the settings
    trace: Trace | None = None
    host_trace: Trace | None = None
    repeated: int = 0  # calls that were sent again
    wall_s: float = 0.0
    counts_instructions: bool = False
    has_counter: bool = True  # of the board
    kept: bool = False  # the policy is the board's own now
    error: str = ""

    def take(self, outcome: PushResult, error: str = "") -> None:
        """Note how the push left the board, and the error that ended the flight."""
        self.kept = outcome.active_sha256 == self.policy_sha256
        self.error = error

    # -- what the flight was -----------------------------------------------------------------------

    @property
    def ticks(self) -> int:
        return self.trace.count if self.trace is not None else 0

    @property
    def flown_s(self) -> float:
        return self.ticks / TICKS_A_S

    @property
    def events(self) -> list[Event]:
        return self.trace.events if self.trace is not None else []

    @property
    def failsafe(self) -> Event | None:
        return self.trace.failsafe if self.trace is not None else None

    @property
    def was_dropped(self) -> bool:
        """Return whether the board ended the policy's trial during the flight."""
        return any(event.text.startswith(DROPPED) for event in self.events)

    @property
    def ran_out(self) -> bool:
        """Return whether the trial's time was over during the flight, without a fault for that."""
        is_asked = bool(self.disturbances.trial_ends)
        return not is_asked and any(event.text == TIME_OVER for event in self.events)

    @property
    def is_whole(self) -> bool:
        return self.trace is not None and self.trace.count == self.trace.planned

    @property
    def cause(self) -> Cause | None:
        """Return the cause as gates have it: faults first, then limits, then the distance at the
        end; None where the flight was interrupted."""
        if self.failsafe is not None:
            return Cause.EXECUTOR_FAULT
        if self.trace is None or not self.trace.is_over:
            return None
        if self.trace.broken is not None:
            return self.trace.broken
        error_m = self.error_m
        is_near = error_m is not None and error_m <= self.rule.radius_m
        return Cause.SUCCESS if is_near else Cause.TOO_FAR

    @property
    def success(self) -> bool:
        return self.is_whole and self.cause is Cause.SUCCESS and not self.was_dropped

    @property
    def error_m(self) -> float | None:
        """Return the maximum distance from the target at the end of a whole flight, over the rule's
        share of its last ticks."""
        if not self.is_whole or self.trace is None:
            return None
        _, judged, needed = self.rule.in_ticks(1.0 / TICKS_A_S)
        return float(np.sort(self.trace.errors_m[-judged:])[needed - 1])

    @property
    def settling_s(self) -> float | None:
        """Return the time after which the vehicle stayed within the radius; None where it did
        not."""
        if self.trace is None:
            return None
        settled = settled_from(self.trace.errors_m, self.rule.radius_m)
        return None if settled is None else settled / TICKS_A_S

    # -- the same flight on this machine -----------------------------------------------------------

    @property
    def first_difference(self) -> int | None:
        if self.trace is None or self.host_trace is None:
            return 0
        return self.trace.first_difference(self.host_trace)

    @property
    def same_bits(self) -> bool:
        return self.first_difference is None

    @property
    def after_fault_ticks(self) -> int | None:
        """Return the ticks from an injected fault to the fail-safe."""
        fault, failsafe = self.disturbances.first_fault, self.failsafe
        if fault is None or failsafe is None or failsafe.tick < fault.first:
            return None
        return failsafe.tick - fault.first

    # -- for people and files ----------------------------------------------------------------------

    @property
    def cause_text(self) -> str:
        """Return why the flight is not a success, as a clause."""
        if self.ran_out:
            return "the policy's trial was over before the flight: give a longer --trial"
        if (failsafe := self.failsafe) is not None:
            return f"fail-safe at {failsafe.time_s:.3f} s, as {failsafe.text}"
        if self.was_dropped:
            return "the board ended the policy's trial"
        if (cause := self.cause) is None:
            return f"it was broken off at {self.flown_s:.3f} s"
        if cause is Cause.TOO_FAR and self.error_m is not None:
            return f"{cause.text}, {self.error_m:.3f} m away"
        return f"{cause.text}, at {self.flown_s:.3f} s"

    def document(self) -> dict[str, object]:
        trace, host = self.trace, self.host_trace
        failsafe = self.failsafe
        plain: dict[str, object] = plain_json(
            {
                "board": self.board,
                "run": self.run,
                "policy_sha256": self.policy_sha256,
                "success": self.success,
                "cause": self.cause.key if self.cause is not None else None,
                "flight_sha256": trace.sha256() if trace is not None else None,
                "host_flight_sha256": host.sha256() if host is not None else None,
                "same_bits": self.same_bits,
                "first_difference": self.first_difference,
                "failsafe": None
                if failsafe is None
                else {**failsafe.document(), "after_fault_ticks": self.after_fault_ticks},
                "events": [event.document() for event in self.events],
                "ticks": self.ticks,
                "seconds": self.flown_s,
                "error_m": self.error_m,
                "settling_s": self.settling_s,
                "kept": self.kept,
                "reason": self.error,
                "seed": self.seed,
                "start": self.start,
                "airframe": self.table,
                "command_latency_ms": self.latency_ms,
                "settings": self.settings,
                "disturbances": self.disturbances.document(),
                "statuses": self._statuses(),
                "cost": self._cost(),
                "repeated": self.repeated,
                "wall_s": round(self.wall_s, 3),
            }
        )
        return plain

    def _statuses(self) -> dict[str, int]:
        """Return the number of ticks of each status."""
        if self.trace is None:
            return {}
        counts = np.bincount(self.trace.ticks["status"], minlength=len(EXECUTOR_STATUSES))
        named = zip(EXECUTOR_STATUSES, counts, strict=False)
        return {name: int(count) for name, count in named if count}

    def _cost(self) -> dict[str, object] | None:
        """Return the cost of a tick of the executor, in counts of the board's counter."""
        if self.trace is None or not self.trace.count or not self.has_counter:
            return None
        costs = self.trace.ticks["cost"]
        unit = "instructions" if self.counts_instructions else "time_us"
        return {"unit": unit, "median": int(np.median(costs)), "max": int(costs.max())}


def lines(result: LoopResult) -> list[str]:
    """Return the flight for people."""
    if result.trace is None:
        return []
    events = result.events[1:]  # the first is that the policy acts
    if result.failsafe is not None and result.failsafe.tick == 0:
        events = result.events
    text = [event_line(event, result) for event in events[:MAX_EVENTS]]
    if len(events) > MAX_EVENTS:
        more = len(events) - MAX_EVENTS
        text.append(f"and {more:,} more change{'s' * (more > 1)} of the status")
    if result.success:
        flown = f"success: {result.error_m or 0.0:.3f} m from the target at most in the last second"
        text.append(f"{flown}, settled after {settled_text(result.settling_s)}")
    else:
        text.append(f"no success: {result.cause_text}")
    sha = short(result.trace.sha256())
    ticks = f"{result.ticks:,} ticks"
    if result.same_bits:
        text.append(f"{ticks}, each with this machine's bits: flight {sha}")
    else:
        tick = result.first_difference or 0
        text.append(f"{ticks}, other bits than on this machine from tick {tick:,} on: flight {sha}")
    if result.wall_s > 0.0:
        rate = result.ticks / result.wall_s
        text.append(f"{result.wall_s:.1f} s, {rate:,.0f} ticks a second")
    return text


def settled_text(seconds: float | None) -> str:
    """Format the time after which a vehicle stayed near its target."""
    return f"{seconds:.2f} s" if seconds is not None else "never"


def event_line(event: Event, result: LoopResult) -> str:
    """Return a line such as `at 2.004 s, tick 1,002: fail-safe, the observation is too old`."""
    moment = f"at {event.time_s:.3f} s, tick {event.tick:,}"
    if not event.status:
        return f'{moment}: the board says "{event.text}"'
    what = f"fail-safe, {event.text}" if event.is_failsafe else event.text
    ticks = result.after_fault_ticks
    fault = result.disturbances.first_fault
    if event is result.failsafe and ticks is not None and fault is not None:
        what += f"; {ticks} ticks after {fault.text}" if ticks else f", as soon as {fault.text}"
    return f"{moment}: {what}"
