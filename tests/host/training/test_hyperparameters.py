"""Values as they are typed, and names that are no hyperparameters: sizes and former names."""

from __future__ import annotations

import pytest

from fake_experiment import fake_experiment
from rltools_host.build.description import Parameter
from rltools_host.environments.task import TaskRequest
from rltools_host.errors import UsageError
from rltools_host.training.hyperparameters import (
    CONSTANTS,
    FORMER,
    SIZE_NAMES,
    given_values,
    parse_value,
    with_sizes,
)
from rltools_host.tree import TREE

WHOLE = Parameter("count", "U32", 2, 1, 2.0**32 - 1, "steps", "How many.")
NUMBER = Parameter("rate", "F32", 0.5, 0, 1 - 2.0**-24, "", "How fast.")


@pytest.mark.parametrize(
    ("entry", "text", "value"),
    [
        (WHOLE, "1", 1),
        (WHOLE, "4294967295", 4294967295),
        (WHOLE, "+1_000", 1000),
        (WHOLE, "1e3", 1000),
        (WHOLE, " 7 ", 7),
        (NUMBER, "0", 0.0),
        (NUMBER, "0.99999994", 0.99999994),
        (NUMBER, "1e-45", 1e-45),
        (NUMBER, "-0.0", 0.0),
    ],
)
def test_values_within_the_bounds(entry: Parameter, text: str, value: float) -> None:
    found = parse_value(entry, text)
    assert (found, type(found)) == (value, int if entry is WHOLE else float)


def test_values_out_of_bounds() -> None:
    for text in ("0", "4294967296", "1.5", "", "nan", "1e999"):
        with pytest.raises(UsageError, match=f"count={text} is out of bounds: choose a whole num"):
            parse_value(WHOLE, text)
    for text in ("-0.1", "1", "1e39", "nan"):
        with pytest.raises(UsageError, match=f"rate={text} is out of bounds: choose a number from"):
            parse_value(NUMBER, text)
    with pytest.raises(UsageError, match="rate=1e-60 is 0 in a float of 32 bits"):
        parse_value(NUMBER, "1e-60")


# -- names that are no hyperparameters -------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("batch_size", r"compiled in, .*, or edit kBatchSize in \S*pendulum_td3"),
        ("policy_noise", "policy_noise is called target_policy_noise now"),
    ],
)
def test_a_size_and_a_former_name_are_answered(word: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        given_values(fake_experiment("pendulum-td3"), None, None, [f"{word}=1"])


def test_every_former_name_leads_to_one_of_today() -> None:
    headers = (TREE.include / "rltools" / "rl").glob("**/*.h")
    lists = "".join(header.read_text() for header in headers)
    for name in FORMER.values():
        assert f", {name}, " in lists or name in SIZE_NAMES, name
    assert set(CONSTANTS) == set(SIZE_NAMES)
    experiments = "".join(path.read_text() for path in TREE.experiments.glob("*.h"))
    for constant in CONSTANTS.values():
        assert constant.split()[0] in experiments


def test_all_sizes_go_where_they_belong() -> None:
    settings = ["hidden=8", "environments=3", "episode_steps = 50", "batch_size=16", "n_steps=4"]
    task, rest = with_sizes(TaskRequest("gym:A", sizes={"buffer_size": 9}), settings)
    assert (rest, task.hidden, task.environments, task.episode_steps) == ((), (8,), 3, 50)
    assert task.sizes == {"buffer_size": 9, "batch_size": 16, "n_steps": 4}
    unset = ["batch_size", "gamma=0.9"]  # the first has no value: it is refused later
    assert with_sizes(TaskRequest("gym:A"), unset) == (TaskRequest("gym:A"), tuple(unset))
    with pytest.raises(UsageError, match="episode_steps is given twice: give it once"):
        with_sizes(TaskRequest("gym:A", episode_steps=5), ["episode_steps=2"])
