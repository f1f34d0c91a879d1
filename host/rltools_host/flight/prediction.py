"""What our simulator makes of a start that another one flew: the same policy, from the same state.

The policy is in the hands of what boards run (policy/deployment.h), 500 times a second. What is not
known of the beginning is as in hover: the rotors turn at hover's speed, and the policy's past
actions are those of its beginning. There is no wind and no noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from rltools_host.flight.disturbances import TICKS_A_S, Disturbances, DisturbedLink
from rltools_host.flight.loop import fly
from rltools_host.flight.pilots import HostPilot
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
    """Records of READING as rows of the contract's observations."""
    rows = np.empty((len(states), len(flight_library().contract.observations)))
    rows[:, POSITION] = states["position_m"] - states["target_position_m"].astype(float)
    rows[:, VELOCITY] = states["velocity_m_s"] - states["target_velocity_m_s"].astype(float)
    attitude = states["attitude"].astype(float)
    rows[:, ATTITUDE] = np.where(attitude[:, :1] < 0.0, -attitude, attitude)
    rows[:, ANGULAR_VELOCITY] = states["angular_velocity_rad_s"]
    return rows
