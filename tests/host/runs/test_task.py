"""A task as run.json holds it: what it derives, and each bound of what it may say."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs, to_builtins

from foreign_runs import pendulum_task
from rltools_host.build.description import Channel
from rltools_host.documents import LARGEST_BOUND, Unfit, typed
from rltools_host.runs.task import Task, check_channel, has_plain_unit, short, slug

TASK = pendulum_task("gym:Pendulum-v1")


def pictured(circle: str) -> list[dict[str, str]]:
    shapes = (("view", "", "0, 0, 1, 1"), ("circle", "body", circle))
    return [dict(zip(("kind", "look", "numbers"), shape, strict=True)) for shape in shapes]


def test_what_a_task_derives() -> None:
    assert (TASK.contract, TASK.is_named, TASK.mask_count) == ("gym-pendulum-v1", True, 0)
    assert TASK.own_observations == TASK.observations
    assert TASK.words == [
        *("gym:Pendulum-v1", "--algorithm", "sac", "--set", "hidden=64,64"),
        *("--set", "environments=1", "--set", "episode_steps=20"),
    ]
    assert not structs.replace(TASK, source="make").is_named
    assert typed(to_builtins(TASK), Task) == TASK


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Pendulum-v1", "pendulum-v1"), ("_A  b/C_", "a-b-c"), ("é", ""), ("a.b", "a-b")],
)
def test_slug(text: str, expected: str) -> None:
    assert slug(text) == expected


def test_short() -> None:
    assert short("a" * 31, 31) == "a" * 31
    found = short("a" * 23 + "-" + "b" * 20, 31)  # 24 letters, a hyphen and six digits
    assert found[:24] == "a" * 23 + "-"
    assert len(found) == 30, "the hyphen at the cut is not doubled"
    assert len(short("a" * 32, 31)) == 31
    assert short("a" * 32, 31) != short("a" * 33, 31)


@pytest.mark.parametrize(
    ("channel", "expected"),
    [
        (Channel("a", "1", 0, 1), True),
        (Channel("a", "m", 0, 1), False),
        (Channel("a", "0|1|2", 0, 2), True),
        (Channel("a", "-1|0", 0, 1), True),
        (Channel("a", "0|2", 0, 1), False),
        (Channel("a", "low|high", 0, 1), False),
    ],
)
def test_units_that_no_table_gave(channel: Channel, expected: bool) -> None:
    assert has_plain_unit(channel) is expected


def test_names_that_a_table_gave() -> None:
    observations = tuple(Channel(f"observation_{index}", "1", -1.0, 1.0) for index in range(3))
    plain = structs.replace(
        TASK, observations=observations, actions=(Channel("action_0", "1", -1.0, 1.0),)
    )
    assert not plain.has_channels
    assert TASK.has_channels
    assert structs.replace(plain, actions=TASK.actions).has_channels
    assert structs.replace(plain, observations=TASK.observations).has_channels


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"environment": ""}, "environment is "),
        ({"environment": "a" * 32}, "environment is "),
        ({"environment": "--"}, 'environment is "--", not a name'),
        ({"algorithm": "magic"}, 'algorithm is "magic"'),
        ({"observation_shape": [4]}, "observation_shape is [4], not that of 3 observations"),
        ({"action_shape": [1, 2]}, "action_shape is [1, 2], not that of 1 actions"),
        ({"episode_steps": 0}, "episode_steps: Expected"),
        ({"episode_steps": 2**31}, "episode_steps: Expected"),
        ({"hidden": []}, "hidden: Expected"),
        ({"hidden": [1] * 9}, "hidden: Expected"),
        ({"hidden": [4097]}, "hidden[0]: Expected"),
        ({"actions": []}, "actions: Expected"),
        ({"solved_return": 1e300}, "solved_return: Expected"),
        ({"step_interval_us": 0}, "step_interval_us: Expected"),
        ({"step_interval_us": 600_000_001}, "step_interval_us: Expected"),
        ({"experiment": "pendulum-sac"}, "experiment: Expected"),
        (
            {"picture": pictured("0, 0, speed")},
            'shape 1 of the picture: "speed" is neither a channel',
        ),
    ],
)
def test_what_a_task_may_not_say(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unfit) as refused:
        typed({**to_builtins(TASK), **changes}, Task)
    assert str(refused.value).startswith(reason)


def test_what_a_task_may_say_at_most() -> None:
    bounds = {"episode_steps": 2**31 - 1, "step_interval_us": 600_000_000}
    bounds |= {"environment": "a" * 31, "hidden": [4096] * 8}
    typed({**to_builtins(TASK), **bounds}, Task)


def test_a_picture_is_of_a_tasks_own_channels() -> None:
    picture = pictured("cos_theta, sin_theta, abs(torque)")
    task = typed({**to_builtins(TASK), "picture": picture}, Task)
    assert [*to_builtins(task)["picture"]] == picture


@pytest.mark.parametrize(
    ("name", "channel", "reason"),
    [
        ("actions[0]", Channel("a" * 24, "1", 0, 1), "actions[0].name is "),
        ("actions[0]", Channel("a", "m" * 16, 0, 1), "actions[0].unit is "),
        ("actions[0]", Channel("a", "x|y", 0, 2), "actions[0] chooses from 2, and its range is "),
        ("actions[0]", Channel("a", "x|y", -1, 1), "actions[0] chooses from 2, and its range is "),
        (
            "observations[0]",
            Channel("a", "x|y", 0, 1),
            "observations[0].unit has a bar, which only",
        ),
        ("observations[0]", Channel("a", "1", 1, 1), "observations[0] has no range: its minimum"),
        ("actions[0]", Channel("a", "1", 0, LARGEST_BOUND * 1.01), "actions[0].maximum is "),
        ("actions[0]", Channel("a", "1", -LARGEST_BOUND * 1.01, 0), "actions[0].minimum is "),
        ("actions[0]", Channel("a", "1", float("nan"), 0), "actions[0].minimum is "),
    ],
)
def test_channels_that_are_not_taken(name: str, channel: Channel, reason: str) -> None:
    with pytest.raises(Unfit) as refused:
        check_channel(name, channel)
    assert str(refused.value).startswith(reason)


def test_channels_at_their_bounds() -> None:
    check_channel("actions[0]", Channel("a" * 23, "m" * 15, -LARGEST_BOUND, LARGEST_BOUND))
    check_channel("actions[0]", Channel("a", "|".join(map(str, range(256))), 0, 255))
    with pytest.raises(Unfit, match="chooses from 257"):
        check_channel("actions[0]", Channel("a", "|".join(map(str, range(257))), 0, 256))
