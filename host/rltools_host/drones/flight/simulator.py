"""Simulated flights of a quadrotor (host/native/flight_library.cpp) in ticks of 2 ms, the rule by
which one succeeds, and the causes of failure.

The core computes physics and noise, and the firmware's own executor runs the policy. The random
numbers of a flight depend on its seed and episode number alone.
"""

from __future__ import annotations

import ctypes
import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from msgspec import Struct, field, structs
from numpy.typing import ArrayLike, NDArray

from rltools_host.build import description
from rltools_host.build.description import Parameter
from rltools_host.build.native import host_library
from rltools_host.documents import NotNegative, Whole
from rltools_host.environments.library import checked_seed, setting_bits
from rltools_host.errors import BoardMismatchError, UsageError
from rltools_host.policies.contract import Contract
from rltools_host.policies.core import REASONS
from rltools_host.policies.image import DamagedPolicyError, Float32Array, PolicyImage


class Cause(enum.IntEnum):
    """The reason why a flight ended, as host/native/flight_library.cpp numbers them."""

    SUCCESS = 0
    POSITION_LIMIT = 1
    VELOCITY_LIMIT = 2
    RATE_LIMIT = 3
    EXECUTOR_FAULT = 4
    TOO_FAR = 5
    TILT_LIMIT = 6

    @property
    def key(self) -> str:
        """Return the name that JSON has."""
        return self.name.lower()

    @property
    def text(self) -> str:
        return TEXTS[self][1]

    @property
    def short(self) -> str:
        return TEXTS[self][0]

    @classmethod
    def of(cls, key: str) -> Cause:
        return cls[key.upper()]


# In a table, and in a sentence.
TEXTS = {
    Cause.SUCCESS: ("success", "success"),
    Cause.POSITION_LIMIT: ("away", "the limit of the distance from the target was broken"),
    Cause.VELOCITY_LIMIT: ("fast", "the limit of the velocity was broken"),
    Cause.RATE_LIMIT: ("spin", "the limit of the angular velocity was broken"),
    Cause.EXECUTOR_FAULT: ("fault", "the executor found a fault, and the policy did not act"),
    Cause.TOO_FAR: ("far", "it was not within the radius when it had to be"),
    Cause.TILT_LIMIT: ("tilt", "it tilted further than it may"),
}
FAILURES = tuple(cause for cause in Cause if cause != Cause.SUCCESS)


MAX_TILT = 180.0  # degrees: upside down


@dataclass(frozen=True)
class Rule:
    """The rule by which a flight succeeds: it lasts `seconds` without a broken limit or a fault, is
    within `radius_m` of its target for the part `share` of the ticks of the last `last_seconds`,
    and never tilts further than `most_tilt` degrees."""

    seconds: float
    last_seconds: float
    radius_m: float
    share: float = 1.0
    most_tilt: float = MAX_TILT

    @property
    def text(self) -> str:
        share = "" if self.share == 1 else f"{100 * self.share:g} % of "
        tilt = (
            ""
            if self.most_tilt >= MAX_TILT
            else f", never tilted by more than {self.most_tilt:g} deg"
        )
        return (
            f"within {self.radius_m:g} m for {share}the last {self.last_seconds:g} s "
            f"of {self.seconds:g} s{tilt}"
        )

    def in_ticks(self, tick_s: float) -> tuple[int, int, int]:
        """Return the ticks of the flight, those at its end that are judged, and how many of these
        must be within the radius."""
        ticks, judged = round(self.seconds / tick_s), round(self.last_seconds / tick_s)
        return ticks, judged, math.ceil(self.share * judged - 1e-9)


def settled_from(errors_m: NDArray[Any], radius_m: float) -> int | None:
    """Return the index from which on all distances are within the radius; None where the last one
    is not."""
    far = np.flatnonzero(errors_m > radius_m)
    if not far.size:
        return 0
    return int(far[-1]) + 1 if far[-1] + 1 < errors_m.size else None


Array = NDArray[Any]

