"""Windows of a log: their rows, their blocks, and what is left of values in them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from rltools_host.drones.fitting.log import FlightLog
from rltools_host.drones.fitting.model import P, Windows, rotor_parameters


def windows(rows: int, duration_s: float, block_s: float = 1.25) -> Windows:
    """Of a log from 8 s on, four rows a second; rows 0 to 2 are before the rotors have settled."""
    times = 8.0 + 0.25 * np.arange(rows)
    return Windows(cast(FlightLog, SimpleNamespace(time_s=times, step_s=0.25)), duration_s, block_s)


def test_rows_after_the_rotors_have_settled_in_whole_windows() -> None:
    """0.6 s are three rows; a window has four at least, and the last rows make no whole one."""
    for duration_s, length in ((0.25, 4), (1.0, 4), (1.25, 5), (1.3, 5), (1.4, 6)):
        assert windows(40, duration_s).length == length
    for rows, end in ((3 + 8, 11), (3 + 11, 11), (3 + 12, 15)):
        found = windows(rows, 1.0)
        assert (found.rows.start, found.rows.stop, found.freedom) == (3, end, 0.75)


def test_a_window_is_of_the_block_in_which_it_begins() -> None:
    """Windows begin at 0, 1, 2, 3 and 4 s, blocks at 0, 1.25, 2.5 and 3.75 s."""
    assert windows(3 + 20, 1.0).block.tolist() == [
        block for block in (0, 0, 1, 2, 3) for _ in range(4)
    ]


def test_values_are_compared_less_their_windows_means() -> None:
    found = windows(3 + 9, 1.0)
    values = np.array([9, 9, 9, 1, 2, 3, 6, -1, -1, 1, 1, 9], float)
    assert found.differences(values).tolist() == [-2, -1, 0, 3, -1, -1, 1, 1]


def test_which_parameters_are_the_rotors() -> None:
    theta = np.zeros(len(P.__members__) + 20)
    theta[[P.LAG_UP, P.LAG_DOWN]] = np.log([0.03, 0.07])
    theta[[P.LATENCY, P.SHAPE_0, P.SHAPE_1]] = 0.004, 0.2, 0.5
    found = rotor_parameters(theta)
    assert list(vars(found).values()) == pytest.approx([0.03, 0.07, 0.004, 0.2, 0.5])
