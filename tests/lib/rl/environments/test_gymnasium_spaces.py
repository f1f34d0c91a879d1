"""What experiments say of gymnasium's tasks is what gymnasium says: spaces, episodes, time."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from rltools_host.build import experiments


@pytest.mark.parametrize(
    ("name", "experiment", "interval", "choices"),
    [
        ("Pendulum-v1", "pendulum-td3", "dt", []),
        ("CartPole-v1", "cartpole-dqn", "tau", ["left", "right"]),
        ("Acrobot-v1", "acrobot-dqn", "dt", ["clockwise", "none", "counterclockwise"]),
    ],
)
def test_experiment_has_gymnasium_s_episodes_and_spaces(
    name: str, experiment: str, interval: str, choices: list[str]
) -> None:
    specification, environment = gymnasium.spec(name), gymnasium.make(name)
    described = experiments.describe(experiment).environment
    assert described["name"] == specification.id
    assert described["episode_steps"] == specification.max_episode_steps
    assert described["step_interval_us"] == round(getattr(environment.unwrapped, interval) * 1e6)
    if specification.reward_threshold is not None:
        assert described["solved_return"] == specification.reward_threshold
    has_bounds(described["observations"], environment.observation_space)
    if not choices:
        has_bounds(described["actions"], environment.action_space)
        return
    assert isinstance(environment.action_space, gymnasium.spaces.Discrete)
    (action,) = described["actions"]
    assert action["unit"].split("|") == choices
    assert (action["minimum"], action["maximum"]) == (0, environment.action_space.n - 1)


def has_bounds(channels: list[dict[str, Any]], space: gymnasium.Space[Any]) -> None:
    """Those of the space, where it has some."""
    assert isinstance(space, gymnasium.spaces.Box)
    for channel, low, high in zip(channels, space.low, space.high, strict=True):
        if np.isfinite(low):
            assert (channel["minimum"], channel["maximum"]) == pytest.approx((low, high))
