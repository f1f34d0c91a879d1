"""Words of other libraries: taken where they mean the same, else answered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fake_experiment import fake_experiment
from rltools_host.build.experiments import list_experiments
from rltools_host.errors import UnknownNameError, UsageError
from rltools_host.gymnasium_tasks.task import TaskRequest
from rltools_host.training.hyperparameters import (
    CONSTANTS,
    SAME,
    SENTENCES,
    SIZE_WORDS,
    given_values,
    of_experiment,
    own_names,
    whole,
    widths_of,
    with_sizes,
)
from rltools_host.tree import TREE

EXPERIMENT = fake_experiment("pendulum-td3")
KNOWN = {entry.name for entry in EXPERIMENT.hyperparameters}


def test_words_that_mean_the_same_are_taken() -> None:
    given = given_values(EXPERIMENT, None, None, ["lr=3e-4", "total_timesteps=1e5"])
    assert given == {"learning_rate": 0.0003, "steps": 100_000}
    assert own_names(EXPERIMENT, {"learning_rate": "1", "eval_freq": "5"}) == {
        "learning_rate": "1",
        "eval_every": "5",
    }


def test_what_is_given_twice_is_refused_by_any_name() -> None:
    with pytest.raises(UsageError, match="lr is learning_rate, which is given twice"):
        given_values(EXPERIMENT, None, None, ["learning_rate=1e-3", "lr=3e-4"])
    with pytest.raises(UsageError, match="total_timesteps is steps, which is given twice"):
        given_values(EXPERIMENT, None, 10, ["total_timesteps=20"])


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        (
            "batch_size",
            r"compiled in, as boards do not allocate: .*, or edit kBatchSize in \S*pendulum_td3",
        ),
        ("net_arch", "edit Actor and Critic in"),
        ("buffer_size", "edit kReplayCapacity in"),
        ("n_steps", "edit kRolloutSteps in"),
        ("polyak", "tau is 1 - polyak"),
        ("target_update_interval", "it counts steps: target_every counts updates"),
        ("ent_coef", "finds the entropy's weight itself"),
    ],
)
def test_words_for_other_places_are_answered(word: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        given_values(EXPERIMENT, None, None, [f"{word}=1"])


def test_a_task_that_goes_on_keeps_its_sizes() -> None:
    with pytest.raises(UsageError, match="start a new one with --set hidden="):
        own_names(replace(EXPERIMENT, name="gym-servo-sac"), {"net_arch": "64,64"})


def test_other_words_are_unknown() -> None:
    with pytest.raises(UnknownNameError, match='"momentum"'):
        given_values(EXPERIMENT, None, None, ["momentum=1"])


def test_every_word_leads_to_a_name_of_some_algorithm() -> None:
    headers = (TREE.include / "rltools" / "rl").glob("**/*.h")
    lists = "".join(header.read_text() for header in headers)
    for names in SAME.values():
        for name in names:
            assert f", {name}, " in lists, name
    assert not set(SAME) & set(SIZE_WORDS)
    assert not set(SENTENCES) & set(SIZE_WORDS)
    assert set(CONSTANTS) == set(SIZE_WORDS.values())
    experiments = "".join(path.read_text() for path in TREE.experiments.glob("*.h"))
    for constant in CONSTANTS.values():
        assert constant.split()[0] in experiments
    assert "pendulum-td3" in list_experiments()


def test_sizes_of_a_task_are_taken_out_of_its_settings() -> None:
    settings = ["net_arch=[256, 128]", "gamma=0.9", "n_envs=4", "buffer_size=1e6", "lr=1"]
    task, rest = with_sizes(TaskRequest("gym:Hopper-v5"), settings)
    assert rest == ("gamma=0.9", "lr=1")
    assert (task.hidden, task.environments) == ((256, 128), 4)
    assert task.sizes == {"replay_capacity": 1_000_000}


@pytest.mark.parametrize(
    ("task", "settings", "sentence"),
    [
        (TaskRequest("gym:A"), ["net_arch=a"], "net_arch=a: write the widths"),
        (TaskRequest("gym:A"), ["n_steps=1.5"], "n_steps=1.5: give a whole number"),
        (TaskRequest("gym:A"), ["n_steps=inf"], "n_steps=inf: give a whole number"),
        (TaskRequest("gym:A"), ["n_steps=5", "rollout_steps=6"], "rollout_steps is given twice"),
        (TaskRequest("gym:A", environments=2), ["n_envs=2"], "environments is given twice"),
        (TaskRequest("gym:A", hidden=(32,)), ["net_arch=64"], "hidden is given twice"),
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
    task, rest = with_sizes(TaskRequest("gym:A", sizes={"replay_capacity": 9}), settings)
    assert (rest, task.hidden, task.environments, task.episode_steps) == ((), (8,), 3, 50)
    assert task.sizes == {"replay_capacity": 9, "batch_size": 16, "rollout_steps": 4}
    unset = ["batch_size", "gamma=0.9"]  # the first has no value: it is refused later
    assert with_sizes(TaskRequest("gym:A"), unset) == (TaskRequest("gym:A"), tuple(unset))
    for given, word in (
        ({"episode_steps": 5}, "episode_length"),
        ({"sizes": {"batch_size": 1}}, "minibatch_size"),
    ):
        with pytest.raises(UsageError, match=f"^{SIZE_WORDS[word]} is given twice: give it once$"):
            with_sizes(TaskRequest("gym:A", **given), [f"{word}=2"])
    assert of_experiment("pendulum-td3", ["gamma=0.9"]) == ("pendulum-td3", ("gamma=0.9",))
