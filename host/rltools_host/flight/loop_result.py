"""What comes of a flight over a board: the keys of `--json`, and what is printed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rltools_host.clients.messages import EXECUTOR_STATUSES
from rltools_host.files import plain_json
from rltools_host.flight.disturbances import TICKS_A_S, Disturbances
from rltools_host.flight.loop import Event, Trace
from rltools_host.flight.simulator import Cause, Rule, settled_from
from rltools_host.policies.push import PushResult, short

MOST_EVENTS = 8  # that are printed; the JSON and the replay have all
DROPPED = "policy dropped"  # what a text of the board begins with


@dataclass
class LoopResult:
    """A flight, as far as it came."""

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
    kept: bool = False  # the policy is the board's own now
    error: str = ""

    def take(self, outcome: PushResult, error: str = "") -> None:
        """How the board was left, and why."""
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
        """The board ended the policy's trial on the way."""
        return any(event.text.startswith(DROPPED) for event in self.events)

    @property
    def is_whole(self) -> bool:
        return self.trace is not None and self.trace.count == self.trace.planned

    @property
    def cause(self) -> Cause | None:
        """As gates have it: faults first, then limits, then the distance at the end. None: the
        flight was broken off."""
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
        """The greatest distance from the target at the end of a whole flight; of the rule's
        share of its last ticks."""
        if not self.is_whole or self.trace is None:
            return None
        _, judged, needed = self.rule.in_ticks(1.0 / TICKS_A_S)
        return float(np.sort(self.trace.errors_m[-judged:])[needed - 1])

    @property
    def settling_s(self) -> float | None:
        """After that it stayed near; None: it did not."""
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
        """From a fault on purpose to the fail-safe."""
        fault, failsafe = self.disturbances.first_fault, self.failsafe
        if fault is None or failsafe is None or failsafe.tick < fault.first:
            return None
        return failsafe.tick - fault.first

    # -- told --------------------------------------------------------------------------------------

    @property
    def cause_text(self) -> str:
        """Why it is no success, as a clause."""
        if (failsafe := self.failsafe) is not None:
            return f"fail-safe at {failsafe.time_s:.3f} s, as {failsafe.text}"
        if self.was_dropped:
            return "the board ended the policy's trial"
        if (cause := self.cause) is None:
            return f"it was broken off at {self.flown_s:.3f} s"
        if cause is Cause.TOO_FAR and self.error_m is not None:
            return f"{cause.text}, {self.error_m:.3f} m away"
        return f"{cause.text}, at {self.flown_s:.3f} s"

    def document(self) -> dict[str, Any]:
        trace, host = self.trace, self.host_trace
        failsafe = self.failsafe
        plain: dict[str, Any] = plain_json(
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
        """Ticks of each status."""
        if self.trace is None:
            return {}
        counts = np.bincount(self.trace.ticks["status"], minlength=len(EXECUTOR_STATUSES))
        named = zip(EXECUTOR_STATUSES, counts, strict=False)
        return {name: int(count) for name, count in named if count}

    def _cost(self) -> dict[str, Any] | None:
        """Of a tick of the executor, in counts of the board's counter."""
        if self.trace is None or not self.trace.count:
            return None
        costs = self.trace.ticks["cost"]
        unit = "instructions" if self.counts_instructions else "time_us"
        return {"unit": unit, "median": int(np.median(costs)), "max": int(costs.max())}


def lines(result: LoopResult) -> list[str]:
    """The flight for people."""
    if result.trace is None:
        return []
    events = result.events[1:]  # the first is that the policy acts
    if result.failsafe is not None and result.failsafe.tick == 0:
        events = result.events
    text = [event_line(event, result) for event in events[:MOST_EVENTS]]
    if len(events) > MOST_EVENTS:
        more = len(events) - MOST_EVENTS
        text.append(f"and {more:,} more change{'s' * (more > 1)} of the status")
    settled = f"{result.settling_s:.2f} s" if result.settling_s is not None else "never"
    if result.success:
        flown = f"success: {result.error_m or 0.0:.3f} m from the target at most in the last second"
        text.append(f"{flown}, settled after {settled}")
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


def event_line(event: Event, result: LoopResult) -> str:
    """`at 2.004 s, tick 1,002: fail-safe, the observation is too old`."""
    place = f"at {event.time_s:.3f} s, tick {event.tick:,}"
    if not event.status:
        return f'{place}: the board says "{event.text}"'
    what = f"fail-safe, {event.text}" if event.is_failsafe else event.text
    ticks = result.after_fault_ticks
    fault = result.disturbances.first_fault
    if event is result.failsafe and ticks is not None and fault is not None:
        what += f"; {ticks} ticks after {fault.text}" if ticks else f", as soon as {fault.text}"
    return f"{place}: {what}"
