"""One start: PX4 brings the vehicle there, the policy has it for ten seconds, PX4 takes it back."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rltools_host.boards.push import Say
from rltools_host.drones.flight.gate import hover_rule
from rltools_host.drones.flight.result import Series, limit_broken, measure
from rltools_host.drones.flight.simulator import POSITION
from rltools_host.drones.vehicles.px4 import Px4Vehicle
from rltools_host.drones.vehicles.px4_guard import HEIGHT_M, POLICY_SILENCE_S, Air
from rltools_host.drones.vehicles.px4_module import MODE_NAME, Px4Policies
from rltools_host.drones.vehicles.px4_result import (
    LOOK_S,
    MOMENTS_BEFORE,
    FailSafe,
    Moment,
    StartResult,
    measure_hand_back,
)
from rltools_host.drones.vehicles.px4_state import (
    HOLD,
    TAKE_OFF,
    FloatArray,
    Mode,
    Sample,
    TargetFrame,
)
from rltools_host.errors import RefusedError, RltError
from rltools_host.policies.contract import ENTRY_AT_REST, entry_text
from rltools_host.policies.image import PolicyImage
from rltools_host.tree import command_line

Offset = tuple[float, float, float]  # from the target: forward, left, up
# Where the vehicle is when the policy takes over, where it may be handed over there.
STARTS: tuple[Offset, ...] = (
    (0.0, 0.0, 0.0),
    (0.5, 0.0, 0.0),
    (0.0, -0.5, 0.0),
    (-0.5, 0.5, 0.3),
    (0.0, 0.0, -0.5),
    (1.0, 0.0, 0.0),
    (-0.7, -0.7, 0.0),
    (0.0, 0.0, 1.0),
)
FURTHEST_M = 3.0  # from the target, which is 5 m above the ground; the contract's limit is 5 m
ARRIVED_M, ARRIVED_M_S, ARRIVED_S = 0.3, 0.2, 1.0
TRANSIT_LIMIT_S = 40.0
SLOWEST = 6.0  # PX4's time may pass slower than ours, by this factor
STUCK_S = 1.0  # after what the module said, in which PX4 takes the vehicle
REASON_S = 3.0  # ago, at most, that the module said why it gave up


@dataclass(frozen=True)
class Starts:
    """The starts of a flight: their offsets, and how near to one PX4 has to bring the vehicle."""

    offsets_m: Sequence[Offset]
    arrived_m: float


def starts_for(image: PolicyImage, count: int, say: Say = lambda _: None) -> Starts:
    """Return the first of STARTS; scale them toward the target, and report that, where the policy
    may not be handed a vehicle about as far away as the furthest. Raise RefusedError where it may
    not be handed one that rests near its target."""
    limits = ENTRY_AT_REST if image.entry is None else image.entry
    arrived_m = min(ARRIVED_M, limits.offset_m / 2)
    furthest_m = max(math.hypot(*offset) for offset in STARTS)
    part = min(1.0, (limits.offset_m - arrived_m) / furthest_m)
    lowest_m = HEIGHT_M + part * min(up for _, _, up in STARTS) - arrived_m
    if limits.speed_m_s < ARRIVED_M_S or arrived_m == 0.0 or limits.height_m > lowest_m:
        raise RefusedError(
            f"PX4 hands over at up to {ARRIVED_M_S:g} m/s and {lowest_m:.1f} m above ground, and "
            f"the policy may be handed {entry_text(limits)}: train another one, and measure it by "
            f"`{command_line('evaluate', 'RUN', '--gate', 'entry')}`"
        )
    if part < 1.0:
        say(
            f"starts up to {part * furthest_m:.2f} m from the target, not {furthest_m:g} m: the "
            f"policy may be handed a vehicle up to {limits.offset_m:.3g} m away, and PX4 stops "
            f"within {arrived_m:.2g} m of a start"
        )
    offsets = [(part * x, part * y, part * z) for x, y, z in STARTS[:count]]
    return Starts([(round(x, 2), round(y, 2), round(z, 2)) for x, y, z in offsets], arrived_m)


class StartRecorder:
    """The recorder of one start, from the request for the policy's mode on: the series, and the
    second after the hand-back.

    Time 0 is that of the last sample before PX4 reports the mode: until then PX4 holds the vehicle.
    """

    def __init__(
        self,
        vehicle: Px4Vehicle,
        policy_mode: Mode,
        frame: TargetFrame,
        entry: Sample,
        start: StartResult,
    ) -> None:
        self._vehicle = vehicle
        self._policy_mode = policy_mode
        self._frame = frame
        self._start = start
        self._has_begun = False
        self._before = deque((self._moment(entry),), MOMENTS_BEFORE)
        self._after: list[Moment] = []
        self._next_mode: Mode | None = None
        self.is_over = False  # the second after the hand-back, too
        self.times_s: list[float] = [0.0]
        self.rows: list[FloatArray] = [frame.row(entry)]
        self._begin_s = entry.time_s

    def __call__(self, sample: Sample) -> None:
        """Take each sample that the vehicle reports."""
        mode = self._vehicle.mode
        if mode == self._policy_mode and not self._after:
            self._has_begun = True
            self._take(sample)
        elif not self._has_begun:
            if mode == HOLD:
                self.times_s.clear()
                self.rows.clear()
                self._begin_s = sample.time_s
                self._take(sample)
        elif not self.is_over and mode == (self._next_mode or mode):
            self._next_mode = mode
            self._take_after(sample)
        else:
            self.is_over = True  # what comes is another mode's doing

    def keep(self) -> None:
        """Store the series as it is by now."""
        self._start.series = Series(np.array(self.times_s), np.array(self.rows))

    def _take(self, sample: Sample) -> None:
        self._before.append(self._moment(sample))
        self.times_s.append(sample.time_s - self._begin_s)
        self.rows.append(self._frame.row(sample))

    def _take_after(self, sample: Sample) -> None:
        self._after.append(self._moment(sample))
        self._start.hand_back = measure_hand_back(
            self.times_s[-1], tuple(self._before), self._after
        )
        self.is_over = sample.time_s - self._before[-1].sample.time_s >= LOOK_S

    def _moment(self, sample: Sample) -> Moment:
        return Moment(sample, self._vehicle.collective)


class StartFlight:
    """The flight of one start; `start` has what is known of it, also where it ends early."""

    def __init__(
        self,
        air: Air,
        policies: Px4Policies,
        policy_mode: Mode,
        start: StartResult,
        arrived_m: float,
    ) -> None:
        self._air = air
        self._vehicle = air.vehicle
        self._policies = policies
        self._policy_mode = policy_mode
        self._start = start
        self._arrived_m = arrived_m
        self._record: StartRecorder
        self._asked_at = math.inf  # for the policy's mode

    def carry_out(self) -> None:
        self._go_there()
        self._hand_over()
        try:
            self._hold()
        except RltError:
            self._note_fail_safe()
            raise  # what comes next is still recorded, while PX4 lands
        finally:
            self._record.keep()
        self._take_back()
        assert self._start.series is not None
        self._start.measures = measure(self._start.series)

    def _go_there(self) -> None:
        """Send the vehicle to the start by PX4, and wait until it rests there."""
        air, vehicle = self._air, self._vehicle
        frame = TargetFrame((0.0, 0.0, 0.0), air.yaw)
        there = air.target_ned + frame.world(self._start.offset_m)
        air.allowed = {TAKE_OFF, HOLD}
        vehicle.go_to(air.global_position_of(there), "to go to the start", air.watch)
        rests_since = math.inf

        def has_arrived() -> bool:
            nonlocal rests_since
            sample = air.sample
            if sample.distance(there) > self._arrived_m or sample.speed > ARRIVED_M_S:
                rests_since = math.inf
            elif rests_since == math.inf:
                rests_since = sample.time_s
            return vehicle.mode == HOLD and sample.time_s - rests_since >= ARRIVED_S

        if not vehicle.wait(has_arrived, TRANSIT_LIMIT_S, air.watch):
            raise RefusedError(
                f"{vehicle.name} did not come to rest at the start within {TRANSIT_LIMIT_S:g} s: "
                f"it is {air.sample.distance(there):.1f} m away{vehicle.reason()}"
            )
        air.allowed = {HOLD}

    def _hand_over(self) -> None:
        """Send the policy its target, the same for all starts, as it lies from where the vehicle
        enters the mode."""
        air = self._air
        self._policies.require_ready(air.watch)
        level = TargetFrame((0.0, 0.0, 0.0), air.yaw)
        away = level.vector(air.target_ned - air.sample.position_ned)
        offset = (round(away[0], 2), round(away[1], 2), round(away[2], 2))
        self._policies.set_target(offset, air.watch)
        entry = air.sample
        target = entry.position_ned + level.world(offset)
        frame = TargetFrame((target[0], target[1], target[2]), level.yaw)
        self._record = StartRecorder(self._vehicle, self._policy_mode, frame, entry, self._start)
        air.on_sample = self._record

    def _hold(self) -> None:
        """Leave the vehicle to the policy's mode for as long as the rule says."""
        air, vehicle, record = self._air, self._vehicle, self._record
        air.allowed = {HOLD, self._policy_mode}
        self._asked_at = vehicle.clock()
        vehicle.set_mode(self._policy_mode, self._watch)
        air.allowed = {self._policy_mode}
        seconds = hover_rule().seconds
        # Of PX4's time: a simulation may be slower than ours, or faster.
        if not vehicle.wait(lambda: record.times_s[-1] >= seconds, SLOWEST * seconds, self._watch):
            raise RefusedError(f"the clock of {vehicle.name} stands still")

    def _watch(self) -> None:
        self._air.watch(POLICY_SILENCE_S)
        self._watch_module()
        name, row = self._vehicle.name, self._record.rows[-1]
        if broken := limit_broken(row):
            raise RefusedError(f"the policy of {name} broke a limit: {broken}")
        away = float(np.linalg.norm(row[POSITION]))
        if away > FURTHEST_M:
            raise RefusedError(f"{name} drifted {away:.1f} m from its target")

    def _watch_module(self) -> None:
        """Raise RefusedError where the module has ended the policy's flight, and PX4 stays in the
        mode."""
        vehicle = self._vehicle
        text = vehicle.last_text(MODE_NAME, vehicle.clock() - self._asked_at)
        if text is not None and vehicle.last_text(MODE_NAME, STUCK_S) is None:
            raise RefusedError(
                f"the module of {vehicle.name} ended the flight, and PX4 stays in its mode "
                f'(it says "{text}")'
            )

    def _note_fail_safe(self) -> None:
        """Note when the module ended the flight and its reason, where it did."""
        text = self._vehicle.last_text(MODE_NAME, REASON_S)
        if text is not None:
            why = text.removeprefix(f"{MODE_NAME}: ")
            self._start.fail_safe = FailSafe(round(self._record.times_s[-1], 3), why)

    def _take_back(self) -> None:
        """Give the vehicle back to PX4, and record what PX4 makes of it."""
        air, vehicle, record = self._air, self._vehicle, self._record
        air.allowed = {self._policy_mode, HOLD}
        vehicle.set_mode(HOLD, air.watch)
        air.allowed = {HOLD}
        vehicle.wait(lambda: record.is_over, SLOWEST * LOOK_S, air.watch)
