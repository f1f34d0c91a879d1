"""What a tuning searches, by the texts of --search; which trials Optuna's pruner ends early."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from fake_experiment import fake_experiment
from foreign_runs import pendulum_task
from rltools_host.build.description import Parameter
from rltools_host.errors import RltError, UsageError
from rltools_host.training.hyperparameters import resized
from rltools_host.training.trials import (
    COMPLETE,
    PRUNED,
    STARTUP_TRIALS,
    Dimension,
    Trials,
    space_of,
)

EXPERIMENT = replace(
    fake_experiment(),
    hyperparameters=(
        *fake_experiment().hyperparameters,
        Parameter("gamma", "F32", 0.99, 0, 1, "", "Discount."),
        Parameter("policy_delay", "U32", 2, 1, 100, "updates", "Delay."),
    ),
)
TASK = pendulum_task("gym:Pendulum-v1")
installs_optuna = pytest.mark.all
GAMMA = Dimension("gamma", 0.9, 0.999)
STEPS = (100, 200, 300)


def space(*searched: str, settings: tuple[str, ...] = ()) -> list[Dimension]:
    return space_of(EXPERIMENT, None, searched, settings)


def test_what_is_usual_is_searched_of_what_the_experiment_has() -> None:
    learning_rate, gamma = space()
    assert learning_rate == Dimension("learning_rate", 1e-5, 0.01)
    assert learning_rate.is_logarithmic
    assert gamma.choices == ("0.9", "0.95", "0.98", "0.99", "0.995", "0.999")
    assert [found.name for found in space(settings=("gamma=0.9",))] == ["learning_rate"]


def test_only_what_is_named_is_searched() -> None:
    (delay,) = space("policy_delay=1..4")
    assert (delay.low, delay.high, delay.is_whole, delay.is_logarithmic) == (1, 4, True, False)
    (learning_rate,) = space("learning_rate")
    assert learning_rate == Dimension("learning_rate", 1e-5, 0.01)
    (beta,) = space("adam_beta=0.5,0.9")
    assert beta.choices == ("0.5", "0.9")


def test_a_drawn_number_is_short_and_within_its_range() -> None:
    (found,) = space("learning_rate=0.00012341..0.01")
    assert found.setting(0.0031234567) == "learning_rate=0.003123"
    assert found.setting(found.low) == f"learning_rate={found.low}"  # not 0.0001234
    assert space("policy_delay=1..40")[0].setting(7) == "policy_delay=7"


@pytest.mark.parametrize(
    ("searched", "sentence"),
    [
        (["gamma=0.9..1.5"], "--search gamma: gamma=1.5 is out of bounds: choose a number from 0"),
        (["gamma=0.9..0.9"], "the range 0.9..0.9 has no width"),
        (["gamma=0.99..0.9"], "the range 0.99..0.9 has no width"),
        (["gamma=0.9"], "0.9: write two values at least, A,B, or a range, LOW..HIGH"),
        (["gamma=0.9,0.90"], "has a value twice"),
        (["gamma=high..low"], "gamma=high is out of bounds"),
        (["policy_delay=1..2.5"], "policy_delay=2.5 is out of bounds: choose a whole number"),
        (["policy_delay"], "give a range or values: --search policy_delay=LOW..HIGH"),
        (["gama=0.9,0.95"], 'unknown hyperparameter "gama": did you mean gamma?'),
        (["gamma", "gamma=0.9,0.95"], "--search gamma is given twice"),
        (["batch_size=64..128"], "--search batch_size=64..128: sizes are compiled in: list them"),
    ],
)
def test_a_search_that_is_refused(searched: list[str], sentence: str) -> None:
    with pytest.raises(RltError) as refused:
        space(*searched)
    assert sentence in str(refused.value)


def test_what_is_set_is_not_searched() -> None:
    with pytest.raises(UsageError, match="gamma is searched and set"):
        space("gamma", settings=("gamma=0.9",))
    nothing = replace(EXPERIMENT, hyperparameters=fake_experiment().hyperparameters[:5])
    with pytest.raises(UsageError, match="has nothing that is searched unless it is named"):
        space_of(nothing, None, (), ())


# -- sizes of a task of Gymnasium's ----------------------------------------------------------------


def test_sizes_of_a_task_are_searched() -> None:
    found = {each.name: each for each in space_of(EXPERIMENT, TASK, (), ())}
    assert found["hidden"].choices == ("64,64", "128,128", "256,256")
    assert found["hidden"].text() == "hidden=64x64,128x128,256x256"
    assert found["batch_size"].is_size
    (net,) = space_of(EXPERIMENT, TASK, ["hidden=32,16x8"], ())
    assert (net.name, net.choices) == ("hidden", ("32", "16,8"))
    found = {each.name: each for each in space_of(EXPERIMENT, TASK, (), ("hidden=8,8",))}
    assert "hidden" not in found


@pytest.mark.parametrize(
    ("searched", "sentence"),
    [
        (["hidden=64..256"], "sizes are compiled in: list them, as in --search hidden=64x64"),
        (["batch_size=16..64"], "sizes are compiled in: list them, as in --search batch_size=64"),
        (["hidden=64x64"], "64x64: write two values at least"),
        (["hidden=0x64,64x64"], "give one to eight widths from 1 to 4096"),
        (["environments=1,5000"], "environments=5000"),
    ],
)
def test_sizes_that_are_refused(searched: list[str], sentence: str) -> None:
    with pytest.raises(RltError) as refused:
        space_of(EXPERIMENT, TASK, searched, ())
    assert sentence in str(refused.value)


def test_rollouts_whose_rows_do_not_divide_are_refused_before_anything_is_trained() -> None:
    task = structs.replace(TASK, algorithm="ppo", sizes=structs.replace(TASK.sizes, environments=8))
    with pytest.raises(UsageError, match="--search n_steps=10 batch_size=48: batch_size=48"):
        space_of(EXPERIMENT, task, ["n_steps=12,10", "batch_size=48,96"], ())


def test_a_task_of_another_size_has_another_name() -> None:
    sized, rest = resized(TASK, ["gamma=0.9", "hidden=32,16", "batch_size=48"])
    assert rest == ("gamma=0.9",)
    assert (sized.hidden, sized.sizes.batch_size) == ((32, 16), 48)
    assert sized.experiment != TASK.experiment
    assert resized(TASK, ["gamma=0.9"]) == (TASK, ("gamma=0.9",))
    assert (
        structs.replace(sized, hidden=TASK.hidden, sizes=TASK.sizes, experiment=TASK.experiment)
        == TASK
    )


def test_a_range_is_drawn_by_its_logarithm_from_a_factor_of_thirty_on() -> None:
    found = [Dimension("a", low, high) for low, high in ((1, 30), (1, 29), (2.0, 60.0), (0, 90))]
    assert [each.is_logarithmic for each in found] == [True, False, True, False]
    assert [each.is_whole for each in found] == [True, True, False, True]
    drawn = Dimension("a", 0.12344, 0.56786)
    assert [drawn.setting(value) for value in (0.12344, 0.25, 0.567859, "x")] == [
        "a=0.12344",
        "a=0.25",
        "a=0.56786",
        "a=x",
    ]


@pytest.mark.parametrize("name", ["seed", "steps", "eval_freq", "n_eval_episodes", "report_every"])
def test_what_all_trials_have_alike(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        space(f"{name}=1..2")
    assert str(refused.value) == (
        f"--search {name}: all trials have the same {name}, or they do not compare"
    )
    with pytest.raises(UsageError, match="policy_delay: give a range or values: --search"):
        space("policy_delay=")


def trials(folder: Path, prunes: bool = True) -> Trials:
    return Trials(folder / "study.db", "s", "mark", [GAMMA], prunes)


def reported(study: Trials, *values: float) -> tuple[int, bool]:
    """What a trial with these evaluations is told as; how many were asked for, and whether it was
    pruned then."""
    trial = study.ask()
    for count in range(1, len(values) + 1):
        so_far = dict(zip(STEPS, values[:count], strict=False))
        if study.report(trial, so_far):
            study.tell(trial, PRUNED)
            return count, True
    study.tell(trial, COMPLETE, values[-1])
    return len(values), False


@installs_optuna
def test_a_trial_below_the_median_of_those_before_is_pruned(tmp_path: Path) -> None:
    study = trials(tmp_path)
    for value in range(STARTUP_TRIALS):  # the first are never pruned, however bad
        assert reported(study, -300.0 - value, -200.0 - value, -100.0 - value) == (3, False)
    assert reported(study, -301.0, -201.0, -101.0) == (3, False), "better than the median"
    assert reported(study, -900.0, -100.0, -50.0) == (1, True), "worse at its first evaluation"
    assert reported(study, -300.0, -900.0, -50.0) == (2, True), (
        "worse at its second, though not before"
    )


@installs_optuna
def test_a_head_that_begins_anew_prunes_by_what_the_storage_has(tmp_path: Path) -> None:
    study = trials(tmp_path)
    for _ in range(STARTUP_TRIALS):
        reported(study, -300.0, -200.0, -100.0)
    trial = study.ask()
    assert not study.report(trial, {100: -250.0})
    again = trials(tmp_path)
    (left,) = again.unfinished()
    assert (left.number, left.settings) == (trial.number, trial.settings)
    assert not again.report(left, {100: -250.0})
    assert reported(again, -900.0) == (1, True)
    assert [state for state, _ in again.finished().values()].count(PRUNED) == 1


@installs_optuna
def test_without_pruning_none_ends_early(tmp_path: Path) -> None:
    study = trials(tmp_path, prunes=False)
    for value in (-1.0,) * STARTUP_TRIALS + (-900.0,):
        assert reported(study, value, value) == (2, False)
