"""The bounds of observations that a space states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rltools_host.environments.spaces import (
    observation_bounds,
)
from rltools_host.errors import UsageError

INF = np.inf


def boxed(low: Any, high: Any, kind: Any = np.float64) -> spaces.Box:
    return spaces.Box(np.array(low, kind), np.array(high, kind), dtype=kind)


def test_bounds_of_observations_are_the_spaces_own() -> None:
    low = [-1.0, 0.0, 2e6, 5.0, -1e6, -1e38, 2e9]
    high = [2.0, 2e6, 3e6, 5.0, 1e6, 1e38, 2e9]
    found = observation_bounds(boxed(low, high), "E")
    assert [each[:2] for each in found] == [
        *((-1.0, 2.0), (0.0, 2e6), (2e6, 3e6), (4.0, 6.0), (-1e6, 1e6), (-1e38, 1e38)),
        (2e9 - 2e3, 2e9 + 2e3),
    ]
    assert all(each.has_minimum and each.has_maximum for each in found)


LARGEST = [np.finfo(kind).max for kind in (np.float32, np.float64)]


@pytest.mark.parametrize("endless", [INF, *LARGEST])
def test_an_end_that_a_space_has_not_is_far_away(endless: float) -> None:
    kind = np.float64 if endless > LARGEST[0] else np.float32
    low, high = [-endless, 0.0, -endless, 2e6, -endless], [endless, endless, 5.0, endless, -3e6]
    found = observation_bounds(boxed(low, high, kind), "E")
    assert [each[:2] for each in found] == [
        *((-1e6, 1e6), (0.0, 1e6), (-1e6, 5.0), (2e6, 4e6), (-6e6, -3e6)),
    ]
    ends = [(each.has_minimum, each.has_maximum) for each in found]
    assert ends == [(False, False), (True, False), (False, True), (True, False), (False, True)]


@pytest.mark.parametrize(("low", "high"), [(0.0, 1e300), (-2e38, 1.0)])
def test_a_bound_that_no_contract_holds_is_refused(low: float, high: float) -> None:
    with pytest.raises(UsageError, match=r"E has the bound .* of observation 1, which is beyond"):
        observation_bounds(boxed([-1.0, low], [1.0, high]), "E")
