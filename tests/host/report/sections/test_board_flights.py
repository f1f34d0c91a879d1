"""The report's section with flights over boards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policy_run import make_policy_run, section_html
from quadrotor_policies import constant_policy, controller
from rltools_host.boards.board_link import STORAGE_VARIABLE
from rltools_host.boards.policy_session import PolicyTarget
from rltools_host.commands import fly
from rltools_host.drones.flight.disturbances import Disturbances, parse_fault
from rltools_host.drones.flight.in_the_loop import CONTRACT
from rltools_host.policies.image import read_run_policy
from rltools_host.report.sections.fly import over_boards

FILE, REPLAY = "flight-host.json", "flight-host.html"


def html_of(folder: Path) -> str:
    return section_html(over_boards, folder, read_run_policy(str(folder)))


def flown(folder: Path, monkeypatch: pytest.MonkeyPatch, *faults: str) -> None:
    """Over the board that is a process here."""
    monkeypatch.setenv(STORAGE_VARIABLE, str(folder.parent / "storage"))
    conditions = fly.Conditions(None, 2.0, None, ("start_share=0",))
    request = fly.request_of(
        str(folder),
        PolicyTarget("host", None, CONTRACT),
        conditions,
        disturbances=Disturbances(faults=tuple(map(parse_fault, faults))),
    )
    fly.fly_board(request)


def test_flights_of_this_policy_and_the_links_to_their_replays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_policy_run(tmp_path / "run", controller())
    assert not html_of(run)
    flown(run, monkeypatch)
    html = html_of(run)
    assert ">success</td>" in html
    assert f'<a href="{REPLAY}">Replay in 3-D</a>' in html
    (run / REPLAY).unlink()
    assert html_of(run)
    assert "<a " not in html_of(run)
    other = make_policy_run(tmp_path / "other", constant_policy(0.5, 0.5, 0.5, 0.5))
    document = json.loads((run / FILE).read_text())
    (other / FILE).write_text(json.dumps(document))
    (other / "flight-px4.json").write_text("{}")  # another section's
    assert not html_of(other)
    for key, value in (("board", 3), ("cause", "bored"), ("ticks", -1), ("cost", {})):
        (run / FILE).write_text(json.dumps({**document, key: value}))
        html = html_of(run)
        assert f"{FILE} is damaged ({key}" in html
        assert "<table>" not in html
    (run / FILE).write_text("[]")
    assert f"{FILE} is damaged" in html_of(run)
