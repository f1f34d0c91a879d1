"""What a tuning searches, by the texts of --search; which trials Optuna's pruner ends early."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from fake_experiment import fake_experiment
from foreign_runs import pendulum_task
from rltools_host.build.description import Parameter
from rltools_host.errors import UsageError
from rltools_host.training.hyperparameters import resized
from rltools_host.training.trials import (
    COMPLETE,
    PRUNED,
    STARTUP_TRIALS,
    Dimension,
    Trial,
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
    assert (delay.low, delay.high, delay.is_logarithmic) == (1, 4, False)
    assert isinstance(delay.low, int)
    (learning_rate,) = space("learning_rate")
    assert learning_rate == Dimension("learning_rate", 1e-5, 0.01)
    (beta,) = space("adam_beta=0.5,0.9")
    assert beta.choices == ("0.5", "0.9")


# -- sizes of a Gymnasium task ----------------------------------------------------------------


def test_sizes_of_a_task_are_searched() -> None:
    found = {each.name: each for each in space_of(EXPERIMENT, TASK, (), ())}
    assert found["hidden"].choices == ("64,64", "128,128", "256,256")
    assert found["hidden"].text() == "hidden=64x64,128x128,256x256"
    assert found["batch_size"].is_size
    (net,) = space_of(EXPERIMENT, TASK, ["hidden=32,16x8"], ())
    assert (net.name, net.choices) == ("hidden", ("32", "16,8"))
    found = {each.name: each for each in space_of(EXPERIMENT, TASK, (), ("hidden=8,8",))}
    assert "hidden" not in found


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


def trials(folder: Path, prunes: bool = True) -> Trials:
    return Trials(folder / "study.db", "s", "mark", [GAMMA], prunes)


def asked(study: Trials, of: int = 100) -> Trial:
    trial = study.ask(of)
    assert trial is not None
    return trial


def reported(study: Trials, *values: float) -> tuple[int, bool]:
    """What a trial with these evaluations is told as; how many were asked for, and whether it was
    pruned then."""
    trial = asked(study)
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
    trial = asked(study)
    assert not study.report(trial, {100: -250.0})
    again = trials(tmp_path)
    (left,) = again.unfinished()
    assert (left.number, left.settings) == (trial.number, trial.settings)
    assert not again.report(left, {100: -250.0})
    assert reported(again, -900.0) == (1, True)
    assert [state for state, _ in again.finished().values()].count(PRUNED) == 1


def at_once(act: Callable[[int], None], count: int) -> None:
    """Call the function with each number, in threads that begin at the same moment."""
    start = threading.Barrier(count)

    def begin(number: int) -> None:
        start.wait()
        act(number)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@installs_optuna
def test_heads_at_one_study_begin_no_trial_too_many(tmp_path: Path) -> None:
    """Also if they ask at the same moment; each has values of its own."""
    url, of, heads = f"sqlite:///{tmp_path / 'shared.db'}", 7, 4
    searched = [GAMMA, Dimension("tau", 0.1, 0.9)]  # one has four digits: two may be equal
    studies = [Trials(url, "s", f"mark{number}", searched, False) for number in range(heads)]
    found: list[Trial] = []

    def ask(number: int) -> None:
        while (trial := studies[number].ask(of)) is not None:
            found.append(trial)

    at_once(ask, heads)
    assert len(found) == of
    assert len({trial.settings for trial in found}) == of
    own = len(studies[0].unfinished())
    assert (studies[0].finished(), studies[0].elsewhere()) == ({}, of - own)


@installs_optuna
def test_heads_that_begin_a_study_at_the_same_moment_all_open_it(tmp_path: Path) -> None:
    """All but one failed, as each wrote the tables of the new storage."""
    heads, faults = 4, list[Exception]()
    for turn in range(5):
        url = f"sqlite:///{tmp_path / f'{turn}.db'}"

        def begin(number: int, url: str = url) -> None:
            try:
                Trials(url, "s", f"mark{number}", [GAMMA], False)
            except Exception as error:
                faults.append(error)

        at_once(begin, heads)
    assert faults == []


@installs_optuna
@pytest.mark.parametrize("rest", ["", "/", "/:memory:", "/file:x?mode=memory&uri=true"])
def test_a_storage_in_memory_is_refused(rest: str) -> None:
    with pytest.raises(UsageError, match=r"--storage sqlite:.* is in memory.*: name a file"):
        Trials(f"sqlite://{rest}", "s", "mark", [GAMMA], False)
