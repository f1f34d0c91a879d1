"""A task from spaces and tables; what cannot be learned is refused."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

from rltools_host.environments.channels import assumptions
from rltools_host.environments.task import TaskRequest, task_of
from rltools_host.errors import UsageError
from rltools_host.runs.task import Task

INFINITE = np.inf


def spaces(observation: Any, action: Any, **attributes: Any) -> Any:
    return SimpleNamespace(observation_space=observation, action_space=action, **attributes)


BOX = Box(-1.0, 1.0, (2,))
PLAIN = spaces(Box(-1.0, 1.0, (2,)), Box(-1.0, 1.0, (1,)))


def task(environment: Any = PLAIN, **options: Any) -> Task:
    return task_of(TaskRequest(**{"source": "gym:Servo-v0", **options}), environment)


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


def test_choices_have_the_names_of_the_table_or_their_numbers() -> None:
    def actions(
        space: Any, algorithm: str | None = None, table: Any = None
    ) -> list[tuple[Any, ...]]:
        channels = {} if table is None else {"actions": table}
        found = task(spaces(BOX, space), algorithm=algorithm, channels=channels)
        assert found.has_channels == (table is not None)
        assert Task(**{key: getattr(found, key) for key in found.__struct_fields__}) == found
        return [(c.name, c.choices, c.minimum, c.maximum) for c in found.actions]

    assert actions(Discrete(3)) == actions(Discrete(3), "ppo")
    assert actions(Discrete(3), "dqn") == [("action_0", ("0", "1", "2"), 0, 2)]
    assert actions(Discrete(2, start=-1)) == [("action_0", ("-1", "0"), 0, 1)]
    both = actions(MultiDiscrete([[3], [2]]))
    assert both == [("action_0", ("0", "1", "2"), 0, 2), ("action_1", ("0", "1"), 0, 1)]
    table = [{"name": "gear", "choices": ["low", "middle", "high"]}, "horn"]
    named = actions(MultiDiscrete([3, 2]), table=table)
    assert named == [("gear", ("low", "middle", "high"), 0, 2), ("horn", ("0", "1"), 0, 1)]


def test_the_algorithm_is_one_that_learns_the_actions() -> None:
    assert task().algorithm == "sac"
    one, several = task(spaces(BOX, Discrete(3))), task(spaces(BOX, MultiDiscrete([3, 2])))
    assert one.algorithm == several.algorithm == "ppo"
    assert one.experiment == "gym-servo-v0-ppo"
    assert one.sizes == task(spaces(BOX, Discrete(3)), algorithm="ppo").sizes
    assert task(spaces(BOX, MultiDiscrete([3])), algorithm="dqn").algorithm == "dqn"
    with pytest.raises(UsageError, match="batch_size=7 does not divide the 2048 rows of a rollout"):
        task(spaces(BOX, Discrete(3)), sizes={"batch_size": 7})


def test_the_rate_is_the_simulations_or_that_of_its_pictures() -> None:
    def interval(**attributes: Any) -> int:
        return task(
            spaces(PLAIN.observation_space, PLAIN.action_space, **attributes)
        ).step_interval_us

    assert interval() == 20_000
    assert interval(metadata={"render_fps": 30}) == 33_333
    assert interval(metadata={"render_fps": 30}, unwrapped=SimpleNamespace(dt=0.05)) == 50_000
    assert interval(unwrapped=SimpleNamespace(dt=lambda: 1), metadata=None) == 20_000


def test_a_task_states_what_is_safe() -> None:
    def safe(space: Any, *given: Any, algorithm: str | None = None) -> Any:
        table = [{} if value is None else {"safe": value} for value in given]
        return task(
            spaces(BOX, space), channels={"actions": table}, algorithm=algorithm
        ).safe_action

    valves = Box(0.0, 1.0, (2,))
    assert safe(valves, 0, 1.0) == (0.0, 1.0)
    assert safe(valves, None, 0.25) == (None, 0.25)
    assert safe(valves, None, None) == task(spaces(BOX, valves)).safe_action == ()
    assert safe(Discrete(3, start=5), "6") == safe(Discrete(3, start=5), 1) == (1.0,)
    named = {"actions": [{"choices": ["off", "low", "high"], "safe": "off"}]}
    assert task(spaces(BOX, Discrete(3)), channels=named).safe_action == (0.0,)
    for value, reason in (
        (1.5, "1.5 lies outside of its range, 0 to 1"),
        (-1e-3, "outside of its range"),
        (float("nan"), "it is not finite"),
        ("closed", "closed is not a number"),
        (True, "True is not a number"),
        ([0], "not a number"),
    ):
        with pytest.raises(UsageError, match=f"channels: the safe action of action_1: .*{reason}"):
            safe(valves, 0, value)
    for value in ("none", 3, 0.5, -1):
        with pytest.raises(UsageError, match="channels: the safe action of action_0: "):
            safe(Discrete(3), value)
    with pytest.raises(UsageError, match='has "safe", and known are'):
        task(channels={"observations": ["a", {"safe": 0}]})


def test_what_nobody_states_is_said_in_a_line_each() -> None:
    boundless = Box(np.array([-1, -INFINITE], np.float32), np.array([1, 1], np.float32))
    lines = assumptions(task(spaces(boundless, Box(0.0, 1.0, (1,)))))
    assert [line.split(":")[0] for line in lines] == ["assumed"] * 3
    assert "a step takes 20,000 us" in lines[0]
    assert "observation_1: an end at ±1e+06" in lines[1]
    assert "a board does action_0 0.5; state it by" in lines[2]
    table = {
        "step_interval_us": 20_000,
        "observations": ["a", {"name": "b", "minimum": -5e6}],
        "actions": [{"safe": 0}],
    }
    stated = task(spaces(boundless, Box(0.0, 1.0, (1,))), channels=table)
    assert assumptions(stated) == []
    assert (stated.observations[1].minimum, stated.observations[1].maximum) == (-5e6, 1.0)


def test_a_space_that_cannot_be_learned_is_named() -> None:
    with pytest.raises(UsageError, match=r"Servo-v0 has a Dict as its .*gymnasium.Env"):
        task(spaces(Dict({"a": BOX}), BOX))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"hidden": (64, 0)}, 'hidden layers "64,0": give one to eight widths from 1 to 4096'),
        ({"channels": {"observations": ["a"]}}, "observations has 1 entries, .* 2 elements"),
        ({"channels": {"observations": ["a", 'b"']}}, "plain text of 1 to 23"),
    ],
)
def test_a_request_that_cannot_be_met_is_one_sentence(
    options: Mapping[str, Any], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        task(**options)


VIEW, CIRCLE = ("view", "", "-1, -1, 1, 1"), ("circle", "body", "observation_0, 0, 0.1")


@pytest.mark.parametrize("given", [[VIEW, CIRCLE], (list(VIEW), list(CIRCLE))])
def test_a_picture_is_that_of_the_environments_metadata(given: Any) -> None:
    found = task(spaces(BOX, BOX, metadata={"picture": given})).picture
    assert [(shape.kind, shape.look, shape.numbers) for shape in found] == [VIEW, CIRCLE]
    assert task(spaces(BOX, BOX, metadata={"picture": None})).picture == ()