# Of the contract's 13 observations.
POSITION, VELOCITY = slice(0, 3), slice(3, 6)
ATTITUDE, ANGULAR_VELOCITY = slice(6, 10), slice(10, 13)


class ExecutorLimits(Struct, frozen=True, forbid_unknown_fields=True):
    """The executor's limits: ExecutorLimits of policy/executor.h, with its defaults.

    Gates' files and the results of flights have two of them by their former names.
    """

    max_age_us: Whole = field(default=0, name="most_age_us")
    jitter_us: Whole = 0
    max_equal: Whole = field(default=0, name="most_equal")
    range_margin: NotNegative = 0.0
    recovery_ticks: Whole = 1
    give_up_ticks: Whole = 0


@dataclass(frozen=True)
class FlightLibrary:
    """The native library of flights.

    `records` has Airframe, by which flights are counted; Reading, the true state at a tick, without
    noise; Sample, a tick's state, observation and action; Outcome, the end of a policy's flight;
    and Excursion, how far a flight strayed (host/native/flight.h and policy_flights.h).
    """

    functions: ctypes.CDLL
    records: Mapping[str, np.dtype[Any]]
    contract: Contract
    settings: tuple[Parameter, ...]
    airframe: tuple[str, ...]  # the settings that an airframe has
    tables: tuple[str, ...]  # their names; table 1 is the first
    statuses: tuple[str, ...]  # of the executor, in words
    tick_us: int
    flight_bytes: int
    max_threads: int

    @property
    def tick_s(self) -> float:
        return self.tick_us * 1e-6

    def table_name(self, table: int) -> str:
        return self.tables[table - 1] if table else "custom"

    def default(self, setting: str) -> float:
        return next(each.default for each in self.settings if each.name == setting)

    def setting_bits(self, given: Mapping[str, float]) -> NDArray[np.uint32]:
        return setting_bits("flights", self.settings, given)


@cache
def flight_library() -> FlightLibrary:
    """Return the library; build it first where it is not up to date."""
    native = host_library("flight")
    described = native.description
    return FlightLibrary(
        native.functions,
        native.records,
        Contract(
            description.channels(described["observations"]),
            description.channels(described["actions"]),
            described["step_interval_us"],
        ),
        description.parameters(described["settings"]),
        tuple(described["airframe"]),
        tuple(described["tables"]),
        tuple(described["statuses"]),
        described["step_interval_us"],
        described["flight_bytes"],
        described["max_threads"],
    )


