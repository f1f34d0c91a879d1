"""The result of a flight with PX4: the keys of `--json`, the printed lines, and the file for
reports.

A hand-back is what a vehicle does when the policy has given it back to the stock controller
(docs/flight.md). Telemetry reports it: of the motors only their mean signal, which is the
collective thrust where thrust is proportional to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct, structs

from rltools_host.documents import Digest, Line, NotNegative, Number, Unfit, typed
from rltools_host.drones.flight.gate import hover_rule
from rltools_host.drones.flight.result import Measures, Predict, Series, measure, settled_text
from rltools_host.drones.flight.simulator import flight_library
from rltools_host.drones.vehicles.px4_state import Sample
from rltools_host.files import load_json, plain_json
from rltools_host.lines import UNLIMITED, folded
from rltools_host.runs.names import FLIGHT, result_file

FILE = result_file(FLIGHT, "px4")  # in the run's folder
DONE = "done"  # of a flight that came to its end
# Of the gate's starts, what this vehicle's simulator cannot be put into.
NOT_FLOWN = (
    "the gate's starts with a tilt, a spin or a speed: PX4's simulator begins on the ground, and "
    "hovers where the policy takes over",
    "its draws of dynamics, latency, noise and gusts: the simulator has its own",
)

# -- a hand-back -----------------------------------------------------------------------------------

LOOK_S, ATTITUDE_S, THRUST_S = 1.0, 0.5, 0.1  # after the hand-back
MOMENTS_BEFORE = 3  # the mode is reported a little later than it changes
ROUNDING_S = 1e-6
# Up to which it is bumpless.
MAX_THRUST, MAX_ATTITUDE_DEG, MAX_HEIGHT_M = 0.1, 5.0, 0.1


@dataclass(frozen=True)
class Moment:
    """A sample, and the motors' mean signal in [0, 1]; None: not reported."""

    sample: Sample
    collective: float | None


@dataclass(frozen=True)
class HandBack:
    """The figures of a hand-back, from the last moment of the policy's mode on."""

    time_s: NotNegative  # since the policy took over
    speed_m_s: NotNegative  # at that moment
    thrust_change: NotNegative | None  # between two reports, the greatest by 0.1 s after
    attitude_deg: NotNegative  # the greatest rotation within 0.5 s
    height_m: NotNegative  # the greatest change within 1 s
    away_m: NotNegative  # ... of the position on the ground

    @property
    def is_bumpless(self) -> bool:
        return (
            (self.thrust_change is None or self.thrust_change <= MAX_THRUST)
            and self.attitude_deg <= MAX_ATTITUDE_DEG
            and self.height_m <= MAX_HEIGHT_M
        )

    def document(self) -> dict[str, object]:
        return {**asdict(self), "is_bumpless": self.is_bumpless}


def measure_hand_back(
    time_s: float, before: Sequence[Moment], after: Sequence[Moment]
) -> HandBack | None:
    """Measure a hand-back. `before` has the last moments of the policy's mode. Return None where
    nothing sound was reported before or afterwards."""
    after = [moment for moment in after if moment.sample.is_sound]
    if not after or not before[-1].sample.is_sound:
        return None
    begin = before[-1].sample

    def within(limit_s: float) -> list[Moment]:
        end_s = begin.time_s + limit_s + ROUNDING_S
        return [moment for moment in after if moment.sample.time_s <= end_s]

    signals = [
        moment.collective
        for moment in (*before, *within(THRUST_S))
        if moment.collective is not None
    ]
    moved = [
        np.subtract(moment.sample.position_ned, begin.position_ned) for moment in within(LOOK_S)
    ]
    return HandBack(
        time_s,
        begin.speed,
        float(np.abs(np.diff(signals)).max()) if len(signals) > 1 else None,
        max((angle_deg(begin, moment.sample) for moment in within(ATTITUDE_S)), default=0.0),
        max((abs(float(down)) for _, _, down in moved), default=0.0),
        max((math.hypot(north, east) for north, east, _ in moved), default=0.0),
    )


def angle_deg(first: Sample, second: Sample) -> float:
    """Return the angle of the rotation from one attitude to the other."""
    a, b = np.array(first.attitude), np.array(second.attitude)
    cosine = abs(float(a @ b)) / float(np.linalg.norm(a) * np.linalg.norm(b))
    return math.degrees(2.0 * math.acos(min(cosine, 1.0)))


# -- the flight ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FailSafe:
    """The moment when the module gave the vehicle to its fallback."""

    time_s: NotNegative  # since the policy took over
    text: Line  # why, in the module's words


@dataclass
class StartResult:
    """One start: the vehicle at rest, `offset_m` from the target in the contract's frame."""

    offset_m: tuple[float, float, float]
    series: Series | None = None
    measures: Measures | None = None  # of a flight that went on to its end
    cause: str = ""  # why it did not, or is none
    fail_safe: FailSafe | None = None
    hand_back: HandBack | None = None
    prediction: Series | None = None
    predicted: Measures | None = None

    def compare(self, predict: Predict) -> None:
        """Predict the flight from the same beginning in our simulator, beside the real one."""
        if self.series is None or self.measures is None:
            return
        if not np.isfinite(self.series.rows[0]).all():
            return
        times = self.series.times_s
        rows = predict(self.series.rows[0], times)
        self.prediction = Series(times[: len(rows)], rows)
        self.predicted = measure(self.prediction)

    @property
    def success(self) -> bool:
        return self.measures is not None and self.measures.success

    @property
    def max_apart_m(self) -> float | None:
        """Return the maximum distance between the vehicle and our simulator's at the same time."""
        if self.series is None or self.prediction is None:
            return None
        count = min(len(self.series.rows), len(self.prediction.rows))
        apart = self.series.rows[:count, :3] - self.prediction.rows[:count, :3]
        return float(np.linalg.norm(apart, axis=1).max()) if count else None

    def document(self, with_series: bool) -> dict[str, object]:
        document: dict[str, object] = {
            "offset_m": list(self.offset_m),
            "success": self.success,
            "cause": self.cause,
            "failsafe": asdict(self.fail_safe) if self.fail_safe else None,
            "measures": asdict(self.measures) if self.measures else None,
            "hand_back": self.hand_back.document() if self.hand_back else None,
            "predicted": asdict(self.predicted) if self.predicted else None,
            "most_apart_m": self.max_apart_m,
        }
        if with_series:
            document["series"] = self.series.document() if self.series else None
            document["prediction"] = self.prediction.document() if self.prediction else None
        return document


