"""A task as run.json holds it: each bound of what it may say."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs, to_builtins

from foreign_runs import pendulum_task
from rltools_host.build.description import Channel
from rltools_host.documents import LARGEST_BOUND, Unfit, typed
from rltools_host.runs.task import Sizes, Task, check_channel
from rltools_host.training.hyperparameters import sizes_in

TASK = pendulum_task("gym:Pendulum-v1")


def pictured(circle: str) -> list[dict[str, str]]:
    shapes = (("view", "", "0, 0, 1, 1"), ("circle", "body", circle))
    return [dict(zip(("kind", "look", "numbers"), shape, strict=True)) for shape in shapes]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"environment": ""}, "environment is "),
        ({"algorithm": "magic"}, 'algorithm is "magic"'),
        ({"hidden": [4097]}, "hidden[0]: Expected"),
        ({"actions": []}, "actions: Expected"),
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


@pytest.mark.parametrize(
    ("name", "channel", "reason"),
    [
        ("actions[0]", Channel("a" * 24, "1", 0, 1), "actions[0].name is "),
        ("actions[0]", Channel("a", "x|y", 0, 2), "actions[0] chooses from 2, and its range is "),
        (
            "observations[0]",
            Channel("a", "x|y", 0, 1),
            "observations[0].unit has a bar, which only",
        ),
        ("actions[0]", Channel("a", "1", 0, LARGEST_BOUND * 1.01), "actions[0].maximum is "),
        ("actions[0]", Channel("a", "1", float("nan"), 0), "actions[0].minimum is "),
    ],
)
def test_channels_that_are_not_taken(name: str, channel: Channel, reason: str) -> None:
    with pytest.raises(Unfit) as refused:
        check_channel(name, channel)
    assert str(refused.value).startswith(reason)


def test_a_text_of_any_length_is_refused_in_a_sentence() -> None:
    """The whole of it was quoted."""
    with pytest.raises(Unfit, match=r"^step_interval_from: .*…$") as refused:
        typed({**to_builtins(TASK), "step_interval_from": "x" * 10**6}, Task)
    assert len(str(refused.value)) < 400


def test_its_words_state_all_of_its_sizes() -> None:
    """A report's command left out those of batch, buffer and rollout."""
    sizes = Sizes(environments=2, batch_size=16, buffer_size=77, n_steps=8)
    task = structs.replace(TASK, hidden=(8, 4), sizes=sizes, episode_steps=30)
    settings = [word for word in task.words if "=" in word]
    assert sizes_in(settings) == ((8, 4), {**structs.asdict(sizes), "episode_steps": 30}, ())


def test_channels_at_their_bounds() -> None:
    check_channel("actions[0]", Channel("a" * 23, "m" * 15, -LARGEST_BOUND, LARGEST_BOUND))
    check_channel("actions[0]", Channel("a", "|".join(map(str, range(256))), 0, 255))
    with pytest.raises(Unfit, match="chooses from 257"):
        check_channel("actions[0]", Channel("a", "|".join(map(str, range(257))), 0, 256))
