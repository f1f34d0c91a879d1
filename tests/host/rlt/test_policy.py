"""rlt.Policy: what it takes, what it refuses, and that its actions are a board's."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rlt
from policy_run import make_policy_run
from policy_samples import patched, sample_images
from rltools_host.errors import DamagedFileError, RefusedError, UsageError

OBSERVATION = [0.25, -0.5, 3.0]


@pytest.fixture
def policy(tmp_path: Path) -> rlt.Policy:
    return rlt.Policy.load(make_policy_run(tmp_path / "run"))


def test_actions_are_those_of_the_examples_that_the_device_wrote(policy: rlt.Policy) -> None:
    examples = policy.image.examples
    assert len(examples) > 2
    for example in examples:
        assert np.array_equal(policy(example.observation), example.action)
    together = policy(np.array([example.observation for example in examples]))
    assert np.array_equal(together, np.array([example.action for example in examples]))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
def test_numbers_of_any_type(policy: rlt.Policy, dtype: Any) -> None:
    values = np.array([[1, 0, 2], [0, -1, -3]], dtype)
    expected = policy.image.evaluate(values.astype(np.float32))
    actions = policy(values)
    assert actions.dtype == np.float32
    assert actions.shape == (2, 1)
    assert np.array_equal(actions, expected)
    assert np.array_equal(policy(values[0]), expected[0])
    assert np.array_equal(policy(np.asfortranarray(values)[::-1]), expected[::-1])
    assert policy(values[:0]).shape == (0, 1)


def test_what_is_not_finite_gives_the_middle_of_the_range(policy: rlt.Policy) -> None:
    assert policy([np.nan, 0, 0]).tolist() == [0.0]
    assert policy([1e300, 0, 0]).tolist() == [0.0]  # infinite in float32


@pytest.mark.parametrize(
    ("observation", "what"),
    [
        ([1.0, 2.0], r"float64 of shape \(2,\)"),
        (["a", "b", "c"], r"<U1 of shape \(3,\)"),
    ],
)
def test_another_shape_or_type_is_one_sentence(
    policy: rlt.Policy, observation: Any, what: str
) -> None:
    with pytest.raises(UsageError, match=rf"takes numbers of shape \(3,\) or \(n, 3\), not {what}"):
        policy(observation)


def test_a_file_and_a_run_give_the_same(policy: rlt.Policy, tmp_path: Path) -> None:
    other = rlt.Policy.load(str(tmp_path / "run" / "policy.rltp"))
    assert np.array_equal(other(OBSERVATION), policy(OBSERVATION))
    run = rlt.Run(tmp_path / "run", {})
    assert np.array_equal(run.policy(OBSERVATION), policy(OBSERVATION))
    assert run.policy is run.policy
    assert np.array_equal(rlt.Policy.load(run)(OBSERVATION), policy(OBSERVATION))


def test_it_is_verified_when_it_is_loaded(tmp_path: Path) -> None:
    image = sample_images()["pendulum"]
    example_action = len(image) - 4
    wrong = patched(image, example_action, "f", 0.123)
    with pytest.raises(RefusedError, match="gives other bits on this machine"):
        rlt.Policy.load(make_policy_run(tmp_path / "wrong", wrong))
    (tmp_path / "damaged.rltp").write_bytes(image[:-1])
    with pytest.raises(DamagedFileError, match=r"damaged\.rltp"):
        rlt.Policy.load(tmp_path / "damaged.rltp")
    with pytest.raises(UsageError, match="unknown run"):
        rlt.Policy.load(tmp_path / "nothing")
    assert issubclass(UsageError, rlt.RltError)


def test_threads_may_share_it(policy: rlt.Policy) -> None:
    observations = np.random.default_rng(0).uniform(-1, 1, (8, 2000, 3)).astype(np.float32)
    expected = [policy(batch) for batch in observations]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            found = list(pool.map(policy, observations))
            assert all(map(np.array_equal, found, expected))


def test_a_recurrent_policy_acts_in_episodes(tmp_path: Path) -> None:
    run = make_policy_run(tmp_path / "run", sample_images()["recurrent_pendulum"])
    policy = rlt.Policy.load(run)
    assert policy.is_recurrent
    with pytest.raises(UsageError, match=r"take act = policy\.episode\(\)"):
        policy(OBSERVATION)
    act, other = policy.episode(), policy.episode()
    examples = policy.image.examples[:10]  # of one sequence
    for example in examples:
        assert np.array_equal(act(example.observation), example.action)
    assert np.array_equal(other(examples[0].observation), examples[0].action)
    together = policy.episode(3)
    for example in examples:
        assert (together([example.observation] * 3) == example.action).all()
    with pytest.raises(rlt.RltError, match="hidden states of shape"):
        together(OBSERVATION)
    returns = rlt.evaluate(policy, "Pendulum-v1", episodes=2)
    assert returns[1] == rlt.evaluate(policy, "Pendulum-v1", episodes=1, seed=1)[0]


def test_a_policy_goes_to_other_processes_and_can_be_copied(policy: rlt.Policy) -> None:
    expected = policy(OBSERVATION)  # the one that runs it exists already
    sent = pickle.loads(pickle.dumps(policy))  # as multiprocessing's Pool does
    for other in (sent, copy.copy(policy), copy.deepcopy(policy)):
        assert np.array_equal(other(OBSERVATION), expected)
