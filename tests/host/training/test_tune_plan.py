"""Tunings without Optuna, and without anything that is built: what one that goes on may be asked
for, and what becomes of its trials."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from policy_run import GROUP
from rltools_host.build.boards import load_board
from rltools_host.errors import DiskError, FileError, LinkLostError, UsageError
from rltools_host.interruption import Interruption
from rltools_host.runs.group import TUNE, GroupFolder
from rltools_host.training import tune
from rltools_host.training.parallel_runs import Job
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.progress import FAILED, FINISHED, WAITING, GroupScreen, Member
from rltools_host.training.study import TuneRequest, go_on
from rltools_host.training.trials import Trial

MOST_RUNS = 50
URL = "sqlite:///mine.db"
TUNED: dict[str, Any] = {
    "mark": "0123456789abcdef",
    "study": "t",
    "search": ["gamma=0.9..0.99"],
    "trials": 4,
    "prunes": False,
}
ASKED = {**GROUP, "kind": TUNE, "seeds": [0], "settings": ["eval_freq=100"], "variants": []}

RUNS: dict[str, Any] = {"variants": [{"name": "", "label": "", "settings": []}]}


def refusal(path: Path, training: dict[str, Any] | None = None, **asked: Any) -> str:
    request = TuneRequest(TrainingRequest(resume=str(path), **(training or {})), **asked)
    with pytest.raises(UsageError) as refused:
        go_on(request)
    GroupFolder.open(path).lock()  # it was given back
    return str(refused.value)


def made(path: Path, storage: str | None, tune: bool = True) -> Path:
    tuned = {**TUNED, "storage": storage}
    return GroupFolder.create(path, {**ASKED, "tune": tuned} if tune else {**ASKED, **RUNS}).path


@pytest.mark.parametrize(
    ("training", "asked", "sentence"),
    [
        ({}, {"seeds": (1,)}, "--seeds is another there"),
        ({}, {"search": ("gamma=0.9..0.98",)}, "--search is another there"),
        ({}, {"prunes": True}, "--prune is another there"),
        ({"board": "qemu-cortex-m7"}, {}, "--board is another there"),
        ({"settings": ("eval_freq=50",)}, {}, "--set is another there"),
        ({}, {"storage": URL}, "lie in its folder: leave --storage out"),
    ],
)
def test_it_goes_on_as_it_began(
    training: dict[str, Any], asked: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    assert sentence in refusal(made(tmp_path / "t", None), training, **asked)


def test_trials_elsewhere_are_asked_for(tmp_path: Path) -> None:
    path = made(tmp_path / "t", URL)
    assert f"are in {URL}: give it with --storage" in refusal(path)


def test_a_group_of_runs_is_no_tuning(tmp_path: Path) -> None:
    path = made(tmp_path / "g", None, tune=False)
    assert "g is not a tuning: continue it with `" in refusal(path)


# -- what becomes of trials ------------------------------------------------------------------------


class Storage:
    """Trials in memory."""

    def __init__(self, *_: Any) -> None:
        self.asked = 0
        self.told: dict[int, tuple[str, float]] = {}

    def unfinished(self) -> list[Trial]:
        return []

    def finished(self) -> dict[int, tuple[str, float]]:
        return self.told

    def ask(self) -> Trial:
        self.asked += 1
        return Trial(self.asked - 1, (f"gamma=0.9{self.asked}",))

    def tell(self, trial: Trial, state: str, value: float = math.nan) -> None:
        self.told[trial.number] = (state, value)


def tuned(
    path: Path, ends: list[float | int | None], monkeypatch: pytest.MonkeyPatch, jobs: int = 1
) -> Any:
    """The document of four trials, of which so many are trained at once. The first runs end as
    `ends` says, with a return, an exit code or by a kill, the others with the return 0."""
    returns: dict[Path, float] = {}

    class Runs:
        def __init__(self, *given: Any) -> None:
            self._ended: Callable[[Member], None] = given[4]
            self._is_pausing = False

        def train(self, next_run: Callable[[], tuple[Member, Job] | None]) -> None:
            for _ in range(MOST_RUNS):
                following = [] if self._is_pausing else [*islice(iter(next_run, None), jobs)]
                for member, _ in following:
                    self._end(member, ends.pop(0) if ends else 0.0)
            assert not following, "there is no end to it"

        def _end(self, member: Member, end: float | int | None) -> None:
            if isinstance(end, float):
                returns[member.path] = end
                member.look(None)
            else:
                member.state, member.error = FAILED, "why"
                member.was_killed, member.exit_code = end is None, end or 0
            self._ended(member)

        def pause(self, _: str) -> None:
            self._is_pausing = True

    def look(member: Member, _: None) -> None:
        member.state = FINISHED if member.path in returns else WAITING
        member.return_mean = returns.get(member.path, math.nan)

    monkeypatch.setattr(tune, "Trials", Storage)
    monkeypatch.setattr(tune, "ParallelRuns", Runs)
    monkeypatch.setattr(Member, "look", look)
    description = SimpleNamespace(environment={"name": "Pendulum-v1"})
    asked: Any = {"board": load_board("host"), "port": None, "threads": 1, "steps": 100}
    plan: Any = SimpleNamespace(**asked, program=None, sources=None, description=description)
    group = GroupFolder.open(made(path, None))
    tuning = tune.Tuning(group, plan, (), TuneRequest(TrainingRequest()), Interruption())
    return tuning.tune(GroupScreen)


def test_the_best_of_as_many_trials_as_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = tuned(tmp_path / "t", [1.0, 3.0, 2.0], monkeypatch, jobs=3)
    values = [(each["trial"], each["value"]) for each in document["trials"]]
    assert values == [(0, 1.0), (1, 3.0), (2, 2.0), (3, 0.0)]
    assert (document["of"], document["study"], document["state"]) == (4, "t", "finished")
    best = {**document["trials"][1], "run": str(tmp_path / "t" / "t1")}
    assert document["best"] == best
    assert best["settings"] == ["gamma=0.92"]
    assert document["command"].endswith(
        "train pendulum-td3 --board host --set eval_freq=100 --set gamma=0.92"
    )


@pytest.mark.parametrize(
    ("ends", "state"),
    [
        ([None] * tune.MOST_KILLS + [5.0], "complete"),
        ([LinkLostError.exit_code] * tune.MOST_KILLS + [5.0], "complete"),
        ([None] * (tune.MOST_KILLS + 1), "failed"),
        ([1], "failed"),
    ],
)
def test_a_run_that_was_lost_is_trained_again(
    ends: list[float | int | None], state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = tuned(tmp_path / "t", ends, monkeypatch)
    assert not ends
    assert [each["state"] for each in document["trials"]] == [state] + ["complete"] * 3
    assert document["best"]["trial"] == (0 if state == "complete" else 1)


def test_what_no_trial_escapes_pauses_the_tuning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileError, match=r"^why; go on with `.*tune --resume"):
        tuned(tmp_path / "t", [1.0, DiskError.exit_code], monkeypatch)
    assert GroupFolder.open(tmp_path / "t").content.state == "paused"
