"""What a task is, from spaces and tables; what cannot be learnt is one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, Tuple

from gymnasium_points import Point
from rltools_host.build import subjects
from rltools_host.errors import RltError, UnknownNameError, UsageError
from rltools_host.gymnasium_tasks.header import float_literal, headers_of, tile_rows
from rltools_host.gymnasium_tasks.maker import maker_of
from rltools_host.gymnasium_tasks.opening import open_task, task_of_run, with_whole_path
from rltools_host.gymnasium_tasks.process import ServerProcess
from rltools_host.gymnasium_tasks.server import ServerInThread
from rltools_host.gymnasium_tasks.spaces import task_of
from rltools_host.gymnasium_tasks.task import LONGEST_NAME, Task, TaskRequest
from rltools_host.runs import schema
from rltools_host.tree import TREE

INFINITE = np.inf


def spaces(observation: Any, action: Any, **attributes: Any) -> Any:
    return SimpleNamespace(observation_space=observation, action_space=action, **attributes)


PLAIN = spaces(Box(-1.0, 1.0, (2,)), Box(-1.0, 1.0, (1,)))


def task(environment: Any = PLAIN, **options: Any) -> Task:
    return task_of(TaskRequest(**{"source": "gym:Servo-v0", **options}), environment)


# -- what can be learnt ----------------------------------------------------------------------------


def test_channels_are_those_of_the_spaces() -> None:
    environment = spaces(
        Box(
            np.array([[-1, 0], [-INFINITE, 5]], np.float32),
            np.array([[1, INFINITE], [INFINITE, 5]], np.float32),
        ),
        Box(np.array([-2, 0.1]), np.array([3, 0.7]), dtype=np.float64),
    )
    found = task(environment)
    assert found.observation_shape == (2, 2)
    ranges = [(channel.minimum, channel.maximum) for channel in found.observations]
    assert ranges == [(-1.0, 1.0), (0.0, 1e6), (-1e6, 1e6), (4.0, 6.0)]
    assert [channel.name for channel in found.observations] == [
        f"observation_{index}" for index in range(4)
    ]
    assert {channel.unit for channel in (*found.observations, *found.actions)} == {"1"}
    assert (found.actions[0].minimum, found.actions[0].maximum) == (-2.0, 3.0)
    assert found.actions[1].maximum == float(np.float32(0.7))


def test_the_rate_is_the_simulations_or_that_of_its_pictures() -> None:
    def interval(**attributes: Any) -> int:
        return task(
            spaces(PLAIN.observation_space, PLAIN.action_space, **attributes)
        ).step_interval_us

    assert interval() == 20_000
    assert interval(metadata={"render_fps": 30}) == 33_333
    assert interval(metadata={"render_fps": 30}, unwrapped=SimpleNamespace(dt=0.05)) == 50_000
    assert interval(unwrapped=SimpleNamespace(dt=lambda: 1), metadata=None) == 20_000
    assert task(channels={"step_interval_us": 123}).step_interval_us == 123


def test_the_length_of_episodes_is_as_asked_or_as_registered() -> None:
    registered = spaces(
        PLAIN.observation_space,
        PLAIN.action_space,
        spec=SimpleNamespace(max_episode_steps=300, reward_threshold=12.5),
    )
    assert task(registered).episode_steps == 300
    assert task(registered, episode_steps=77).episode_steps == 77
    assert task().episode_steps == 1000
    assert task(registered).solved_return == 12.5
    assert task().solved_return is None


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "gym-servo-v0-sac"),
        ({"source": "gym:my_module:Servo-v0", "algorithm": "td3"}, "gym-servo-v0-td3"),
        ({"source": "gym:some/file.py:Servo", "algorithm": "ppo"}, "gym-servo-ppo"),
        ({"source": "gym:ns/Servo-v0"}, "gym-ns-servo-v0-sac"),
        ({"name": "My Servo"}, "gym-my-servo-sac"),
        ({"source": "__main__:main.<locals>.Servo"}, "gym-main-locals-servo-sac"),
        ({"hidden": (256, 256)}, "gym-servo-v0-sac-2520"),
        ({"hidden": (256, 255)}, "gym-servo-v0-sac-5611"),
        ({"environments": 2}, "gym-servo-v0-sac-e6e9"),
        ({"source": "gym:InvertedDoublePendulum-v5"}, "gym-inverteddoublepe-852226-sac"),
    ],
)
def test_an_experiment_is_named_after_its_task(options: dict[str, Any], name: str) -> None:
    found = task(**options).experiment
    assert found == name
    assert len(found) <= LONGEST_NAME
    assert subjects.GENERATED.fullmatch(found)


def test_other_sizes_are_another_experiment_and_other_ranges_are_not() -> None:
    names = {
        task().experiment,
        task(hidden=(256, 256)).experiment,
        task(environments=2).experiment,
        task(sizes={"batch_size": 100}).experiment,
        task(episode_steps=50).experiment,
        task(algorithm="ppo").experiment,
        task(algorithm="ppo", environments=4).experiment,
    }
    assert len(names) == 7
    assert task(channels={"actions": ["push"]}).experiment == task().experiment
    assert task(environments=1).experiment == task().experiment
    assert task(algorithm="ppo", environments=8).experiment == "gym-servo-v0-ppo"


def test_a_task_is_the_same_from_a_run() -> None:
    found = task(hidden=(32, 16), channels={"observations": ["a", {"name": "b", "unit": "m"}]})
    document = json.loads(json.dumps({"gymnasium": found.document()}))
    schema.check_run(document)
    assert task_of_run(document) == found
    assert task_of_run({}) is None
    for key in ("source", "hidden", "actions"):
        damaged = {key_: value for key_, value in found.document().items() if key_ != key}
        with pytest.raises(schema.Unfit, match=f"gymnasium.{key} is missing"):
            schema.check_run({"gymnasium": damaged})
    with pytest.raises(schema.Unfit, match=r"gymnasium\.experiment is"):
        schema.check_run({"gymnasium": {**found.document(), "experiment": "../../etc"}})


# -- the header ------------------------------------------------------------------------------------


def test_a_header_has_what_the_task_says() -> None:
    def experiment_of(task: Task) -> str:
        return headers_of(task).experiment_text

    def contract_of(task: Task) -> str:
        return headers_of(task).contract_text

    ppo = experiment_of(task(algorithm="ppo", hidden=(24, 16), environments=2))
    for line in (
        "// Requires: hosted",
        "struct GymServoV0Ppo",
        'static constexpr const char* kName = "Servo-v0";',
        "using Algorithm = Ppo;",
        "using Actor = Algorithm::TaskActor<Environment, 24, 16>;",
        "using Critic = Algorithm::TaskCritic<Environment, 24, 16>;",
        "static constexpr int kEnvironments = 2;",
        "static constexpr int kRolloutSteps = 256;",
    ):
        assert line in ppo
    assert '      {"observation_1", "1", -1.0f, 1.0f},' in contract_of(task())
    assert 'kContractName = "gym-servo-v0"' in contract_of(task(algorithm="ppo"))
    td3 = experiment_of(task(algorithm="td3"))
    assert '#include "rltools/rl/algorithms/td3.h"' in td3
    assert "kReplayCapacity = 100000" in td3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0f"),
        (-0.5, "-0.5f"),
        (1e6, "1000000.0f"),
        (3e30, "2.99999989e+30f"),
        (0.1, "0.100000001f"),
    ],
)
def test_numbers_are_written_as_the_nearest_float(value: float, text: str) -> None:
    assert float_literal(value) == text
    assert np.float32(float(text[:-1])) == np.float32(value)


def test_tiles_divide_batches() -> None:
    assert [tile_rows(batch) for batch in (256, 100, 97, 8, 1)] == [64, 50, 1, 8, 1]


# -- what cannot be learnt -------------------------------------------------------------------------

UNBOUNDED = Box(-INFINITE, INFINITE, (1,))
BOX = Box(-1.0, 1.0, (2,))


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        (spaces(BOX, Discrete(3)), "has a Discrete as its action space.*continuous, a Box"),
        (spaces(BOX, MultiBinary(3)), "has a MultiBinary as its action space"),
        (spaces(Dict({"a": BOX}), BOX), "has a Dict as its observation space.*FlattenObservation"),
        (spaces(Tuple([BOX]), BOX), "has a Tuple as its observation space"),
        (spaces(Discrete(3), BOX), "has a Discrete as its observation space"),
        (spaces(BOX, UNBOUNDED), r"no bounds for action 0 \(-inf to inf\): give its Box a finite"),
        (spaces(BOX, Box(0.0, 0.0, (1,))), "has no range for action 0"),
        (spaces(BOX, None), "has no action space: set it to a gymnasium.spaces.Box"),
        (spaces(None, BOX), "has no observation space"),
        (spaces(Box(-1, 1, (0,)), BOX), "has 0 elements in its observation space"),
        (spaces(Box(-1, 1, (84, 84)), BOX), "has 7056 elements in its observation space: from 1"),
    ],
)
def test_a_space_that_cannot_be_learnt_is_named(environment: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=f"Servo-v0 .*{sentence}|Servo-v0 {sentence}"):
        task(environment)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"algorithm": "sca"}, 'unknown algorithm "sca": did you mean sac'),
        ({"hidden": ()}, "hidden layers"),
        ({"hidden": (64, 0)}, 'hidden layers "64,0": give one to eight widths from 1 to 4096'),
        ({"environments": 0}, "environments=0: give a whole number from 1 to 1024"),
        ({"sizes": {"batch_size": 0}}, "batch_size=0: give a whole number from 1"),
        (
            {"algorithm": "ppo", "sizes": {"batch_size": 100}},
            "batch_size=100 does not divide the 2048 rows",
        ),
        ({"episode_steps": -1}, "episode_steps=-1"),
        ({"name": "..."}, 'name "...": letters, digits'),
        ({"name": 'a"b'}, 'name "a"b": letters, digits'),
        (
            {"channels": {"observation": []}},
            'unknown key "observation", and known are observations',
        ),
        ({"channels": []}, "channels: an object with"),
        ({"channels": {"observations": ["a"]}}, "observations has 1 entries, .* 2 elements"),
        ({"channels": {"observations": "ab"}}, "observations has no entries"),
        ({"channels": {"observations": ["a", 3]}}, r"observations\[1\] is neither a name nor"),
        ({"channels": {"observations": ["a", "b" * 24]}}, "plain text of 1 to 23"),
        ({"channels": {"observations": ["a", 'b"']}}, "plain text of 1 to 23"),
        ({"channels": {"actions": [{"unit": "newton metres per radian"}]}}, "text of 1 to 15"),
        ({"channels": {"actions": [{"minimum": 0}]}}, '"minimum", .* range is its space'),
        ({"channels": {"observations": ["a", {"minimum": 2}]}}, "no range: minimum must be below"),
        ({"channels": {"observations": ["a", {"maximum": float("inf")}]}}, "no range"),
        ({"channels": {"step_interval_us": 0.5}}, "step_interval_us is 0.5, not a whole number"),
        ({"channels": {"step_interval_us": 0}}, "step_interval_us is 0, .* from 1 to 600,000,000"),
        ({"channels": {"step_interval_us": 600_000_001}}, "not a whole number from 1 to"),
    ],
)
def test_a_request_that_cannot_be_met_is_one_sentence(
    options: Mapping[str, Any], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        task(**options)


FILE = """
import gymnasium, numpy as np
from gymnasium.spaces import Box

