"""Through the firmwares' eyes: states of the simulator, as the Crazyflie's and PX4's estimators
would give them, through the sources that ship, to the policy and on to the motors; and flights of
the simulator through these sources."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firmware_frames import (
    AT_TARGET,
    PX4_ROTORS,
    Floats,
    Motor,
    State,
    Target,
    px4_motors,
    simulated_thrusts,
    wrench,
)
from firmware_vehicles import Crazyflie, Px4, Spoil, Vehicle, build_crazyflie, build_px4
from quadrotor_policies import (
    constant_policy,
    controller,
    image_of,
    recurrent_controller,
    recurrent_policy,
)
from rltools_host.drones.flight.loop import HostPilot
from rltools_host.drones.flight.simulator import Flight, flight_library
from rltools_host.policies.image import parse_policy

FIRMWARES = ("crazyflie", "px4")
ANYWHERE = {
    "start_share": 1.0,
    "start_position": 4.5,
    "start_velocity": 7.0,  # the target may have 2.1 m/s
    "start_tilt": 180.0,
    "start_rate": 30.0,
    "noise": 0.0,
}


@pytest.fixture(scope="module")
def crazyflie(tmp_path_factory: pytest.TempPathFactory) -> Crazyflie:
    library = build_crazyflie(tmp_path_factory.mktemp("crazyflie"))
    return Crazyflie.boot(library, Target((1.5, -0.75, 0.6), np.radians(70.0)))


@pytest.fixture(scope="module")
def px4(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Px4]:
    folder = tmp_path_factory.mktemp("px4")
    vehicle = Px4.boot(build_px4(folder), folder, Target((-2.5, 1.25, -3.5), 2.1))
    yield vehicle
    vehicle.stop()


@pytest.fixture(params=FIRMWARES)
def vehicle(request: pytest.FixtureRequest) -> Vehicle:
    found: Vehicle = request.getfixturevalue(request.param)
    return found


# -- observation -----------------------------------------------------------------------------------

GROUPS = {"position": (0, 3), "velocity": (3, 6), "attitude": (6, 10), "rates": (10, 13)}
# How far from the simulator's an observation may be, of each group the sum over its channels.
MOST = {"position": 4e-6, "velocity": 8e-6, "attitude": 8e-7, "rates": 8e-6}
GAINS = {"position": 2.0**16, "velocity": 2.0**15, "attitude": 2.0**18, "rates": 2.0**15}


def difference_policy(expected: Floats) -> bytes:
    """Whose thrusts say how far the policy's observation is from the one expected: for each group
    half the gain times the sum of |seen - expected|. Exact: the gains are powers of two."""
    hidden, bias = np.zeros((13, 26), np.float32), np.zeros(26, np.float32)
    out = np.zeros((26, 4), np.float32)
    for group, (name, (first, last)) in enumerate(GROUPS.items()):
        for channel in range(first, last):
            for unit, sign in ((2 * channel, 1.0), (2 * channel + 1, -1.0)):
                hidden[channel, unit] = sign * GAINS[name]
                bias[unit] = -sign * GAINS[name] * expected[channel]
                out[unit, group] = 1.0
    return image_of([("relu", hidden, bias), ("identity", out, -np.ones(4, np.float32))])


def random_states(count: int, moving_target: bool) -> Iterator[tuple[State, Floats]]:
    """With what the simulator observes of them."""
    flight = Flight(11, 0, {**ANYWHERE, "task": 2.0 if moving_target else 0.0})
    for episode in range(count):
        flight.begin(11, episode)
        yield State.of(flight.read()), flight.observe()


def other_quaternion(measured: Floats) -> None:
    """The same attitude: an estimator may give either."""
    measured[3:7] *= -1.0  # in both structs Measured


def test_the_policy_sees_what_it_sees_in_the_simulator(vehicle: Vehicle) -> None:
    tilted = 0
    worst = dict.fromkeys(GROUPS, 0.0)
    for state, expected in random_states(60, isinstance(vehicle, Crazyflie)):
        vehicle.take_off(difference_policy(expected))
        motors = vehicle.tick(state, other_quaternion if expected[0] < 0.0 else None)
        assert motors is not None
        thrusts = simulated_thrusts(vehicle.motors, motors)
        for thrust, (name, gain) in zip(thrusts, GAINS.items(), strict=True):
            worst[name] = max(worst[name], 2.0 * float(thrust) / gain)
        tilted += expected[6] < np.cos(np.radians(45.0))  # more than 90 degrees
    assert tilted > 10
    assert all(worst[name] <= most for name, most in MOST.items()), worst


def test_the_policy_of_a_px4_without_its_heading_looks_to_the_east(px4: Px4) -> None:
    east = Target(px4.target.position, np.pi / 2)
    vehicle = replace(px4, target=east, heading=0, is_running=px4.is_running)
    px4.is_running = False
    try:
        for state, expected in random_states(5, moving_target=False):
            vehicle.take_off(difference_policy(expected))
            motors = vehicle.tick(state)
            assert motors is not None
            assert motors.max() < 0.3
    finally:
        vehicle.stop()


# -- what the firmwares have recorded --------------------------------------------------------------

RECORDED = json.loads((Path(__file__).parent / "recorded_states.json").read_text())
CHANNELS = tuple(channel.name for channel in flight_library().contract.observations)


def check_seen(row: dict[str, Any], observation: Floats) -> None:
    """By what the motion is, in words; rows have it to two or three digits."""
    seen = dict(zip(CHANNELS, observation.tolist(), strict=True))
    for name, value in row["seen"].items():
        assert seen[name] == pytest.approx(value, abs=0.015), (row["what"], name)


def test_recorded_states_of_px4(px4: Px4) -> None:
    for row in RECORDED["px4"]["rows"]:
        target = Target(tuple(row["target"]["position"]), row["target"]["yaw_rad"])
        vehicle = replace(px4, target=target, is_running=px4.is_running)
        vehicle.take_off(constant_policy(0.5, 0.5, 0.5, 0.5))
        fields = ("rates", "q", "position", "velocity")
        numbers = [*(row[field] for field in fields), [row["heading"]]]
        assert vehicle.turn(np.concatenate(numbers).astype(np.float32)) is not None
        check_seen(row, vehicle.observation())
        vehicle.stop()
        px4.is_running = False


def test_recorded_states_of_the_crazyflie(crazyflie: Crazyflie) -> None:
    for row in RECORDED["crazyflie"]["rows"]:
        fields = ("gyro", "quaternion", "position", "velocity")
        numbers = [*(row[field] for field in fields), np.zeros(6), [row["target_yaw_deg"]]]
        crazyflie.turn(np.concatenate(numbers).astype(np.float32))
        check_seen(row, crazyflie.observation())


def test_recorded_motors_of_px4_turn_it_as_they_were_asked_to() -> None:
    """Its control allocator knows where its motors are; the tests have it from the documents."""
    motors = px4_motors(PX4_ROTORS)
    for row in RECORDED["px4_motors"]["rows"]:
        forward, left, up = wrench(motors, row["motors"], 1.0, 1.0, 1.0)[1:]
        turned = np.array([forward, -left, -up])  # forward, right, down
        asked = np.array(row["torque"])
        assert np.argmax(np.abs(turned)) == np.argmax(np.abs(asked)), row["what"]
        assert asked @ turned > 0.95 * np.linalg.norm(asked) * np.linalg.norm(turned), row["what"]


# -- motors ----------------------------------------------------------------------------------------

# An airframe of which every axis is different, heavy against turning, without lag.
X_M, Y_M, THRUST_N, TORQUE_PER_THRUST_M = 0.04, 0.07, 0.25, 0.006
INERTIA = np.array([5e-3, 8e-3, 1.1e-2])
MASS_KG = 0.04
AIRFRAME = {
    "airframe": 0.0,
    "mass_kg": MASS_KG,
    **dict(zip(("inertia_x", "inertia_y", "inertia_z"), 1e6 * INERTIA, strict=True)),
    "rotor_x_m": X_M,
    "rotor_y_m": Y_M,
    "lag_up_s": 0.0,
    "lag_down_s": 0.0,
    "thrust_1": THRUST_N,
    "thrust_2": 0.0,
    "torque_2": 0.0,
    "torque_1": 1e3 * THRUST_N * TORQUE_PER_THRUST_M,
    "start_share": 0.0,
    "noise": 0.0,
}
PROBE = (0.2, 0.35, 0.55, 0.8)  # of the contract's rotors; no two changes of places are alike


def simulated_wrench(thrusts: tuple[float, ...]) -> Floats:
    """Lift and torques of the simulator's rotors, by what a tick does: the second one, since they
    change their speeds within the first."""
    flight, tick_s = Flight(0, 0, AIRFRAME), 0.002
    flight.step(thrusts)
    before = flight.read()
    flight.step(thrusts)
    after = flight.read()
    rise = float(after["velocity_m_s"][2]) - float(before["velocity_m_s"][2])
    turn = after["angular_velocity_rad_s"] - before["angular_velocity_rad_s"]
    return np.array([MASS_KG * (rise / tick_s + 9.81), *(INERTIA * turn / tick_s)], np.float32)


def agrees(motors: tuple[Motor, ...], thrusts: Floats) -> bool:
    """Whether these thrusts of these motors do what PROBE does in the simulator."""
    newton = THRUST_N * thrusts.astype(float)
    done = wrench(motors, newton, X_M, Y_M, TORQUE_PER_THRUST_M)
    return bool(np.allclose(done, simulated_wrench(PROBE), rtol=1e-3, atol=1e-6))


def wirings() -> list[tuple[int, ...]]:
    """The 23 wrong ones."""
    return [order for order in permutations(range(4)) if order != (0, 1, 2, 3)]


def test_the_motors_turn_the_body_as_in_the_simulator(vehicle: Vehicle) -> None:
    vehicle.take_off(constant_policy(*PROBE))
    thrusts = vehicle.tick(AT_TARGET)
    assert thrusts is not None
    motors = vehicle.motors
    assert agrees(motors, thrusts)
    # No other wiring passes, nor does a rotor that turns the wrong way.
    for order in wirings():
        assert not agrees(motors, thrusts[list(order)]), order
    for wrong in [*range(4), None]:
        turned = tuple(
            replace(motor, counter_clockwise=-motor.counter_clockwise)
            if wrong in (i, None)
            else motor
            for i, motor in enumerate(motors)
        )
        assert not agrees(turned, thrusts), wrong


def test_px4_may_number_its_motors_as_it_likes(px4: Px4) -> None:
    for order in [(0, 1, 2, 3), *wirings()]:
        px4.rotors = tuple(PX4_ROTORS[i] for i in order)
        px4.take_off(constant_policy(*PROBE))
        thrusts = px4.tick(AT_TARGET)
        assert thrusts is not None
        assert agrees(px4.motors, thrusts), order
    px4.rotors = PX4_ROTORS


def test_no_px4_passes_whose_parameters_are_not_its_motors(px4: Px4) -> None:
    """It is refused, or the test of the torques above would see it."""
    refused = 0
    try:
        for order in wirings():  # of the places, while the directions stay
            places = [PX4_ROTORS[i] for i in order]
            px4.rotors = tuple(
                (*place[:2], rotor[2]) for place, rotor in zip(places, PX4_ROTORS, strict=True)
            )
            if not px4.start(constant_policy(*PROBE)):
                refused += 1
                continue
            px4.take_off(constant_policy(*PROBE))
            thrusts = px4.tick(AT_TARGET)
            assert thrusts is not None
            assert not agrees(px4_motors(PX4_ROTORS), thrusts), order
        assert refused == 20  # the rest keep each diagonal's direction
    finally:
        px4.rotors = PX4_ROTORS


# -- hidden state ----------------------------------------------------------------------------------


class PilotHere:
    """The policy on this machine, which has just begun, tick by tick beside a vehicle's."""

    def __init__(self, image: bytes) -> None:
        self._pilot = HostPilot(parse_policy(image), in_trial=False)
        self._now_us = 0

    def act(self, observation: Floats) -> Floats:
        self._now_us += 2000
        return self._pilot.act(self._now_us, self._now_us, observation).action


