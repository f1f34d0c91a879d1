"""Names that are no hyperparameters here: sizes, former names, unknown ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fake_experiment import fake_experiment
from rltools_host.environments.task import TaskRequest
from rltools_host.errors import UsageError
from rltools_host.training.hyperparameters import (
    CONSTANTS,
    FORMER,
    SIZE_NAMES,
    given_values,
    of_experiment,
    require_names,
    whole,
    widths_of,
    with_sizes,
)
from rltools_host.tree import TREE

EXPERIMENT = fake_experiment("pendulum-td3")
KNOWN = {entry.name for entry in EXPERIMENT.hyperparameters}


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        (
            "batch_size",
            r"compiled in, as boards do not allocate: .*, or edit kBatchSize in \S*pendulum_td3",
        ),
        ("hidden", "edit Actor and Critic in"),
        ("buffer_size", "edit kReplayCapacity in"),
        ("n_steps", "edit kRolloutSteps in"),
        ("policy_noise", "policy_noise is called target_policy_noise now"),
    ],
)
def test_words_for_other_places_are_answered(word: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        given_values(EXPERIMENT, None, None, [f"{word}=1"])


def test_a_task_that_goes_on_keeps_its_sizes() -> None:
    with pytest.raises(UsageError, match="start a new one with --set hidden="):
        require_names(replace(EXPERIMENT, name="gym-servo-sac"), ["hidden"])


def test_other_words_are_unknown() -> None:
    with pytest.raises(UsageError, match='"momentum"'):
        given_values(EXPERIMENT, None, None, ["momentum=1"])


def test_every_former_name_leads_to_one_of_today() -> None:
    headers = (TREE.include / "rltools" / "rl").glob("**/*.h")
    lists = "".join(header.read_text() for header in headers)
    for name in FORMER.values():
        assert f", {name}, " in lists or name in SIZE_NAMES, name
    assert set(CONSTANTS) == set(SIZE_NAMES)
    experiments = "".join(path.read_text() for path in TREE.experiments.glob("*.h"))
    for constant in CONSTANTS.values():
        assert constant.split()[0] in experiments


def test_sizes_of_a_task_are_taken_out_of_its_settings() -> None:
    settings = ["hidden=[256, 128]", "gamma=0.9", "environments=4", "buffer_size=1e6", "lr=1"]
    task, rest = with_sizes(TaskRequest("gym:Hopper-v5"), settings)
    assert rest == ("gamma=0.9", "lr=1")
    assert (task.hidden, task.environments) == ((256, 128), 4)
    assert task.sizes == {"buffer_size": 1_000_000}


@pytest.mark.parametrize(
    ("task", "settings", "sentence"),
    [
        (TaskRequest("gym:A"), ["hidden=a"], "hidden=a: write the widths"),
        (TaskRequest("gym:A"), ["n_steps=1.5"], "n_steps=1.5: give a whole number"),
        (TaskRequest("gym:A"), ["n_steps=inf"], "n_steps=inf: give a whole number"),
        (TaskRequest("gym:A"), ["n_steps=5", "n_steps=6"], "n_steps is given twice"),
        (TaskRequest("gym:A", environments=2), ["environments=2"], "environments is given twice"),
        (TaskRequest("gym:A", hidden=(32,)), ["hidden=64"], "hidden is given twice"),
    ],
)
def test_sizes_that_are_refused(task: TaskRequest, settings: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        with_sizes(task, settings)


@pytest.mark.parametrize(
    ("text", "value"),
    [("256", 256), ("1e5", 100_000), ("1_000", 1000), ("-3", -3), ("2.0", 2), (" 7 ", 7)],
)
def test_whole_numbers(text: str, value: int) -> None:
    assert whole("w", text) == value
    assert isinstance(whole("w", text), int)


@pytest.mark.parametrize("text", ["", "a", "1.5", "nan", "inf", "-inf", "1e"])
def test_what_are_no_whole_numbers(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        whole("w", text)
    assert str(refused.value) == f"w={text}: give a whole number"


@pytest.mark.parametrize(
    ("text", "widths"),
    [
        ("64", (64,)),
        ("64,32", (64, 32)),
        ("[64, 32]", (64, 32)),
        ("(64,)", (64,)),
        ("64 32 16", (64, 32, 16)),
    ],
)
def test_widths(text: str, widths: tuple[int, ...]) -> None:
    assert widths_of("w", text) == widths


@pytest.mark.parametrize("text", ["", "[]", "64x64", "6.4", "-64", "[[64]]", ",64"])
def test_what_are_no_widths(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        widths_of("w", text)
    assert str(refused.value) == (
        f"w={text}: write the widths of the layers between, such as 64,64"
    )


def test_all_sizes_go_where_they_belong() -> None:
    settings = ["hidden=8", "environments=3", "episode_steps = 50", "batch_size=16", "n_steps=4"]
    task, rest = with_sizes(TaskRequest("gym:A", sizes={"buffer_size": 9}), settings)
    assert (rest, task.hidden, task.environments, task.episode_steps) == ((), (8,), 3, 50)
    assert task.sizes == {"buffer_size": 9, "batch_size": 16, "n_steps": 4}
    unset = ["batch_size", "gamma=0.9"]  # the first has no value: it is refused later
    assert with_sizes(TaskRequest("gym:A"), unset) == (TaskRequest("gym:A"), tuple(unset))
    for given, word in (
        ({"episode_steps": 5}, "episode_steps"),
        ({"sizes": {"batch_size": 1}}, "batch_size"),
    ):
        with pytest.raises(UsageError, match=f"^{word} is given twice: give it once$"):
            with_sizes(TaskRequest("gym:A", **given), [f"{word}=2"])
    assert of_experiment("pendulum-td3", ["gamma=0.9"]) == ("pendulum-td3", ("gamma=0.9",))
