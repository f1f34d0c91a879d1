"""What run.json sums up over the sessions of a run, and how long each took."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from rltools_host.clients.messages import Evaluation, Result
from rltools_host.runs.contents import Run
from rltools_host.runs.group import RunName
from rltools_host.training.group_progress import FAILED, WAITING, Member
from rltools_host.training.metadata import (
    TimeInTraining,
    changes_of_state,
    guest_instructions,
    share_of_evaluations,
    train_s_before,
)

EARLIER = {"evaluation_s": 2.0, "messages_lost": 3, "guest_instructions": 100, "ended": "then"}


def test_sessions_add_up() -> None:
    metadata = {"sessions": [EARLIER, {"board": "host"}]}
    own = {"evaluation_s": 0.5, "messages_lost": 4, "guest_instructions": 11}
    changes = changes_of_state(metadata, "paused", 30, 12.5, None, own)
    assert (changes["evaluation_s"], changes["messages_lost"]) == (2.5, 7)
    assert (changes["guest_instructions"], changes["steps_per_s"]) == (111, 3.0)
    assert changes["sessions"][0] == EARLIER
    assert changes["sessions"][1]["board"] == "host"
    assert changes["sessions"][1]["ended"] == changes["ended"]
    assert metadata["sessions"][1] == {"board": "host"}, "what was said before is left as it was"


def test_a_session_ends_when_it_trains_no_more() -> None:
    metadata = {"sessions": [EARLIER, {}]}
    changes = changes_of_state(metadata, "training", 0, 0.0, None, {})
    assert "ended" not in changes
    assert "ended" not in changes["sessions"][1]
    assert changes["steps_per_s"] is None


def test_time_goes_on_where_it_rested(monkeypatch: pytest.MonkeyPatch) -> None:
    now, cpu = [0.0], [0.0]
    monkeypatch.setattr(time, "process_time", lambda: cpu[0])
    measured = TimeInTraining(lambda: now[0])
    for began, cpu_began in ((10.0, 1.0), (100.0, 50.0)):
        now[0], cpu[0] = began, cpu_began
        measured.go_on()
        now[0], cpu[0] = began + 3.0, cpu_began + 2.0
        measured.rest()
    assert (measured.seconds, measured.cpu_s) == (6.0, 4.0)


def test_a_member_is_looked_up_by_its_folder_and_not_as_before(tmp_path: Path) -> None:
    member = Member(RunName("", 0), "", tmp_path / "s0", 10, FAILED)
    member.look(None)
    assert member.state == WAITING


@pytest.mark.parametrize(
    ("counter", "of_evaluations", "expected"), [(0, 5, 0.0), (8, 2, 0.25), (4, 4, 1), (4, 9, 1)]
)
def test_share_of_evaluations(counter: int, of_evaluations: int, expected: float) -> None:
    result = Result(counter, of_evaluations, 0, 0, 0, True, "")
    assert share_of_evaluations(result) == expected


def test_time_before_is_the_checkpoints_or_that_of_the_last_row() -> None:
    rows = [{"time_s": 3.0}, {"time_s": 7}, {"time_s": 5.0}]
    run = Run(checkpoint_step=40, checkpoint_train_s=2.5)
    assert train_s_before(run, 40, rows) == 2.5
    assert train_s_before(run, 41, rows) == 7.0
    assert train_s_before(run, 41, []) == 0.0
    assert train_s_before(Run(checkpoint_step=40), 40, rows) == 0.0


def test_instructions_are_those_of_sessions_that_all_count_them() -> None:
    assert guest_instructions([]) is None
    assert guest_instructions([{"guest_instructions": 5}, {}]) is None
    assert guest_instructions([{"guest_instructions": 5}, {"guest_instructions": 0}]) == 5


def test_an_evaluation_is_summed_up() -> None:
    evaluation = Evaluation(0, 10, 2, -5.0, 1.5, -9.0, 0.0, 12.5)
    changes = changes_of_state({"sessions": [{}]}, "training", 10, 2.0, evaluation, {})
    assert changes == {
        "sessions": [{}],
        "state": "training",
        "step": 10,
        "train_s": 2.0,
        "evaluation_s": 0.0,
        "steps_per_s": 5.0,
        "messages_lost": 0,
        "guest_instructions": None,
        "return_mean": -5.0,
        "return_std": 1.5,
        "length_mean": 12.5,
    }
    of_older_firmware = Evaluation(0, 10, 2, -5.0, 1.5, -9.0, 0.0)
    changes = changes_of_state({"sessions": [{}]}, "training", 10, 2.0, of_older_firmware, {})
    assert changes["length_mean"] is None
