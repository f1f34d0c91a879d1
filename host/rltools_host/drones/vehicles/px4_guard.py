"""The guard of a PX4's flight: the vehicle is simulated, does what is expected, and comes down.

A PX4 is refused unless it reports itself that it is simulated, in a way that a real one cannot.
docs/flight.md has the reasons. There are two ways to be believed:

* It is PX4's program for a PC ("SITL"), which drives no hardware: the board's identity that is
  compiled into it, AUTOPILOT_VERSION.uid, is that of its simulation.
* It is a flight controller that was started with a simulator (SYS_HITL 1 or 2): its heartbeat has
  the flag for that, the parameter agrees, and none of its real outputs is for a motor.

A crash is judged by what the vehicle reports of itself. PX4's own mode lands it, whatever has
happened, and it disarms itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rltools_host.drones.vehicles.px4 import Parameter, Px4Vehicle
from rltools_host.drones.vehicles.px4_module import MODE_NAME
from rltools_host.drones.vehicles.px4_state import (
    DESCEND,
    LAND,
    FloatArray,
    GlobalPosition,
    Mode,
    Sample,
    yaw_of,
)
from rltools_host.errors import RefusedError, RltError

# -- whether it is simulated -----------------------------------------------------------------------

# BOARD_OVERRIDE_UUID of boards/px4/sitl is "SIMULATIONID0000"; the uid is its second word of four
# bytes above its third, and mavlink_main.cpp adds the system id less 1.
SITL_UID = int.from_bytes(b"ONIDLATI", "little")
MODE_PARAMETER = "SYS_HITL"
SIMULATED_MODES = {1: "an external simulator", 2: "PX4's simulator in hardware"}
# Parameters of the drivers of real outputs, by what they have in common, and how many each has.
OUTPUTS = {
    **dict.fromkeys(("PWM_MAIN", "PWM_AUX", "TAP_ESC", "UAVCAN_EC", "UCAN1_ESC"), 8),
    **dict.fromkeys(("VOXL_ESC", "VOXL2_IO"), 4),
    **dict.fromkeys(("PCA9685", "VTQ_IO"), 16),
}
OUTPUT_PARAMETERS = tuple(
    f"{kind}_FUNC{number}" for kind, count in OUTPUTS.items() for number in range(1, count + 1)
)
MOTORS = range(101, 113)  # of what an output is for: motors 1 to 12


@dataclass(frozen=True)
class Evidence:
    """The values by which a vehicle is judged to be simulated."""

    uid: int  # of AUTOPILOT_VERSION; 0: not reported
    system: int  # the vehicle's system id
    has_flag: bool  # MAV_MODE_FLAG_HIL_ENABLED in the heartbeat
    parameters: dict[str, Parameter] = field(default_factory=dict)

    @property
    def is_sitl(self) -> bool:
        return self.uid == SITL_UID + self.system - 1


@dataclass(frozen=True)
class Simulation:
    """The proof that a vehicle is simulated."""

    by: str  # in words
    is_sitl: bool


def collect(vehicle: Px4Vehicle) -> Evidence:
    version = vehicle.request("AUTOPILOT_VERSION")
    uid = int(version.uid) if version is not None else 0
    system = vehicle.target.system
    evidence = Evidence(uid, system, vehicle.says_simulated)
    if evidence.is_sitl:
        return evidence
    parameters = vehicle.parameters((MODE_PARAMETER, *OUTPUT_PARAMETERS))
    return Evidence(uid, system, vehicle.says_simulated, parameters)


def judge(evidence: Evidence, name: str) -> Simulation:
    """Return the proof; raise RefusedError unless the evidence shows that the vehicle is
    simulated."""
    if evidence.is_sitl:
        return Simulation("PX4's program for a PC, by its board's identity", is_sitl=True)
    value = evidence.parameters.get(MODE_PARAMETER)
    simulator = SIMULATED_MODES.get(int(value)) if value is not None else None
    if not evidence.has_flag or simulator is None:
        flag = "has" if evidence.has_flag else "lacks"
        stated = "does not report" if value is None else f"has {value:g} for"
        raise RefusedError(
            f"{name} does not say that it is simulated: its board's identity is not that of PX4's "
            f"program for a PC, its heartbeat {flag} the flag of a simulation, and it {stated} "
            f"{MODE_PARAMETER}"
        )
    if motors := [name for name in OUTPUT_PARAMETERS if evidence.parameters.get(name) in MOTORS]:
        raise RefusedError(
            f"{name} runs {simulator}, and real outputs of it are for motors ({', '.join(motors)}):"
            " choose a simulated airframe (SYS_AUTOSTART 1100), or set these parameters to 0"
        )
    return Simulation(f"{simulator}, by {MODE_PARAMETER} and its heartbeat", is_sitl=False)


def require_still(vehicle: Px4Vehicle, simulation: Simulation) -> None:
    """Raise RefusedError where a heartbeat of the flight lacks the flag of a simulation in
    hardware."""
    if not simulation.is_sitl and not vehicle.says_simulated:
        raise RefusedError(f"{vehicle.name} does not say any more that it is simulated")


# -- whether it came down as it was to, or crashed -------------------------------------------------

MAX_TILT_DEG = 90.0  # in the air: beyond it the rotors push downwards
LYING_DEG = 30.0  # at rest
# PX4 comes down at 1.5 m/s at most near the ground (MPC_Z_VEL_MAX_DN), at 0.7 m/s in Land.
MAX_TOUCHDOWN_M_S = 2.5
NEAR_GROUND_M, FLOWN_M = 0.6, 1.5


class CrashWatch:
    """A watch over each sample, from the ground before the take-off to the ground after the
    landing."""

    def __init__(self, ground: Sample) -> None:
        self.found = ""  # the first sign, as a clause
        self._ground = ground
        self._highest_m = 0.0
        self._last = ground

    def take(self, sample: Sample) -> None:
        if not sample.is_sound:
            return
        speed = max(sample.velocity_ned[2], falling_m_s(self._last, sample))
        self._last = sample
        height = self.height_m
        self._highest_m = max(self._highest_m, height)
        if self.found:
            return
        if self.tilt_deg > MAX_TILT_DEG:
            self.found = f"it tipped over, {height:.1f} m above the ground"
        elif self._highest_m > FLOWN_M and height < NEAR_GROUND_M and speed > MAX_TOUCHDOWN_M_S:
            self.found = f"it hit the ground at {speed:.1f} m/s"

    def note(self, sign: str) -> None:
        """Note a sign of a crash that others found; the first sign stays."""
        self.found = self.found or sign

    def judge_rest(self) -> None:
        """Judge how it lies on the ground."""
        if self.tilt_deg > LYING_DEG:
            self.note(f"it lies on the ground, tilted by {self.tilt_deg:.0f}°")

    @property
    def height_m(self) -> float:
        """Return the last height above the position of the take-off."""
        return self._ground.position_ned[2] - self._last.position_ned[2]

    @property
    def tilt_deg(self) -> float:
        """Return the last angle between the vehicle's up and the world's."""
        return self._last.tilt_deg

    @property
    def away_m(self) -> float:
        """Return the distance along the ground from the position of the take-off."""
        north, east, _ = (
            now - then
            for now, then in zip(self._last.position_ned, self._ground.position_ned, strict=True)
        )
        return math.hypot(north, east)


def falling_m_s(before: Sample, sample: Sample) -> float:
    """Return the speed downward between two samples; 0 where the first does not fall.

    At ten samples a second a vehicle that falls may be at rest in the first one near the ground. A
    position that PX4 corrects by a leap is no fall.
    """
    seconds = sample.time_s - before.time_s
    if seconds <= 0.0:
        return 0.0
    mean = (sample.position_ned[2] - before.position_ned[2]) / seconds
    return max(min(mean, before.velocity_ned[2]), 0.0)


# -- the flight ------------------------------------------------------------------------------------

HEIGHT_M = 5.0  # of the target above the ground
LOWEST_M = 1.0  # of a vehicle that has climbed and is not to land
POLICY_SILENCE_S, PX4_SILENCE_S = 1.0, 5.0  # without a position: while the policy flies, or PX4
EARTH_RADIUS_M = 6371000.0  # as in PX4's projection


class Air:
    """The state of one flight since its beginning on the ground."""

    def __init__(
        self,
        vehicle: Px4Vehicle,
        simulation: Simulation,
        ground: Sample,
        ground_position: GlobalPosition,
    ) -> None:
        self.vehicle = vehicle
        self.allowed: set[Mode] = set()  # PX4's modes, as the flight stands
        self.target_ned: FloatArray = np.subtract(ground.position_ned, (0.0, 0.0, HEIGHT_M))
        self._simulation = simulation
        self._ground = ground
        self._ground_position = ground_position
        self.crash = CrashWatch(ground)
        self.has_climbed = False
        self.on_sample: Callable[[Sample], None] = lambda _: None  # called with each one
        vehicle.on_sample = self._take

    def _take(self, sample: Sample) -> None:
        self.crash.take(sample)
        self.on_sample(sample)

    def watch(self, silence_s: float = PX4_SILENCE_S) -> None:
        """Raise RefusedError where something happens that this flight did not ask for."""
        vehicle = self.vehicle
        silent = vehicle.clock() - vehicle.sample_at
        if silent > silence_s:
            raise RefusedError(f"{vehicle.name} has reported no position for {silent:.1f} s")
        require_still(vehicle, self._simulation)
        self._watch_for_crash()
        if not vehicle.is_armed:
            raise RefusedError(f"{vehicle.name} was disarmed in the air{vehicle.reason()}")
        if vehicle.mode not in self.allowed:
            vehicle.wait(lambda: False, 0.3)  # why, may come behind
            if (text := vehicle.last_text(MODE_NAME, within_s=3.0)) is not None:
                raise RefusedError(f'{vehicle.name} fell back to {vehicle.mode} (it says "{text}")')
            raise RefusedError(
                f"a pilot or PX4 itself changed the mode of {vehicle.name} to {vehicle.mode}"
                f"{vehicle.reason()}"
            )

    def _watch_for_crash(self) -> None:
        vehicle, crash = self.vehicle, self.crash
        if vehicle.is_terminated:
            crash.note(termination_of(vehicle))
        elif self.has_climbed and self.height_m < LOWEST_M:
            crash.note(f"it came down to the ground in PX4's mode {vehicle.mode}")
        if crash.found:
            raise RefusedError(f"{vehicle.name} crashed: {crash.found}")

    @property
    def sample(self) -> Sample:
        assert self.vehicle.sample is not None, "there was one on the ground"
        return self.vehicle.sample

    @property
    def height_m(self) -> float:
        return self._ground.position_ned[2] - self.sample.position_ned[2]

    @property
    def yaw(self) -> float:
        """Return the heading of the policy's frame, which is the vehicle's at the hand-over."""
        return yaw_of(self.sample.attitude)

    def global_position_of(self, ned: FloatArray) -> GlobalPosition:
        """Return a position near the ground's in degrees and altitude."""
        north, east, down = ned - np.array(self._ground.position_ned)
        degrees_1e7 = 1e7 * math.degrees(1.0 / EARTH_RADIUS_M)
        parallel = math.cos(math.radians(self._ground_position.latitude_1e7 * 1e-7))
        return GlobalPosition(
            self._ground_position.latitude_1e7 + round(north * degrees_1e7),
            self._ground_position.longitude_1e7 + round(east * degrees_1e7 / parallel),
            self._ground_position.altitude_m - float(down),
        )


