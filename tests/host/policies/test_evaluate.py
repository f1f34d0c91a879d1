"""Evaluation of policies: the same episodes as a plain loop in gymnasium, and as the core's own."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from fake_experiment import fake_experiment
from policy_run import make_policy_run
from policy_samples import patched, sample_images, untrained_pendulum_evaluation
from rltools_host.build import experiments, tools
from rltools_host.commands import cli, evaluate
from rltools_host.errors import BoardMismatchError, RefusedError, UsageError
from rltools_host.policies import episodes, evaluation
from rltools_host.policies.evaluation import EvaluationRequest
from rltools_host.policies.image import PolicyImage, parse_policy
from rltools_host.tree import Tree

ENVIRONMENT_OFFSET = 112
TORQUE_MAXIMUM_OFFSET = 144 + 3 * 8 + 3 * 48 + 44


@pytest.fixture(scope="module")
def pendulum() -> PolicyImage:
    return parse_policy(sample_images()["pendulum"], "policy.rltp")


@pytest.fixture
def run_folder(tmp_path: Path, pendulum: PolicyImage) -> Path:
    return make_policy_run(tmp_path / "run", pendulum.data)


def plain_return(image: PolicyImage, seed: int) -> float:
    """One episode the way gymnasium's own documentation writes it."""
    environment = gymnasium.make("Pendulum-v1")
    observation, _ = environment.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        observation, reward, terminated, truncated, _ = environment.step(
            image.evaluate(observation)
        )
        total += float(reward)
        over = terminated or truncated
    return total


def test_gymnasium_returns_are_those_of_a_plain_loop(pendulum: PolicyImage) -> None:
    played = episodes.gymnasium_episodes(pendulum, 4, seed=11)
    for index, episode in enumerate(played):
        assert episode.episode_return == pytest.approx(plain_return(pendulum, 11 + index), abs=1e-9)
        assert episode.observations.shape == (200, 3)
        assert episode.actions.shape == (200, 1)
        assert episode.rewards.shape == (200,)


class Sensor:
    """A quadrotor's observations, of which one is not a number."""

    def __init__(self, observations: np.ndarray) -> None:
        self.observations = list(observations)

    def reset(self, **_: int) -> tuple[np.ndarray, dict[str, object]]:
        return self.observations.pop(0), {}

    def step(self, _: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, object]]:
        ended = len(self.observations) == 1
        return self.observations.pop(0), 0.0, ended, False, {}

    def close(self) -> None:
        pass


def test_a_policy_sees_its_safe_action_after_a_fault_as_on_a_board() -> None:
    image = parse_policy(sample_images()["remembering_quadrotor_4"])
    observations = np.full((6, 13), 0.25, np.float32)
    observations[1, 3] = np.nan
    (episode,) = episodes.gymnasium_episodes(image, 1, 0, lambda: Sensor(observations))
    assert episode.actions[1].tolist() == [0.0] * 4
    assert episode.observations[2, 13:17].tolist() == [-1.0] * 4
    assert episode.observations[3, 17:21].tolist() == [-1.0] * 4
    outputs = image.output(episode.observations[[0, 2, 3, 4]])
    assert episode.observations[1, 13:17].tolist() == np.clip(outputs[0], -1, 1).tolist()
    assert (episode.actions[2:] > 0).any(axis=1).all()  # it acts again


def test_the_core_simulator_runs_the_episodes_that_boards_evaluate(pendulum: PolicyImage) -> None:
    expected = untrained_pendulum_evaluation()
    result = evaluation.evaluate_policy(pendulum, "run", 10, 0, "core")
    assert np.float32(min(result.returns)) == np.float32(expected.smallest)
    assert np.float32(max(result.returns)) == np.float32(expected.largest)
    assert result.mean == pytest.approx(expected.mean, rel=1e-6)
    assert evaluation.evaluate_policy(pendulum, "run", 10, 1, "core").returns != result.returns


