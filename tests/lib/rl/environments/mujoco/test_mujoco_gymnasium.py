"""MuJoCo's tasks against Gymnasium's, which step the same MuJoCo: observation, reward, termination.

Both begin episodes in the same positions and velocities and take the same actions. The core's
environments take turns on one thread, and so on one mjData; each of Gymnasium's has its own.
"""

from __future__ import annotations

import json
import subprocess
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from rltools_host.build import cmake, tools
from rltools_host.build.boards import load_board

TASKS = ("Ant-v4", "HalfCheetah-v4", "Hopper-v4", "Walker2d-v4", "Humanoid-v4")
STARTS = 64  # of each environment, used again after the last
TOLERANCE = 1e-9
Array = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def program() -> Path:
    """mujoco_episodes.cpp, beside this file."""
    tools.ensure_group("mujoco")
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    return cmake.build_targets(load_board("host"), ["mujoco_episodes"]) / "mujoco_episodes"


@pytest.fixture(autouse=True)
def no_log_in_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo appends its warnings to a file in the working directory."""
    monkeypatch.chdir(tmp_path)


def make(task: str) -> Any:
    import gymnasium

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there is a version 5
        return gymnasium.make(task, disable_env_checker=True).unwrapped


@dataclass(frozen=True)
class Episodes:
    """Where episodes begin (environment, start, value), and normalized actions of each step."""

    task: str
    qpos: Array
    qvel: Array
    actions: Array  # (step, environment, action)


@dataclass(frozen=True)
class Outcome:
    """Of each step of each environment."""

    observations: Array
    rewards: Array
    terminated: npt.NDArray[np.bool_]
    next_observations: Array


def draw_episodes(task: str, seeds: range, steps: int) -> Episodes:
    """One environment for each seed: begun with Gymnasium's noise. In one half of them an action is
    kept for some time, so that bodies go far and fall."""
    environment = make(task)
    model = environment.model
    qpos = np.empty((len(seeds), STARTS, model.nq))
    qvel = np.empty((len(seeds), STARTS, model.nv))
    actions = np.empty((steps, len(seeds), model.nu))
    for i, seed in enumerate(seeds):
        environment.reset(seed=seed)
        for start in range(STARTS):
            environment.reset()
            qpos[i, start], qvel[i, start] = environment.data.qpos, environment.data.qvel
        drawn = np.random.default_rng(seed).uniform(-1, 1, (steps, model.nu))
        actions[:, i] = np.repeat(drawn[::8], 8, axis=0)[:steps] if seed % 2 else drawn
    return Episodes(task, qpos, qvel, actions)


def gymnasium_outcome(episodes: Episodes) -> Outcome:
    import mujoco

    steps, environments, _ = episodes.actions.shape
    rows = []
    for i in range(environments):
        environment = make(episodes.task)
        model, data = environment.model, environment.data
        highest = model.actuator_ctrlrange[:, 1]
        starts = iter_starts(episodes, i)

        def begin(environment: Any = environment, starts: Iterator[Any] = starts) -> Array:
            mujoco.mj_resetData(environment.model, environment.data)
            environment.set_state(*next(starts))
            return np.array(environment._get_obs())

        assert np.array_equal(model.actuator_ctrlrange[:, 0], -highest)
        assert data.qpos.shape == episodes.qpos.shape[2:]
        observation = begin()
        row = []
        for action in episodes.actions[:, i]:
            following, reward, terminated, _, _ = environment.step(action * highest)
            row.append((observation, reward, terminated, following))
            observation = begin() if terminated else following
        rows.append(row)
    shape = (environments, steps)
    return Outcome(
        *(
            np.array([[step[k] for step in row] for row in rows]).reshape(*shape, -1)
            for k in range(4)
        )
    )


def iter_starts(episodes: Episodes, environment: int) -> Iterator[tuple[Array, Array]]:
    while True:
        yield from zip(episodes.qpos[environment], episodes.qvel[environment], strict=True)


def core_outcome(program: Path, episodes: Episodes) -> Outcome:
    steps, environments, _ = episodes.actions.shape
    starts = np.concatenate([episodes.qpos, episodes.qvel], axis=2)
    command = [str(program), episodes.task, str(environments), str(starts.shape[1]), str(steps)]
    written = starts.tobytes() + episodes.actions.tobytes()
    folder = Path("core").absolute()
    folder.mkdir(exist_ok=True)
    result = subprocess.run(command, input=written, capture_output=True, timeout=600, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert result.stderr == b""
    assert not list(folder.iterdir())  # where MuJoCo would write its log
    rows = np.frombuffer(result.stdout).reshape(steps, environments, -1).swapaxes(0, 1)
    size = rows.shape[2] // 2 - 1
    return Outcome(
        rows[..., :size],
        rows[..., size : size + 1],
        rows[..., size + 1 : size + 2] == 1,
        rows[..., size + 2 :],
    )


def largest_difference(actual: Array, expected: Array) -> float:
    """Absolute to 1, relative beyond: contact forces and inertias are large numbers."""
    assert actual.shape == expected.shape
    assert np.isfinite(actual).all()
    return float(np.max(np.abs(actual - expected) / np.maximum(1.0, np.abs(expected))))


def compare(program: Path, episodes: Episodes) -> Outcome:
    """Gymnasium's outcome, after the core's was found to be the same."""
    expected, actual = gymnasium_outcome(episodes), core_outcome(program, episodes)
    differences = {
        name: largest_difference(getattr(actual, name), getattr(expected, name))
        for name in ("observations", "rewards", "next_observations")
    }
    print(episodes.task, differences, f"{np.count_nonzero(expected.terminated)} terminations")
    assert np.array_equal(actual.terminated, expected.terminated)
    assert max(differences.values()) <= TOLERANCE, differences
    return expected


@pytest.mark.parametrize("task", TASKS)
def test_episodes_agree_to_1e_9(program: Path, task: str) -> None:
    outcome = compare(program, draw_episodes(task, range(2), 300))
    assert np.ptp(outcome.rewards) > 0.1
    assert outcome.terminated.any() == (task != "HalfCheetah-v4")


@pytest.mark.exhaustive
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.timeout(1800)
def test_twenty_seeds_of_1000_steps_agree_to_1e_9(program: Path, task: str) -> None:
    compare(program, draw_episodes(task, range(20), 1000))


@pytest.mark.parametrize("task", TASKS)
def test_a_simulation_that_diverges_is_begun_anew_as_in_gymnasium(program: Path, task: str) -> None:
    """MuJoCo warns of it, but neither on standard output nor by a file."""
    episodes = draw_episodes(task, range(1), 5)
    episodes.qvel[:, 0, -1] = 1e12
    outcome = compare(program, episodes)
    assert np.abs(outcome.next_observations[0, 0]).max() < 1e6


@pytest.mark.parametrize("task", TASKS)
def test_task_has_gymnasium_s_name_rate_and_spaces(program: Path, task: str) -> None:
    environment = make(task)
    result = subprocess.run([program, task], capture_output=True, check=True)
    described = json.loads(result.stdout)
    assert described["name"] == task
    assert described["step_interval_us"] == round(1e6 * environment.dt)
    observations, actions = described["observations"], described["actions"]
    assert (len(observations),) == environment.observation_space.shape
    space = environment.action_space
    low, high = ([float(np.float32(channel[k])) for channel in actions] for k in (2, 3))
    assert (low, high) == (space.low.tolist(), space.high.tolist())
    for channels in (observations, actions):
        names = [name for name, *_ in channels]
        assert len(set(names)) == len(names)
        assert all(0 < len(name) <= 23 and len(unit) <= 15 for name, unit, *_ in channels)


@pytest.mark.parametrize("task", TASKS)
def test_channels_have_the_names_of_joints_and_actuators(program: Path, task: str) -> None:
    """In the model's order: of each joint its position, where it is observed, and its velocity."""
    import mujoco

    model = make(task).model
    result = subprocess.run([program, task], capture_output=True, check=True)
    described = json.loads(result.stdout)
    hinges = [
        model.joint(i).name.removesuffix("_joint")
        for i in range(model.njnt)
        if model.jnt_type[i] == mujoco.mjtJoint.mjJNT_HINGE
    ]
    observations = [name for name, *_ in described["observations"]]
    places = [observations.index(name) for name in hinges]
    assert places == list(range(places[0], places[0] + len(hinges)))
    first = observations.index(f"{hinges[0]}_rate")
    assert observations[first : first + len(hinges)] == [f"{name}_rate" for name in hinges]
    actuated = [
        model.joint(model.actuator_trnid[i, 0]).name.removesuffix("_joint") for i in range(model.nu)
    ]
    assert [name for name, *_ in described["actions"]] == actuated
    if task == "Humanoid-v4":
        bodies = [model.body(i).name for i in range(model.nbody)]
        masses = [name for name in observations if name.endswith("_mass")]
        assert masses == [f"{name}_mass" for name in bodies]