# -- the way down ----------------------------------------------------------------------------------

LANDING_LIMIT_S = 90.0
ASK_AGAIN_S = 1.0
MAX_ASKS = 8  # that somebody else may undo, or PX4 deny
DISARM_AFTER_S = 8.0  # on the ground; PX4 disarms by itself before (COM_DISARM_LAND)
UNHEARD_S = 30.0
LANDED_M = 0.6  # above the position of the take-off, as far as it is known there
FALL_LIMIT_S, SETTLE_S = 5.0, 0.5
UNKNOWN_S = 2.0  # a vehicle that was asked to arm, and has not reported it, is asked to land too


def bring_down(vehicle: Px4Vehicle, crash: CrashWatch | None = None) -> str:
    """Land and disarm it; return how it was left, as a clause. `crash` notes whether it crashed.

    Where somebody flies it by hand it is left to them, unless the module fell back to that mode.
    Where it cannot be heard, it is asked for UNHEARD_S; then PX4's failsafe has it. One that PX4
    has terminated is not asked: it falls, and is disarmed on the ground.
    """
    begun, asked, grounded = vehicle.clock(), -math.inf, math.inf
    asks = 0
    while (now := vehicle.clock()) - begun < LANDING_LIMIT_S:
        vehicle.pump()
        if vehicle.is_terminated and crash is not None:
            crash.note(termination_of(vehicle))
        is_heard = vehicle.heartbeat_at > begun  # how it stands is known
        if is_heard and not vehicle.is_armed:
            return lying(vehicle, crash)
        if not is_heard and now - begun > UNHEARD_S:
            return f"it has not been heard for {UNHEARD_S:g} s: PX4's own failsafe has it"
        if not vehicle.is_terminated and is_taken(vehicle):
            if is_heard:
                return f"it is left to its pilot, in PX4's mode {vehicle.mode}"
            continue
        grounded = min(grounded, now) if vehicle.is_on_ground else math.inf
        may_fly = is_heard or vehicle.is_armed or now - begun > UNKNOWN_S
        may_land = may_fly and not vehicle.is_terminated
        if may_land and vehicle.mode not in (LAND, DESCEND) and now - asked >= ASK_AGAIN_S:
            if asks == MAX_ASKS:
                return f"it is left in PX4's mode {vehicle.mode}: something keeps it from landing"
            asked, asks = now, asks + is_heard
            ask_to_land(vehicle)
        elif now - grounded > DISARM_AFTER_S:
            grounded = now
            try:
                vehicle.command("COMPONENT_ARM_DISARM", 0.0, what="to disarm")
            except RefusedError:
                if vehicle.is_terminated:
                    break
            except RltError:
                continue
    if vehicle.is_terminated:
        return "it is still armed where it crashed: `commander disarm -f` in PX4's shell disarms it"
    return f"it is still armed after {LANDING_LIMIT_S:g} s, in PX4's mode {vehicle.mode}"


