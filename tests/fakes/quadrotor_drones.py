"""Quadrotors whose parameters are known, for flights that are simulated."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Drone:
    """What a flight's dynamics have, in SI units."""

    mass: float
    inertia: tuple[float, float, float]
    rotor: tuple[float, float]  # x, y of the front left one
    thrust: tuple[float, float, float]  # N, of 1, w, w^2
    torque: tuple[float, float, float]  # N m
    lag: tuple[float, float]  # up, down; s
    drag: tuple[float, float, float] = (0.0, 0.0, 0.0)
    drag_rotation: float = 0.0
    flapping: float = 0.0  # N m s/m, by which moving sideways turns it back
    rotor_momentum: float = 0.0  # N m s, of a rotor at its greatest speed

    @property
    def greatest(self) -> float:
        return sum(self.thrust)


def rotor_drone(
    mass: float,
    inertia: tuple[float, float, float],
    rotor: tuple[float, float],
    thrust: tuple[float, float, float],
    constant: float,
    lag: tuple[float, float],
) -> Drone:
    """Its rotors' torque is proportional to their thrust."""
    torque = tuple(constant * value for value in thrust)
    return Drone(mass, inertia, rotor, thrust, (torque[0], torque[1], torque[2]), lag)


LEARNING_TO_FLY = rotor_drone(
    0.027,
    (3.85e-6, 3.85e-6, 5.97e-6),
    (0.028, 0.028),
    (0.0, 0.0, 3.16e-10 * 21702.0**2),
    0.005965,
    (0.15, 0.15),
)
DECKS = rotor_drone(
    0.0306,
    (9.42e-6, 9.64e-6, 17.5e-6),
    (0.028, 0.028),
    (0.01087, 0.03738, 0.0628),
    0.004665,
    (0.069, 0.114),
)
RAPTOR = rotor_drone(  # the same drone, with other rotors' curves and lags
    DECKS.mass,
    DECKS.inertia,
    DECKS.rotor,
    (0.0035, 0.0144, 0.0922),
    0.004665,
    (0.055, 0.249),
)
CF2X = rotor_drone(
    0.027,
    (14e-6, 14e-6, 21.7e-6),
    (0.0281, 0.0281),
    (0.0, 0.0, 0.027 * 9.81 * 2.25 / 4),
    7.94e-12 / 3.16e-10,
    (0.0, 0.0),
)
LARGE = replace(
    rotor_drone(
        1.5,
        (0.0291, 0.0291, 0.0552),
        (0.13, 0.21),
        (0.0, 0.0, 7.0),
        0.016,
        (0.0125, 0.025),
    ),
    drag=(0.25, 0.25, 0.1),
)
WITH_DRAG = replace(DECKS, drag=(0.012, 0.012, 0.008))
# As a Crazyflie 2.1 Brushless, whose rotors turn its body as they get faster.
BRUSHLESS = replace(
    rotor_drone(
        0.045,
        (28e-6, 31e-6, 52e-6),
        (0.0353, 0.0353),
        (0.0, 0.0, 3.8e-8 * 2450.0**2),
        0.006,
        (0.026, 0.06),
    ),
    drag=(0.02, 0.02, 0.015),
    flapping=7e-4,
    rotor_momentum=1e-3 * 52e-6 * 2450.0,
)
DRONES = {
    "learning-to-fly": LEARNING_TO_FLY,
    "decks": DECKS,
    "raptor": RAPTOR,
    "cf2x": CF2X,
    "large": LARGE,
    "with-drag": WITH_DRAG,
}
