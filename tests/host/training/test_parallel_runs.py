"""A few runs at once: which begin, what their processes say, and what a screen is told; the
processes are pipes that a test writes to."""

from __future__ import annotations

import io
import json
import math
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rltools_host.errors import DiskError, Interrupted, UsageError
from rltools_host.interruption import Interruption
from rltools_host.runs.group import RunName
from rltools_host.training import parallel_runs
from rltools_host.training.parallel_runs import (
    ParallelRuns,
    RunProcess,
    RunsInTurn,
    train_and_report,
)
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.progress import (
    FAILED,
    FINISHED,
    PAUSED,
    STARTING,
    TRAINING,
    WAITING,
    GroupScreen,
    Member,
    RunEnd,
)

JOB = TrainingRequest("a-request")
REPORT = {"step": 10, "steps": 100, "steps_per_s": 5.0, "left_s": None, "activity": "trains"}


def member(seed: int) -> Member:
    return Member(RunName("", seed), "", Path(f"s{seed}"), 100)


class Log(GroupScreen):
    """What a screen is told: of which run, and what state it then had."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def changed(self, member: Member) -> None:
        self.told.append((member.seed, member.state))

    def refresh(self) -> None:
        pass

    def activity(self, text: str) -> None:
        self.told.append((text,))


class Piped(RunProcess):
    """A run whose process has said these lines; whose end is what is written to its error file."""

    def __init__(self, member: Member, *reports: Any) -> None:
        self.member, self.end, self._rest = member, None, b""
        reading, writing = os.pipe()
        os.write(writing, b"".join(json.dumps(each).encode() + b"\n" for each in reports))
        os.close(writing)
        self.stream = os.fdopen(reading, "rb")
        self._errors = io.BytesIO(b"first\nthe last line\n")
        self.signals: list[int] = []
        self.process = cast(Any, SimpleNamespace(returncode=3, poll=lambda: None, wait=lambda _: 3))

    def signal(self, number: int) -> None:
        self.signals.append(number)

    def kill(self, patience_s: float) -> None:
        self.signals.append(-math.ceil(patience_s))
        self.stream.close()


class UntilTold(Piped):
    """One that says nothing until it gets a signal."""

    def __init__(self, member: Member, *reports: Any) -> None:
        super().__init__(member)
        self.stream.close()
        reading, self._writing = os.pipe()
        self.stream = os.fdopen(reading, "rb")
        self._reports = reports

    def signal(self, number: int) -> None:
        super().signal(number)
        os.write(
            self._writing, b"".join(json.dumps(each).encode() + b"\n" for each in self._reports)
        )
        os.close(self._writing)


def in_parallel(
    processes: dict[int, Callable[[Member], RunProcess]],
    jobs: int = 1,
    interruption: Interruption | None = None,
) -> tuple[list[tuple[Any, ...]], list[Member]]:
    """What the screen was told, and of `ended`, in their order; and the runs."""
    screen, members = Log(), [member(seed) for seed in processes]
    waiting = list(members)

    def begin(member: Member, job: TrainingRequest, folder: Path) -> RunProcess:
        assert (job, folder) == (JOB, Path("scratch"))
        return processes[member.seed](member)

    runs = ParallelRuns(
        jobs,
        Path("scratch"),
        screen,
        interruption or Interruption(),
        lambda each: screen.told.append(("ended", each.seed, each.state)),
        lambda heard: screen.told.append(("said", heard.member.seed, heard.member.state)),
        start=begin,
    )
    runs.train(lambda: (waiting.pop(0), JOB) if waiting else None)
    return screen.told, members


def finishing(member: Member) -> RunProcess:
    return Piped(member, REPORT, {"state": FINISHED, "exit_code": 0})


def test_a_run_is_shown_when_it_begins_trains_and_ends() -> None:
    told, (found,) = in_parallel({4: finishing})
    assert told == [
        *((4, STARTING), ("said", 4, TRAINING), (4, TRAINING)),
        *(("ended", 4, FINISHED), (4, FINISHED)),
    ]
    assert (found.step, found.steps, found.steps_per_s, found.activity) == (10, 100, 5.0, "")
    assert (found.was_killed, found.exit_code, found.error) == (False, 0, "")


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_so_many_runs_go_on_at_once(jobs: int) -> None:
    told, _ = in_parallel(dict.fromkeys((0, 1, 2), finishing), jobs)
    begun_at = [told.index((seed, STARTING)) for seed in (0, 1, 2)]
    first_end = min(index for index, each in enumerate(told) if each[0] == "ended")
    assert sum(index < first_end for index in begun_at) == jobs
    assert sum(each[0] == "ended" for each in told) == 3


def test_a_run_that_cannot_begin_fails_and_the_next_one_begins() -> None:
    def full(_: Member) -> RunProcess:
        raise DiskError("no space")

    told, members = in_parallel({0: full, 1: finishing})
    assert told[:3] == [("ended", 0, FAILED), (0, FAILED), (1, STARTING)]
    assert (members[0].error, members[0].exit_code) == ("no space", DiskError.exit_code)
    assert members[1].state == FINISHED


def test_a_process_that_says_no_end_has_failed() -> None:
    _, (found,) = in_parallel({0: lambda member: Piped(member, REPORT)})
    how = "it ended with exit code 3: the last line"
    assert found.error == f"its process gave no result, {how}"
    assert (found.state, found.exit_code, found.was_killed, found.activity) == (FAILED, 1, True, "")


def test_a_pause_waits_for_those_that_go_on_and_begins_none() -> None:
    """The second one had not come to training; the third never begins."""
    interruption = Interruption()
    started: list[Piped] = []

    def pausing(member: Member) -> RunProcess:
        ends = [{"state": PAUSED, "exit_code": 130}] if not started else []
        started.append(UntilTold(member, *ends))
        interruption.requested = len(started) == 2
        return started[-1]

    told, members = in_parallel(dict.fromkeys((0, 1, 2), pausing), 2, interruption)
    assert [each.state for each in members] == [PAUSED, WAITING, WAITING]
    assert [each.signals for each in started] == [[signal.SIGTERM]] * 2
    assert told.count(("pausing; Ctrl-C once more quits without saving",)) == 1


@pytest.mark.parametrize("is_pausing", [False, True])
def test_who_does_not_wait_ends_all_processes(
    is_pausing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Piped] = []

    def quitting(member: Member) -> RunProcess:
        started.append(Piped(member))
        return started[-1]

    def interrupted(_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ParallelRuns, "_hear", interrupted)
    interruption = Interruption()
    runs = ParallelRuns(
        2, Path(), Log(), interruption, lambda _: None, start=lambda m, *_: quitting(m)
    )
    waiting = [(member(seed), JOB) for seed in (0, 1)]

    def following() -> tuple[Member, TrainingRequest] | None:
        if is_pausing and len(waiting) == 1:
            runs.pause("why")
        return waiting.pop(0) if waiting else None

    with pytest.raises(KeyboardInterrupt):
        runs.train(following)
    paused, ended = signal.SIGTERM, signal.SIGINT
    first = [paused, ended] if is_pausing else [paused]
    assert [each.signals for each in started] == [[*first, -10], [first[-1], -10]]


def test_signals_reach_the_processes_of_these_runs_alone() -> None:
    runs = ParallelRuns(2, Path(), Log(), Interruption(), lambda _: None)
    started = [Piped(member(seed)) for seed in (0, 1)]
    runs._running.extend(started)
    runs.signal([started[1].member], 15)
    assert [each.signals for each in started] == [[], [15]]
    for each in started:
        each.stream.close()


def test_reports_come_in_parts() -> None:
    found = Piped(member(0))
    line = json.dumps(REPORT).encode() + b"\n" + b'{"state": "fin'
    found.take(line[:20])
    assert found.member.step == 0
    found.take(line[20:])
    assert (found.member.step, found.end) == (10, None)
    found.take(b'ished"}\n')
    assert found.end == RunEnd(FINISHED)
    found.stream.close()


# -- the process of a run --------------------------------------------------------------------------


def paused_error(state: str) -> Interrupted:
    error = Interrupted("the run")
    error.details = {"state": state}
    return error


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (None, 0, {"state": FINISHED}),
        (paused_error("paused"), Interrupted.exit_code, {"state": PAUSED}),
        (paused_error(""), Interrupted.exit_code, {"state": WAITING}),
        (KeyboardInterrupt(), Interrupted.exit_code, {"state": WAITING}),
        (UsageError("no"), UsageError.exit_code, {"state": FAILED, "error": "no"}),
        (
            ValueError("odd"),
            1,
            {"state": FAILED, "error": "internal error (ValueError: odd)"},
        ),
    ],
)
def test_what_a_run_came_to(
    monkeypatch: pytest.MonkeyPatch, raised: Exception | None, code: int, said: dict[str, Any]
) -> None:
    def train(request: Any, _: Any, tensorboard: bool, signals: Any) -> None:
        assert (request, tensorboard, signals) == ("a request", True, (15,))
        if raised is not None:
            raise raised

    monkeypatch.setattr(parallel_runs, "train", train)
    reports: list[dict[str, Any]] = []
    assert train_and_report(JOB, reports.append, (15,)) == code
    assert reports == [{"error": "", **said, "exit_code": code}]


@pytest.mark.parametrize("state", [FINISHED, PAUSED, FAILED])
def test_runs_in_turn_in_this_process(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    """One that is paused is the last one."""

    def job(_: TrainingRequest, say: Callable[[dict[str, Any]], None]) -> int:
        say(REPORT)
        code = {FINISHED: 0, PAUSED: Interrupted.exit_code, FAILED: 2}[state]
        say({"state": state, "error": "why", "exit_code": code})
        return code

    monkeypatch.setattr(parallel_runs, "train_and_report", job)
    screen, members = Log(), [member(seed) for seed in (0, 1)]
    waiting = list(members)
    runs = RunsInTurn(
        screen, Interruption(), lambda each: screen.told.append(("ended", each.seed, each.state))
    )
    runs.train(lambda: (waiting.pop(0), JOB) if waiting else None)
    of_one = [
        [(seed, STARTING), (seed, TRAINING), ("ended", seed, state), (seed, state)]
        for seed in (0, 1)
    ]
    assert screen.told == (of_one[0] if state == PAUSED else [*of_one[0], *of_one[1]])
    failed = state == FAILED
    assert (members[0].error, members[0].exit_code) == (("why", 2) if failed else ("", 0))
    assert members[0].activity == ""
