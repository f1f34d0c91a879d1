"""A flight with a simulated PX4 that has our module, as a table of steps.

PX4's own modes take off, go to each start and land; the policy's mode has the vehicle for the ten
seconds of a start. Where a step fails, its row in the table says what is done then, and the error
says what failed and how the vehicle was left.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from rltools_host.boards.messages import Progress
from rltools_host.boards.push import Say, headline
from rltools_host.boards.transport import Link, UdpLink
from rltools_host.drones.flight.gate import hover_rule
from rltools_host.drones.flight.result import Predict
from rltools_host.drones.flight.simulator import Signals
from rltools_host.drones.vehicles.px4 import NAN, Px4Vehicle
from rltools_host.drones.vehicles.px4_guard import (
    HEIGHT_M,
    PX4_SILENCE_S,
    Air,
    CrashWatch,
    Simulation,
    bring_down,
    collect,
    judge,
    require_still,
)
from rltools_host.drones.vehicles.px4_module import MODE_NAME, Px4Policies
from rltools_host.drones.vehicles.px4_result import DONE, FlightResult, StartResult
from rltools_host.drones.vehicles.px4_start import StartFlight, Starts, starts_for
from rltools_host.drones.vehicles.px4_state import (
    HOLD,
    SIH_PARAMETERS,
    SIH_TABLE,
    TAKE_OFF,
    THRUST_MODEL,
    Mode,
    Sample,
    motor_signals,
    settings_of_sih,
)
from rltools_host.errors import Interrupted, RefusedError, RltError
from rltools_host.interruption import Interruption
from rltools_host.policies.entry import read_leaving_policy
from rltools_host.policies.image import PolicyImage
from rltools_host.runs.names import LAST

USUAL_STARTS = 5
# A ground station's. PX4 goes on to send to the port that it has heard first.
OWN_PORT = 14550
MIN_RATE_HZ = 10.0
ARM_LIMIT_S, CLIMB_LIMIT_S = 5.0, 40.0
CLIMBED_M = HEIGHT_M - 0.5
MAX_AWAY_M = 3.0  # of the landing from the take-off; the starts are up to 1 m from it
# Of the trial: from its beginning to the first start, and of a start. Measured: docs/flight.md.
BEFORE_S, START_S = 40.0, 25.0
TRIAL = "RLT_TRIAL"
LINK_LOSS = "NAV_DLL_ACT"  # what PX4 does without a ground station


@dataclass(frozen=True)
class Px4Request:
    run: str
    url: str  # udp:HOST:PORT
    starts: int = USUAL_STARTS  # the first of px4_start.STARTS
    # Our simulator with settings and signals; `settings` change those that the vehicle reports.
    predictor: Callable[[Mapping[str, float], Signals], Predict] | None = None
    settings: Mapping[str, float] = field(default_factory=dict)
    which: str = LAST  # of the run's policies


class AfterFailure(Enum):
    """The action after a step that failed."""

    LEAVE = "it is left as it was"
    GIVE_UP = "the policy is given up"
    LAND = "PX4 lands, then the policy is given up"


class Px4Flight:
    """One flight; `result` has what is known of it, also where it fails."""

    def __init__(
        self,
        vehicle: Px4Vehicle,
        image: PolicyImage,
        request: Px4Request,
        say: Say,
        progress: Progress | None = None,
    ) -> None:
        self.vehicle = vehicle
        self.result = FlightResult(vehicle.connection.description, image.sha256)
        self._image = image
        self._request = request
        self.say = say
        self._progress = progress
        # Known after the first steps.
        self._simulation: Simulation
        self._policies: Px4Policies
        self._policy_mode: Mode
        self._starts: Starts
        self._air: Air
        self._crash: CrashWatch | None = None
        self._trial_s = self._trial_ends = 0.0
        self._predict: Predict | None = None

    def see_that_it_is_simulated(self) -> None:
        self._simulation = judge(collect(self.vehicle), self.vehicle.name)
        self.result.simulated_by = self._simulation.by
        self.say(f"{self.vehicle.name} is simulated: {self._simulation.by}")

    def look_at_it(self) -> None:
        vehicle = self.vehicle
        self._starts = starts_for(self._image, self._request.starts, self.say)
        if vehicle.is_armed:
            is_acting = vehicle.modes().get(MODE_NAME) == vehicle.mode
            acting = ", and its policy is acting" if is_acting else ""
            raise RefusedError(
                f"{vehicle.name} is armed{acting}: land it first, by `commander land` in PX4's "
                "shell"
            )
        self._policies = Px4Policies(vehicle, self._simulation.is_sitl)
        self._policy_mode = self._policies.mode()
        self._prepare_prediction()
        values = vehicle.parameters((TRIAL, LINK_LOSS))
        if TRIAL not in values:
            raise RefusedError(f"{vehicle.name} does not report its {TRIAL}")
        self._require_trial(values[TRIAL])
        if values.get(LINK_LOSS) == 0:
            self.result.notes.append(
                f"{LINK_LOSS} is 0: had this program ended, PX4 would have stayed in its mode"
            )
        self._listen()

    def _require_trial(self, trial_s: float) -> None:
        starts = len(self._starts.offsets_m)
        needed = BEFORE_S + START_S * starts
        self._trial_s = float(trial_s)
        if trial_s < needed:
            fitting = int((trial_s - BEFORE_S) / START_S)
            fewer = f"give --starts {fitting}, or" if fitting > 0 else ""
            raise RefusedError(
                f"a trial of {self.vehicle.name} takes {trial_s:g} s (RLT_TRIAL), and "
                f"{starts} starts take {needed:g} s: {fewer} set it to {needed:g}"
            )

    def push(self) -> None:
        self.say(headline(self._image))
        self._policies.push(self._image, self._progress)
        self._trial_ends = self.vehicle.clock() + self._trial_s
        self.say("on trial, checked by PX4")
        self._policies.require_ready()

    def take_off(self) -> None:
        vehicle = self.vehicle
        assert vehicle.sample is not None
        assert vehicle.global_position is not None
        self._air = air = Air(vehicle, self._simulation, vehicle.sample, vehicle.global_position)
        self._crash = air.crash
        altitude = vehicle.global_position.altitude_m + HEIGHT_M
        nowhere = (NAN, NAN, NAN)  # yaw and position as they are
        vehicle.command("NAV_TAKEOFF", -1.0, 0.0, 0.0, *nowhere, altitude, what="to take off")
        require_still(vehicle, self._simulation)
        vehicle.command("COMPONENT_ARM_DISARM", 1.0, what="to arm")
        if not vehicle.wait(lambda: vehicle.is_armed, ARM_LIMIT_S):
            raise RefusedError(
                f"{vehicle.name} acknowledged to arm, and does not{vehicle.reason()}"
            )
        air.allowed = {TAKE_OFF, HOLD}
        if not vehicle.wait(lambda: vehicle.mode in air.allowed, ARM_LIMIT_S):
            raise RefusedError(f"{vehicle.name} does not take off: it is in {vehicle.mode}")
        self.say(f"armed; it climbs to {HEIGHT_M:g} m")
        if not vehicle.wait(lambda: air.height_m > CLIMBED_M, CLIMB_LIMIT_S, air.watch):
            raise RefusedError(
                f"{vehicle.name} reached {air.height_m:.1f} m of {HEIGHT_M:g} m within "
                f"{CLIMB_LIMIT_S:g} s{vehicle.reason()}"
            )
        air.has_climbed = True

    def fly_the_starts(self) -> None:
        self.result.starts = [StartResult(offset) for offset in self._starts.offsets_m]
        near_m, mode = self._starts.arrived_m, self._policy_mode
        for start in self.result.starts:
            flight = StartFlight(self._air, self._policies, mode, start, near_m)
            try:
                self._require_time()
                flight.carry_out()
            except RltError as error:
                start.cause = str(error)
                raise
            self.say(line_of(start))

    def _require_time(self) -> None:
        left_s = self._trial_ends - self.vehicle.clock()
        if left_s < START_S:
            raise RefusedError(
                f"{left_s:.0f} s are left of the trial of {self.vehicle.name}, too few for another "
                f"start: set RLT_TRIAL above {self._trial_s:g}, or fly fewer starts"
            )

    def land(self) -> None:
        self.bring_down()
        vehicle, crash = self.vehicle, self._air.crash
        if crash.found:
            raise RefusedError(f"{vehicle.name} crashed: {crash.found}")
        if vehicle.is_armed:
            raise RefusedError(f"{vehicle.name} was to land")
        if crash.away_m > MAX_AWAY_M:
            raise RefusedError(
                f"{vehicle.name} landed {crash.away_m:.1f} m away from where it took off"
            )

    def bring_down(self) -> None:
        """Land the vehicle, and note how it was left and whether it crashed."""
        self.result.ended = bring_down(self.vehicle, self._crash)
        if self._crash is not None:
            self.result.crash = self._crash.found

    def keep_or_give_up(self) -> None:
        if self.result.all_succeeded:
            with Interruption() as interruption:  # else nobody knows whether PX4 has kept it
                interruption.armed = True
                self._policies.confirm()
                self.result.kept = True
            if interruption.requested:
                raise KeyboardInterrupt
        else:
            self.give_up()

    def give_up(self) -> None:
        """Give up the policy, which is on trial."""
        self._policies.roll_back()

    def compare(self) -> None:
        """Compare with our simulator; this takes its time, so it comes after the landing."""
        if (predict := self._predict) is not None:
            for start in self.result.starts:
                start.compare(predict)

    def _prepare_prediction(self) -> None:
        request = self._request
        if request.predictor is None:
            return
        reported = self.vehicle.parameters((*SIH_PARAMETERS, THRUST_MODEL))
        if missing := [name for name in SIH_PARAMETERS if name not in reported]:
            self._assume(f"the vehicle of the table {SIH_TABLE}", missing, "`--set NAME=VALUE`")
        if THRUST_MODEL not in reported:
            self._assume(f"{THRUST_MODEL} 0", [THRUST_MODEL], "the parameter of that name")
        settings = {**settings_of_sih(reported), **request.settings}
        factor = reported.get(THRUST_MODEL, 0.0)
        self._predict = request.predictor(settings, partial(motor_signals, factor=factor))
        self.result.predicted_with = {**settings, THRUST_MODEL: factor}

    def _assume(self, what: str, missing: Sequence[str], how: str) -> None:
        """Note what the prediction assumes where the vehicle does not report it."""
        self.result.notes.append(
            f"assumed for the prediction: {what}, because {self.vehicle.name} does not report its "
            f"{', '.join(missing)}; state it by {how}"
        )

    def _listen(self) -> None:
        """Ask the vehicle for its position; raise RefusedError unless it reports it often
        enough."""
        vehicle = self.vehicle
        vehicle.ask_for_streams()
        seen: list[Sample] = []
        vehicle.on_sample = seen.append
        vehicle.wait(lambda: False, 1.0)
        vehicle.on_sample = lambda _: None
        if (
            len(seen) < MIN_RATE_HZ
            or vehicle.global_position is None
            or vehicle.is_on_ground is None
        ):
            raise RefusedError(
                f"{vehicle.name} reports its position {len(seen)} times a second, where "
                f"{MIN_RATE_HZ:g} are needed (LOCAL_POSITION_NED, ATTITUDE_QUATERNION, "
                "GLOBAL_POSITION_INT, EXTENDED_SYS_STATE): give it some seconds to find itself"
            )
        if not vehicle.is_on_ground:
            raise RefusedError(f"{vehicle.name} is not on the ground: land it first")


@dataclass(frozen=True)
class Step:
    name: str  # what the report calls it
    do: Callable[[Px4Flight], None]
    after_failure: AfterFailure


STEPS: Sequence[Step] = (
    Step("find the vehicle", lambda flight: flight.vehicle.find(), AfterFailure.LEAVE),
    Step("see that it is simulated", Px4Flight.see_that_it_is_simulated, AfterFailure.LEAVE),
    Step("look at it", Px4Flight.look_at_it, AfterFailure.LEAVE),
    Step("push the policy", Px4Flight.push, AfterFailure.GIVE_UP),
    Step("arm and take off", Px4Flight.take_off, AfterFailure.LAND),
    Step("fly the starts", Px4Flight.fly_the_starts, AfterFailure.LAND),
    Step("land", Px4Flight.land, AfterFailure.LAND),
    Step("keep the policy or give it up", Px4Flight.keep_or_give_up, AfterFailure.GIVE_UP),
    Step("compare with our simulator", Px4Flight.compare, AfterFailure.LEAVE),
)


def carry_out(flight: Px4Flight) -> FlightResult:
    """Carry out all steps in order; an error has the flight's result as its details.

    Whatever ends a step, also a fault of this program: the action of its row comes first.
    """
    result = flight.result
    step = STEPS[0]
    try:
        for step in STEPS:
            result.state = step.name
            step.do(flight)
        result.state = DONE
        require_success(result)
    except BaseException as error:
        if result.state != DONE:
            clean_up(flight, step.after_failure)
        if not isinstance(error, (RltError, KeyboardInterrupt)):
            with contextlib.suppress(Exception):
                flight.say(f"{flight.vehicle.name}: {result.ended or 'it was not flown'}")
            raise
        failure = failure_of(error, result)
        failure.details = result.document(with_series=False)
        raise failure from None
    return result


def require_success(result: FlightResult) -> None:
    """Raise RefusedError unless every start was a success: the policy was then given up."""
    if not result.all_succeeded:
        failed = len(result.starts) - result.successes
        raise RefusedError(
            f"{failed} of {len(result.starts)} starts were not within {hover_rule().radius_m:g} m "
            "in the last second, and the policy was given up"
        )


def clean_up(flight: Px4Flight, what: AfterFailure) -> None:
    """Carry out the action after a failure, and note how the vehicle was left."""
    vehicle, result = flight.vehicle, flight.result
    if what is AfterFailure.LEAVE:
        return
    if what is AfterFailure.LAND:
        flight.bring_down()
    if vehicle.is_armed or vehicle.silence_s > PX4_SILENCE_S:
        return  # PX4 gives the policy up when its trial is over
    try:
        flight.give_up()
    except RltError as error:
        result.notes.append(str(error))


def failure_of(error: BaseException, result: FlightResult) -> RltError:
    """Return the error with what failed and how the vehicle was left."""
    left = f"; {result.ended}" if result.ended else ""
    if result.crash and result.crash not in str(error):
        left = f"; {result.crash}{left}"
    if not isinstance(error, RltError):
        kept = "; PX4 has kept the policy" if result.kept else ""
        return Interrupted(f"interrupted{left}{kept}")
    return RefusedError(f"{error}{left}") if left else error


def line_of(start: StartResult) -> str:
    assert start.measures is not None
    offset = ", ".join(f"{value:+.2g}" for value in start.offset_m)
    near = f"within {hover_rule().radius_m:g} m"
    verdict = near if start.success else f"not {near}"
    return f"({offset}) m: {verdict}, {start.measures.last_second_error_m:.3f} m at the end"


def fly(
    request: Px4Request,
    say: Say,
    keep: Callable[[FlightResult], None] = lambda _: None,
    progress: Progress | None = None,
    open_link: Callable[[str], Link] = lambda url: UdpLink(url, OWN_PORT),
    clock: Callable[[], float] = time.monotonic,
) -> FlightResult:
    """Fly the whole flight with the policy of a run; `keep` receives the result, also of a
    failure."""
    image = read_leaving_policy(request.run, request.which, say)
    image.verify()
    vehicle = Px4Vehicle(open_link(request.url), clock)
    flight = Px4Flight(vehicle, image, request, say, progress)
    try:
        result = carry_out(flight)
    except RltError:
        with contextlib.suppress(RltError):  # how the vehicle was left is what must be known
            keep(flight.result)
        raise
    finally:
        vehicle.close()
    keep(result)
    return result
