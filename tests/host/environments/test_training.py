"""Gymnasium tasks, trained by the real programs of this machine."""

from __future__ import annotations

import functools
import json
import math
import os
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from msgspec.structs import replace

import gymnasium_points
from gymnasium_points import (
    DyingPoint,
    NanPoint,
    OutlierPoint,
    Point,
    RaisingPoint,
    StuckPoint,
)
from rltools_host.boards.policy_session import PolicyTarget, target_of_run
from rltools_host.boards.push import PushRequest
from rltools_host.boards.training import TrainingClient
from rltools_host.build import experiments
from rltools_host.commands import evaluate, policies
from rltools_host.environments import server_socket, server_start
from rltools_host.environments.environment_server import LIMIT_VARIABLE
from rltools_host.environments.headers import subject_of_run
from rltools_host.environments.server_start import ServerProcess
from rltools_host.environments.task import task_of
from rltools_host.errors import (
    EnvironmentLostError,
    Interrupted,
)
from rltools_host.policies.contract import ASSUMPTIONS
from rltools_host.policies.evaluation import EvaluationRequest
from rltools_host.policies.image import parse_policy, read_run_policy
from rltools_host.runs.checkpoint import load_checkpoint
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.task import Task
from rltools_host.training import from_python
from rltools_host.training import run as training_run
from rltools_host.training.progress import Screen, TrainingView
from run_folders import document_of
from training_calls import train_here, train_task

POINTS = Path(gymnasium_points.__file__)
# One experiment for each algorithm: all of these environments have the same spaces. That of SAC is
# the one of test_groups.py, whose program takes the compiler six seconds.
TRAIN = functools.partial(
    train_task,
    name="Point",
    hidden=(8,),
    hyperparameters={"learning_starts": 50, "eval_freq": 250, "n_eval_episodes": 2, "norm_obs": 1},
    tensorboard=False,
)
TRAIN_PPO = functools.partial(
    TRAIN,
    algorithm="ppo",
    environments=3,
    sizes={"batch_size": 32, "n_steps": 32},
    hyperparameters={"eval_freq": 500, "n_eval_episodes": 2},
)
PPO_TOO = pytest.param(TRAIN_PPO, marks=pytest.mark.all)  # 5 s of the compiler


