"""The values of a fit with their units: per mass, and with a mass the settings of an airframe."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from rltools_host.drones.fitting.fit import DRAGS, Fit
from rltools_host.drones.fitting.formats import GRAVITY_M_S2
from rltools_host.drones.fitting.model import P

Array = NDArray[np.float64]

FITTED = "from the log"
GIVEN = "given"
ASSUMED = "assumed"
UNKNOWN = "not seen: the default stays"
# What moves the drone, and is varied in training. Inertia about z alone matters little, where what
# the torque of the rotors turns is known.
LAGS = ("lag_up_s", "lag_down_s")
MOVES = (
    *LAGS,
    "greatest thrust of a rotor / mass",
    *("inertia_x / mass", "inertia_y / mass"),
    "mass torque / (thrust inertia_z)",
)
MIN_SPREAD = 0.05  # battery and propellers are not always as they were in the log
WIDEST_SPREAD = 0.3
ACTION_S = 0.02  # the shortest in training: a lag counts as one at least
LONGEST_LATENCY_S = 0.02  # that training draws
CUSTOM_AIRFRAME = 0  # the environment's `airframe` setting: the values of the settings themselves


@dataclass(frozen=True)
class Value:
    """A parameter with its interval of 95 %, where it has one."""

    name: str
    unit: str
    value: float | None  # None: not known
    low: float | None = None
    high: float | None = None
    source: str = FITTED

    @property
    def note(self) -> str:
        """Return the source of the value, where that is not the log."""
        return "" if self.source == FITTED else self.source


class FitResult:
    """The values of a fit; `mass_kg` turns them into the settings of an airframe."""

    def __init__(
        self,
        fit: Fit,
        mass_kg: float | None,
        rotor_x_m: float | None,
        rotor_y_m: float | None,
    ) -> None:
        self.fit = fit
        self.mass_kg = mass_kg
        self.rotors = (rotor_x_m, rotor_y_m)

    # -- one value -----------------------------------------------------------------------------

    def _value(
        self,
        name: str,
        unit: str,
        function: Callable[[Array], float],
        positive: bool = False,
        source: str = FITTED,
        chosen: bool = False,
    ) -> Value:
        value = self.fit.value(function)
        low, high = self.fit.interval(function, positive, chosen)
        if low == high:  # nothing of it is from the log
            return Value(name, unit, value, source=source)
        return Value(name, unit, value, low, high, source)

    def _lag(self, name: str, index: int) -> Value:
        if index not in self.fit.estimate.free and index not in self.fit.no_lag:
            return Value(name, "s", None, source=UNKNOWN)
        if index in self.fit.no_lag:
            return Value(name, "s", 0.0, 0.0, 0.5 * self.fit.log.step_s)
        return self._value(name, "s", lambda theta: float(np.exp(theta[index])), True)

    def _drag(self, index: int, name: str, unit: str, function: Callable[[Array], float]) -> Value:
        if not self.fit.is_known(index):
            return Value(name, unit, None, source=UNKNOWN)
        return self._value(name, unit, function, chosen=True)

    # -- all values ----------------------------------------------------------------------------

    def per_mass(self) -> list[Value]:
        """Return the values that need no mass; without the rotors' positions, inertias per
        distance."""
        measured = self.fit.greatest_rad_s is not None
        arm = "m^2" if self.fit.has_arms else "m"
        over = "mass" if self.fit.has_arms else "(mass rotor_{})"
        shape = ASSUMED if self._shape_is_assumed else FITTED
        values = [
            *(self._of_speeds() if measured else ()),
            self._value(
                "greatest thrust of a rotor / mass", "m/s^2", part(P.THRUST), True, self._greatest
            ),
            *(
                self._value(f"thrust_{power} / mass", "m/s^2", thrust_part(power), source=shape)
                for power in (() if measured else range(3))
            ),
            self._lag("lag_up_s", P.LAG_UP),
            self._lag("lag_down_s", P.LAG_DOWN),
            *(
                [self._value("latency of the commands", "s", part(P.LATENCY))]
                if P.LATENCY in self.fit.estimate.free
                else []
            ),
            self._value(f"inertia_x / {over.format('y')}", arm, inertia(0), True),
            self._value(f"inertia_y / {over.format('x')}", arm, inertia(1), True),
        ]
        if self.fit.has_arms:
            values.append(self._inertia_z("inertia_z / mass", "m^2", 1.0))
            values.append(self._torque("torque / thrust", "m", lambda _t: 1.0, shaped=False))
        values.append(self._yaw_gain())
        values += [
            self._drag(index, f"drag_{axis} / mass", "1/s", part(index))
            for index, axis in zip(DRAGS, "xyz", strict=True)
        ]
        values.append(self._drag(P.SPIN_DRAG, "drag_rotation / mass", "m^2/s", part(P.SPIN_DRAG)))
        return values

    @property
    def _greatest(self) -> str:
        return FITTED if self.fit.knows_greatest else ASSUMED

    def _of_speeds(self) -> list[Value]:
        """Return what measured rotor speeds show beside an airframe's settings."""
        fit = self.fit
        assert fit.greatest_rad_s is not None
        square, source = fit.greatest_rad_s**2, self._greatest
        values = [
            self._value("thrust / (mass speed^2)", "m", scaled(part(P.THRUST), 1.0 / square), True),
            Value("greatest speed of a rotor", "rad/s", fit.greatest_rad_s, source=source),
            Value("delay of the measured speeds", "s", -fit.speed_delay_s),
        ]
        if fit.is_known(P.MOMENTUM):
            per_speed = scaled(part(P.MOMENTUM), 1.0 / fit.greatest_rad_s)
            values.append(self._value("a rotor's inertia / inertia_z", "", per_speed, True))
        if fit.is_known(P.FLAPPING):
            name = "turning back / (mass sideways speed)"
            values.append(self._value(name, "m/s", part(P.FLAPPING)))
        if fit.is_known(P.FORCE_LAG) and fit.estimate.half_width(P.FORCE_LAG) < 1.0:
            lag = self._value(
                "lag of the accelerometer's filter",
                "s",
                lambda t: float(np.exp(t[P.FORCE_LAG])),
                True,
            )
            values.append(lag)
        if fit.is_known(P.FORCE_DELAY):
            sensor = "velocity" if fit.log.acceleration is None else "accelerometer"
            values.append(self._value(f"delay of the {sensor}", "s", part(P.FORCE_DELAY)))
        return values

    @property
    def is_whole(self) -> bool:
        """Return whether there are settings of an airframe."""
        return self.mass_kg is not None and self.fit.has_arms

    def settings(self) -> list[Value]:
        """Return the airframe's settings; the mass and the rotors' positions are as given."""
        assert self.mass_kg is not None
        mass, shape = self.mass_kg, ASSUMED if self._shape_is_assumed else FITTED
        values = [
            Value("airframe", "", CUSTOM_AIRFRAME, source=GIVEN),
            Value("mass_kg", "kg", mass, source=GIVEN),
            self._value("inertia_x", "1e-6 kg m^2", scaled(inertia(0), 1e6 * mass), True),
            self._value("inertia_y", "1e-6 kg m^2", scaled(inertia(1), 1e6 * mass), True),
            self._inertia_z("inertia_z", "1e-6 kg m^2", 1e6 * mass),
            Value("rotor_x_m", "m", self.rotors[0], source=GIVEN),
            Value("rotor_y_m", "m", self.rotors[1], source=GIVEN),
        ]
        for index in range(3):
            function = scaled(thrust_part(index), mass)
            values.append(self._value(f"thrust_{index}", "N", function, source=shape))
        for index in range(3):
            function = scaled(thrust_part(index), 1e3 * mass)
            values.append(self._torque(f"torque_{index}", "mN m", function))
        values += [self._lag("lag_up_s", P.LAG_UP), self._lag("lag_down_s", P.LAG_DOWN)]
        values += [
            self._drag(index, f"drag_{axis}", "N s/m", scaled(part(index), mass))
            for index, axis in zip(DRAGS, "xyz", strict=True)
        ]
        function = scaled(part(P.SPIN_DRAG), 1e3 * mass)
        values.append(self._drag(P.SPIN_DRAG, "drag_rotation", "mN m s", function))
        values += [Value(f"sag_{kind}", "", None, source=UNKNOWN) for kind in ("load", "per_min")]
        return values

    @property
    def _shape_is_assumed(self) -> bool:
        if self.fit.greatest_rad_s is not None:  # the square of the speed
            return not self.fit.knows_greatest
        return not self.fit.is_known(P.SHAPE_1)

    def _inertia_z(self, name: str, unit: str, factor: float) -> Value:
        known = self.fit.is_known(P.INERTIA_Z)
        if known:
            return self._value(name, unit, scaled(part(P.INERTIA_Z), factor), True)
        return Value(name, unit, factor * self.fit.value(part(P.INERTIA_Z)), source=ASSUMED)

    def _torque(
        self, name: str, unit: str, thrust: Callable[[Array], float], shaped: bool = True
    ) -> Value:
        """Return a torque, which is proportional to thrust. The log shows it by what it turns, so
        it is known as well as inertia_z is, and where `shaped` as well as the thrust's curve."""
        if not self.fit.knows_yaw:
            return Value(name, unit, None, source=UNKNOWN)

        def torque(theta: Array) -> float:
            return float(theta[P.GAIN_Z] * theta[P.INERTIA_Z] * thrust(theta))

        known = self.fit.is_known(P.INERTIA_Z) and not (shaped and self._shape_is_assumed)
        return self._value(name, unit, torque, source=FITTED if known else ASSUMED)

    def _yaw_gain(self) -> Value:
        name = "mass torque / (thrust inertia_z)"
        if not self.fit.knows_yaw:
            return Value(name, "1/m", None, source=UNKNOWN)
        return self._value(name, "1/m", part(P.GAIN_Z), True)

    # -- what a policy is trained for ----------------------------------------------------------

    @property
    def thrust_to_weight(self) -> float:
        return 4.0 * self.fit.value(part(P.THRUST)) / GRAVITY_M_S2

    @property
    def turning_rad_s2(self) -> float:
        """Return the maximum angular acceleration about x or y, the smaller of the two: the rotors
        of one side pull with all their thrust, the others with none."""
        x, y = self.rotors
        assert x is not None
        assert y is not None
        gains = (y * self.fit.value(part(P.GAIN_X)), x * self.fit.value(part(P.GAIN_Y)))
        return 2.0 * self.fit.value(part(P.THRUST)) * min(gains)

    @property
    def spread(self) -> float:
        """Return the fraction by which drones differ that a policy is trained for; no interval is
        wider."""
        return max(MIN_SPREAD, self._widest()[1])

    def _widest(self) -> tuple[str, float]:
        """Return the least known value that moves the drone, and half its interval relative to
        it."""
        halves = []
        for each in self.per_mass():
            if each.name not in MOVES or each.value is None or each.low is None:
                continue
            assert each.high is not None
            least = ACTION_S if each.name in LAGS else 0.0
            half = max(each.high - each.value, each.value - each.low) / max(each.value, least)
            halves.append((each.name, half))
        return max(halves, key=lambda entry: entry[1])

    def require_trainable(self) -> None:
        """Raise DamagedFileError where the log shows too little to train a policy for its drone."""
        log, least = self.fit.log, 1.0 - self.spread
        if not self.fit.knows_yaw:
            raise log.fault("it does not show how quickly the drone yaws: fly quick turns")
        name, half = self._widest()
        if half > WIDEST_SPREAD:
            raise log.fault(
                f"it does not show {name} to more than ± {100 * half:.0f} %, and "
                f"{100 * WIDEST_SPREAD:.0f} % is the most to train for: fly with quicker changes, "
                "or longer"
            )
        if self.thrust_to_weight * least / (2.0 - least) < 1.0:
            raise log.fault(
                f"its rotors pull {self.thrust_to_weight:.2f} times the drone's weight, within "
                f"± {100 * self.spread:.0f} %: that is too little to fly, or the commands are no "
                "fractions of the greatest"
            )
        latency = self.fit.value(part(P.LATENCY))
        if latency > LONGEST_LATENCY_S:
            raise log.fault(
                f"the rotors answer {1000 * latency:.0f} ms after the command, and "
                f"{1000 * LONGEST_LATENCY_S:.0f} ms is the most to train for: write commands with "
                "the time at which they are sent"
            )

    # -- what is written -----------------------------------------------------------------------

    def known_settings(self) -> dict[str, float | int]:
        return {
            value.name: number_of(value.value)
            for value in self.settings()
            if value.value is not None
        }

    def set_file(self) -> bytes:
        """Return the known settings as a file for --set-file of `rlt train`."""
        return (json.dumps(self.known_settings(), indent=1) + "\n").encode()

    def document(self) -> dict[str, object]:
        fit = self.fit
        return {
            "log": str(fit.log.path),
            "rows": len(fit.log.time_s),
            "duration_s": fit.log.duration_s,
            "per_mass": [asdict(value) for value in self.per_mass()],
            "settings": [asdict(value) for value in self.settings()] if self.is_whole else None,
            "residuals": {
                name: {"left": left, "noise": noise}
                for name, (left, noise) in fit.residuals.items()
            },
            "warnings": list(fit.warnings),
        }


def number_of(value: float) -> float | int:
    """Round to six digits; return 0 without a sign."""
    rounded = float(f"{value:.6g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e6 else rounded


def part(index: int) -> Callable[[Array], float]:
    return lambda theta: float(theta[index])


def scaled(function: Callable[[Array], float], factor: float) -> Callable[[Array], float]:
    return lambda theta: factor * function(theta)


def inertia(axis: int) -> Callable[[Array], float]:
    index = (P.GAIN_X, P.GAIN_Y)[axis]
    return lambda theta: 1.0 / float(theta[index])


def thrust_part(power: int) -> Callable[[Array], float]:
    """Return a coefficient of the curve: a rotor's thrust per mass is the sum of part * w^power."""

    def function(theta: Array) -> float:
        shape = (theta[P.SHAPE_0], theta[P.SHAPE_1], 1.0 - theta[P.SHAPE_0] - theta[P.SHAPE_1])
        return float(theta[P.THRUST] * shape[power])

    return function
