"""`rlt fly RUN --px4` against a scripted vehicle: flights that go well, and each that does not."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pymavlink.dialects.v20 import development as d

from px4_model import GROUND, POLICY, POSITION, STEP_S, Model, Wrong, to_world
from px4_vehicle import Px4Link, Script, ScriptedPx4
from quadrotor_policies import controller
from rltools_host.drones.vehicles.px4 import Px4Vehicle
from rltools_host.drones.vehicles.px4_flight import Px4Flight, Px4Request, carry_out
from rltools_host.drones.vehicles.px4_module import Px4Policies
from rltools_host.drones.vehicles.px4_result import FlightResult
from rltools_host.drones.vehicles.px4_start import STARTS
from rltools_host.drones.vehicles.px4_state import HOLD, LAND
from rltools_host.errors import (
    BoardMismatchError,
    Interrupted,
    PortError,
    RefusedError,
    RltError,
    UsageError,
)
from rltools_host.policies.contract import EntryEnvelope
from rltools_host.policies.image import PolicyImage, parse_policy
from rltools_host.policies.image_writing import with_entry

IMAGE: Any = SimpleNamespace(
    data=bytes(range(256)) * 90,
    sha256="ab" * 32,
    origin="the policy of a test",
    experiment="hover",
    step=1,
    shape="13-64-64-4",
    observations=(SimpleNamespace(name="position_error_x"),),
    actions=(),
    entry=EntryEnvelope(5.0, 2.0, 0.37, 1.75, 0.8),
)
BESIDE = np.array((0.25, 0.0, 0.0))


class Flight:
    """A flight with a scripted vehicle, in the vehicle's time."""

    def __init__(
        self,
        script: Script | None = None,
        starts: int = 1,
        image: PolicyImage = IMAGE,
        **options: Any,
    ) -> None:
        self.vehicle = ScriptedPx4(script)
        self.link = Px4Link(self.vehicle)
        self.said: list[str] = []
        self._request = Px4Request("run", self.link.description, starts, **options)
        vehicle = Px4Vehicle(self.link, self.link.clock)
        self.flight = Px4Flight(vehicle, image, self._request, self.said.append)

    def fly(self) -> FlightResult:
        return carry_out(self.flight)

    def fails(self, kind: type[RltError]) -> str:
        with pytest.raises(kind) as caught:
            self.fly()
        assert type(caught.value) is kind
        if self.flight.result.state != "find the vehicle":
            assert caught.value.details["state"] == self.flight.result.state
        assert "\n" not in str(caught.value)
        return str(caught.value)

    @property
    def model(self) -> Model:
        return self.vehicle.model

    def is_on_the_ground(self) -> bool:
        return self.model.is_on_ground and not self.model.armed


# -- flights that go well --------------------------------------------------------------------------


def test_a_flight_from_its_beginning_to_its_end() -> None:
    flight = Flight(starts=len(STARTS), script=Script(parameters={"RLT_TRIAL": 600}))
    result = flight.fly()
    assert result.all_succeeded
    assert result.kept
    assert (result.state, result.ended) == ("done", "it is on the ground and disarmed")
    assert flight.is_on_the_ground()
    assert flight.vehicle.files == {"policy.rltp": IMAGE.data, "previous.rltp": b"old"}
    # PX4's own mode had it before, between and behind.
    assert [mode for mode in flight.model.modes if mode in (POLICY, HOLD, LAND)][1:] == [
        *[POLICY, HOLD] * len(STARTS),
        LAND,
    ]
    # A heartbeat a second.
    assert flight.vehicle.heartbeats_heard == pytest.approx(flight.model.now - 100.0, rel=0.1)


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (EntryEnvelope(0.0, 0.0, 0.0, 0.0, 0.0), "may be handed none: it recovers from no entry"),
        (EntryEnvelope(1.0, 1.3, 0.36, 1.75, 4.5), "0.2 m/s and 4.2 m above ground, and the polic"),
    ],
)
def test_a_policy_that_px4_cannot_hand_over_to_is_not_flown(
    entry: EntryEnvelope, sentence: str
) -> None:
    flight = Flight(image=with_entry(parse_policy(controller()), entry))
    assert sentence in flight.fails(RefusedError)
    assert flight.vehicle.files["policy.rltp"] == b"old"
    assert not flight.model.armed


