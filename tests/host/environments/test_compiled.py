"""The compiled environments through Gymnasium: its own checks, and what it leaves open."""

from __future__ import annotations

import math
import threading
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from rltools_host.build.catalog import list_environments
from rltools_host.environments.compiled import CompiledVectorEnv, register
from rltools_host.errors import UsageError

# Each is compiled: with --all one of each kind, with --slow the others.
DAILY = ("Pendulum-v1", "CartPole-v1")
OF_EACH_KIND = ("Acrobot-v1", "Ant-v4", "AnyQuadrotor", "MaskedPendulum", "RacingCar")


def marks_of(name: str) -> list[pytest.MarkDecorator]:
    if name in DAILY:
        return []
    return [pytest.mark.all] if name in OF_EACH_KIND else [pytest.mark.all, pytest.mark.slow]


NAMES = [
    pytest.param(environment.name, marks=marks_of(environment.name))
    for environment in list_environments()
]
Array = NDArray[Any]

register()


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Philox4x32-10 of Salmon and others, 2011."""
    for _ in range(10):
        first, second = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = [
            (second >> 32) ^ counter[1] ^ key[0],
            second & 0xFFFFFFFF,
            (first >> 32) ^ counter[3] ^ key[1],
            first & 0xFFFFFFFF,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def initial_pendulum(seed: int, episode: int, index: int) -> tuple[float, float]:
    """Angle and velocity: purpose 2 of core/random.h, the episode as step, the row as substream."""
    words = philox([0, episode, index, 0], [seed, 2])
    units = [(word >> 8) * 2.0**-24 for word in words]
    return 2 * math.pi * units[0] - math.pi, 2 * units[1] - 1


def actions_of(env: CompiledVectorEnv, steps: int) -> Array:
    random = np.random.default_rng(5)
    if isinstance(env.action_space, gymnasium.spaces.MultiDiscrete):  # a choice of each
        return random.integers(0, env.action_space.nvec, (steps, env.num_envs))
    low, high = env.action_space.low, env.action_space.high  # type: ignore[attr-defined]
    drawn: Array = random.uniform(low, high, (steps, *low.shape)).astype(np.float32)
    return drawn


def rollout(env: CompiledVectorEnv, seed: int, actions: Array) -> list[Array]:
    """Observations, rewards, terminations, truncations, one row for each step."""
    env.reset(seed=seed)
    steps = [env.step(action)[:4] for action in actions]
    return [np.array([step[k] for step in steps]) for k in range(4)]


@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_s_own_check_passes(name: str) -> None:
    env = gymnasium.make(f"rlt/{name}")
    assert env.spec is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Not every task has the range [-1, 1] of actions that this recommends.
        warnings.filterwarnings("ignore", message=".*symmetric and normalized space.*")
        check_env(env.unwrapped, skip_render_check=True)


@pytest.mark.parametrize("name", NAMES)
def test_spaces_types_and_seeds(name: str) -> None:
    env = CompiledVectorEnv(name, 4)
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert env.spec is gymnasium.spec(f"rlt/{name}")
    observations, infos = env.reset(seed=7)
    assert infos == {}
    assert env.np_random_seed == 7
    assert observations.dtype == np.float32
    assert env.observation_space.contains(observations)
    assert env.single_observation_space.shape == (len(env.observation_channels),)
    is_one_choice = [bool(channel.choices) for channel in env.action_channels] == [True]
    assert env.single_action_space.shape == (() if is_one_choice else (len(env.action_channels),))
    actions = actions_of(env, 40)
    first = rollout(env, 7, actions)
    types = [np.float32, np.float32, np.bool_, np.bool_]
    assert [array.dtype for array in first] == types
    assert first[0].shape == (40, 4, len(env.observation_channels))
    assert all(array.shape == (40, 4) for array in first[1:])
    assert np.isfinite(first[0]).all()
    assert np.isfinite(first[1]).all()
    again = rollout(CompiledVectorEnv(name, 4), 7, actions)
    assert all(map(np.array_equal, first, again))
    assert not np.array_equal(first[0], rollout(env, 8, actions)[0])
    assert len({row.tobytes() for row in observations}) == 4  # each has a start of its own


@pytest.mark.parametrize("name", NAMES)
def test_rows_do_not_depend_on_their_number_and_the_first_is_the_single_one(name: str) -> None:
    many, two = CompiledVectorEnv(name, 6), CompiledVectorEnv(name, 2)
    actions = actions_of(many, 30)
    expected = rollout(many, 3, actions)
    for array, other in zip(expected, rollout(two, 3, actions[:, :2]), strict=True):
        assert np.array_equal(array[:, :2], other)
    single = gymnasium.make(f"rlt/{name}")
    single.reset(seed=3)
    assert single.unwrapped.np_random_seed == 3
    for step, action in enumerate(actions[:, 0]):
        observation, reward, terminated, truncated, _ = single.step(action)
        assert (reward, terminated, truncated) == tuple(array[step, 0] for array in expected[1:])
        if terminated:
            break
        assert np.array_equal(observation, expected[0][step, 0])


def test_starts_are_those_of_the_core_s_streams() -> None:
    env = CompiledVectorEnv("Pendulum-v1", 3, max_episode_steps=2)
    env.reset(seed=123456789)
    for episode in range(3):
        for index in range(3):
            angle, velocity = initial_pendulum(123456789, episode, index)
            assert env.states["angle_rad"][index] == pytest.approx(angle, abs=1e-6)
            assert env.states["velocity_rad_s"][index] == pytest.approx(velocity, abs=1e-6)
        for _ in range(2):
            env.step(np.zeros((3, 1), np.float32))
    env.reset()  # without a seed: the next episode of each
    angle, velocity = initial_pendulum(123456789, 4, 2)
    assert env.states[2].item() == pytest.approx((angle, velocity), abs=1e-6)


def test_a_reset_without_any_seed_draws_one() -> None:
    starts = {CompiledVectorEnv("Pendulum-v1").reset()[0].tobytes() for _ in range(3)}
    assert len(starts) == 3
    singles = {gymnasium.make("rlt/Pendulum-v1").reset()[0].tobytes() for _ in range(3)}
    assert len(singles) == 3


def test_actions_are_in_the_units_of_their_channels() -> None:
    """Against Gymnasium's own step, from the same state."""
    env = CompiledVectorEnv("Pendulum-v1", 5)
    env.reset(seed=0)
    (torque,) = env.action_channels
    assert (torque.unit, torque.minimum, torque.maximum) == ("N*m", -2, 2)
    reference: Any = gymnasium.make("Pendulum-v1").unwrapped
    torques = np.array([[-2], [-0.7], [0], [1.3], [9]], np.float32)
    starts = env.states.copy()
    observations, rewards, *_ = env.step(torques)
    for i in range(5):
        reference.reset()
        reference.state = np.array(starts[i].item())
        expected, reward, *_ = reference.step(torques[i].astype(np.float64))
        assert observations[i] == pytest.approx(expected, abs=1e-5)
        assert rewards[i] == pytest.approx(reward, abs=1e-5)


