"""Environments as people have them: spaces of several parts, other interfaces, packages that are
not here, limits of time; what is not taken is refused at once, with the way on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rltools_host.environments.environment_server import PlayState
from rltools_host.environments.imports import made, make_first, maker_of
from rltools_host.environments.player import OVER, FlatEnvironment, Player
from rltools_host.environments.spaces import flattened
from rltools_host.environments.task import TaskRequest, task_of
from rltools_host.errors import UsageError
from rltools_host.runs.task import Task

BOX = spaces.Box(-1.0, 1.0, (1,))
PARTS = spaces.Dict(
    {
        "velocity": spaces.Box(-1.0, 1.0, (2,)),
        "height": spaces.Box(0.0, 1e6, (), np.float64),
        "mode": spaces.Discrete(3),
        "arm": spaces.Tuple((spaces.Box(-2.0, 2.0, (1,)), spaces.MultiBinary(2))),
    }
)


class Parts(gymnasium.Env[Any, Any]):
    """A task whose observations have `space`."""

    space: ClassVar[Any] = PARTS
    reward: ClassVar[Any] = 1.0

    def __init__(self) -> None:
        self.observation_space, self.action_space = self.space, BOX
        self.space.seed(0)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:  # noqa: ARG002
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:  # noqa: ARG002
        return self.observation_space.sample(), self.reward, False, False, {}


def with_space(space: Any) -> type[Parts]:
    return type("Task", (Parts,), {"space": space})


def task(make: Any, **options: Any) -> Task:
    return task_of(TaskRequest("gym:Servo-v0", **options), made(make))


def test_parts_of_an_observation_follow_each_other_by_their_keys_as_gymnasium_has_them() -> None:
    found = task(Parts)
    names = ["arm_0", "arm_1_0", "arm_1_1", "height"]
    names += ["mode_0", "mode_1", "mode_2", "velocity_0", "velocity_1"]
    assert [channel.name for channel in found.observations] == names
    ranges = {each.name: (each.minimum, each.maximum) for each in found.observations}
    assert (ranges["height"], ranges["arm_0"], ranges["mode_1"]) == ((0, 1e6), (-2, 2), (0, 1))
    environment = FlatEnvironment(Parts, found, PlayState())
    seen, _ = environment.reset(seed=1)
    PARTS.seed(0)
    assert seen.tolist() == spaces.flatten(PARTS, PARTS.sample()).astype(np.float32).tolist()
    environment.close()
    both = task(with_space(spaces.Tuple((BOX, spaces.Box(-1.0, 1.0, (2,))))))
    names = ["observation_0", "observation_1_0", "observation_1_1"]
    assert [channel.name for channel in both.observations] == names
    assert len(task(with_space(spaces.Discrete(5))).observations) == 5
    once = gymnasium.wrappers.FlattenObservation
    assert flattened(once(Parts())).observation_space.shape == (9,)


class Words(spaces.Space[str]):
    """As MiniGrid's mission."""


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (spaces.Sequence(BOX), ["has a Sequence as its observation space,", "fixed length"]),
        (
            spaces.Dict({"own": BOX, "others": spaces.Sequence(BOX)}),
            ["a Sequence as its observation space at ['others']", "FilterObservation"],
        ),
        (spaces.Tuple((BOX, Words())), ["has a Words as its observation space at [1]"]),
    ],
)
def test_a_part_without_a_fixed_size_is_named(space: Any, words: list[str]) -> None:
    make = with_space(space)
    for each in (make, lambda: gymnasium.wrappers.FlattenObservation(make())):
        if isinstance(space, spaces.Tuple) and each is not make:
            continue  # Gymnasium's wrapper does not know such a space
        with pytest.raises(UsageError) as refused:
            task(each)
        assert all(word in str(refused.value) for word in words)
        assert "FlattenObservation" not in str(refused.value)


def test_actions_without_bounds_are_given_some_by_what_the_sentence_names() -> None:
    class Infinite(Parts):
        def __init__(self) -> None:
            super().__init__()
            self.action_space = spaces.Box(-np.inf, np.inf, (2,))

    with pytest.raises(UsageError, match="has no bounds for action 0") as refused:
        task(Infinite)
    remedy = str(refused.value).partition("or wrap it: ")[2]
    bounded = remedy.replace("LOW", "-2").replace("HIGH", "3")
    environment = eval(bounded, {"gymnasium": gymnasium, "env": Infinite()})
    found = task(lambda: environment)
    assert [(each.minimum, each.maximum) for each in found.actions] == [(-2, 3), (-2, 3)]


class WithoutSeed(Parts):
    def reset(self) -> Any:  # type: ignore[override]
        return self.observation_space.sample()


class OldGym(Parts):
    def __init__(self) -> None:
        super().__init__()
        self.observation_space = type("Box", (), {"__module__": "gym.spaces.box"})()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gymnasium.make_vec("CartPole-v1", 2), ["a VectorEnv of 2", "environments=N"]),
        (
            lambda: SimpleNamespace(possible_agents=["a"], observation_space=BOX.sample),
            ["several agents", "PettingZoo", "one agent"],
        ),
        (WithoutSeed, ["reset without a seed", "(observation, info)"]),
        (OldGym, ["of the old package gym", "gymnasium.Env"]),
    ],
)
def test_another_interface_is_named_at_once(make: Any, words: list[str]) -> None:
    with pytest.raises(UsageError) as refused:
        task(make)
    assert all(word in str(refused.value) for word in words)


