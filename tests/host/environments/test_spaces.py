"""The supported spaces of an environment, at each bound."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rltools_host.build.catalog import CHOICE, CHOICES, NUMBERS
from rltools_host.environments.spaces import (
    action_bounds,
    action_kind,
    action_space,
    box,
    choice_counts,
    observation_bounds,
)
from rltools_host.errors import UsageError

INF = np.inf


def boxed(low: Any, high: Any, kind: Any = np.float64) -> spaces.Box:
    return spaces.Box(np.array(low, kind), np.array(high, kind), dtype=kind)


@pytest.mark.parametrize(
    ("space", "kind", "counts"),
    [
        (spaces.Discrete(3), CHOICE, [3]),
        (spaces.MultiDiscrete([4]), CHOICE, [4]),
        (spaces.MultiDiscrete([[2, 3], [4, 5]]), CHOICES, [2, 3, 4, 5]),
    ],
)
def test_kinds_of_choices(space: Any, kind: str, counts: list[int]) -> None:
    assert (action_kind(space), choice_counts(space)) == (kind, counts)
    assert action_kind(boxed([0], [1])) == action_kind(None) == NUMBERS


@pytest.mark.parametrize("count", [2, 256])
def test_counts_of_choices_that_can_be_learnt(count: int) -> None:
    space = spaces.MultiDiscrete([2, count])
    assert action_space(SimpleNamespace(action_space=space), "E", "ppo") is space


@pytest.mark.parametrize("count", [1, 257])
def test_counts_of_choices_that_cannot(count: int) -> None:
    environment = SimpleNamespace(action_space=spaces.MultiDiscrete([2, count]))
    with pytest.raises(UsageError) as refused:
        action_space(environment, "E", "ppo")
    assert str(refused.value) == (
        f"E has an action of {count} choices: from 2 to 256 are supported"
    )


@pytest.mark.parametrize(
    ("space", "attribute", "sentence"),
    [
        (
            spaces.Discrete(2),
            "observation_space",
            "E has a Discrete as its observation space, which is not supported: wrap it into "
            "a Box, with gymnasium.wrappers.FlattenObservation for example",
        ),
        (
            boxed(np.zeros(4097), np.ones(4097)),
            "observation_space",
            "E has 4097 elements in its observation space: from 1 to 4096 are supported",
        ),
    ],
)
def test_spaces_that_are_no_boxes(space: Any, attribute: str, sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        box(SimpleNamespace(**{attribute: space}), attribute, "E")
    assert str(refused.value) == sentence


@pytest.mark.parametrize("shape", [(), (1,), (64, 64)])
def test_boxes_that_can_be_learnt(shape: tuple[int, ...]) -> None:
    space = boxed(np.zeros(shape), np.ones(shape))
    assert box(SimpleNamespace(observation_space=space), "observation_space", "E") is space


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


def test_bounds_of_actions() -> None:
    assert action_bounds(boxed([-1, 0], [1, 0.5]), "E") == [(-1.0, 1.0), (0.0, 0.5)]


@pytest.mark.parametrize(
    ("low", "high", "sentence"),
    [
        (-INF, 1, "E has no bounds for action 1 (-inf to 1): set a finite low and high"),
        (2, 2, "E has no range for action 1: it is 2 to 2"),
    ],
)
def test_actions_without_a_range(low: float, high: float, sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        action_bounds(boxed([-1, low], [1, high]), "E")
    assert str(refused.value).startswith(sentence)
