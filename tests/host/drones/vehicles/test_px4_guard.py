"""Which vehicles are believed to be simulated; what shows that one crashed."""

from __future__ import annotations

import dataclasses
import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rltools_host.drones.vehicles.px4_guard import (
    OUTPUT_PARAMETERS,
    Air,
    CrashWatch,
    Evidence,
    Simulation,
    bring_down,
    judge,
    require_still,
)
from rltools_host.drones.vehicles.px4_state import DESCEND, HOLD, LAND, GlobalPosition, Mode, Sample
from rltools_host.errors import RefusedError

SITL = 5283920058631409231  # what PX4's program for a PC has said for years
REAL = 0x0000003532385117


def test_the_program_for_a_pc_is_believed_by_its_identity() -> None:
    for system in (1, 2, 9, 254):
        assert judge(Evidence(SITL + system - 1, system, has_flag=False), "it").is_sitl
        for wrong in (-2, -1, 1, 2):
            with pytest.raises(RefusedError, match="does not say that it is simulated"):
                judge(Evidence(SITL + system - 1 + wrong, system, has_flag=False), "it")


def test_a_flight_controller_needs_flag_and_parameter() -> None:
    modes = (None, 0, 1, 2, 3, -1, 2.0)
    for uid, mode, has_flag in itertools.product((0, REAL, SITL + 1), modes, (False, True)):
        evidence = Evidence(uid, 1, has_flag, {} if mode is None else {"SYS_HITL": mode})
        if has_flag and mode in (1, 2):
            simulation = judge(evidence, "it")
            assert not simulation.is_sitl
            assert "SYS_HITL" in simulation.by
            continue
        with pytest.raises(RefusedError) as caught:
            judge(evidence, "the vehicle")
        sentence = str(caught.value)
        assert sentence.startswith("the vehicle does not say that it is simulated: ")
        assert ("heartbeat has" if has_flag else "heartbeat lacks") in sentence
        assert ("does not report" if mode is None else f"has {mode:g} for") in sentence


def test_a_motor_on_a_real_output_is_refused() -> None:
    for name in OUTPUT_PARAMETERS:
        for function in (0, 100, 113):
            judge(Evidence(REAL, 1, True, {"SYS_HITL": 2, name: function}), "it")
        for motor in (101, 112):
            with pytest.raises(RefusedError, match=name):
                judge(Evidence(REAL, 1, True, {"SYS_HITL": 2, name: motor}), "it")


# -- whether it crashed ----------------------------------------------------------------------------

LEVEL = (1.0, 0.0, 0.0, 0.0)
NAN = math.nan


def sample(
    height_m: float, down_m_s: float = 0.0, tilt_deg: float = 0.0, yaw_deg: float = 0.0
) -> Sample:
    """Tilted about its nose, then turned about the vertical."""
    roll, yaw = (math.radians(0.5 * angle) for angle in (tilt_deg, yaw_deg))
    attitude = (
        math.cos(yaw) * math.cos(roll),
        math.cos(yaw) * math.sin(roll),
        math.sin(yaw) * math.sin(roll),
        math.sin(yaw) * math.cos(roll),
    )
    return Sample(1.0, (3.0, -2.0, 0.5 - height_m), (0.0, 0.0, down_m_s), attitude, (0, 0, 0))


def watch(*samples: Sample) -> CrashWatch:
    crash = CrashWatch(sample(0.0))
    for each in samples:
        crash.take(each)
    return crash


@pytest.mark.parametrize("yaw_deg", [0.0, 100.0, -170.0])
def test_a_vehicle_that_tips_over(yaw_deg: float) -> None:
    assert watch(sample(3.0, tilt_deg=89.0, yaw_deg=yaw_deg)).found == ""
    crash = watch(sample(3.0, tilt_deg=-91.0, yaw_deg=yaw_deg), sample(0.1, 9.0))
    assert crash.found == "it tipped over, 3.0 m above the ground"  # the first sign


def test_a_hard_touchdown() -> None:
    flown = sample(2.0)
    assert watch(flown, sample(0.5, 2.4)).found == ""
    assert watch(flown, sample(0.7, 9.0)).found == ""
    assert watch(flown, sample(0.5, 2.6)).found == "it hit the ground at 2.6 m/s"
    assert watch(flown, sample(0.5, 2.5)).found == ""
    assert watch(flown, sample(0.6, 2.6)).found == ""  # heights are above the ground's
    for height_m in (1.0, 1.5):
        assert watch(sample(height_m), sample(0.5, 2.6)).found == ""  # it has not flown


@pytest.mark.parametrize("samples_a_second", [10, 12, 50])
def test_a_fall_to_the_ground_between_two_samples(samples_a_second: int) -> None:
    """From 3 m, disarmed there: at rest in the first sample near the ground, at many phases."""
    for phase in range(20):
        crash = CrashWatch(sample(0.0))
        for number in range(3 * samples_a_second):
            time_s = (number + phase / 20) / samples_a_second
            height_m = max(3.0 - 0.5 * 9.81 * time_s**2, 0.0)
            each = sample(height_m, 9.81 * time_s if height_m > 0.0 else 0.0)
            crash.take(dataclasses.replace(each, time_s=1.0 + time_s))
        assert crash.found.startswith("it hit the ground at "), phase
    crash = watch(sample(2.0), dataclasses.replace(sample(0.1), time_s=1.1))
    assert crash.found == ""  # a position that was corrected