class Flight:
    """One flight that the caller steps: episode `episode` of a seed.

    `settings` are those of quadrotor/settings.h, by name.
    """

    def __init__(
        self, seed: int, episode: int, settings: Mapping[str, float] | None = None
    ) -> None:
        self.library = flight_library()
        self._bits = self.library.setting_bits(settings or {})
        self._memory = np.zeros(-(-self.library.flight_bytes // 8), np.uint64)
        self._flight = ctypes.c_void_p(self._memory.ctypes.data)
        self._reading = np.zeros(1, self.library.records["Reading"])
        self.begin(seed, episode)

    def begin(self, seed: int, episode: int) -> None:
        """Begin another episode with the same settings."""
        self.library.functions.rlt_flight_begin(
            self._flight, self._bits.ctypes.data, checked_seed(seed), episode
        )

    def set_state(self, observation: ArrayLike) -> None:
        """Put the vehicle into the state that the contract's 13 numbers describe; the rotors keep
        their speeds."""
        values = np.array(observation, np.float32)
        if values.shape != (len(self.library.contract.observations),):
            raise UsageError(f"a quadrotor has 13 observations, not {values.shape}")
        length = np.linalg.norm(values[ATTITUDE])
        if not (np.isfinite(values).all() and length > 0.0):
            raise UsageError(
                "a quadrotor's state has finite numbers, and an attitude that is not 0"
            )
        values[ATTITUDE] /= length
        self.library.functions.rlt_flight_set_state(self._flight, values.ctypes.data)

    def observe(self) -> Float32Array:
        """Return the contract's 13 numbers with the sensors' noise; they stay the same until the
        next step."""
        observation = np.empty(len(self.library.contract.observations), np.float32)
        self.library.functions.rlt_flight_observe(self._flight, observation.ctypes.data)
        return observation

    def step(self, thrusts: ArrayLike) -> Cause | None:
        """Advance by one tick with these fractions of the maximum thrusts; return the limit that
        broke, if any."""
        values = np.ascontiguousarray(thrusts, np.float32)
        if values.shape != (len(self.library.contract.actions),):
            raise UsageError(f"a quadrotor has 4 thrusts, not {values.shape}")
        broken = self.library.functions.rlt_flight_step(self._flight, values.ctypes.data)
        return Cause(broken) if broken else None

    def read(self) -> Any:
        """Return the true state at this tick, a record Reading."""
        self.library.functions.rlt_flight_read(self._flight, self._reading.ctypes.data)
        return self._reading[0].copy()

    def read_airframe(self, record: Array) -> None:
        """Write the airframe at this tick into `record`, an array of one record Airframe."""
        self.library.functions.rlt_flight_airframe(self._flight, record.ctypes.data)


Signals = Callable[[ArrayLike], NDArray[np.float64]]  # of motors, in [0, 1], for thrusts


class SignalledFlight(Flight):
    """A flight whose rotors turn at the speeds of the signals that a flight controller makes of the
    policy's thrusts. Where the controller's thrust curve is not the rotors' own, other thrusts
    result."""

    def __init__(self, settings: Mapping[str, float], signals: Signals) -> None:
        super().__init__(0, 0, settings)
        self._signals = signals
        record = np.zeros(1, self.library.records["Airframe"])
        self.read_airframe(record)
        self._curve = np.array(record["thrust"][0], np.float64)[::-1]  # of numpy's polynomials

    def step(self, thrusts: ArrayLike) -> Cause | None:
        """Advance by one tick with the thrusts that the policy wants."""
        reached = np.polyval(self._curve, self._signals(thrusts)) / self._curve.sum()
        return super().step(reached)


def airframes(settings: Mapping[str, float], seed: int, episodes: Sequence[int]) -> Array:
    """Return the airframes (len(episodes)) with which the episodes begin: records of Airframe."""
    library = flight_library()
    found = np.zeros(len(episodes), library.records["Airframe"])
    flight = Flight(seed, 0, settings)
    for record, episode in zip(found.reshape(-1, 1), episodes, strict=True):
        flight.begin(seed, episode)
        flight.read_airframe(record)
    return found


# Of a policy that is no image: from a tick, the numbers of flights that began at once, counted from
# the first that is flown (n), and what is observed of them (n, 13), to thrusts (n, 4) in [0, 1].
# MAX_TOGETHER fly at a time: 0 to 31, then 32 to 63.
ActFunction = Callable[[int, NDArray[np.uint32], Float32Array], ArrayLike]
MAX_TOGETHER = 32  # kLanes of host/native/policy_flights.h
ACT = ctypes.CFUNCTYPE(
    *(ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32),
    *(ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_float)),
    ctypes.POINTER(ctypes.c_float),
)


class Caller:
    """The function that the library calls in place of a policy image; an error in it ends the
    flights."""

    def __init__(self, act: ActFunction) -> None:
        self._act = act
        self.error: BaseException | None = None
        self.function = ACT(self._called)

    @property
    def address(self) -> int:
        return ctypes.cast(self.function, ctypes.c_void_p).value or 0

    def _called(self, tick: int, count: int, index: Any, observation: Any, thrusts: Any) -> int:
        observed, done = (
            np.ctypeslib.as_array(values, (count, len(channels)))
            for values, channels in (
                (observation, flight_library().contract.observations),
                (thrusts, flight_library().contract.actions),
            )
        )
        try:
            done[:] = self._act(tick, np.ctypeslib.as_array(index, (count,)), observed)
        except BaseException as error:  # whatever it is, it goes on where the flights began
            self.error = error
            return 1
        return 0


HIDDEN_TICKS = 10  # between two hidden states that are kept


def check_policy(image: PolicyImage) -> None:
    """Raise BoardMismatchError or DamagedPolicyError where the image cannot fly here."""
    library = flight_library()
    data = image_bytes(image)
    where = ctypes.c_uint32()
    reason = library.functions.rlt_flight_check_policy(
        data.ctypes.data, data.size, ctypes.byref(where)
    )
    if not reason:
        return
    if REASONS[reason] == "other_contract":
        difference = library.contract.difference(image.contract)
        raise BoardMismatchError(
            f"{image.origin} is not a quadrotor's policy: {difference.replace('there', 'of it', 1)}"
        )
    raise DamagedPolicyError(image.origin, REASONS[reason], image.runner.reasons[reason])


def image_bytes(image: PolicyImage) -> NDArray[np.uint8]:
    copy: NDArray[np.uint8] = np.frombuffer(image.data, np.uint8).copy()
    return copy  # on a boundary of at least four bytes


def fly(
    policy: PolicyImage | ActFunction,
    rule: Rule,
    settings: Mapping[str, float],
    seed: int,
    *,
    first_episode: int = 0,
    count: int = 1,
    limits: ExecutorLimits | None = None,
    threads: int = 1,
    traced: bool = False,
    hidden: Float32Array | None = None,
    starts: Float32Array | None = None,
    excursions: Array | None = None,
) -> tuple[Array, list[Array]]:
    """Fly whole flights of a policy; return records of Outcome (count) and, where `traced`, each
    flight's records of Sample, one a tick.

    `limits` are those of the executor, which runs the policy of an image. `hidden` (count, ticks /
    HIDDEN_TICKS, state_dim) receives the policy's hidden states. `starts` (count, 13) sets the
    vehicles' states as the contract's numbers describe them. `excursions` (count) receives how far
    the flights strayed.
    """
    if excursions is None and rule.most_tilt < MAX_TILT:
        excursions = np.zeros(count, flight_library().records["Excursion"])
    data, caller = np.zeros(0, np.uint8), None
    if isinstance(policy, PolicyImage):
        check_policy(policy)
        data = image_bytes(policy)
    else:
        caller = Caller(policy)
    library = flight_library()
    ticks, judged, needed = rule.in_ticks(library.tick_s)
    bits = library.setting_bits(settings)
    assert starts is None or starts.shape == (count, len(library.contract.observations))
    assert hidden is None or hidden.shape[:2] == (count, -(-ticks // HIDDEN_TICKS))
    outcomes = np.zeros(count, library.records["Outcome"])
    samples = np.zeros((count, ticks) if traced else 0, library.records["Sample"])
    order = np.zeros(1, library.records["Order"])
    asked = {
        "settings": bits.ctypes.data,
        "image": data.ctypes.data,
        "image_bytes": data.size,
        "act": 0 if caller is None else caller.address,
        "seed": checked_seed(seed),
        "first_episode": first_episode,
        "count": count,
        "ticks": ticks,
        "judged_ticks": judged,
        "needed_ticks": needed,
        "radius_m": rule.radius_m,
        "max_tilt_rad": math.radians(rule.most_tilt),
        "starts": 0 if starts is None else starts.ctypes.data,
        "excursions": 0 if excursions is None else excursions.ctypes.data,
        "threads": min(max(threads, 1), library.max_threads, count),
        "outcomes": outcomes.ctypes.data,
        "samples": samples.ctypes.data if traced else 0,
        "hidden": 0 if hidden is None else hidden.ctypes.data,
        "hidden_dim": 0 if hidden is None else hidden.shape[-1],
        "hidden_ticks": HIDDEN_TICKS,
    }
    for name, value in asked.items():
        order[name] = value
    for name, value in structs.asdict(limits or ExecutorLimits()).items():
        order["limits"][name] = value
    library.functions.rlt_flight_fly(order.ctypes.data)
    if caller is not None and caller.error is not None:
        raise caller.error
    return outcomes, [
        row[: outcome["ticks"]] for row, outcome in zip(samples, outcomes, strict=False)
    ]
