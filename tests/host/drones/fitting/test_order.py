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
MODEL: Any = SimpleNamespace(
    log=SimpleNamespace(fault=DamagedFileError, commands_thrust=True, rotor_speeds=None)
)


def test_rotors_in_order_of_the_contract() -> None:
    check_rotors(MODEL, ANSWERS, ERRORS)
    unseen = ANSWERS[:, [1, 0, 2, 3]]
    check_rotors(MODEL, 0.79 * unseen, ERRORS)  # eight standard errors are seen
    unseen[2] = 0.0  # yaw says nothing of a place
    with pytest.raises(DamagedFileError, match="thrust_front_right is of the rear right one, thr"):
        check_rotors(MODEL, 0.81 * unseen, ERRORS)


def test_rotors_of_speeds_that_each_stand_for_the_next() -> None:
    log = SimpleNamespace(**{**vars(MODEL.log), "commands_thrust": False})
    model: Any = SimpleNamespace(log=log)
    sentence = "speed_rear_right is of the rear left one, speed_rear_left is of the front left one"
    with pytest.raises(DamagedFileError, match=sentence):
        check_rotors(model, ANSWERS[:, [0, 2, 3, 1]], ERRORS)


def test_rotors_that_are_none_of_an_x() -> None:
    with pytest.raises(DamagedFileError, match="do not turn the body as four rotors of an x do"):
        check_rotors(MODEL, ANSWERS[:, [0, 0, 2, 3]], ERRORS)
