"""The core's pendulum against gymnasium's Pendulum-v1: single steps, and whole episodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest

from rltools_host.environments.library import Batch, load_library

EPISODES = 200
STEPS = 200
Array = npt.NDArray[Any]


class Simulator:
    """The core's pendulum through host/native/environment_library.cpp, for many states at once."""

    def __init__(self, dtype: type[np.floating[Any]]) -> None:
        self.library = load_library("Pendulum-v1", double=dtype is np.float64)
        assert self.library.scalar == dtype

    def batch_in(self, states: Array) -> Batch:
        batch = Batch(self.library, len(states))
        batch.states["angle_rad"], batch.states["velocity_rad_s"] = states.T
        return batch

    def step(self, states: Array, torques: Array) -> tuple[Array, Array]:
        """Next states and rewards; torques in N*m, as gymnasium's actions are."""
        batch = self.batch_in(states)
        batch.actions[:, 0] = torques
        assert batch.step() == 0
        fields = (batch.states["angle_rad"], batch.states["velocity_rad_s"])
        return np.column_stack(fields), batch.rewards

    def observe(self, states: Array) -> Array:
        batch = self.batch_in(states)
        batch.observe()
        return batch.observations


@dataclass(frozen=True)
class Episodes:
    """Gymnasium's, (episodes, steps, ...); states are those before each step."""

    states: Array
    next_states: Array
    torques: Array
    observations: Array
    rewards: Array


def random_torques() -> Array:
    """In N*m, one in five beyond the bounds.

    They are float64 arrays: with float32 ones gymnasium would compute parts of the step in float32.
    A float holds each exactly, and so the same torque reaches all simulators.
    """
    random = np.random.default_rng(1)
    torques = random.uniform(-2.5, 2.5, (EPISODES, STEPS)).astype(np.float32).astype(np.float64)
    # In one half of the episodes a torque is kept for some time, so that the pendulum turns over.
    torques[::2] = np.repeat(torques[::2, ::25], 25, axis=1)
    return torques


def run_gymnasium(dtype: type[np.floating[Any]]) -> Episodes:
    """Episodes, each step from a state that `dtype` holds exactly."""
    environment: Any = gymnasium.make("Pendulum-v1").unwrapped
    shape = (EPISODES, STEPS)
    states, next_states = np.empty((*shape, 2)), np.empty((*shape, 2))
    torques, rewards = random_torques(), np.empty(shape)
    observations = np.empty((*shape, 3), np.float32)
    for episode in range(EPISODES):
        environment.reset(seed=episode)
        for step in range(STEPS):
            environment.state = np.asarray(environment.state).astype(dtype).astype(np.float64)
            states[episode, step] = environment.state
            observation, reward, terminated, _, _ = environment.step(
                torques[episode, step : step + 1]
            )
            assert not terminated
            observations[episode, step], rewards[episode, step] = observation, reward
            next_states[episode, step] = environment.state
    return Episodes(states, next_states, torques, observations, rewards)


@pytest.fixture(scope="module")
def double_episodes() -> Episodes:
    return run_gymnasium(np.float64)


@pytest.fixture(scope="module")
def float_episodes() -> Episodes:
    return run_gymnasium(np.float32)


def largest_difference(actual: Array, expected: Array) -> float:
    return float(np.max(np.abs(actual.astype(np.float64) - expected.astype(np.float64))))


def check_steps(simulator: Simulator, episodes: Episodes, tolerance: float) -> None:
    """Every step of every episode, from gymnasium's state before it."""
    next_states, rewards = simulator.step(
        episodes.states.reshape(-1, 2), episodes.torques.reshape(-1)
    )
    expected = episodes.next_states.reshape(-1, 2)
    assert largest_difference(next_states, expected) <= tolerance
    assert largest_difference(rewards, episodes.rewards.reshape(-1)) <= tolerance
    exact = np.column_stack([np.cos(expected[:, 0]), np.sin(expected[:, 0]), expected[:, 1]])
    observations = simulator.observe(next_states)
    assert largest_difference(observations, exact) <= tolerance
    # Gymnasium's own observations are float32.
    assert largest_difference(observations, episodes.observations.reshape(-1, 3)) <= 1e-5


def test_episodes_reach_every_part_of_the_dynamics(double_episodes: Episodes) -> None:
    angles, velocities = double_episodes.states[..., 0], double_episodes.states[..., 1]
    assert np.mean(np.abs(double_episodes.torques) > 2) == pytest.approx(0.2, abs=0.02)
    assert np.count_nonzero(np.abs(velocities) == 8) > 4
    assert np.max(np.abs(angles)) > 3 * np.pi  # turned over, so that the angle is normalized
    assert np.mean(np.cos(angles) > 0.9) > 0.02  # upright


def test_double_steps_agree_to_1e_12(double_episodes: Episodes) -> None:
    check_steps(Simulator(np.float64), double_episodes, 1e-12)


def test_float_steps_agree_to_1e_5(float_episodes: Episodes) -> None:
    check_steps(Simulator(np.float32), float_episodes, 1e-5)


def test_double_episodes_agree_to_1e_9(double_episodes: Episodes) -> None:
    """Each simulator on its own from the initial states to the ends of the episodes."""
    simulator = Simulator(np.float64)
    states = double_episodes.states[:, 0]
    for step in range(STEPS):
        states, rewards = simulator.step(states, double_episodes.torques[:, step])
        assert largest_difference(states, double_episodes.next_states[:, step]) <= 1e-9
        assert largest_difference(rewards, double_episodes.rewards[:, step]) <= 1e-9