@dataclass
class FlightResult:
    """The result of a flight, as far as it was flown."""

    vehicle: str
    policy_sha256: str = ""
    simulated_by: str = ""
    state: str = ""  # the step of the flight that was reached
    ended: str = ""  # how the vehicle was left
    crash: str = ""  # what shows that it crashed; empty where it did not
    kept: bool = False  # the policy is the vehicle's own now
    starts: list[StartResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # Of quadrotor/settings.h: the vehicle that our simulator flew.
    predicted_with: dict[str, float] = field(default_factory=dict)

    @property
    def successes(self) -> int:
        return sum(start.success for start in self.starts)

    @property
    def all_succeeded(self) -> bool:
        """Return whether all starts succeeded and the vehicle landed."""
        return bool(self.starts) and all(start.success for start in self.starts) and not self.crash

    def document(self, with_series: bool = True) -> dict[str, object]:
        plain: dict[str, object] = plain_json(
            {
                "vehicle": self.vehicle,
                "policy_sha256": self.policy_sha256,
                "simulated_by": self.simulated_by,
                "state": self.state,
                "ended": self.ended,
                "crash": self.crash,
                "kept": self.kept,
                "successes": self.successes,
                "predicted_with": self.predicted_with,
                "starts": [start.document(with_series) for start in self.starts],
                "not_flown": list(NOT_FLOWN),
                "notes": self.notes,
            }
        )
        return plain


def lines(result: FlightResult, width: int = UNLIMITED) -> list[str]:
    """Return the flight for people."""
    has_prediction = any(start.predicted for start in result.starts)
    head: tuple[str, ...] = ("start", "success", "greatest error", "last second", "settled after")
    if has_prediction:
        head = (*head, "predicted", "apart")
    rows = [head, *(_row(start, has_prediction) for start in result.starts)]
    text = folded(rows, width) if result.starts else []
    near = f"within {hover_rule().radius_m:g} m"
    flown = f"{result.successes} of {len(result.starts)} starts {near} in the last second"
    kept = "kept by the vehicle" if result.kept else "given up again by the vehicle"
    text += [f"{flown}; the policy was {kept}", *(f"note: {note}" for note in result.notes)]
    return [*text, *(f"not flown: {what}" for what in NOT_FLOWN)]


def _row(start: StartResult, has_prediction: bool) -> tuple[str, ...]:
    offset = " ".join(f"{value:+.1f}" for value in start.offset_m)
    measures = start.measures
    if measures is None:
        cells: tuple[str, ...] = (offset, "no", start.cause or "not flown", "", "")
    else:
        cells = (
            *(offset, "yes" if measures.success else "no"),
            f"{measures.greatest_error_m:.2f} m",
            f"{measures.last_second_error_m:.3f} m",
            settled_text(measures.settling_s),
        )
    if not has_prediction:
        return cells
    apart, predicted = start.max_apart_m, start.predicted
    return (
        *cells,
        f"last second {predicted.last_second_error_m:.3f} m" if predicted else "",
        f"{apart:.2f} m" if apart is not None else "",
    )


# -- flight-px4.json, read back --------------------------------------------------------------------


class StoredSeries(Struct, frozen=True):
    time_s: list[Number]
    rows: list[list[Number | None]]  # null: the reported value was not a number

    def read(self) -> Series:
        columns = len(flight_library().contract.observations)
        whole = all(len(row) == columns for row in self.rows)
        if not self.rows or len(self.time_s) != len(self.rows) or not whole:
            raise Unfit(f"a series is not rows of {columns} numbers, each with its time")
        return Series(np.array(self.time_s, float), np.array(self.rows, float))


class StoredStart(Struct, frozen=True):
    offset_m: tuple[Number, Number, Number]
    cause: str
    measures: Measures | None
    hand_back: HandBack | None
    predicted: Measures | None
    series: StoredSeries | None
    prediction: StoredSeries | None
    fail_safe: FailSafe | None = msgspec.field(name="failsafe")

    def result(self) -> StartResult:
        series, prediction = (s and s.read() for s in (self.series, self.prediction))
        return StartResult(**{**structs.asdict(self), "series": series, "prediction": prediction})


class StoredFlight(Struct, frozen=True):
    vehicle: str
    policy_sha256: Digest
    simulated_by: str
    state: str
    ended: str
    kept: bool
    predicted_with: dict[Line, Number]
    starts: list[StoredStart]
    notes: list[str]
    crash: str = ""  # older ones have none


def read_flight(path: Path) -> FlightResult:
    """Read a file that `rlt fly` wrote with a PX4; raise ValueError (Unfit, with the field) or
    OSError for others."""
    stored: StoredFlight = typed(load_json(path, path.parent), StoredFlight)
    starts = [start.result() for start in stored.starts]
    return FlightResult(**{**structs.asdict(stored), "starts": starts})
