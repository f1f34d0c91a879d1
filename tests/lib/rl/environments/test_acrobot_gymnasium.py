"""The core's acrobot against gymnasium's Acrobot-v1: single steps, and whole episodes."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest

from rltools_host.environments.library import Batch, load_library

Array = npt.NDArray[Any]
FIELDS = ("upper_angle_rad", "lower_angle_rad", "upper_velocity_rad_s", "lower_velocity_rad_s")
LIMITS = (np.pi, np.pi, 4 * np.pi, 9 * np.pi)
COUNT = 3000


def random_states(dtype: type[np.floating[Any]]) -> tuple[Array, Array]:
    """States in all of their range, which `dtype` holds exactly, most of them slow; choices."""
    random = np.random.default_rng(1)
    states = random.uniform(-1, 1, (COUNT, 4)) * LIMITS
    states[COUNT // 4 :, 2:] *= 0.25
    return states.astype(dtype).astype(np.float64), random.integers(0, 3, COUNT)


def gymnasium_steps(states: Array, actions: Array) -> tuple[Array, Array, Array]:
    environment: Any = gymnasium.make("Acrobot-v1").unwrapped
    environment.reset(seed=0)
    reached, rewards = np.empty_like(states), np.empty(len(states))
    observations = np.empty((len(states), 6), np.float32)
    for index, (state, action) in enumerate(zip(states, actions, strict=True)):
        environment.state = state
        observations[index], rewards[index], ended, _, _ = environment.step(int(action))
        assert ended == (rewards[index] == 0)
        reached[index] = environment.state
    return reached, rewards, observations


def core_batch(states: Array, dtype: type[np.floating[Any]]) -> Batch:
    batch = Batch(load_library("Acrobot-v1", double=dtype is np.float64), len(states))
    for field, column in zip(FIELDS, states.T, strict=True):
        batch.states[field] = column
    return batch


def differences(batch: Batch, expected: Array) -> Array:
    """Of each number of the states; of angles, the way around."""
    states = np.column_stack([batch.states[field] for field in FIELDS]).astype(np.float64)
    found = np.abs(states - expected)
    found[:, :2] = np.minimum(found[:, :2], 2 * np.pi - found[:, :2])
    return found


# A float's spacing at a quarter of full speed, 7 rad/s, is 5e-7: a step is within four of it in
# float, and within five of double's. At full speed accelerations are some 1e3 rad/s2, 0.2 s of
# which make 200 rad/s before the limit, and each of the four stages enlarges the error of the one
# before.
@pytest.mark.parametrize(
    ("dtype", "fast", "slow"), [(np.float64, 4e-12, 4e-15), (np.float32, 2e-4, 2e-6)]
)
def test_steps_are_gymnasium_s(dtype: type[np.floating[Any]], fast: float, slow: float) -> None:
    states, actions = random_states(dtype)
    expected, rewards, observations = gymnasium_steps(states, actions)
    assert 0.05 < np.mean(rewards == 0) < 0.5
    assert np.mean(np.abs(expected[:, 3]) == 9 * np.pi) > 0.01
    batch = core_batch(states, dtype)
    batch.actions[:, 0] = actions
    batch.step()
    found = differences(batch, expected)
    assert found[: COUNT // 4].max() <= fast
    assert found[COUNT // 4 :].max() <= slow
    height = -np.cos(expected[:, 0]) - np.cos(expected[:, 0] + expected[:, 1])
    clear = np.abs(height - 1) > 2 * found[:, :2].max()
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(batch.rewards[clear], rewards[clear])
    np.testing.assert_array_equal(batch.terminated[clear], rewards[clear] == 0)
    assert np.max(np.abs(batch.observations - observations)) <= max(fast, 2e-6)  # float32


def test_whole_episodes_are_gymnasium_s() -> None:
    """In double, from the same states on, until they end: pumped by the lower link's velocity."""
    environment: Any = gymnasium.make("Acrobot-v1").unwrapped
    lengths = []
    for seed in range(10):
        environment.reset(seed=seed)
        environment.state = np.asarray(environment.state, float)
        batch = core_batch(environment.state[None], np.float64)
        terminated = False
        for step in range(120):
            against = environment.state[2] > 0
            action = 0 if against else 2
            action = 1 if step % 15 == seed else action
            batch.actions[0, 0] = action
            batch.step()
            _, _, terminated, _, _ = environment.step(action)
            assert differences(batch, environment.state[None]).max() <= 1e-8
            assert bool(batch.terminated[0]) == terminated
            if terminated:
                lengths.append(step + 1)
                break
    assert len(lengths) > 5
