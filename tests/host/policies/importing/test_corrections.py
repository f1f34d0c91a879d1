"""What a policy may mean otherwise: which words there are, and what each does, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rltools_host.build.description import Channel
from rltools_host.policies.contract import Contract
from rltools_host.policies.importing.corrections import (
    Correction,
    corrected,
    known_corrections,
)
from rltools_host.policies.importing.network import Dense, Normalize, run

CHANNELS = tuple(
    Channel(name, unit, -1, 1)
    for name, unit in (
        *(("velocity_x", "m/s"), ("velocity_y", "m/s"), ("velocity_z", "m/s")),
        *(("attitude_w", ""), ("attitude_x", ""), ("attitude_y", ""), ("attitude_z", "")),
        *(("rate_x", "rad/s"), ("rate_y", "rad/s"), ("rate_z", "rad/s")),
        ("angle", "rad"),
    )
)
ACTIONS = (Channel("left", "1", -1, 1), Channel("right", "1", -1, 1))
SEEN = np.arange(1.0, 12.0)


def words(channels: tuple[Channel, ...], actions: tuple[Channel, ...]) -> dict[str, Correction]:
    found = list(known_corrections(Contract(channels, actions, 1000)))
    assert len({each.word for each in found}) == len(found)
    return {each.word: each for each in found}


KNOWN = words(CHANNELS, ACTIONS)
DEGREES = 180 / math.pi


@pytest.mark.parametrize(
    ("word", "meaning", "given"),
    [
        ("velocity_y:negated", "its velocity_y has the other sign", {1: -2}),
        ("velocity:zxy", "its velocity comes in the order zxy", {0: 3, 1: 1, 2: 2}),
        ("attitude:xyzw", "its attitude comes in the order xyzw", {3: 5, 4: 6, 5: 7, 6: 4}),
        ("rate:degrees", "its rate is in degrees", {i: (i + 1) * DEGREES for i in (7, 8, 9)}),
        (
            "frd",
            "its frame is x forward, y right, z down",
            {1: -2, 2: -3, 5: -6, 6: -7, 8: -9, 9: -10},
        ),
        (
            "order:angle,velocity,attitude,rate",
            "its observations come in the order angle, velocity, attitude, rate",
            dict(enumerate((11, *range(1, 11)))),
        ),
    ],
)
def test_corrections_of_observations(word: str, meaning: str, given: dict[int, float]) -> None:
    each, expected = KNOWN[word], SEEN.copy()
    for place, value in given.items():
        expected[place] = value
    np.testing.assert_allclose(each.apply(SEEN), expected)
    assert (each.meaning, each.of_actions) == (meaning, False)


@pytest.mark.parametrize(
    ("word", "done"),
    [
        ("actions:2", [1.0, -0.5]),
        ("actions:unit", [0.0, -1.5]),
        ("actions:symmetric", [0.75, 0.375]),
        ("actions:1,0", [-0.25, 0.5]),
    ],
)
def test_corrections_of_actions(word: str, done: list[float]) -> None:
    each = KNOWN[word]
    assert each.of_actions
    np.testing.assert_allclose(each.apply(np.array([0.5, -0.25])), done)
    stages = corrected([Dense(np.eye(2), np.zeros(2))], [each])
    np.testing.assert_allclose(run(stages, np.array([[0.5, -0.25]])), [done])
    # What is beyond the range is cut off before; an offset's range is another one, which ends where
    # the corrected actions are cut off.
    beyond = np.array([3.0, -3.0])
    taken = beyond if each.offset.any() else beyond / 3
    np.testing.assert_allclose(run(stages, beyond[None]), [each.apply(taken)])


def test_several_are_taken_from_the_first_to_the_last() -> None:
    """The last named is next to the network."""
    front = [Normalize(0.1 * SEEN, 1 / SEEN), Dense(np.eye(11), np.zeros(11))]
    first, second = KNOWN["velocity:zxy"], KNOWN["velocity_y:negated"]
    stages = corrected(front, [first, second])
    expected = run(front, second.apply(first.apply(SEEN[None])))
    np.testing.assert_allclose(run(stages, SEEN[None]), expected)