def test_the_cores_episodes_step_by_step_are_those_that_it_evaluates(pendulum: PolicyImage) -> None:
    outcomes = episodes.core_outcomes(pendulum, 3, 5, {})
    played = episodes.core_episodes(pendulum, 3, 5, {})
    for number, (outcome, episode) in enumerate(zip(outcomes, played, strict=True)):
        assert (outcome.steps, outcome.terminated) == (200, False)
        assert outcome.start.tolist() == episode.observations[0].tolist()
        assert episode.actions.tobytes() == pendulum.evaluate(episode.observations).tobytes()
        assert np.float32(outcome.episode_return) == sum(episode.rewards.astype(np.float32))
        angle = np.arctan2(episode.observations[:, 1], episode.observations[:, 0])
        cost = angle**2 + 0.1 * episode.observations[:, 2] ** 2 + 0.001 * episode.actions[:, 0] ** 2
        assert np.allclose(episode.rewards, -cost, atol=1e-4)
        assert episode.origin == f"the core's episode {number} of seed 5"
        assert episode.step_s == 0.05
    assert not np.array_equal(played[0].observations, played[1].observations)


@pytest.mark.parametrize("simulator", ["core", "gymnasium"])
def test_a_trace_has_every_step(
    run_folder: Path, tmp_path: Path, simulator: str, capsys: Any
) -> None:
    for name in ("trace.csv", "trace.npz"):
        words = ["evaluate", str(run_folder), "--in", simulator, "--episodes", "2", "--seed", "3"]
        assert cli.run([*words, "--trace", str(tmp_path / "new" / name), "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
    with (tmp_path / "new" / "trace.csv").open(newline="") as file:
        heads, *rows = csv.reader(file)
    expected = ["episode", "seed", "step", "time [s]", "cos_angle [1]", "sin_angle [1]"]
    expected += ["velocity [rad/s]", "torque [N*m]", "reward", "terminated", "truncated"]
    assert heads == expected
    values = np.array(rows, float)
    assert values.shape == (400, 11)
    stored = np.load(tmp_path / "new" / "trace.npz", allow_pickle=False)
    assert stored["columns"].tolist() == heads
    assert np.allclose(stored["rows"], values, rtol=1e-8)
    for index in range(2):
        episode = values[values[:, 0] == index]
        assert episode[:, 2].tolist() == list(range(200))
        assert np.allclose(episode[:, 3], 0.05 * np.arange(200))
        assert episode[:, 8].sum() == pytest.approx(document["returns"][index], rel=1e-6)
        assert episode[:, 9:].sum(axis=0).tolist() == [0, 1]
        assert episode[-1, 10] == 1


def test_a_baseline_plays_the_same_episodes(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Zero's returns are those of a plain loop; a function that is the policy has its returns."""
    (tmp_path / "mine.py").write_text(
        "import rlt\n"
        f"policy = rlt.Policy.load({str(run_folder / 'policy.rltp')!r})\n"
        "def act(observation): return policy(observation)\n"
        "def wide(observation): return [0.0, 1.0]\n"
    )
    command = ["evaluate", str(run_folder), "--in", "gymnasium", "--episodes", "3", "--json"]
    found = {}
    for against in ("zero", "random", f"{tmp_path / 'mine.py'}:act"):
        assert cli.run([*command, "--against", against]) == 0
        document = json.loads(capsys.readouterr().out)
        found[against.rpartition(":")[2]] = document["against"]
    environment = gymnasium.make("Pendulum-v1")
    expected = []
    for seed in range(3):
        environment.reset(seed=seed)
        expected.append(sum(environment.step(np.zeros(1, np.float32))[1] for _ in range(200)))
    assert found["zero"]["returns"] == pytest.approx(expected)
    assert found["act"]["returns"] == pytest.approx(document["returns"])
    assert found["act"]["difference"] == pytest.approx(0, abs=1e-9)
    assert len({*found["random"]["returns"]}) == 3
    for wrong, words in (
        (f"{tmp_path / 'mine.py'}:wide", "returned 2 numbers"),
        ("no", "zero or "),
    ):
        assert cli.run([*command, "--against", wrong]) == 2
        assert words in capsys.readouterr().err


def test_both_simulators_agree_on_the_same_task(pendulum: PolicyImage) -> None:
    """Other random numbers, the same distribution: the means are within 4 standard errors."""
    core = evaluation.evaluate_policy(pendulum, "run", 60, 0, "core")
    reference = evaluation.evaluate_policy(pendulum, "run", 60, 0, "gymnasium")
    standard_error = np.hypot(core.std, reference.std) / np.sqrt(60)
    assert abs(core.mean - reference.mean) < 4 * standard_error


def described(**learning: Any) -> Any:
    """The experiment of another tree."""
    document: dict[str, Any] = {"learning": {"environment.behavior": 7, **learning}}
    return replace(fake_experiment("pendulum-td3"), document=document)


def run_with(run_folder: Path, **metadata: Any) -> None:
    document = json.loads((run_folder / "run.json").read_text())
    (run_folder / "run.json").write_text(json.dumps({**document, **metadata}))


def test_an_edit_of_the_physics_is_noticed(
    run_folder: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_with(run_folder, learning={"environment.behavior": 3, "environment.gravity_m_s2": 10})
    there = described(**{"environment.gravity_m_s2": 9.8100004196})
    monkeypatch.setattr(experiments, "describe", lambda _: there)
    evaluate.run(str(run_folder), EvaluationRequest(2, 0, "core"), as_json=True)
    captured = capsys.readouterr()
    (note,) = json.loads(captured.out)["notes"]
    assert note.endswith("environment.gravity_m_s2 was 10, is 9.81")
    assert f"note: {note}\n" in captured.err


@pytest.mark.parametrize(
    ("change", "simulator", "error", "sentence"),
    [
        (
            (ENVIRONMENT_OFFSET, "32s", b"Kite-v7"),
            "gymnasium",
            UsageError,
            "gymnasium has no environment Kite-v7",
        ),
        (
            (TORQUE_MAXIMUM_OFFSET, "f", 2.5),
            "gymnasium",
            BoardMismatchError,
            "takes other observations or actions",
        ),
        (
            (28, "I", 49_999),
            "core",
            RefusedError,
            "made for other observations, actions or rate",
        ),
    ],
)
def test_a_policy_of_another_environment_is_refused(
    pendulum: PolicyImage, change: Any, simulator: str, error: type[Exception], sentence: str
) -> None:
    other = parse_policy(patched(pendulum.data, *change))
    with pytest.raises(error, match=sentence):
        evaluation.evaluate_policy(other, "run", 1, 0, simulator)


def test_a_task_of_mujoco_has_its_packages_and_leaves_nothing_behind(
    pendulum: PolicyImage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    recwarn: pytest.WarningsRecorder,
) -> None:
    """MuJoCo writes a file of its warnings, and Gymnasium says that there is a newer version."""
    tools.ensure_group("mujoco")
    capfd.readouterr()  # what the installation says
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    experiments_folder = tmp_path / "experiments"
    experiments_folder.mkdir()
    (experiments_folder / "cheetah.h").write_text("// Requires: mujoco\n")
    monkeypatch.setattr(Tree, "experiments", experiments_folder)
    installed: list[str] = []
    monkeypatch.setattr(tools, "ensure_group", installed.append)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    cheetah = replace(
        pendulum,
        experiment="cheetah",
        environment="HalfCheetah-v4",
        observations=pendulum.observations[:1] * 17,
        actions=(replace(pendulum.actions[0], minimum=-1.0, maximum=1.0),) * 6,
    )
    environment = episodes.make_gymnasium_environment(cheetah)
    environment.reset(seed=0)
    environment.unwrapped.data.qvel[:] = 1e15
    environment.step(environment.action_space.sample())
    assert installed == ["mujoco"]
    assert list(folder.iterdir()) == []
    assert capfd.readouterr() == ("", "")
    assert [str(warning.message) for warning in recwarn] == []
