"""Where each rotor is seen to be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rltools_host.drones.fitting.estimate import check_rotors
from rltools_host.errors import DamagedFileError

# Of roll, pitch and yaw to the front right, rear right, rear left and front left rotor: one on the
# right rolls the body to the left, one in front pitches its nose up, and a rotor that turns
# counter-clockwise, as the first does, turns the body clockwise. Pitch is about y, to the left.
ANSWERS = np.array([[-1.0, -1.0, 1.0, 1.0], [-1.0, 1.0, 1.0, -1.0], [-1.0, 1.0, -1.0, 1.0]])
ERRORS = np.full((3, 4), 0.1)


def model(commands_thrust: bool) -> Any:
    def fault(reason: str) -> DamagedFileError:
        return DamagedFileError(reason)

    return SimpleNamespace(
        log=SimpleNamespace(fault=fault, commands_thrust=commands_thrust, rotor_speeds=None)
    )


def test_rotors_in_order_of_the_contract() -> None:
    check_rotors(model(True), ANSWERS, ERRORS)
    unseen = ANSWERS[:, [1, 0, 2, 3]]
    check_rotors(model(True), 0.79 * unseen, ERRORS)  # eight standard errors are seen
    with pytest.raises(DamagedFileError):
        check_rotors(model(True), 0.81 * unseen, ERRORS)
    unseen[2] = 0.0  # yaw says nothing of a place
    with pytest.raises(DamagedFileError):
        check_rotors(model(True), unseen, ERRORS)


@pytest.mark.parametrize(
    ("kind", "order", "sentence"),
    [
        (
            "thrust",
            [1, 0, 2, 3],
            "thrust_front_right is of the rear right one, thrust_rear_right is of the front right "
            "one",
        ),
        (
            "speed",
            [0, 2, 3, 1],
            "speed_rear_right is of the rear left one, speed_rear_left is of the front left one, "
            "speed_front_left is of the rear right one",
        ),
    ],
)
def test_rotors_in_another_order(kind: str, order: list[int], sentence: str) -> None:
    with pytest.raises(DamagedFileError) as caught:
        check_rotors(model(kind == "thrust"), ANSWERS[:, order], ERRORS)
    said = f"its rotors are in another order, as roll and pitch show: {sentence}"
    assert str(caught.value) == said


def test_rotors_that_are_none_of_an_x() -> None:
    with pytest.raises(DamagedFileError, match="do not turn the body as four rotors of an x do"):
        check_rotors(model(True), ANSWERS[:, [0, 0, 2, 3]], ERRORS)