def test_episodes_are_cut_off_and_begun_again_in_the_same_step() -> None:
    env = CompiledVectorEnv("Pendulum-v1", 3)
    env.reset(seed=2)
    action = np.full((3, 1), 0.5, np.float32)
    for step in range(1, 401):
        observations, _, terminated, truncated, infos = env.step(action)
        assert not terminated.any()
        assert truncated.all() == truncated.any() == (step % 200 == 0)
        if step % 200:
            assert infos == {}
            before = env.states.copy()
            continue
        assert infos["_final_obs"].tolist() == [True] * 3
        assert infos["_final_info"].tolist() == [True] * 3
        final = np.stack(infos["final_obs"])
        assert np.array_equal(final, env.final_observations)
        assert not np.array_equal(final, observations)
        # The last state that was seen, a step further.
        check = CompiledVectorEnv("Pendulum-v1", 3)
        check.reset(seed=0)
        check.states[:] = before
        assert np.array_equal(check.step(action)[0], final)
        new = np.array([initial_pendulum(2, step // 200, i) for i in range(3)])
        assert observations[:, 2] == pytest.approx(new[:, 1], abs=1e-6)


def test_episodes_are_begun_again_in_the_next_step_where_that_is_asked_for() -> None:
    """The same steps and the same starts as in the same step, one step later."""
    env = CompiledVectorEnv(
        "CartPole-v1", 3, max_episode_steps=30, autoreset_mode="NextStep", threads=2
    )
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    same = CompiledVectorEnv("CartPole-v1", 3, max_episode_steps=30)
    actions = actions_of(env, 60)
    env.reset(seed=6)
    same.reset(seed=6)
    for action in actions:
        observations, rewards, terminated, truncated, infos = env.step(action)
        expected = same.step(action)
        assert infos == {}
        for array, other in zip((rewards, terminated, truncated), expected[1:4], strict=True):
            assert np.array_equal(array, other)
        ended = terminated | truncated
        kept = expected[0]
        assert np.array_equal(observations[~ended], kept[~ended])
        assert np.array_equal(observations[ended], same.final_observations[ended])
        if ended.any():
            break
    assert ended.any()
    observations, rewards, terminated, truncated, _ = env.step(actions[-1])
    assert np.array_equal(observations[ended], kept[ended])
    assert not rewards[ended].any()
    assert not (terminated | truncated)[ended].any()
    if not ended.all():
        assert rewards[~ended].all()
    env = CompiledVectorEnv("CartPole-v1", 3, max_episode_steps=1, autoreset_mode="NextStep")
    env.reset(seed=6)
    env.step(actions[0])
    env.reset(seed=6)  # where an episode has just ended: the next step is one
    again = CompiledVectorEnv("CartPole-v1", 3, max_episode_steps=30)
    again.reset(seed=6)
    assert np.array_equal(env.step(actions[0])[0], again.step(actions[0])[0])


def test_an_episode_that_terminates_is_not_truncated() -> None:
    env = CompiledVectorEnv("CartPole-v1", 8)
    env.reset(seed=0)
    ends = 0
    for action in actions_of(env, 150):
        observations, _, terminated, truncated, infos = env.step(action)
        assert not truncated.any()
        assert ("final_obs" in infos) == terminated.any()
        if not terminated.any():
            continue
        assert np.array_equal(infos["_final_obs"], terminated)
        for i in range(8):
            final = infos["final_obs"][i]
            if not terminated[i]:
                assert final is None
                continue
            ends += 1
            assert abs(final[0]) > 2.4 or abs(final[2]) > math.radians(12.0)  # it has fallen
            assert (abs(observations[i]) <= 0.05).all()  # a new start
    assert ends > 8


def test_threads_give_the_same_bits() -> None:
    one, three = (
        CompiledVectorEnv("CartPole-v1", 16),
        CompiledVectorEnv("CartPole-v1", 16, threads=3),
    )
    actions = actions_of(one, 60)
    for expected, actual in zip(rollout(one, 4, actions), rollout(three, 4, actions), strict=True):
        assert np.array_equal(expected, actual)


def test_threads_of_python_may_each_step_with_several() -> None:
    """While another caller has the library's threads, a caller computes alone."""
    alone = CompiledVectorEnv("CartPole-v1", 8)
    actions = actions_of(alone, 60)
    expected = rollout(alone, 5, actions)
    found: list[Any] = [None] * 3

    def run(index: int) -> None:
        env = CompiledVectorEnv("CartPole-v1", 8, threads=2 + index % 2)
        found[index] = rollout(env, 5, actions)

    callers = [threading.Thread(target=run, args=(index,)) for index in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    for result in found:
        for one, other in zip(expected, result, strict=True):
            assert np.array_equal(one, other)


def test_copies_stay_and_shared_arrays_are_overwritten() -> None:
    action = np.zeros((2, 1), np.float32)
    copying, sharing = (
        CompiledVectorEnv("Pendulum-v1", 2, max_episode_steps=2, copy=copy)
        for copy in (True, False)
    )
    kept, first = copying.reset(seed=0)[0], sharing.reset(seed=0)[0]
    before = kept.copy()
    results = [env.step(action) for env in (copying, sharing)]
    assert np.array_equal(kept, before)
    assert first is results[1][0]
    assert not np.array_equal(first, before)
    for _ in range(2):
        again = [env.step(action) for env in (copying, sharing)]
        for k in range(4):
            assert again[0][k] is not results[0][k]
            assert again[1][k] is results[1][k]
            assert np.array_equal(again[0][k], again[1][k])
        if again[0][4]:
            final = [infos["final_obs"][1] for *_, infos in again]
            assert np.array_equal(final[0], final[1])
            assert not np.shares_memory(final[0], copying.final_observations)
            assert np.shares_memory(final[1], sharing.final_observations)


def test_gymnasium_makes_vectors_with_its_own_arguments() -> None:
    env = gymnasium.make_vec("rlt/Pendulum-v1", num_envs=3, max_episode_steps=4, copy=False)
    assert isinstance(env.unwrapped, CompiledVectorEnv)
    env.reset(seed=0)
    assert [env.step(np.zeros((3, 1)))[3].all() for _ in range(4)] == [False] * 3 + [True]
    recorder = gymnasium.wrappers.vector.RecordEpisodeStatistics(env)
    recorder.reset(seed=0)
    *_, infos = [recorder.step(np.zeros((3, 1))) for _ in range(4)][-1]
    assert infos["episode"]["l"].tolist() == [4, 4, 4]
    shorter = gymnasium.make("rlt/Pendulum-v1", max_episode_steps=3)
    shorter.reset(seed=0)
    assert [shorter.step(np.zeros(1))[3] for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize(
    ("actions", "given"),
    [
        (np.zeros((2, 2)), r"real numbers of shape .*, not float64 of shape \(2, 2\)"),
        ([[0.0], [0.0, 0.0]], "an array of actions, this one is ragged"),
    ],
)
def test_actions_that_are_none_are_one_sentence(actions: Any, given: str) -> None:
    env = CompiledVectorEnv("Pendulum-v1", 2)
    single = gymnasium.make("rlt/Pendulum-v1").unwrapped
    for one in (env, single):
        one.reset(seed=0)
        with pytest.raises(UsageError, match=f"Pendulum-v1 takes {given}"):
            one.step(actions)
    env.step(np.array([[1], [2]]))  # whole numbers are numbers


def test_a_step_before_the_first_reset_is_refused() -> None:
    with pytest.raises(gymnasium.error.ResetNeeded):
        CompiledVectorEnv("Pendulum-v1", 2).step(np.zeros((2, 1)))
