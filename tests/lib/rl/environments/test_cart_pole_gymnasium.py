"""The core's cart and pole against gymnasium's CartPole-v1: single steps, and whole episodes."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest

from rltools_host.environments.library import Batch, load_library

Array = npt.NDArray[Any]
FIELDS = ("cart_position_m", "cart_velocity_m_s", "pole_angle_rad", "pole_velocity_rad_s")
COUNT = 3000


def random_states(dtype: type[np.floating[Any]]) -> tuple[Array, Array]:
    """States on both sides of what ends an episode, which `dtype` holds exactly; and choices."""
    random = np.random.default_rng(1)
    states = random.uniform(-1, 1, (COUNT, 4)) * (2.6, 5.0, 0.24, 5.0)
    return states.astype(dtype).astype(np.float64), random.integers(0, 2, COUNT)


def gymnasium_steps(states: Array, actions: Array) -> tuple[Array, Array]:
    environment: Any = gymnasium.make("CartPole-v1").unwrapped
    reached, ended = np.empty_like(states), np.empty(len(states), bool)
    environment.reset(seed=0)
    for index, (state, action) in enumerate(zip(states, actions, strict=True)):
        environment.state = state
        environment.steps_beyond_terminated = None
        _, reward, ended[index], _, _ = environment.step(int(action))
        assert reward == 1.0
        reached[index] = environment.state
    return reached, ended


def core_batch(states: Array, dtype: type[np.floating[Any]]) -> Batch:
    batch = Batch(load_library("CartPole-v1", double=dtype is np.float64), len(states))
    for field, column in zip(FIELDS, states.T, strict=True):
        batch.states[field] = column
    return batch


def states_of(batch: Batch) -> Array:
    return np.column_stack([batch.states[field] for field in FIELDS]).astype(np.float64)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-14), (np.float32, 2e-6)])
def test_steps_are_gymnasium_s(dtype: type[np.floating[Any]], tolerance: float) -> None:
    states, actions = random_states(dtype)
    expected, ended = gymnasium_steps(states, actions)
    assert 0.2 < ended.mean() < 0.8
    batch = core_batch(states, dtype)
    batch.actions[:, 0] = actions
    batch.step()
    assert np.max(np.abs(states_of(batch) - expected)) <= tolerance
    edge = np.minimum(
        np.abs(np.abs(expected[:, 0]) - 2.4), np.abs(np.abs(expected[:, 2]) - 0.20943951)
    )
    clear = edge > 1e-6
    assert clear.mean() > 0.999
    np.testing.assert_array_equal(batch.terminated[clear], ended[clear])
    assert (batch.rewards == 1).all()
    np.testing.assert_array_equal(batch.observations, states_of(batch).astype(dtype))


def test_whole_episodes_are_gymnasium_s() -> None:
    """In double, from the same states on: a pole upright tears differences apart, 10 times in 25
    steps. The cart is pushed under the pole, in fewer and fewer of the steps."""
    environment: Any = gymnasium.make("CartPole-v1").unwrapped
    lengths = []
    for seed in range(10):
        environment.reset(seed=seed)
        batch = core_batch(np.array([environment.state], float), np.float64)
        length = 0
        while length < 150:
            length += 1
            leans_right = environment.state[2] + 0.3 * environment.state[3] > 0
            action = int(leans_right != (length % 20 < seed))
            batch.actions[0, 0] = action
            batch.step()
            _, _, terminated, _, _ = environment.step(action)
            assert np.max(np.abs(states_of(batch) - environment.state)) <= 1e-7
            assert bool(batch.terminated[0]) == terminated
            if terminated:
                break
        lengths.append(length)
    assert min(lengths) < 100
    assert max(lengths) == 150