class Base(gymnasium.Env):
    def __init__(self):
        self.observation_space = Box(-1, 1, (2,))
        self.action_space = Box(-1, 1, (1,))
    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

class Raises(Base):
    def reset(self, *, seed=None, options=None):
        raise ValueError("no\\nmap")

class Shape(Base):
    def reset(self, *, seed=None, options=None):
        return np.zeros(3), {}

class Nan(Base):
    def reset(self, *, seed=None, options=None):
        return np.full(2, np.nan), {}

class Never(Base):
    def __init__(self):
        raise RuntimeError("no licence")

class Ends(Base):
    def __init__(self):
        import os
        print("the last words", flush=True)
        os._exit(7)

class Talks(Base):
    def reset(self, *, seed=None, options=None):
        print("hello")
        return super().reset(seed=seed)

number = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my_tasks.py"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize(
    ("name", "kind", "sentence"),
    [
        (
            "Raises",
            UsageError,
            "Raises cannot be learnt: its first reset raised ValueError: no map",
        ),
        (
            "Shape",
            UsageError,
            r"reset gave an observation of shape \(3,\), and its space has \(2,\)",
        ),
        ("Nan", UsageError, "reset gave an observation with a number that is not finite"),
        ("Never", UsageError, "cannot be made: it raised RuntimeError: no licence"),
        ("Nothing", UnknownNameError, 'has nothing to call that is named "Nothing"'),
        ("number", UnknownNameError, 'has nothing to call that is named "number"'),
        (
            "Ends",
            RltError,
            'cannot be played: it ended with exit code 7 and wrote "the last words"',
        ),
    ],
)
def test_what_a_users_file_does_wrong_is_one_sentence(
    file: Path, name: str, kind: type[RltError], sentence: str
) -> None:
    with pytest.raises(kind, match=sentence) as raised:
        ServerProcess(TaskRequest(f"gym:{file}:{name}"))
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == kind.exit_code or kind is RltError