def test_its_hidden_state_is_zero_whenever_it_takes_over(vehicle: Vehicle) -> None:
    image = recurrent_policy()
    vehicle.take_off(image)
    last_thrusts = set()
    for _ in range(3):
        states = random_states(23, isinstance(vehicle, Crazyflie))
        here = PilotHere(image)
        for turn in [vehicle.enter_again, *(partial(vehicle.tick, state) for state, _ in states)]:
            motors = turn()
            assert motors is not None
            thrusts = simulated_thrusts(vehicle.motors, motors)
            assert thrusts.tobytes() == here.act(vehicle.observation()).tobytes()
        last_thrusts.add(thrusts.tobytes())
    assert len(last_thrusts) == 1  # the same flight each time


def test_a_fault_that_the_crazyflie_outlasts_makes_its_hidden_state_zero(
    crazyflie: Crazyflie,
) -> None:
    def lose(measured: Floats) -> None:
        measured[:] = np.nan

    image = recurrent_policy()
    crazyflie.take_off(image)
    crazyflie.enter_again()
    here, before = PilotHere(image), None
    here.act(crazyflie.observation())
    for index, (state, _) in enumerate(random_states(40, moving_target=True)):
        is_lost = index % 9 == 8
        motors = crazyflie.tick(state, lose if is_lost else None)
        assert motors is not None
        if is_lost:
            here.act(np.full(13, np.nan, np.float32))
            assert motors.tobytes() == before  # the last action is held
        else:
            assert motors.tobytes() == here.act(crazyflie.observation()).tobytes()
        before = motors.tobytes()