def test_how_it_lies() -> None:
    for tilt_deg, found in ((29.0, ""), (31.0, "it lies on the ground, tilted by 31°")):
        crash = watch(sample(2.0), sample(0.0, tilt_deg=tilt_deg))
        assert crash.found == ""
        crash.judge_rest()
        assert crash.found == found


@pytest.mark.parametrize(
    "wrong",
    [
        Sample(1.0, (0.0, 0.0, NAN), (0, 0, 0), LEVEL, (0, 0, 0)),
        Sample(1.0, (0.0, 0.0, 0.0), (0, 0, NAN), LEVEL, (0, 0, 0)),
        Sample(1.0, (0.0, 0.0, 0.0), (0, 0, 0), (0, 0, 0, 0), (0, 0, 0)),
    ],
)
def test_what_is_no_number_is_not_judged(wrong: Sample) -> None:
    crash = watch(sample(2.0), wrong)
    assert (crash.found, crash.height_m) == ("", 2.0)


# -- what the flight is watched for ----------------------------------------------------------------


def air_of(**changes: Any) -> tuple[Air, Any]:
    """A flight of PX4's program, in Hold, 5 m above the ground; and its vehicle."""
    reported: dict[str, Any] = {
        "name": "it",
        "clock": lambda: 100.0,
        "sample_at": 99.0,
        "sample": sample(5.0),
        "says_simulated": False,
        "is_terminated": False,
        "is_armed": True,
        "mode": HOLD,
    }
    vehicle: Any = SimpleNamespace(**(reported | changes))
    air = Air(vehicle, Simulation("", True), sample(0.0), GlobalPosition(10, 20, 30.0))
    air.allowed = {HOLD}
    return air, vehicle


def test_bounds_of_what_ends_a_flight() -> None:
    """The rest is in test_px4_flight.py."""
    with pytest.raises(RefusedError, match=r"no position for 5\.1 s"):
        air_of(sample_at=94.9)[0].watch()
    air, vehicle = air_of(sample_at=95.0)
    air.watch()
    with pytest.raises(RefusedError, match=r"no position for 5\.0 s"):
        air.watch(4.9)
    air.has_climbed = True
    vehicle.sample = sample(1.0)
    air.watch()
    vehicle.sample = sample(0.9)
    with pytest.raises(
        RefusedError, match="it crashed: it came down to the ground in PX4's mode H"
    ):
        air.watch()
    for simulation, says in ((Simulation("", False), True), (Simulation("", True), False)):
        require_still(air_of(says_simulated=says)[1], simulation)
    with pytest.raises(RefusedError, match="it does not say any more that it is simulated"):
        require_still(air_of()[1], Simulation("", False))


def test_a_place_on_the_globe() -> None:
    """A degree of latitude is 111.195 km of PX4's sphere, one of longitude half of that at 60°."""
    air, vehicle = air_of()
    assert air.global_position_of(np.array((3.0, -2.0, 0.5))) == GlobalPosition(10, 20, 30.0)
    away = air.global_position_of(np.array((3.0 + 111.195, -2.0 - 111.195, -1.5)))
    assert away == GlobalPosition(10 + 10000, 20 - 10000, 32.0)
    north = GlobalPosition(600_000_000, 20, 30.0)
    air = Air(vehicle, Simulation("", True), sample(0.0), north)
    assert air.global_position_of(np.array((3.0, 109.195, 0.5))).longitude_1e7 == 20 + 20000
    assert air.yaw == pytest.approx(math.pi / 2)  # its nose points north


# -- the way down ----------------------------------------------------------------------------------


class FakeVehicle:
    """PX4's side of a landing: a tenth of a second passes each time that it is heard."""

    def __init__(self, **changes: Any) -> None:
        self.name, self.now = "it", 100.0
        self.heartbeat_at = math.inf
        self.is_armed, self.is_terminated, self.is_on_ground = True, False, False
        self.mode: Any = HOLD
        self.disarms_at, self.lands_at = math.inf, math.inf
        self.denies: list[Exception] = []
        self.asked_at: list[float] = []
        self.disarm_asked_at: list[float] = []
        self.words: str | None = None
        self.dialect = SimpleNamespace(MAV_MODE_FLAG_CUSTOM_MODE_ENABLED=1)
        self.__dict__.update(changes)

    def clock(self) -> float:
        return self.now

    def pump(self) -> None:
        self.now = round(self.now + 0.1, 6)
        self.is_on_ground = self.is_on_ground or self.now >= self.lands_at
        self.is_armed = self.is_armed and self.now < self.disarms_at

    def since(self) -> float:
        """The beginning, by the clock as it was looked at last."""
        return round(self.now - 100.1, 6)

    def reason(self) -> str:
        return " (why)"

    def last_text(self, _name: str, within_s: float) -> str | None:
        return self.words if within_s >= 90.0 else None

    def send_command(self, command: str, *numbers: float) -> None:
        assert (command, numbers) == ("DO_SET_MODE", (1.0, 4, 6))
        self.asked_at.append(self.since())

    def command(self, name: str, number: float, what: str) -> None:
        assert (name, number, what) == ("COMPONENT_ARM_DISARM", 0.0, "to disarm")
        self.disarm_asked_at.append(self.since())
        if self.denies:
            raise self.denies.pop(0)
        self.is_armed = False

    def wait(self, is_over: Any, limit_s: float, _guard: Any = None) -> bool:
        self.now += limit_s
        return bool(is_over())