def test_what_an_environment_prints_is_not_taken_for_an_answer(file: Path) -> None:
    server = ServerProcess(TaskRequest(f"gym:{file}:Talks"))
    assert server.task.experiment == "gym-talks-sac"
    assert server.failure() == ""
    server.close()
    server.close()


@pytest.mark.parametrize(
    ("source", "kind", "sentence"),
    [
        ("gym:NoSuchTask-v0", UnknownNameError, 'gymnasium has no environment "NoSuchTask-v0"'),
        ("gym:Pendulm-v1", UnknownNameError, "did you mean Pendulum-v1"),
        ("gym:no_such_module:Task-v0", UnknownNameError, 'no Python module "no_such_module"'),
        ("gym:json:Task-v0", UnknownNameError, 'no environment "Task-v0" of module json'),
        ("gym:CartPole-v1", UsageError, "CartPole-v1 has a Discrete as its action space"),
        ("gym:missing.py:Task", UsageError, "there is no file .*missing.py"),
        ("gym:", UsageError, "gym: names no task"),
    ],
)
def test_a_name_that_gymnasium_does_not_have_is_one_sentence(
    source: str, kind: type[RltError], sentence: str
) -> None:
    with pytest.raises(kind, match=sentence):
        open_task(TaskRequest(source))


