"""PX4's simulator in hardware (SIH) as settings of ours, from the parameters that the vehicle has.

src/modules/simulation/simulator_sih of github.com/PX4/PX4-Autopilot. Its rotors' lag goes on only
in those of its steps that see a new output, and the policy gives 500 a second: at 1,000 steps a
second each counts for half.
"""

from __future__ import annotations

from collections.abc import Mapping

from rltools_host.flight.disturbances import TICKS_A_S
from rltools_host.flight.simulator import flight_library

TABLE = "px4-sih"  # of quadrotor/airframe.h: SIH with the parameters that it has at first
# Of a parameter: the settings of quadrotor/settings.h that it is, and one of its unit in theirs.
SETTINGS: Mapping[str, tuple[tuple[str, ...], float]] = {
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
RATE = "IMU_GYRO_RATEMAX"  # of its steps, Hz
PARAMETERS = (*SETTINGS, RATE)
NOT_THERE = ("thrust_0", "thrust_2", "torque_0", "torque_2", "sag_load", "sag_per_min")


def settings_of(parameters: Mapping[str, float]) -> dict[str, float]:
    """The vehicle with these parameters; the published one where it does not tell them all."""
    if any(name not in parameters for name in PARAMETERS):
        return {"airframe": float(flight_library().tables.index(TABLE) + 1)}
    settings = {"airframe": 0.0, **dict.fromkeys(NOT_THERE, 0.0)}
    for parameter, (names, factor) in SETTINGS.items():
        for name in names:
            settings[name] = parameters[parameter] * factor
    steps_an_output = max(parameters[RATE] / TICKS_A_S, 1.0)
    for name in ("lag_up_s", "lag_down_s"):
        settings[name] *= steps_an_output
    return settings
