"""Brings a PX4 down, whatever has happened: its own mode lands it, and it disarms itself."""

from __future__ import annotations

import math

from rltools_host.errors import RefusedError, RltError
from rltools_host.flight.px4_crash import CrashWatch
from rltools_host.flight.px4_modes import DESCEND, LAND
from rltools_host.flight.px4_policy import MODE_NAME
from rltools_host.flight.px4_vehicle import Px4Vehicle

LIMIT_S = 90.0
ASK_AGAIN_S = 1.0
MOST_ASKS = 8  # that somebody else may undo, or PX4 deny
DISARM_AFTER_S = 8.0  # on the ground; PX4 disarms by itself before (COM_DISARM_LAND)
UNHEARD_S = 30.0
LANDED_M = 0.6  # above the place of the take-off, as far as it is known there
FALL_LIMIT_S, SETTLE_S = 5.0, 0.5
UNKNOWN_S = 2.0  # one that was told to arm, and has not said that it did, is asked to land, too


def bring_down(vehicle: Px4Vehicle, crash: CrashWatch | None = None) -> str:
    """Lands and disarms it; how it was left, as a clause. Whether it crashed is in `crash`.

    Where somebody flies it by hand it is left to him, unless it was the module that fell back to
    that mode. Where it cannot be heard, it is asked for UNHEARD_S; then PX4's failsafe has it.
    One that PX4 has terminated is not asked: it falls, and is disarmed on the ground.
    """
    begun, asked, grounded = vehicle.clock(), -math.inf, math.inf
    asks = 0
    while (now := vehicle.clock()) - begun < LIMIT_S:
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
                return f"it is left to whoever flies it, in PX4's mode {vehicle.mode}"
            continue
        grounded = min(grounded, now) if vehicle.is_on_ground else math.inf
        may_fly = is_heard or vehicle.is_armed or now - begun > UNKNOWN_S
        may_land = may_fly and not vehicle.is_terminated
        if may_land and vehicle.mode not in (LAND, DESCEND) and now - asked >= ASK_AGAIN_S:
            if asks == MOST_ASKS:
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
    return f"it is still armed after {LIMIT_S:g} s, in PX4's mode {vehicle.mode}"


def lying(vehicle: Px4Vehicle, crash: CrashWatch | None) -> str:
    """How one that is disarmed came down. In the air it falls first."""
    if crash is None:
        return "it is disarmed"
    if crash.height_m > LANDED_M:
        crash.note(f"it fell, disarmed {crash.height_m:.1f} m above the ground")
        vehicle.wait(lambda: crash.height_m < LANDED_M, FALL_LIMIT_S)
        vehicle.wait(lambda: False, SETTLE_S)
    crash.judge_rest()
    return "it is disarmed where it crashed" if crash.found else "it is on the ground and disarmed"


def termination_of(vehicle: Px4Vehicle) -> str:
    """That PX4 has given the flight up, as a clause."""
    return f"PX4 terminated the flight{vehicle.reason()}"


def is_taken(vehicle: Px4Vehicle) -> bool:
    """Whether somebody flies it by hand."""
    mode = vehicle.mode
    return mode is not None and mode.is_piloted and vehicle.said(MODE_NAME, LIMIT_S) is None


def ask_to_land(vehicle: Px4Vehicle) -> None:
    """Without waiting for an answer: the mode says whether it does."""
    d = vehicle.dialect
    custom = float(d.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED)
    values = (custom, float(LAND.main), float(LAND.sub), 0.0, 0.0, 0.0, 0.0)
    vehicle.connection.send(
        d.MAVLink_command_long_message(*vehicle.target, d.MAV_CMD_DO_SET_MODE, 0, *values)
    )