def test_each_start_is_where_it_is_said_to_be_and_has_the_same_target() -> None:
    flight = Flight(Script(wrong=Wrong(waits_s=2.5)), starts=4)
    result = flight.fly()
    target = GROUND - (0.0, 0.0, 5.0)
    for start, entry in zip(result.starts, flight.model.entries, strict=True):
        np.testing.assert_allclose(entry, target + to_world(np.array(start.offset_m)), atol=0.06)
        assert start.series is not None
        assert start.measures is not None
        # What the policy saw first: where it is from its target, level, with the target's heading.
        first = start.series.rows[0]
        np.testing.assert_allclose(first[:3], start.offset_m, atol=0.06)
        np.testing.assert_allclose(first[6:10], (1, 0, 0, 0), atol=0.02)
        np.testing.assert_allclose(first[10:], (0.1, -0.2, -0.3), atol=1e-6)
        assert start.series.times_s[0] == 0.0
        assert start.series.times_s[-1] >= 10.0
        assert np.diff(start.series.times_s).max() < 0.09
        assert start.measures.greatest_error_m == pytest.approx(
            np.linalg.norm(start.offset_m), abs=0.08
        )
    far = result.starts[3].measures
    assert far is not None
    assert far.settling_s is not None
    assert 0.3 < far.settling_s < 2.0
    np.testing.assert_allclose(flight.model.target, target, atol=0.03)


def test_a_prediction_is_made_on_the_ground() -> None:
    """It may take its time."""

    def predict(first: Any, times: Any) -> Any:
        assert flight.is_on_the_ground()
        return np.outer(np.exp(-times), first)

    flight = Flight(starts=2, predictor=lambda *_: predict)
    result = flight.fly()
    assert not result.notes
    assert all(start.prediction is not None for start in result.starts)


def test_a_prediction_that_cannot_be_is_refused_on_the_ground() -> None:
    def predictor(*_: Any) -> Any:
        raise UsageError("no such setting")

    flight = Flight(predictor=predictor)
    assert flight.fails(UsageError) == "no such setting"
    assert d.MAV_CMD_COMPONENT_ARM_DISARM not in {n for n, _ in flight.vehicle.commands}


def test_a_fail_safe_is_told_with_its_time_and_its_reason() -> None:
    flight = Flight(Script(wrong=Wrong(falls_back_at=3.0, bump_m_s2=3.0)), starts=2)
    flight.fails(RefusedError)
    first, second = flight.flight.result.starts
    assert first.fail_safe is not None
    assert first.fail_safe.time_s == pytest.approx(3.0, abs=0.05)
    assert first.fail_safe.text == "outside the range of the policy"
    # The hand-back is looked at while PX4 lands.
    assert first.hand_back is not None
    assert first.hand_back.time_s == pytest.approx(first.fail_safe.time_s)
    assert not first.hand_back.is_bumpless
    assert second.fail_safe is None


def test_a_policy_that_holds_another_place_is_given_up() -> None:
    def beside(model: Model) -> Any:
        return 9.0 * (model.target + BESIDE - model.position) - 6.0 * model.velocity

    flight = Flight(Script(wrong=Wrong(policy=beside)), starts=2)
    assert flight.fails(RefusedError) == (
        "2 of 2 starts were not within 0.2 m in the last second, and the policy was given up"
        "; it is on the ground and disarmed"
    )
    result = flight.flight.result
    assert result.state == "done"
    assert [start.success for start in result.starts] == [False, False]
    assert result.starts[0].measures is not None
    assert result.starts[0].measures.last_second_error_m == pytest.approx(0.25, abs=0.03)
    assert result.starts[0].measures.settling_s is None
    assert not result.kept
    assert flight.vehicle.files["policy.rltp"] == b"old"
    assert not flight.vehicle.on_trial


