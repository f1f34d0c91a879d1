"""A small PX4 in the air: a point mass with PX4's modes and our module's, in PX4's frames."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rltools_host.drones.vehicles.px4_state import HOLD, LAND, RETURN, TAKE_OFF, TERMINATION, Mode

Vector = NDArray[np.float64]

POSITION = Mode(3)
POLICY = Mode(4, 12)  # External 2: by its name alone can it be found
STEP_S = 0.02
GROUND = np.array((3.0, -2.0, 0.1))  # where it stands; north, east, down
HEADING = 0.7  # clockwise from north
DISARM_AFTER_S = 2.0  # COM_DISARM_LAND
OFFSET_LIMIT_S = 10.0  # that the module keeps a target for
GRAVITY = 9.81
BUMP_S = 0.3
FALL = np.array((0.0, 0.0, GRAVITY))
GREATEST_M_S2 = 20.0  # of all its thrust, by its mass


def to_world(body: Vector) -> Vector:
    """Forward, left, up of a level vehicle with this heading, as north, east, down."""
    forward, left, up = body
    north = forward * math.cos(HEADING) + left * math.sin(HEADING)
    east = forward * math.sin(HEADING) - left * math.cos(HEADING)
    return np.array((north, east, -up))


@dataclass
class Wrong:
    """What goes wrong. Times are seconds after the policy took over last."""

    ceiling_m: float = math.inf
    policy: Callable[[Model], Vector] | None = None  # its acceleration
    falls_back_at: float = math.inf
    falls_back_to: Mode = HOLD  # RLT_FALLBACK
    fault: str = "outside the range of the policy"
    said_behind: str = ""  # by PX4 itself
    taken_over_at: float = math.inf
    taken_by: Mode = RETURN
    keeps_taking: bool = False
    disarmed_at: float = math.inf
    flag_lost_at: float = math.inf
    bump_m_s2: float = 0.0  # downwards, for BUMP_S after the policy
    waits_s: float = 0.0  # before it goes where it is told to
    never_lands: bool = False
    tips_at: float = math.inf  # after the policy was taken from it
    drifts_m_s: float = 0.0  # while it lands
    lands_at_m_s: float = 0.6  # or less
    terminates_below_m: float = 0.0  # PX4's failure detector, while it lands
    stays_armed: bool = False  # on the ground
    refuses_to_disarm: bool = False


@dataclass
class Model:
    wrong: Wrong = field(default_factory=Wrong)
    now: float = 100.0  # since PX4 started
    armed: bool = False
    mode: Mode = HOLD
    hil_flag: bool = False
    position: Vector = field(default_factory=GROUND.copy)
    velocity: Vector = field(default_factory=lambda: np.zeros(3))
    acceleration: Vector = field(default_factory=lambda: np.zeros(3))
    setpoint: Vector = field(default_factory=GROUND.copy)
    next_setpoint: Vector | None = None
    told_at: float = -math.inf
    target: Vector = field(default_factory=GROUND.copy)  # the policy's
    offset: Vector | None = None  # of the next target, in the vehicle's frame
    offset_at: float = -math.inf
    entered_at: float = math.inf
    left_at: float = -math.inf  # the policy's mode
    entries: list[Vector] = field(default_factory=list)  # where the policy took over
    modes: list[Mode] = field(default_factory=list)  # each that it was in
    says: list[tuple[int, str]] = field(default_factory=list)  # not yet told: severity, text
    is_tipped: bool = False
    is_terminated: bool = False
    _grounded_at: float = math.inf

    @property
    def is_on_ground(self) -> bool:
        return bool(self.position[2] >= GROUND[2] - 1e-3)

    @property
    def collective(self) -> float:
        """The motors' signal."""
        if not self.armed:
            return 0.0
        thrust = np.linalg.norm(self.acceleration - (0.0, 0.0, GRAVITY))
        return min(float(thrust) / GREATEST_M_S2, 1.0)

    @property
    def attitude(self) -> tuple[float, float, float, float]:
        """Thrust points against gravity and along the acceleration; the heading stays."""
        if self.is_tipped:
            return (0.0, 1.0, 0.0, 0.0)
        x, y, z = self.acceleration.tolist() if self._is_flown else (0.0, 0.0, 0.0)
        length = math.hypot(x, y, GRAVITY - z)
        down = (-x / length, -y / length, (GRAVITY - z) / length)
        # right = down x forward, and forward = right x down, where the heading is level
        across = math.hypot(down[2], down[0] * math.sin(HEADING) - down[1] * math.cos(HEADING))
        right = (
            -down[2] * math.sin(HEADING) / across,
            down[2] * math.cos(HEADING) / across,
            (down[0] * math.sin(HEADING) - down[1] * math.cos(HEADING)) / across,
        )
        forward = (
            right[1] * down[2] - right[2] * down[1],
            right[2] * down[0] - right[0] * down[2],
            right[0] * down[1] - right[1] * down[0],
        )
        w = math.sqrt(max(0.0, 1.0 + forward[0] + right[1] + down[2])) / 2.0
        x, y, z = right[2] - down[1], down[0] - forward[2], forward[1] - right[0]
        return (w, x / (4.0 * w), y / (4.0 * w), z / (4.0 * w))

    def set_mode(self, mode: Mode) -> None:
        if mode != self.mode:
            self.modes.append(mode)
            if self.mode == POLICY:
                self.left_at = self.now
        self.mode = mode
        if mode in (HOLD, RETURN, POSITION):
            self.setpoint = self.position.copy()
        elif mode == POLICY:
            self.target = self.position.copy()
            if self.offset is not None and self.now - self.offset_at <= OFFSET_LIMIT_S:
                self.target += to_world(self.offset)
            self.offset = None
            self.entered_at = self.now
            self.entries.append(self.position.copy())

    def go_to(self, setpoint: Vector) -> None:
        self.set_mode(HOLD)
        self.next_setpoint, self.told_at = setpoint, self.now

    def step(self) -> None:
        self.now += STEP_S
        self._go_wrong()
        if not self.armed and self.is_on_ground:
            return
        self.acceleration = self._wanted() if self._is_flown else FALL.copy()
        if self.mode != POLICY and self.now - self.left_at <= BUMP_S:
            self.acceleration[2] += self.wrong.bump_m_s2
        self.velocity += STEP_S * self.acceleration
        self.position += STEP_S * self.velocity
        if self.position[2] > GROUND[2]:
            self.position[2] = GROUND[2]
            self.velocity[:] = 0.0
        self._land()

    @property
    def _is_flown(self) -> bool:
        """Somebody holds it up."""
        return self.armed and not self.is_tipped and not self.is_terminated

    def _wanted(self) -> Vector:
        """The acceleration of whoever flies it."""
        if self.mode == POLICY:
            if self.wrong.policy is not None:
                return self.wrong.policy(self)
            return 9.0 * (self.target - self.position) - 6.0 * self.velocity
        if self.next_setpoint is not None and self.now - self.told_at >= self.wrong.waits_s:
            self.setpoint, self.next_setpoint = self.next_setpoint, None
        setpoint = self.setpoint.copy()
        if self.mode == LAND:
            setpoint = self.position.copy()
            setpoint[0] += 0.5 * self.wrong.drifts_m_s
            setpoint[2] += 0.0 if self.wrong.never_lands else 0.5 * self.wrong.lands_at_m_s
        lowest = GROUND[2] - self.wrong.ceiling_m
        setpoint[2] = max(setpoint[2], lowest)
        away = setpoint - self.position
        distance = float(np.linalg.norm(away))
        speed = min(max(3.0, self.wrong.lands_at_m_s), 2.0 * distance)
        wanted = away / distance * speed if distance > 1e-9 else np.zeros(3)
        if self.mode == TAKE_OFF and distance < 0.2:
            self.set_mode(HOLD)
        return np.clip(5.0 * (wanted - self.velocity), -5.0, 5.0)

    def _land(self) -> None:
        comes_down = self.mode == LAND or not self._is_flown
        if not (self.is_on_ground and comes_down):
            self._grounded_at = math.inf
            return
        self._grounded_at = min(self._grounded_at, self.now)
        if self.now - self._grounded_at >= DISARM_AFTER_S and not self.wrong.stays_armed:
            self.armed = False

    def _go_wrong(self) -> None:
        wrong, since = self.wrong, self.now - self.entered_at
        if self.mode != POLICY and self.now >= self.left_at + wrong.tips_at > 0.0:
            self.is_tipped = True
        if self.mode == LAND and GROUND[2] - self.position[2] < wrong.terminates_below_m:
            self.is_terminated = True
            self.set_mode(TERMINATION)
            self.says.append((0, "Attitude failure detected"))
        if self.mode == POLICY:
            if since >= wrong.falls_back_at:
                self.says.append((2, f"RL Policy: {wrong.fault}"))
                if wrong.said_behind:
                    self.says.append((1, wrong.said_behind))
                self.set_mode(wrong.falls_back_to)
            elif since >= wrong.taken_over_at:
                self.set_mode(wrong.taken_by)
            elif since >= wrong.disarmed_at:
                self.armed = False
        elif wrong.keeps_taking and self.mode == LAND and not self.is_on_ground:
            self.set_mode(wrong.taken_by)
        if since >= wrong.flag_lost_at:
            self.hil_flag = False
