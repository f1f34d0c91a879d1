"""A policy with a hidden state that is asked more often than it was trained for: flying names the
rate."""

from __future__ import annotations

import math

import numpy as np
import pytest

from faster_tasks import SWINGS_HZ
from rltools_host.policies.importing.faults import Finding, Search
from rltools_host.policies.importing.network import Dense, ForeignPolicy, Recurrent, Stage
from rltools_host.policies.importing.proof import image_of
from rltools_host.policies.importing.target import Target, target_of_environment
from rltools_host.tree import TREE


def target_of(task: str, taken: int) -> Target:
    some = ForeignPolicy("a library", (Dense(np.ones((taken, 1)), np.zeros(1)),), algorithm="ppo")
    return target_of_environment(f"gym:{TREE.root / 'tests/fakes/faster_tasks.py'}:{task}", some)


def swinging(step_s: float) -> list[Stage]:
    """Two units that turn around each other, as the first observation sets them off."""
    turn, width = 2 * math.pi * SWINGS_HZ * step_s, 2
    rotation = 1.05 * np.array(
        [[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]]
    )
    gates = np.repeat([40.0, -40.0, 0.0], width)  # r is 1, z is 0
    weights, hidden = np.zeros((1, 3 * width)), np.zeros((width, 3 * width))
    weights[0, 2 * width] = 0.3
    hidden[:, 2 * width :] = rotation
    last = Dense(np.array([[1.0], [0.0]]), np.zeros(1))
    return [Recurrent(weights, gates, hidden, np.zeros(3 * width)), last]


def named(finding: Finding, times: int, rate_hz: float) -> None:
    assert finding.fault is not None, finding.lines("x")
    assert finding.fault.meaning == f"it is asked {times} times as often as it was trained for"
    assert finding.fault.remedy == f"ask it at {rate_hz:g} Hz"


@pytest.mark.all
@pytest.mark.parametrize(
    "times", [2, *(pytest.param(times, marks=pytest.mark.exhaustive) for times in (5, 10))]
)
def test_a_policy_that_counts_its_steps(times: int) -> None:
    target = target_of("Metronome", 1)
    policy = ForeignPolicy("a library", tuple(swinging(0.005 * times)), is_normalized=True)
    image = image_of(list(policy.stages), target, policy, "swinging", "0" * 64)
    finding = Search(image, target).run()
    named(finding, times, 200 / times)
    assert finding.restored > 30 > 5 * finding.returns.mean()