def test_the_command_line_says_the_same(tmp_path: Path) -> None:
    def rlt(*words: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "rltools_host", "train", *words]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=TREE.root)
        assert "Traceback" not in result.stderr
        return result.returncode, result.stderr

    table = tmp_path / "channels.json"
    table.write_text("{")
    for words, code, sentence in (
        (["gym:NoSuchTask-v0"], 3, "gymnasium has no environment"),
        (["gym:CartPole-v1"], 2, "Discrete"),
        (["gym:Pendulum-v1", "--algorithm", "dqn"], 2, 'unknown algorithm "dqn"'),
        (["gym:Pendulum-v1", "--hidden", "64x64"], 2, '--hidden "64x64": write widths'),
        (["gym:Pendulum-v1", "--channels", str(table)], 2, "is not JSON"),
        (["gym:Pendulum-v1", "--channels", "none.json"], 2, "cannot read --channels none.json"),
        (["pendulum-td3", "--hidden", "8"], 2, "go with a new run of a task of Gymnasium's"),
        (["gym:Pendulum-v1", "--board", "qemu-cortex-m7"], 2, "is not for qemu-cortex-m7"),
        (
            ["gym:Pendulum-v1", "--port", "socket://127.0.0.1:9"],
            2,
            "--port does not go with a task",
        ),
    ):
        found, text = rlt(*words)
        assert found == code
        assert sentence in text


def test_a_file_is_found_from_any_folder(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    monkeypatch.chdir(file.parent)
    request = with_whole_path(TaskRequest("gym:my_tasks.py:Talks"))
    assert request.source == f"gym:{file}:Talks"
    assert with_whole_path(TaskRequest("gym:module:Id-v0")).source == "gym:module:Id-v0"
    (file.parent / "my_registered_tasks.py").write_text(
        "import gymnasium, my_tasks\ngymnasium.register('My-v0', my_tasks.Base)\n"
    )
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    by_id = "gym:my_registered_tasks:My-v0"
    assert maker_of(by_id)().spec.id == "My-v0"
    server = ServerProcess(TaskRequest(by_id))
    assert server.task.experiment == "gym-my-v0-sac"
    server.close()
    assert isinstance(maker_of(request.source)(), gymnasium.Env)


def test_a_thread_refuses_what_a_process_refuses() -> None:
    def raising() -> Any:
        raise OSError("no display")

    with pytest.raises(UsageError, match="cannot be made: it raised OSError: no display"):
        ServerInThread(TaskRequest("f", raising))
    server = ServerInThread(TaskRequest("f", Point))
    assert server.task.experiment == "gym-f-sac"
    server.close()