def test_a_link_that_loses_acknowledgements_answers_and_frames() -> None:
    script = Script(drops_acks=2, drops_shell=1, loses=0.1, longer_frames=True)
    flight = Flight(script, starts=2)
    assert flight.fly().all_succeeded
    arming = [n for n, _ in flight.vehicle.commands if n == d.MAV_CMD_COMPONENT_ARM_DISARM]
    assert len(arming) >= 3
    confirmations = [c for n, c in flight.vehicle.commands if n == d.MAV_CMD_COMPONENT_ARM_DISARM]
    assert confirmations[:3] == [0, 1, 2]
    assert flight.vehicle.shell_lines.count("rlt_policy confirm") == 1


def test_a_link_that_loses_the_first_answers_about_parameters() -> None:
    """A flight controller that does not say whether a simulator is in it is not flown."""
    script = Script(uid=0, hil_flag=True, parameters={"SYS_HITL": 2}, drops_parameters=3)
    result = Flight(script).fly()
    assert result.all_succeeded
    assert "simulator in hardware" in result.simulated_by


# -- vehicles that are not taken -------------------------------------------------------------------

REAL_UID = 0x3235373136511D00
REFUSED: dict[str, tuple[Script, str]] = {
    "real": (Script(uid=REAL_UID), "does not say that it is simulated"),
    "simulator in hardware, with motors": (
        Script(
            uid=REAL_UID,
            hil_flag=True,
            parameters={"SYS_HITL": 2, "PWM_MAIN_FUNC2": 104},
        ),
        "real outputs of it are for motors (PWM_MAIN_FUNC2)",
    ),
    "armed, and flown by the policy": (
        Script(armed=True, mode=POLICY),
        "is armed, and its policy is acting: land it first, by `commander land` in PX4's shell",
    ),
    "no module": (Script(has_module=False), "has no flight mode RL Policy"),
    "older module": (Script(knows_offset=False), "does not do `offset 0.00"),
    "arming": (
        Script(arming_refusal="Arming denied: no RC"),
        'refuses to arm: denied (it says "Arming denied: no RC")',
    ),
    "module": (
        Script(refuses_mode="rotors differ from the contract"),
        "the module of the vehicle on udp:script is not ready: rotors differ from the contract",
    ),
    "short trial": (Script(parameters={"RLT_TRIAL": 60}), "takes 60 s (RLT_TRIAL)"),
    "policy": (
        Script(policy_refusal="candidate.rltp refused: reason 9, at 0"),
        'made for other observations, actions or rate (channel 0, here "position_error_x")',
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_vehicle_that_is_refused(name: str) -> None:
    script, sentence = REFUSED[name]
    flight = Flight(script)
    text = flight.fails(RefusedError)
    assert sentence in text
    numbers = {number for number, _ in flight.vehicle.commands}
    if name not in ("arming", "older module"):
        assert d.MAV_CMD_COMPONENT_ARM_DISARM not in numbers
        assert d.MAV_CMD_DO_SET_MODE not in numbers
        assert flight.vehicle.files["policy.rltp"] == b"old"
    if name in (
        "real",
        "simulator in hardware, with motors",
    ):  # nothing at all is sent to what is not simulated
        assert numbers == {d.MAV_CMD_REQUEST_MESSAGE}
        assert flight.vehicle.shell_lines == []
        assert "candidate.rltp" not in flight.vehicle.files
    assert (LAND in flight.model.modes) == (name == "older module")
    assert not flight.vehicle.on_trial
    assert flight.vehicle.files["previous.rltp"] == b"older"
    if not script.armed:
        assert flight.is_on_the_ground()


def test_another_autopilot_is_refused() -> None:
    script = Script(autopilot=d.MAV_AUTOPILOT_ARDUPILOTMEGA)
    assert "is not a PX4" in Flight(script).fails(BoardMismatchError)


# -- flights that are broken off -------------------------------------------------------------------


def drifts(_: Model) -> Any:
    return np.array((1.0, 0.0, 0.0))


LANDED = "; it is on the ground and disarmed"
CRASHED = "; it is disarmed where it crashed"
LEFT_ARMED = "; it is still armed where it crashed: `commander disarm -f` in PX4's shell disarms it"
BROKEN: dict[str, tuple[Script, str, str]] = {
    "never climbs": (
        Script(wrong=Wrong(ceiling_m=2.0)),
        "reached 1.8 m of 5 m within 40 s",
        LANDED,
    ),
    "drifts away": (Script(wrong=Wrong(policy=drifts)), "drifted 3.", LANDED),
    "falls back": (
        Script(wrong=Wrong(falls_back_at=3.0)),
        'fell back to Hold (it says "RL Policy: outside the range of the policy")',
        LANDED,
    ),
    "another ground station": (
        Script(wrong=Wrong(taken_over_at=3.0)),
        "changed the mode of the vehicle on udp:script to Return",
        LANDED,
    ),
    "that one insists": (
        Script(wrong=Wrong(taken_over_at=3.0, keeps_taking=True)),
        "to Return",
        "; it is left in PX4's mode Return: something keeps it from landing",
    ),
    "disarms": (
        Script(wrong=Wrong(disarmed_at=3.0), fastest_s=2 * STEP_S),
        "was disarmed in the air; it hit the ground at 9.",
        CRASHED,
    ),
    "silent for seconds": (
        Script(silent_at=2.0, silent_s=4.0),
        "has reported no position for 1.",
        LANDED,
    ),
    "silent for good": (
        Script(silent_at=2.0, silent_s=1e9),
        "has reported no position for 1.",
        "; it has not been heard for 30 s: PX4's own failsafe has it",
    ),
    "is not simulated any more": (
        Script(
            uid=REAL_UID,
            hil_flag=True,
            parameters={"SYS_HITL": 2},
            wrong=Wrong(flag_lost_at=4.0),
        ),
        "does not say any more that it is simulated",
        LANDED,
    ),
    "tips over after the policy": (
        Script(wrong=Wrong(tips_at=0.5), fastest_s=2 * STEP_S),
        "crashed: it tipped over, 5.0 m above the ground",
        CRASHED,
    ),
    "is terminated while it lands, and refuses to disarm": (
        Script(wrong=Wrong(terminates_below_m=2.0, stays_armed=True, refuses_to_disarm=True)),
        'crashed: PX4 terminated the flight (it says "Attitude failure detected")',
        LEFT_ARMED,
    ),
    "is stuck in the policy's mode": (
        Script(
            wrong=Wrong(falls_back_at=3.0, falls_back_to=POLICY, said_behind="Failsafe activated")
        ),
        "ended the flight, and PX4 stays in its mode "
        '(it says "RL Policy: outside the range of the policy")',
        LANDED,
    ),
    "becomes unready in the air": (
        Script(refuses_mode="policy is being loaded", refuses_from=112.0),
        "the module of the vehicle on udp:script is not ready: policy is being loaded",
        LANDED,
    ),
    "never lands": (
        Script(wrong=Wrong(never_lands=True)),
        "was to land",
        "; it is still armed after 90 s, in PX4's mode Land",
    ),
}


EVERY_DAY = (
    *("never climbs", "falls back", "another ground station", "silent for good", "disarms"),
    *("is not simulated any more", "is stuck in the policy's mode", "never lands"),
)


@pytest.mark.parametrize(
    "name",
    [name if name in EVERY_DAY else pytest.param(name, marks=pytest.mark.all) for name in BROKEN],
)
def test_a_flight_that_is_broken_off(name: str) -> None:
    script, cause, ending = BROKEN[name]
    flight = Flight(script, starts=1 if name in EVERY_DAY else 2)
    text = flight.fails(RefusedError)
    assert cause in text
    assert text.endswith(ending)
    assert not flight.flight.result.kept
    assert flight.vehicle.files["policy.rltp"] == b"old"
    assert bool(flight.flight.result.crash) == (ending in (CRASHED, LEFT_ARMED))
    if ending in (LANDED, CRASHED):
        assert flight.model.is_on_ground
        assert not flight.model.armed
        assert not flight.vehicle.on_trial
    assert flight.model.mode != POLICY or name in ("silent for good", "disarms")


@pytest.mark.parametrize(
    ("wrong", "sign"),
    [
        (Wrong(lands_at_m_s=4.0), "crashed: it hit the ground at 4.0 m/s"),
        (Wrong(drifts_m_s=0.4), "landed 3."),
    ],
)
def test_a_landing_that_fails_is_no_success(wrong: Wrong, sign: str) -> None:
    """After starts that were flown well."""
    flight = Flight(Script(wrong=wrong), starts=2)
    text = flight.fails(RefusedError)
    assert sign in text
    assert [start.success for start in flight.flight.result.starts] == [True, True]
    assert not flight.flight.result.kept
    assert flight.flight.result.state == "land"
    assert flight.vehicle.files["policy.rltp"] == b"old"
    assert not flight.vehicle.on_trial


def test_a_fault_of_this_program_lands_it() -> None:
    """Or an output that nobody takes any more, as of `rlt fly | head`."""
    for step, has_flown in (("set_target", True), ("require_ready", False)):
        flight = Flight()

        def fail(*_: Any) -> None:
            raise BrokenPipeError

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Px4Policies, step, fail)
            with pytest.raises(BrokenPipeError):
                flight.fly()
        assert (LAND in flight.model.modes) == has_flown
        assert flight.is_on_the_ground()
        assert not flight.vehicle.on_trial


def test_ctrl_c_at_any_time_leaves_nothing_behind() -> None:
    """Neither a policy on trial nor a vehicle in the air: at eight moments of a flight."""
    whole = Flight()
    whole.fly()
    reads = whole.link.reads
    for moment in range(0, reads, reads // 8):
        flight = Flight()
        flight.link.interrupt_when = lambda _, at=moment, link=flight.link: link.reads >= at
        with pytest.raises(Interrupted):
            flight.fly()
        assert flight.is_on_the_ground(), moment
        assert not flight.vehicle.on_trial, moment
        assert flight.vehicle.files["policy.rltp"] in (b"old", IMAGE.data), moment


def test_ctrl_c_while_px4_keeps_the_policy_is_told_with_it() -> None:
    flight = Flight()

    def interrupt(vehicle: ScriptedPx4) -> bool:
        if "rlt_policy confirm" in vehicle.shell_lines:
            flight.link.interrupt_when = lambda _: False
            signal.raise_signal(signal.SIGINT)
        return False

    flight.link.interrupt_when = interrupt
    text = flight.fails(Interrupted)
    assert text == f"interrupted{LANDED}; PX4 has kept the policy"
    assert flight.flight.result.kept
    assert flight.vehicle.files["policy.rltp"] == IMAGE.data


def test_a_position_in_the_older_frame_will_do() -> None:
    assert Flight(Script(frames=(d.MAV_FRAME_GLOBAL,))).fly().all_succeeded


def test_a_pilot_is_not_disturbed() -> None:
    flight = Flight(Script(wrong=Wrong(taken_over_at=3.0, taken_by=POSITION)))
    flight.fails(RefusedError)
    at = flight.model.modes.index(POSITION)
    assert flight.model.modes[at:] == [POSITION]
    assert flight.model.armed
    assert "rlt_policy rollback" not in flight.vehicle.shell_lines  # PX4 does it, after the trial


@pytest.mark.parametrize("verb", ["try", "confirm"])
def test_an_answer_of_the_shell_that_is_lost(verb: str) -> None:
    flight = Flight(Script(drops_verb=verb))
    assert flight.fly().kept
    assert flight.vehicle.files == {"policy.rltp": IMAGE.data, "previous.rltp": b"old"}
    assert flight.vehicle.shell_lines.count("rlt_policy confirm") == 1


def test_a_shell_that_answers_late() -> None:
    """On a busy machine; what it says to a question that was asked again is no answer to the next
    one."""
    flight = Flight(Script(shell_busy_s=17.0))
    assert flight.fly().kept
    assert flight.vehicle.shell_lines.count("rlt_policy try") == 1


def test_a_policy_is_not_rolled_back_twice() -> None:
    """The second roll-back would be to the policy before the one that acted before."""
    flight = Flight(Script(drops_verb="rollback", wrong=Wrong(falls_back_at=1.0)))
    flight.fails(RefusedError)
    assert flight.vehicle.shell_lines.count("rlt_policy rollback") == 1
    assert flight.vehicle.files["policy.rltp"] == b"old"
    assert flight.flight.result.notes == []


def test_a_trial_that_is_over_is_not_rolled_back() -> None:
    """That would be to the policy before the one that acts."""
    flight = Flight(Script(wrong=Wrong(falls_back_at=1.0, fault="trial is over")))
    assert 'it says "RL Policy: trial is over"' in flight.fails(RefusedError)
    assert "rlt_policy rollback" not in flight.vehicle.shell_lines
    assert flight.vehicle.files["policy.rltp"] == b"old"


def test_the_trial_of_somebody_else_is_left_alone() -> None:
    flight = Flight(Script(tried_before=b"somebody's"))
    assert (
        "tries another policy: `rlt_policy rollback` in PX4's shell drops that one, "
        "`rlt_policy confirm` keeps it"
    ) in flight.fails(RefusedError)
    assert flight.vehicle.on_trial
    assert flight.vehicle.files["candidate.rltp"] == b"somebody's"
    assert flight.vehicle.shell_lines == ["rlt_policy status"]


def test_the_trial_that_a_killed_flight_has_left_is_begun_anew() -> None:
    flight = Flight(Script(tried_before=IMAGE.data))
    assert flight.fly().kept
    assert flight.vehicle.shell_lines.count("rlt_policy rollback") == 1
    assert flight.vehicle.files == {"policy.rltp": IMAGE.data, "previous.rltp": b"old"}


def test_a_vehicle_that_stays_armed_on_the_ground_is_disarmed() -> None:
    flight = Flight(Script(wrong=Wrong(stays_armed=True)))
    assert flight.fly().kept
    assert flight.is_on_the_ground()


def test_a_vehicle_whose_attitude_stands_still_is_not_flown_by_the_policy() -> None:
    flight = Flight()

    def stream(name: str) -> list[Any]:
        is_mute = name == "ATTITUDE_QUATERNION" and flight.model.mode == POLICY
        return [] if is_mute else streams(name)

    streams = flight.vehicle._stream
    flight.vehicle._stream = stream  # type: ignore[method-assign]
    text = flight.fails(RefusedError)
    assert "has reported no position for 1." in text
    assert text.endswith(LANDED)


def test_several_vehicles_are_refused() -> None:
    flight = Flight()
    other = ScriptedPx4(Script(system=2))
    advance = flight.vehicle.advance

    def advance_both() -> None:
        advance()
        other.advance()
        flight.vehicle.out += other.out
        other.out.clear()

    flight.vehicle.advance = advance_both  # type: ignore[method-assign]
    assert "with the system ids 1, 2: give the address of one" in flight.fails(RefusedError)
    assert flight.vehicle.commands == []


def test_nobody_is_there() -> None:
    flight = Flight()
    flight.vehicle.send = lambda _: None  # type: ignore[method-assign]
    text = flight.fails(PortError)
    assert text.startswith("nothing answers on udp:script within 10 s")


def test_damaged_files_are_not_tried() -> None:
    flight = Flight(Script(wrong_crc32=True))
    assert "has other bytes in /rlt/candidate.rltp" in flight.fails(RefusedError)
    assert "rlt_policy try" not in flight.vehicle.shell_lines


def test_starts_lie_within_what_the_policy_may_be_handed() -> None:
    """The module refuses a target that is further away."""
    image = with_entry(parse_policy(controller()), EntryEnvelope(0.5, 0.3125, 0.36, 1.75, 0.6))
    flight = Flight(starts=2, image=image)
    assert flight.fly().all_succeeded
    assert flight.said[1].startswith("starts up to 0.16 m from the target, not 1 m")


def test_ctrl_c_lands_it() -> None:
    flight = Flight()
    flight.link.interrupt_when = lambda vehicle: vehicle.model.mode == POLICY
    text = flight.fails(Interrupted)
    assert text == f"interrupted{LANDED}"
    assert flight.is_on_the_ground()
    assert not flight.vehicle.on_trial
    assert flight.vehicle.files["policy.rltp"] == b"old"


def test_ctrl_c_before_it_flies_leaves_it_on_the_ground() -> None:
    flight = Flight()
    flight.link.interrupt_when = lambda vehicle: "candidate.rltp" in vehicle.files
    assert flight.fails(Interrupted) == "interrupted"
    assert not flight.vehicle.on_trial
    assert d.MAV_CMD_COMPONENT_ARM_DISARM not in {n for n, _ in flight.vehicle.commands}
