"""A flight over a board: the simulator runs here, the policy acts there, in the firmware's
executor.

The flight is the policy's trial on the board. The board keeps the policy only where the flight was
a success, and has the bits of the same flight on this machine; otherwise it returns to the policy
before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from rltools_host.boards.observations import TickLoop
from rltools_host.boards.policies import PolicyClient
from rltools_host.boards.policy_session import PolicyTarget, policy_session
from rltools_host.boards.push import LONGEST_TRIAL_S, Push, PushRequest, PushResult, Say
from rltools_host.drones.flight.disturbances import TICKS_A_S, TRIAL, Disturbances, DisturbedLink
from rltools_host.drones.flight.gate import Gate, hover_rule
from rltools_host.drones.flight.loop import BoardPilot, HostPilot, Trace, fly
from rltools_host.drones.flight.result import LoopResult, lines
from rltools_host.drones.flight.simulator import Flight, Rule, check_policy, flight_library
from rltools_host.errors import Interrupted, RefusedError, RltError, UsageError
from rltools_host.policies.entry import read_leaving_policy
from rltools_host.policies.image import PolicyImage
from rltools_host.runs.names import LAST

CONTRACT = "quadrotor"
LONGEST_S = 60.0
USUAL_SEED = 4_000_000_000  # of the gates, held out from training
# The board's time limit, which runs out only where a host ends without a word. It allows 0.2 s for
# a tick: on a busy machine the board and this program wait for a processor at each one.
MIN_TRIAL_S, TRIAL_PER_FLOWN_S = 300.0, 100.0
TRIAL_TO_EXHAUST_S = 20.0
STARTS = 20  # among which a flight begins that names none
ASK_AGAIN_S = 0.1


def rule_of(seconds: float, gate: Gate | None = None) -> Rule:
    """Return the gate's rule, or that of the gate hover, for a flight of `seconds`."""
    rule = gate.rule if gate is not None else hover_rule()
    return replace(rule, seconds=seconds, last_seconds=min(rule.last_seconds, seconds))


def farthest_start(seed: int, settings: Mapping[str, float]) -> int:
    """Return the number, of a seed's first STARTS, of the start where recovery is seen best: that
    with the greatest sum of distance in m and tilt in rad."""
    flight = Flight(seed, 0, settings)

    def distance(start: int) -> float:
        flight.begin(seed, start)
        reading = flight.read()
        away = reading["position_m"].astype(float) - reading["target_position_m"]
        _, x, y, _ = reading["attitude"].astype(float)
        return float(np.linalg.norm(away) + math.acos(max(-1.0, 1.0 - 2.0 * (x * x + y * y))))

    return max(range(STARTS), key=distance)


@dataclass(frozen=True)
class FlyRequest:
    """A request for a flight over a board; `settings` are those of quadrotor/settings.h, `start` is
    the number of an episode of `seed`."""

    run: str
    target: PolicyTarget
    rule: Rule = field(default_factory=hover_rule)
    seed: int = 0
    start: int = 0
    settings: Mapping[str, float] = field(default_factory=dict)
    disturbances: Disturbances = field(default_factory=Disturbances)
    trial_s: float | None = None  # None: long enough
    which: str = LAST  # of the run's policies

    @property
    def seconds(self) -> float:
        return self.rule.seconds

    @property
    def ticks(self) -> int:
        return round(self.seconds * TICKS_A_S)

    @property
    def other_settings(self) -> dict[str, float]:
        """Return the settings that differ from the defaults."""
        defaults = {setting.name: setting.default for setting in flight_library().settings}
        return {
            name: value
            for name, value in self.settings.items()
            if np.float32(value) != np.float32(defaults.get(name, math.nan))
        }

    @property
    def trial_limit_s(self) -> float:
        if self.trial_s is not None:
            return self.trial_s
        if self.disturbances.trial_ends:
            return TRIAL_TO_EXHAUST_S
        return min(max(MIN_TRIAL_S, TRIAL_PER_FLOWN_S * self.seconds), LONGEST_TRIAL_S)

    def check(self) -> None:
        if not 1 / TICKS_A_S <= self.seconds <= LONGEST_S:
            raise UsageError(f"--seconds {self.seconds:g}: give {1 / TICKS_A_S:g} to {LONGEST_S:g}")
        for option, number in (("--start", self.start), ("--seed", self.seed)):
            if not 0 <= number < 2**32:
                raise UsageError(f"{option} {number}: choose one from 0 to {2**32 - 1}")
        if not 0.0 < self.trial_limit_s <= LONGEST_TRIAL_S:
            raise UsageError(
                f"--trial {self.trial_limit_s:g}: give seconds above 0, up to {LONGEST_TRIAL_S:g}"
            )
        self.disturbances.check()
        for fault in self.disturbances.faults:
            if fault.first >= self.ticks:
                raise UsageError(
                    f"--fault {fault.what}@{fault.first / TICKS_A_S:g}: the flight lasts "
                    f"{self.seconds:g} s"
                )


