"""A drone that was fitted to a flight's log: what trains a policy for it, and the gate that this
must pass. Both are about the drones that the fit's intervals leave open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import structs

from rltools_host.flight.gate import Gate, load_gate
from rltools_host.runs.contents import Fitted

if TYPE_CHECKING:
    from rltools_host.fitting.result import Result  # with SciPy

GATE_LIKE, GATE_NAME = "hover", "hover-fitted"
# A drone moves as its log shows, whatever its mass and its size are: what is fitted is per mass and
# per distance of the rotors. These stand for them where they are not given.
ANY_MASS_KG, ANY_ROTOR_M = 1.0, 0.1


@dataclass(frozen=True)
class Recipe:
    """What trains a policy, and how fast on an idle core."""

    experiment: str
    steps: int
    steps_per_s: float


QUICK = Recipe("crazyflie-ppo", 6_000_000, 1.6e6)
SLOW = Recipe("quadrotor-ppo", 16_000_000, 6e5)
TURNS_QUICKLY_RAD_S2 = 500.0  # from which on the quick one is sure enough


def turns_quickly(result: Result) -> bool:
    return result.turning_rad_s2 >= TURNS_QUICKLY_RAD_S2


def fitted_settings(result: Result) -> dict[str, float | int]:
    """Of the environment: the fitted airframe, and how far drones may differ from it."""
    return {**result.known_settings(), "spread": float(f"{result.spread:.3g}")}


def gate_of(result: Result) -> Gate:
    """The gate hover, flown by the fitted drone and by those that its intervals leave open."""
    gate = load_gate(GATE_LIKE)
    fitted: Gate = structs.replace(
        gate,
        name=GATE_NAME,
        title="Hover, from any attitude, with the fitted drone",
        about="As hover, with the airframe that was fitted to a flight's log.",
        settings={**gate.settings, **fitted_settings(result)},
    )
    return fitted


def fitted_of(result: Result) -> Fitted:
    log = result.fit.log
    name = log.path.name
    return Fitted(
        name if name.isprintable() else "",
        log.sha256,
        len(log.time_s),
        log.duration_s,
        {
            value.name: (value.low, value.high)
            for value in result.settings()
            if value.low is not None and value.high is not None
        },
    )