def lying(vehicle: Px4Vehicle, crash: CrashWatch | None) -> str:
    """Return how a disarmed vehicle came down; wait for its fall first where it was in the air."""
    if crash is None:
        return "it is disarmed"
    if crash.height_m > LANDED_M:
        crash.note(f"it fell, disarmed {crash.height_m:.1f} m above the ground")
        vehicle.wait(lambda: crash.height_m < LANDED_M, FALL_LIMIT_S)
        vehicle.wait(lambda: False, SETTLE_S)
    crash.judge_rest()
    return "it is disarmed where it crashed" if crash.found else "it is on the ground and disarmed"


def termination_of(vehicle: Px4Vehicle) -> str:
    """Return the clause for a flight that PX4 has terminated."""
    return f"PX4 terminated the flight{vehicle.reason()}"


def is_taken(vehicle: Px4Vehicle) -> bool:
    """Return whether somebody flies it by hand."""
    mode = vehicle.mode
    return (
        mode is not None
        and mode.is_piloted
        and vehicle.last_text(MODE_NAME, LANDING_LIMIT_S) is None
    )


def ask_to_land(vehicle: Px4Vehicle) -> None:
    """Send the mode without waiting for an answer: the reported mode shows whether it lands."""
    custom = float(vehicle.dialect.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED)
    vehicle.send_command("DO_SET_MODE", custom, LAND.main, LAND.sub)
