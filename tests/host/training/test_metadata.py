"""What run.json sums up over the sessions of a run, and how long each took."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from rltools_host.runs.group import RunName
from rltools_host.training.group_progress import FAILED, WAITING, Member
from rltools_host.training.metadata import TimeInTraining, changes_of_state

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