@pytest.mark.parametrize(
    ("reward", "expected"), [(np.True_, 1.0), (np.array([2.5]), 2.5), (np.float64(3), 3.0)]
)
def test_a_reward_may_be_a_bool_of_numpys_or_an_array_of_one(reward: Any, expected: float) -> None:
    made_class = type("Task", (Parts,), {"reward": reward})
    player = Player(made_class, task(made_class), PlayState())
    player.take(made(made_class))
    player.reset(0, 1)
    assert player.step(0, np.zeros(1, np.float32))[:2] == (0, expected)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ((None, 0.0, False, {}), ["step returned 4 values", "truncated, info"]),
        (np.zeros(3), ["step returned a ndarray"]),
        ((None, np.zeros(3), False, False, {}), ["one number as its reward"]),
        ((None, None, False, False, {}), ["the reward None"]),
        ((None, 1.0, np.zeros(2, bool), False, {}), ["2 values as terminated"]),
    ],
)
def test_a_step_of_another_kind_ends_the_run_at_once(result: Any, words: list[str]) -> None:
    class Task(Parts):
        space = BOX

        def step(self, action: Any) -> Any:  # noqa: ARG002
            if isinstance(result, tuple):
                return (self.observation_space.sample(), *result[1:])
            return result

    state = PlayState()
    player = Player(Task, task(Task), state)
    player.take(made(Task))
    player.reset(0, 1)
    assert player.step(0, np.zeros(1, np.float32))[0] == OVER
    assert all(word in state.faults().given_up for word in words)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("ALE/Pong-v5", ["gym:ale_py:ALE/Pong-v5", 'obs_type="ram"']),
        ("MiniGrid-Empty-5x5-v0", ["minigrid", "gym:minigrid:MiniGrid-Empty-5x5-v0"]),
        ("Tetris-v0", ["gym:MODULE:Tetris-v0"]),
    ],
)
def test_an_environment_of_another_package_is_named_with_it(source: str, words: list[str]) -> None:
    with pytest.raises(UsageError) as refused:
        make_first(maker_of(f"gym:{source}"), source)
    assert all(word in str(refused.value) for word in words)


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Box2D, which LunarLander-v3 needs."""

    def make(*_: Any, **__: Any) -> Any:
        raise gymnasium.error.DependencyNotInstalled("Box2D is not installed, run pip install X")

    monkeypatch.setattr(gymnasium, "make", make)
    with pytest.raises(
        UsageError, match=r"LunarLander-v3 needs a package .*: Box2D .*; install it"
    ):
        make_first(maker_of("gym:LunarLander-v3"), "LunarLander-v3")


FILE = """
from pathlib import Path
import gymnasium
class Needs(gymnasium.Env):
    def __init__(self, length): pass
class Reads(gymnasium.Env):
    def __init__(self): open("model.xml")
def short(): return gymnasium.make("CartPole-v1", max_episode_steps=30)
def made(length): return gymnasium.make("CartPole-v1", max_episode_steps=length)
if "Own-v0" not in gymnasium.registry:
    gymnasium.register("Own-v0", made, kwargs={"length": 40})
"""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Needs", ["positional argument: 'length'", "a function of the file"]),
        ("Reads", ["model.xml", "Path(__file__).parent"]),
    ],
)
def test_what_a_constructor_misses_is_named(tmp_path: Path, name: str, words: list[str]) -> None:
    (tmp_path / "needs.py").write_text(FILE)
    source = f"gym:{tmp_path / 'needs.py'}:{name}"
    with pytest.raises(UsageError) as refused:
        make_first(maker_of(source), source)
    assert all(word in str(refused.value) for word in words)


def test_longer_episodes_than_the_registered_ones_are_made_or_refused(tmp_path: Path) -> None:
    request = TaskRequest("gym:CartPole-v1", episode_steps=10_000)
    environment = make_first(maker_of(request.source, request.episode_steps), "CartPole-v1")
    found = task_of(request, environment)
    assert (found.episode_steps, environment.spec.max_episode_steps) == (10_000, 10_000)
    assert task_of(TaskRequest("gym:CartPole-v1"), make_first(maker_of("gym:CartPole-v1"), "")) == (
        task_of(
            TaskRequest("gym:CartPole-v1", episode_steps=500),
            make_first(maker_of("gym:CartPole-v1", 500), ""),
        )
    )
    (tmp_path / "longer.py").write_text(FILE)
    source = f"gym:{tmp_path / 'longer.py'}:short"
    make = maker_of(source, 100)
    assert task_of(TaskRequest(source), make_first(make, "")).episode_steps == 30
    with pytest.raises(UsageError, match=r"episode_steps=100, and short ends .* after 30 steps"):
        task_of(TaskRequest(source, episode_steps=100), make_first(make, ""))
    own = "gym:Own-v0"  # registered with arguments
    assert task_of(TaskRequest(own), make_first(maker_of(own), "")).episode_steps == 40