class BoardFlight:
    """One flight over one board whose policy acts; `result` has what is known of it."""

    def __init__(
        self,
        request: FlyRequest,
        image: PolicyImage,
        policies: PolicyClient,
        watch: Callable[[LoopResult], None],
        say: Say,
    ) -> None:
        self.result = LoopResult(
            request.target.board,
            request.run,
            image.experiment,
            image.sha256,
            request.rule,
            request.seed,
            request.start,
            request.disturbances,
            request.other_settings,
        )
        self._request = request
        self._image = image
        self._policies = policies
        self._watch = watch
        self._say = say

    def carry_out(self, loop: TickLoop, in_trial: bool) -> None:
        """Fly here and over the board; raise RefusedError where the policy must not stay."""
        request, result = self._request, self.result
        if request.disturbances.trial_ends and not in_trial:
            raise UsageError(
                f"--fault {TRIAL}: the policy is active on the board already, and has no trial "
                "that could run out: roll it back first"
            )
        link = DisturbedLink(request.disturbances, request.ticks)
        here = self._begin()
        result.table = here.library.table_name(int(here.read()["table"]))
        result.latency_ms = 1e3 * here.library.tick_s * int(here.read()["latency"])
        result.host_trace = fly(here, HostPilot(self._image, in_trial), link, request.ticks)
        begun = time.monotonic()

        def look(trace: Trace) -> None:
            result.wall_s = time.monotonic() - begun
            result.trace = trace
            self._watch(result)

        try:
            pilot = BoardPilot(loop)
            fly(self._begin(), pilot, link, request.ticks, self._before, look)
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted at {result.flown_s:.2f} s of the flight") from None
        finally:
            result.repeated = loop.repeated
        for line in lines(result):
            self._say(line)
        self._judge(in_trial)

    def _begin(self) -> Flight:
        request = self._request
        return Flight(request.seed, request.start, request.settings)

    def _before(self, tick: int) -> None:
        if tick in self._request.disturbances.trial_ends:
            self._wait_for_end_of_trial()

    def _wait_for_end_of_trial(self) -> None:
        """Wait until the board ends the trial; the flight stands still meanwhile."""
        deadline = time.monotonic() + 2.0 * self._request.trial_limit_s + 10.0
        while self._policies.slots().trial is not None:
            if time.monotonic() > deadline:
                raise RefusedError("the board does not end the policy's trial")
            time.sleep(ASK_AGAIN_S)

    def _judge(self, in_trial: bool) -> None:
        result = self.result
        if not result.same_bits and not result.was_dropped:
            tick = result.first_difference or 0
            raise RefusedError(
                f"the flight over {result.board} is not the one on this machine: they differ from "
                f"tick {tick} on, at {tick / TICKS_A_S:g} s"
            )
        if not result.success:
            stays = "" if in_trial else "; the policy was active before, and stays"
            raise RefusedError(f"the flight failed: {result.cause_text}{stays}")


def fly_over_board(
    request: FlyRequest,
    say: Say,
    watch: Callable[[LoopResult], None] = lambda _: None,
    keep: Callable[[LoopResult], None] = lambda _: None,
) -> LoopResult:
    """Push the run's policy, fly it as its trial, and return the result. `watch` is called with the
    result so far after each tick, `keep` with that of each flight that began, also where it failed;
    an error has the result as its details."""
    request.check()
    image = read_leaving_policy(request.run, request.which, say)
    check_policy(image)
    image.verify()
    board = request.target.described_board()
    push = PushRequest(request.run, request.target, request.trial_limit_s)
    outcome = PushResult(board.name)
    with policy_session(request.target) as (session, identity):
        flight = BoardFlight(request, image, session.policies, watch, say)

        flight.result.counts_instructions = identity.counts_instructions
        flight.result.has_counter = identity.has_counter

        def prove(in_trial: bool) -> None:
            with TickLoop(session.connection) as loop:
                flight.carry_out(loop, in_trial)

        result = flight.result
        try:
            Push(push, image, session, identity, outcome, prove).carry_out(say, None)
        except RltError as error:
            result.take(outcome, str(error))
            keep(result)
            error.details = result.document()
            raise
        result.take(outcome)
        keep(result)
    return result
