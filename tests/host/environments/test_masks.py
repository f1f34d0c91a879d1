"""What an environment forbids by info["action_mask"]: an observation of the policy's, and never
chosen."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rlt
from choosing_tasks import Corridor, TwoChoicesCorridor
from rltools_host.commands import cli
from rltools_host.environments.environment_server import PlayState
from rltools_host.environments.player import DONE, OVER
from rltools_host.environments.server_socket import begin
from rltools_host.environments.spaces import nearest_allowed
from rltools_host.environments.task import TaskRequest, task_of
from rltools_host.errors import BoardMismatchError, UsageError
from rltools_host.policies.contract import masks_of
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.task import Task
from rltools_host.tree import TREE

FILE = TREE.root / "tests" / "fakes" / "choosing_tasks.py"
REQUEST = TaskRequest("f", name="corridor")
STAY = np.array([1.0], np.float32)


def task(environment: Any, **options: Any) -> Task:
    return task_of(TaskRequest("f", name="corridor", **options), environment)


def test_masks_are_observations_by_the_names_of_the_choices() -> None:
    found = task(Corridor())
    assert [channel.name for channel in found.observations] == [
        "observation_0",
        *("action_0:0", "action_0:1", "action_0:2"),
    ]
    assert masks_of(found.observations, found.actions) == [1, 2, 3]
    assert found.mask_count == 3
    assert not found.has_channels
    assert Task(**{key: getattr(found, key) for key in found.__struct_fields__}) == found
    table = {"actions": [{"name": "go", "choices": ["back", "stay", "on"]}, "sing"]}
    both = task(TwoChoicesCorridor(), channels=table)
    names = [channel.name for channel in both.observations[1:]]
    assert names == ["go:back", "go:stay", "go:on", "sing:0", "sing:1"]
    assert masks_of(both.observations, both.actions) == [1, 2, 3, 4, 5]


def corridor(mask: Any, since: int = 0) -> type[Corridor]:
    """Return a class of corridors whose info is {} or has this mask, from step `since` on."""

    class Other(Corridor):
        steps = 0

        def info(self, own: dict[str, Any]) -> dict[str, Any]:
            if Other.steps < since:
                return own
            return {} if mask is None else {"action_mask": mask}

        def reset(self, **options: Any) -> Any:
            seen, own = super().reset(**options)
            return seen, self.info(own)

        def step(self, action: Any) -> Any:
            Other.steps += 1
            *rest, own = super().step(action)
            return (*rest, self.info(own))

    return Other


WRONG = [
    (np.ones(4, np.int8), "shape (4,) and type int8, and the task has 3 choices: return (3,) "),
    (np.array([0, 2, 1], np.int8), "1 for each that is allowed, 0 for the others"),
    (np.zeros(3, np.int8), "that allows no choice of action_0"),
]


@pytest.mark.parametrize(("mask", "sentence"), WRONG)
def test_a_first_mask_that_is_none_is_refused(mask: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)) as raised:
        begin(corridor(mask), REQUEST, None, PlayState())
    assert str(raised.value).startswith("corridor cannot be trained: reset returned info")


@pytest.mark.parametrize(
    ("mask", "sentence"),
    [*WRONG, (None, "step returned no info")],
    ids=lambda value: str(value)[:20],
)
def test_a_later_mask_that_is_none_ends_the_run(mask: Any, sentence: str) -> None:
    state = PlayState()
    _, player = begin(corridor(mask, since=2), REQUEST, None, state)
    assert player.step(0, STAY)[0] == DONE
    assert player.step(0, STAY)[0] == OVER
    assert sentence in state.faults().given_up
    assert "at observation (" in state.faults().given_up
    assert player.reset(0, 1)[0] == OVER  # nor does it begin again
    assert "reset returned" in state.faults().given_up


def test_a_mask_that_only_a_step_gives_ends_the_run() -> None:
    class Late(Corridor):
        def reset(self, **options: Any) -> Any:
            return super().reset(**options)[0], {}

    state = PlayState()
    found, player = begin(Late, REQUEST, None, state)
    assert not found.has_masks
    assert player.step(0, STAY)[0] == OVER
    assert (
        'step returned info["action_mask"], and the first reset did not' in state.faults().given_up
    )


def test_the_end_of_an_episode_may_allow_nothing() -> None:
    class Ending(Corridor):
        def step(self, action: Any) -> Any:
            seen, reward, *_ = super().step(action)
            return seen, reward, True, False, {"action_mask": np.zeros(3, np.int8)}

    _, player = begin(Ending, REQUEST, None, PlayState())
    what, _, terminated, _, seen = player.step(0, STAY)
    assert (what, terminated) == (DONE, True)
    assert seen[1:].tolist() == [0, 0, 0]


def test_a_run_goes_on_with_masks_alone() -> None:
    class Without(Corridor):
        def reset(self, **options: Any) -> Any:
            return super().reset(**options)[0], {}

    with pytest.raises(BoardMismatchError, match="here, and a mask in the run"):
        begin(Without, REQUEST, task(Corridor()), PlayState())


def test_the_nearest_choice_that_is_allowed_stands_for_a_forbidden_one() -> None:
    found = task(TwoChoicesCorridor())
    for chosen, mask, expected in (
        ([2, 1], [1, 1, 0, 1, 0], [1, 0]),
        ([0, 0], [0, 0, 1, 0, 1], [2, 1]),
        ([1, 1], [1, 0, 1, 1, 1], [0, 1]),
        ([2, 0], [0, 0, 0, 1, 1], [2, 0]),
    ):
        given = np.array(chosen, np.float32), np.array(mask, np.float32)
        assert nearest_allowed(*given, found).tolist() == expected


def test_check_keeps_to_the_masks(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["check", f"gym:{FILE}:TwoChoicesCorridor"]) == 0, capsys.readouterr().out
    assert "learned by ppo" in capsys.readouterr().out


@pytest.mark.all  # compiles a task
@pytest.mark.parametrize(
    ("environment", "algorithm", "steps"),
    [(Corridor, "dqn", 3000), (TwoChoicesCorridor, "ppo", 8192)],
)
def test_what_is_forbidden_is_never_tried(
    environment: type[Corridor], algorithm: str, steps: int, tmp_path: Path
) -> None:
    Corridor.asked = 0
    run = rlt.train(
        environment,
        algorithm=algorithm,
        steps=steps,
        hidden=(16,),
        settings={"eval_freq": steps, "learning_rate": 0.005},
        sizes={"batch_size": 64, "n_steps": 32},
        out=tmp_path / "run",
        quiet=True,
    )
    asked = Corridor.asked
    assert asked >= steps  # and those of the evaluation
    assert rlt.evaluate(run, environment, episodes=20).mean() > 8
    assert Corridor.asked == asked + 20 * 12
    image = read_run_policy(tmp_path / "run")
    rows = np.array([[place, place > 0, 1, place < 4] for place in range(5)], np.float32)
    if environment is Corridor:
        chosen = image.evaluate(rows).ravel()
        assert chosen.tolist() == [2, 2, 2, 1, 0]