def down(**changes: Any) -> tuple[str, FakeVehicle]:
    vehicle = FakeVehicle(**changes)
    return bring_down(vehicle), vehicle  # type: ignore[arg-type]


LEFT = "it is left in PX4's mode Hold: something keeps it from landing"


def test_it_is_asked_to_land_each_second_eight_times() -> None:
    how, vehicle = down()
    assert how == LEFT
    assert vehicle.asked_at == [0, 1, 2, 3, 4, 5, 6, 7]
    for mode in (LAND, DESCEND):
        how, vehicle = down(mode=mode, disarms_at=120.0)
        assert (how, vehicle.asked_at) == ("it is disarmed", [])
        how, vehicle = down(mode=mode)
        assert how == f"it is still armed after 90 s, in PX4's mode {mode}"
        assert vehicle.now == 190.0


def test_what_cannot_be_heard_is_asked_for_half_a_minute() -> None:
    how, vehicle = down(heartbeat_at=100.0)
    assert how == "it has not been heard for 30 s: PX4's own failsafe has it"
    assert vehicle.asked_at == list(range(31))
    how, vehicle = down(heartbeat_at=100.0, is_armed=False)  # it may have armed meanwhile
    assert vehicle.asked_at[0] == 2.1
    assert down(is_armed=False)[0] == "it is disarmed"


def test_what_bounces_is_not_disarmed_in_the_air() -> None:
    class Bouncing(FakeVehicle):
        def pump(self) -> None:
            super().pump()
            self.is_on_ground = self.since() < 1.0

    vehicle = Bouncing(mode=LAND, disarms_at=130.0)
    assert bring_down(vehicle) == "it is disarmed"  # type: ignore[arg-type]
    assert vehicle.disarm_asked_at == []


def test_what_a_pilot_flies_is_left_to_him() -> None:
    how, vehicle = down(mode=Mode(3))
    assert (how, vehicle.asked_at) == ("it is left to its pilot, in PX4's mode Position", [])
    assert down(mode=Mode(3), heartbeat_at=100.0)[1].asked_at == []
    how, vehicle = down(mode=Mode(3), words="tilted")  # the module fell back to that
    assert vehicle.asked_at[0] == 0
    assert down(mode=None)[1].asked_at[0] == 0


def test_it_is_disarmed_after_eight_seconds_on_the_ground() -> None:
    how, vehicle = down(mode=LAND, lands_at=105.0)
    assert (how, vehicle.disarm_asked_at) == ("it is disarmed", [13.0])
    denied = [RefusedError("no"), RefusedError("lost")]
    how, vehicle = down(mode=LAND, lands_at=105.0, denies=denied)
    assert (how, vehicle.disarm_asked_at) == ("it is disarmed", [13.0, 21.1, 29.2])


def test_what_px4_has_terminated_falls() -> None:
    how, vehicle = down(is_terminated=True, lands_at=101.0)
    assert (how, vehicle.asked_at) == ("it is disarmed", [])
    left = "it is still armed where it crashed: `commander disarm -f` in PX4's shell disarms it"
    how, vehicle = down(is_terminated=True, lands_at=101.0, denies=[RefusedError("no")])
    assert (how, vehicle.disarm_asked_at) == (left, [9.0])
    crash = watch(sample(0.0))
    assert bring_down(FakeVehicle(is_terminated=True), crash) == left  # type: ignore[arg-type]
    assert crash.found == "PX4 terminated the flight (why)"


def test_how_one_that_is_disarmed_came_down() -> None:
    for height_m, how, found in (
        (0.6, "it is on the ground and disarmed", ""),
        (0.7, "it is disarmed where it crashed", "it fell, disarmed 0.7 m above the ground"),
    ):
        crash, vehicle = watch(sample(height_m)), FakeVehicle(is_armed=False)
        assert bring_down(vehicle, crash) == how  # type: ignore[arg-type]
        assert crash.found == found
        assert vehicle.now == pytest.approx(100.1 + (5.5 if found else 0.0))
    crash = watch(sample(0.0, tilt_deg=40.0))
    how = bring_down(FakeVehicle(is_armed=False), crash)  # type: ignore[arg-type]
    assert (how, crash.found) == (
        "it is disarmed where it crashed",
        "it lies on the ground, tilted by 40°",
    )