@pytest.fixture(scope="module")
def point(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A short run on a function, which is only read."""
    return TRAIN(Point, steps=100, out=tmp_path_factory.mktemp("point") / "run")


@pytest.fixture(scope="module")
def raising(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run whose environment fails in every tenth step, which is only read."""
    return TRAIN(RaisingPoint, steps=600, out=tmp_path_factory.mktemp("raising") / "run")


def state(run: Path) -> dict[str, Any]:
    """The tensors of a run's checkpoint, by their names."""
    folder = RunFolder.open(str(run))
    description = experiments.describe(subject_of_run(folder.content))
    assert folder.save_path is not None
    checkpoint = load_checkpoint(folder.save_path / "checkpoint.safetensors", description)
    kinds = {"F32": np.float32, "U32": np.uint32, "U8": np.uint8, "F64": np.float64}
    arrays = {}
    for tensor in description.tensors:
        kind = np.dtype(kinds[tensor.dtype])
        count = int(np.prod(tensor.shape))
        array = np.frombuffer(checkpoint.payload, kind, count, tensor.offset)
        arrays[tensor.name] = array.reshape(tensor.shape)
    return arrays


def event_texts(run: Path) -> list[str]:
    rows = RunFolder.open(str(run)).read_metrics()
    return [row["text"] for row in rows if row["kind"] == "event"]


def file_task(name: str = "Point") -> str:
    return f"{POINTS}:{name}"


class At(Screen):
    """Calls a function once a step has been reported."""

    def __init__(self, view: TrainingView, step: int, action: Callable[[], None]) -> None:
        super().__init__(view)
        self._step, self._action, self._done = step, action, False

    def refresh(self) -> None:
        if not self._done and self.view.step >= self._step:
            self._done = True
            self._action()


@pytest.mark.parametrize("train", [TRAIN, PPO_TOO])
def test_the_same_seed_gives_the_same_run(tmp_path: Path, train: Any) -> None:
    """In a thread of this process, or in a process of its own, by any number of threads; another
    seed gives another run."""
    in_thread = train(Point, seed=5, steps=600, out=tmp_path / "thread")
    in_process = train(file_task(), seed=5, steps=600, threads=3, out=tmp_path / "process")
    other = train(Point, seed=6, steps=600, out=tmp_path / "other")
    assert in_thread["state_sha256"] == in_process["state_sha256"]
    assert in_thread["return_mean"] == in_process["return_mean"]
    assert other["state_sha256"] != in_thread["state_sha256"]
    assert in_thread["environment_faults"] == 0
    names = ("thread", "process")
    arrays = [state(tmp_path / name) for name in names]
    assert all(np.array_equal(arrays[0][key], arrays[1][key], equal_nan=True) for key in arrays[0])
    image = parse_policy(read_run_policy(tmp_path / "process").data)
    assert image.stated.assumed == ASSUMPTIONS, "as the image itself says, of what nobody states"
    sessions = [document_of(RunFolder.open(tmp_path / name))["sessions"][0] for name in names]
    assert [session.get("threads") for session in sessions] == [None, 3]


@pytest.mark.all
@pytest.mark.parametrize("train", [TRAIN, PPO_TOO])
def test_a_run_that_is_saved_on_its_way_is_the_same_run(
    tmp_path: Path, train: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other than one that is resumed: its episodes go on."""
    whole = train(Point, seed=5, steps=600, out=tmp_path / "whole")
    asked = threading.Event()
    saves: list[int] = []
    pause, commit = TrainingClient.pause, RunFolder.commit

    def noted(client: TrainingClient) -> None:
        asked.set()
        pause(client)

    def counted(folder: RunFolder, step: int, *arguments: Any) -> None:
        saves.append(step)
        commit(folder, step, *arguments)

    class WaitingPoint(Point):
        def step(self, action: Any) -> Any:
            assert self.steps_in_all != 150 or asked.wait(60)
            return super().step(action)

    monkeypatch.setattr(TrainingClient, "pause", noted)
    monkeypatch.setattr(RunFolder, "commit", counted)
    monkeypatch.setattr(training_run, "SAVE_EVERY_S", 0.0)
    saved = train(WaitingPoint, seed=5, steps=600, out=tmp_path / "saved")
    assert len(saves) > 1
    assert saved["environment_faults"] == 0
    assert saved["state_sha256"] == whole["state_sha256"]


def test_what_was_learned_is_what_the_environment_did(tmp_path: Path) -> None:
    """The replay buffer holds the point's own transitions; truncated ones are not terminal."""
    TRAIN(Point, steps=600, seed=1, out=tmp_path / "run")
    arrays = state(tmp_path / "run")
    flags = arrays["replay/flags"].reshape(-1)
    position = int(arrays["replay/position"].reshape(-1)[0])
    observations, actions = arrays["replay/observation"], arrays["replay/action"].reshape(-1)
    observations = observations.reshape(-1, 2)
    rewards = arrays["replay/reward"].reshape(-1)
    taken = np.flatnonzero(flags[:position] & 1)
    assert len(taken) == 600
    physical = 0.5 + np.clip(actions[taken], -1.0, 1.0)  # of the box from -0.5 to 1.5
    reached = observations[taken, 0] + 0.2 * (physical - 0.5)
    inside = np.abs(reached) < 2.0
    assert np.allclose(observations[taken + 1, 0][inside], reached[inside], atol=1e-5)
    assert np.allclose(rewards[taken], -np.abs(reached), atol=1e-5)
    assert np.allclose(observations[taken + 1, 1], observations[taken, 1] + 0.1, atol=1e-5)
    assert ((flags[taken] & 2 != 0) == (np.abs(reached) > 2.0)).all()
    ends = np.flatnonzero(flags[:position] == 0)
    truncated = [end for end in ends if not flags[end - 1] & 2]
    assert truncated
    assert np.allclose(observations[truncated, 1], 0.1 * gymnasium_points.STEPS)


def test_the_policy_s_normalizer_is_of_what_actions_answered(point: dict[str, Any]) -> None:
    """Mean and deviation over the first observation and that of each step, as NumPy computes them;
    the image has them."""
    arrays = state(Path(point["run"]))
    flags = arrays["replay/flags"].reshape(-1)
    position = int(arrays["replay/position"].reshape(-1)[0])
    answered = np.append(np.flatnonzero(flags & 1), position)
    seen = arrays["replay/observation"].reshape(-1, 2)[answered].astype(float)
    assert len(seen) == 101
    assert arrays["normalizer/count"].reshape(-1)[0] == 101
    deviation = np.sqrt(seen.var(axis=0) + 1e-4)  # kNormalizerEpsilon
    image = parse_policy(read_run_policy(Path(point["run"])).data)
    assert image.normalizer is not None
    mean, inverse = image.normalizer
    np.testing.assert_allclose(mean, seen.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(inverse, 1 / deviation, rtol=1e-6)
    image.verify()


def test_a_run_goes_on_with_its_normalizer_to_the_same_bits(
    tmp_path: Path, point: dict[str, Any]
) -> None:
    """Twice from the same checkpoint: its count goes on, the new episode's first one included."""
    ends = []
    for name in ("one", "other"):
        shutil.copytree(point["run"], tmp_path / name)
        ends.append(train_task(Point, resume=str(tmp_path / name), steps=160)["state_sha256"])
        assert state(tmp_path / name)["normalizer/count"].reshape(-1)[0] == 101 + 1 + 60
    assert ends[0] == ends[1]


def test_a_step_that_fails_is_counted_and_not_learned_from(raising: dict[str, Any]) -> None:
    run = Path(raising["run"])
    sentence = raising["environment_fault"]
    assert sentence.startswith("step raised RuntimeError: the simulator diverged, at observation (")
    lost = 600 // 10
    evaluation_faults = raising["environment_faults"] - lost
    assert 0 <= evaluation_faults <= 30
    flags = state(run)["replay/flags"]
    assert np.count_nonzero(flags & 1) == 600 - lost
    assert np.count_nonzero(flags & 2) == 0
    metadata = document_of(RunFolder.open(str(run)))
    assert metadata["sessions"][0]["environment_faults"] == raising["environment_faults"]
    assert event_texts(run) == [f"the environment failed: {sentence}"]


@pytest.mark.all
def test_a_rollout_marks_what_is_no_number_as_lost(tmp_path: Path) -> None:
    result = TRAIN_PPO(NanPoint, steps=480, out=tmp_path / "ppo")
    assert result["environment_faults"] > 0
    assert 3 in state(tmp_path / "ppo")["rollout/done"]


@pytest.mark.all  # two programs for the compiler
@pytest.mark.parametrize("train", [TRAIN, TRAIN_PPO])
def test_one_outlier_ends_no_run(tmp_path: Path, train: Any) -> None:
    result = train(OutlierPoint, steps=1500, out=tmp_path / "run")
    assert result["step"] >= 1500
    assert result["environment_faults"] == 0
    outside, first = result["observations_outside"], result["observation_outside"]
    assert outside >= (1 if train is TRAIN else 3)  # of each environment
    assert "observation_0 was 1e+20, and its range is -1e+06 to 1e+06; at step " in first
    assert RunFolder.open(tmp_path / "run").content.observations_outside == outside
    assert event_texts(tmp_path / "run") == [f"an observation was clipped to its range: {first}"]
    assert math.isfinite(result["return_mean"])


def test_a_step_that_does_not_return_ends_the_run_with_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "1.5")
    run = tmp_path / "run"
    with pytest.raises(EnvironmentLostError) as raised:
        TRAIN(StuckPoint, steps=600, out=run)
    said = str(raised.value)
    assert "the environment Point has not returned from step for 1.5 s: find out why it" in said
    assert LIMIT_VARIABLE in said
    assert "checkpoint saved; go on with" in said
    monkeypatch.delenv(LIMIT_VARIABLE)
    assert train_task(Point, resume=str(run), steps=600)["step"] == 600
    assert (run / RunFolder.open(run).checkpoint_path).is_file()


@pytest.mark.all
def test_an_environment_that_always_fails_is_given_up_and_the_run_saved(tmp_path: Path) -> None:
    sentence = (
        r"the environment failed 20 times in a row; first: step raised RuntimeError: its license "
        r"has expired, at observation \(.+\) by action \(.+\); paused at step \d+ of 2,000, "
        r"checkpoint saved; go on with "
        r"`rlt.train\(make_env, resume="
    )
    with pytest.raises(EnvironmentLostError, match=sentence):
        TRAIN(DyingPoint, steps=2000, out=tmp_path / "run")
    assert np.count_nonzero(state(tmp_path / "run")["replay/flags"] & 1) == 100
    result = train_task(Point, resume=str(tmp_path / "run"))
    assert result["step"] == 2000


@pytest.mark.parametrize("train", [TRAIN, PPO_TOO])
def test_a_process_that_is_killed_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, train: Any
) -> None:
    servers: list[ServerProcess] = []

    def start(*arguments: Any) -> ServerProcess:
        servers.append(ServerProcess(*arguments))
        return servers[-1]

    monkeypatch.setattr(server_start, "ServerProcess", start)

    def kill(view: TrainingView) -> Screen:
        return At(view, 1000, lambda: os.kill(servers[0].process_id, signal.SIGKILL))

    sentence = r"the process that plays Point is lost: it was ended by SIGKILL; paused at step "
    with pytest.raises(EnvironmentLostError, match=sentence) as raised:
        train(file_task(), steps=200_000, out=tmp_path / "run", make_screen=kill)
    done = raised.value.details["step"]
    assert 1000 <= done < 200_000
    assert "rlt train --board host-threads --resume " in raised.value.details["resume"]
    # From the folder alone: nothing of what was asked for is repeated.
    result = train_here(resume=str(tmp_path / "run"), steps=done + 500, tensorboard=False)
    assert result["step"] - done - 500 in range(96)  # a whole rollout
    assert [text[:18] for text in event_texts(tmp_path / "run")] == ["new episodes begin"]


@pytest.mark.parametrize("train", [TRAIN, PPO_TOO])
def test_a_run_that_was_paused_goes_on_with_new_episodes(tmp_path: Path, train: Any) -> None:
    def interrupt(view: TrainingView) -> Screen:
        return At(view, 200, lambda: os.kill(os.getpid(), signal.SIGINT))

    with pytest.raises(Interrupted, match=r"go on with `rlt.train"):
        train(Point, steps=60_000, out=tmp_path / "run", make_screen=interrupt)
    folder = RunFolder.open(str(tmp_path / "run"))
    done = int(folder.content.checkpoint_step)
    before = state(tmp_path / "run")
    assert int(before["progress/step"].reshape(-1)[0]) == done
    steps = done + 96
    if train is TRAIN:  # its header is written anew, from the run's folder
        experiments.generated_header(subject_of_run(folder.content)).unlink()
    result = train_task(Point, resume=str(tmp_path / "run"), steps=steps)
    assert result["step"] >= steps
    after = state(tmp_path / "run")
    if "replay/flags" in after:
        flags = after["replay/flags"].reshape(-1)
        present = int(before["replay/position"].reshape(-1)[0])
        assert flags[present] == 0
        first_of_new = after["replay/observation"].reshape(-1, 2)[(present + 1) % len(flags)]
        assert first_of_new[1] == 0.0
    # And the same once more: what goes on depends on nothing but the run.
    assert RunFolder.open(tmp_path / "run").content.gymnasium == folder.content.gymnasium


@pytest.mark.all  # 6 s of the compiler
def test_a_run_of_before_goes_on_without_a_normalizer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its task does not say that it normalizes: its program is the one of then. norm_obs=0 learns
    the same."""
    off = {"learning_starts": 50, "eval_freq": 250, "n_eval_episodes": 2, "norm_obs": 0}
    TRAIN(Point, steps=100, hyperparameters=off, out=tmp_path / "off")

    def of_before(*arguments: Any) -> Task:
        return replace(task_of(*arguments), normalizes=False)

    with monkeypatch.context() as patch:
        patch.setattr(server_socket, "task_of", of_before)
        of_then = {name: value for name, value in off.items() if name != "norm_obs"}
        TRAIN(Point, steps=100, hyperparameters=of_then, out=tmp_path / "before")
    assert "norm_obs" not in document_of(RunFolder.open(tmp_path / "before"))["hyperparameters"]
    for steps in (100, 160):
        if steps > 100:
            for name in ("off", "before"):
                train_task(Point, resume=str(tmp_path / name), steps=steps)
        learned, then = state(tmp_path / "off"), state(tmp_path / "before")
        assert learned.keys() - then.keys() == {name for name in learned if "normalizer/" in name}
        assert then["progress/step"].reshape(-1)[0] == steps
        assert all(np.array_equal(learned[key], then[key], equal_nan=True) for key in then)
    images = [read_run_policy(tmp_path / name) for name in ("off", "before")]
    assert images[1].normalizer is None
    for image in images:
        image.verify()


@pytest.mark.all
def test_a_board_is_built_for_the_contract_of_a_run(
    point: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    run = point["run"]
    assert target_of_run(run, "host", None, "pendulum").contract == "pendulum"
    assert target_of_run(None, "host", None, None).contract == "pendulum"
    place = target_of_run(run, "host", None, None)
    assert place.contract.startswith("gym-point-")
    assert PolicyTarget("host", None, place.contract).contract == place.contract
    policies.push(PushRequest(run, place, None, True), json_output=True)
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["activated"]


@pytest.mark.slow  # with --all a servo: tests/examples/test_gymnasium_task.py
def test_pendulum_is_learned_through_gymnasium(tmp_path: Path) -> None:
    """Untrained policies have returns of about -1,200."""
    result = train_task("Pendulum-v1", seed=1, steps=4000, out=tmp_path / "run")
    outcome = evaluate.run(str(tmp_path / "run"), EvaluationRequest(20))
    assert outcome.mean > -260.0
    assert result["environment_faults"] == 0
    assert outcome.simulator.startswith("gymnasium ")


class Gears(Point):
    """Records what it is given."""

    given: ClassVar[list[Any]] = []
    choices: ClassVar[Any] = gymnasium.spaces.MultiDiscrete([3, 2], start=[1, 0])

    def __init__(self) -> None:
        super().__init__()
        self.push_space, self.action_space = self.action_space, self.choices

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        assert self.choices.contains(action)
        self.given.append(np.atleast_1d(action).tolist())
        self.action_space = self.push_space
        try:
            return super().step(np.zeros(1, np.float32))
        finally:
            self.action_space = self.choices


class Gear(Gears):
    choices: ClassVar[Any] = gymnasium.spaces.Discrete(3, start=1)


@pytest.mark.all
@pytest.mark.parametrize(("make_env", "algorithm"), [(Gears, "ppo"), (Gear, "dqn")])
def test_choices_are_given_as_whole_numbers(
    make_env: type[Gears], algorithm: str, tmp_path: Path
) -> None:
    make_env.given.clear()
    train = TRAIN_PPO if algorithm == "ppo" else TRAIN
    settings = {"eval_freq": 500, "n_eval_episodes": 2}
    train(make_env, algorithm=algorithm, steps=192, hyperparameters=settings, out=tmp_path / "run")
    learned = state(tmp_path / "run")["rollout/action" if algorithm == "ppo" else "replay/action"]
    assert {*learned[:, 0].tolist()} == {0, 1, 2}
    assert {row[0] for row in make_env.given} == {1, 2, 3}
    image = read_run_policy(tmp_path / "run")
    image.verify()
    assert image.actions[0].choices == ("1", "2", "3")
    returns = from_python.evaluate(tmp_path / "run", lambda: make_env(), episodes=2)
    assert np.isfinite(returns).all()