# -- flights ---------------------------------------------------------------------------------------

SEED, EPISODE = 3, 1
TICKS = 1500  # 3 s
START = {
    "start_share": 1.0,
    "start_position": 0.4,
    "start_velocity": 0.5,
    "start_tilt": 70.0,
    "start_rate": 2.0,
    "limit_position": 3.0,
    "noise": 0.0,
}
NEAR_M = 0.2  # of the target, in the last fifth of the flight


@dataclass
class Flown:
    entry: Floats  # the observation of the tick with which the policy took over
    ended: str  # by a limit, or because the firmware took the vehicle back; "" where it did not
    errors_m: list[float]
    thrusts: list[Floats]  # of the simulator's rotors
    observations: list[Floats]

    @property
    def holds(self) -> bool:
        return not self.ended and max(self.errors_m[-TICKS // 5 :]) < NEAR_M


def fly(entry: Floats, act: Callable[[Flight], tuple[Floats, Floats] | None]) -> Flown:
    """`act`: thrusts of the simulator's rotors, and the observation that they answer."""
    flight = Flight(SEED, EPISODE, START)
    flown = Flown(entry, "", [], [], [])
    for _ in range(TICKS):
        answer = act(flight)
        if answer is None:
            flown.ended = "taken back"
            break
        thrusts, observation = answer
        broken = flight.step(thrusts)
        reading = flight.read()
        error = reading["position_m"] - reading["target_position_m"]
        flown.errors_m.append(float(np.linalg.norm(error)))
        flown.thrusts.append(thrusts)
        flown.observations.append(observation)
        if broken is not None:
            flown.ended = broken.name
            break
    return flown


def fly_through(
    vehicle: Vehicle,
    wiring: tuple[int, ...] = (0, 1, 2, 3),
    spoil: Spoil | None = None,
    image: bytes | None = None,
) -> Flown:
    """`wiring`: which output each motor hangs on; `spoil` changes what the estimator says."""
    vehicle.take_off(image or controller())
    assert vehicle.enter_again() is not None

    def act(flight: Flight) -> tuple[Floats, Floats] | None:
        outputs = vehicle.tick(State.of(flight.read()), spoil)
        if outputs is None:
            return None
        return simulated_thrusts(vehicle.motors, outputs[list(wiring)]), vehicle.observation()

    return fly(vehicle.observation(), act)


def fly_here(image: bytes, entry: Floats) -> Flown:
    """The policy on this machine, as `rlt fly` has it for comparison."""
    here = PilotHere(image)
    here.act(entry)

    def act(flight: Flight) -> tuple[Floats, Floats]:
        observation = flight.observe()
        return here.act(observation), observation

    return fly(entry, act)


@pytest.mark.parametrize("policy", [controller, recurrent_controller])
def test_it_flies_as_on_this_machine(vehicle: Vehicle, policy: Callable[[], bytes]) -> None:
    image = policy()
    there = fly_through(vehicle, image=image)
    here = fly_here(image, there.entry)
    assert here.holds
    assert there.holds
    assert max(here.errors_m) > 3 * NEAR_M
    # Degrees, turns and the target's place are rounded: some units in the last place.
    assert np.abs(np.array(here.thrusts) - np.array(there.thrusts)).max() < 1e-5
    # What the policy makes of that observation has the bits of this machine's.
    again = PilotHere(image)
    again.act(there.entry)
    for observation, thrusts in zip(there.observations, there.thrusts, strict=True):
        assert again.act(observation).tobytes() == thrusts.tobytes()


def test_with_another_wiring_it_crashes(vehicle: Vehicle) -> None:
    for order in wirings()[::5]:  # the torques above tell each of them
        assert fly_through(vehicle, order).ended == "RATE_LIMIT", order


@pytest.mark.parametrize("channel", [1, 8, 12])
def test_with_a_wrong_sign_it_does_not_hold(vehicle: Vehicle, channel: int) -> None:
    """Else these flights would prove nothing of what the estimator gives."""

    def turn_over(measured: Floats) -> None:
        measured[channel] *= -1.0

    assert not fly_through(vehicle, spoil=turn_over).holds
