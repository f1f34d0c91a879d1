"""Which airframes a policy flies; rotors that lift enough; what a fitted drone is judged by."""

from __future__ import annotations

import pytest

from rltools_host.documents import Unfit
from rltools_host.drones.flight.airframes import (
    check_thrust,
)


def thrusts(t0: float, t1: float, t2: float, weight_n: float) -> dict[str, float]:
    return {"thrust_0": t0, "thrust_1": t1, "thrust_2": t2, "mass_kg": weight_n / 9.81}


def test_rotors_lift_more_than_the_weight_and_ever_more() -> None:
    check_thrust(thrusts(0.25, 0.25, 0.5, 3.99))
    with pytest.raises(Unfit, match=r"its rotors lift 4 N, and it weighs 4.01 N"):
        check_thrust(thrusts(0.25, 0.25, 0.5, 4.01))
    with pytest.raises(Unfit, match=r"its rotors lift 4 N, and it weighs 4 N"):
        check_thrust({**thrusts(0.25, 0.25, 0.5, 4.0), "mass_kg": 4.0 / 9.81 * (1 + 1e-9)})
    check_thrust(thrusts(1.0, 1.0, -0.49, 1.0))
    with pytest.raises(Unfit, match="falls where they turn fastest"):
        check_thrust(thrusts(1.0, 1.0, -0.5, 1.0))
