"""What our simulator makes of a start that another one flew: the same policy, from the same state.

The policy is in the hands of what boards run (policy/deployment.h), 500 times a second. What is not
known of the beginning is as in hover: the rotors turn at hover's speed, and the policy's past
actions are those of its beginning. There is no wind and no noise.

PX4's simulator in hardware (SIH) becomes settings of ours by the parameters that the vehicle has:
src/modules/simulation/simulator_sih of github.com/PX4/PX4-Autopilot. Its rotors' lag goes on only
in those of its steps that see a new output, and the policy gives 500 a second: at 1,000 steps a
second each counts for half.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from rltools_host.flight.disturbances import TICKS_A_S, Disturbances, DisturbedLink
from rltools_host.flight.loop import HostPilot, fly
from rltools_host.flight.simulator import (
    ANGULAR_VELOCITY,
    ATTITUDE,
    POSITION,
    VELOCITY,
    Array,
    Flight,
    flight_library,
)
from rltools_host.policies.image import PolicyImage

FloatArray = NDArray[np.float64]
# From a row of 13 observations on, rows (n, 13) at these times; fewer where a limit was broken.
Predict = Callable[[FloatArray, FloatArray], FloatArray]


def undisturbed(settings: Mapping[str, float]) -> dict[str, float]:
    """The settings with hover at the target as the beginning, and the contract's limits."""
    contract = flight_library().contract
    return {
        "start_share": 0.0,
        "limit_position": contract.observations[POSITION.start].maximum,
        "limit_velocity": contract.observations[VELOCITY.start].maximum,
        "limit_rate": contract.observations[ANGULAR_VELOCITY.start].maximum,
        **settings,
    }


def predictor(image: PolicyImage, settings: Mapping[str, float]) -> Predict:
    """With these settings of quadrotor/settings.h, which say what vehicle it is."""
    given = undisturbed(settings)
    flight_library().setting_bits(given)  # an error in a sentence, before anything flies

    def predict(first: FloatArray, times_s: FloatArray) -> FloatArray:
        ticks = max(math.ceil(float(times_s[-1]) * TICKS_A_S), 1)
        flight = Flight(0, 0, given)
        flight.place(first)
        link = DisturbedLink(Disturbances(), ticks)
        trace = fly(flight, HostPilot(image, in_trial=False), link, ticks)
        reached = rows_of(trace.states)
        at = np.rint(times_s * TICKS_A_S).astype(int)
        chosen: FloatArray = reached[at[at < len(reached)]]
        return chosen

    return predict


def rows_of(states: Array) -> FloatArray:
    """Records of Reading as rows of the contract's observations."""
    rows = np.empty((len(states), len(flight_library().contract.observations)))
    rows[:, POSITION] = states["position_m"] - states["target_position_m"].astype(float)
    rows[:, VELOCITY] = states["velocity_m_s"] - states["target_velocity_m_s"].astype(float)
    attitude = states["attitude"].astype(float)
    rows[:, ATTITUDE] = np.where(attitude[:, :1] < 0.0, -attitude, attitude)
    rows[:, ANGULAR_VELOCITY] = states["angular_velocity_rad_s"]
    return rows


# -- PX4's simulator as settings -------------------------------------------------------------------

SIH_TABLE = "px4-sih"  # of quadrotor/airframe.h: SIH with the parameters that it has at first
# Of a parameter: the settings of quadrotor/settings.h that it is, and one of its unit in theirs.
SIH_SETTINGS: Mapping[str, tuple[tuple[str, ...], float]] = {
    "SIH_MASS": (("mass_kg",), 1.0),
    "SIH_IXX": (("inertia_x",), 1e6),
    "SIH_IYY": (("inertia_y",), 1e6),
    "SIH_IZZ": (("inertia_z",), 1e6),
    "SIH_L_PITCH": (("rotor_x_m",), 1.0),
    "SIH_L_ROLL": (("rotor_y_m",), 1.0),
    "SIH_T_MAX": (("thrust_1",), 1.0),
    "SIH_Q_MAX": (("torque_1",), 1e3),
    "SIH_T_TAU": (("lag_up_s", "lag_down_s"), 1.0),
    "SIH_KDV": (("drag_x", "drag_y", "drag_z"), 1.0),
    "SIH_KDW": (("drag_rotation",), 1e3),
}
SIH_RATE = "IMU_GYRO_RATEMAX"  # of its steps, Hz
SIH_PARAMETERS = (*SIH_SETTINGS, SIH_RATE)
SIH_NOT_THERE = ("thrust_0", "thrust_2", "torque_0", "torque_2", "sag_load", "sag_per_min")


def settings_of_sih(parameters: Mapping[str, float]) -> dict[str, float]:
    """The vehicle with these parameters; the published one where it does not tell them all."""
    if any(name not in parameters for name in SIH_PARAMETERS):
        return {"airframe": float(flight_library().tables.index(SIH_TABLE) + 1)}
    settings = {"airframe": 0.0, **dict.fromkeys(SIH_NOT_THERE, 0.0)}
    for parameter, (names, factor) in SIH_SETTINGS.items():
        for name in names:
            settings[name] = parameters[parameter] * factor
    steps_an_output = max(parameters[SIH_RATE] / TICKS_A_S, 1.0)
    for name in ("lag_up_s", "lag_down_s"):
        settings[name] *= steps_an_output
    return settings
