"""How a run and a group stand in a list, with whole documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from policy_run import GROUP
from rltools_host.runs.inventory import entries, seeds_of
from run_folders import new_group, new_run

RUN: dict[str, Any] = {"format": 4, "experiment": "pendulum-td3", "board": "host", "begun_us": 5}
RUN |= {"state": "paused", "seed": 3, "steps": 100, "step": 40}
TUNE = {"mark": "0123456789abcdef", "study": "t", "search": ["gamma=0.9..0.99"], "trials": 4}
DONE: dict[str, Any] = {"state": "finished", "step": 100, "return_std": 9.0, "length_mean": 20.0}


def made(path: Path, **changes: Any) -> None:
    new_run(path, {**RUN, **changes}).close()


def made_group(path: Path, runs: list[dict[str, Any]], **changes: Any) -> None:
    new_group(path, {**GROUP, "begun_us": 7, **changes})
    for seed, run in enumerate(runs):
        made(path / f"s{seed}", seed=seed, **run)


def listed(folder: Path, with_members: bool = False) -> list[dict[str, Any]]:
    documents = [entry.document() for entry in entries(folder, with_members)]
    for document in documents:
        assert document.pop("path") == str(folder / document["name"])
        assert document.pop("disk_bytes") > 0
    return documents


def test_a_run(tmp_path: Path) -> None:
    made(tmp_path / "r")
    assert listed(tmp_path) == [
        {
            "name": "r",
            "kind": "run",
            "experiment": "pendulum-td3",
            "board": "host",
            "seeds": [3],
            "step": 40,
            "steps": 100,
            "return_mean": None,
            "return_std": None,
            "length_mean": None,
            "begun_us": 5,
            "state": "paused",
            "problem": None,
        }
    ]
    (entry,) = entries(tmp_path)
    assert (entry.words, seeds_of(entry)) == ("r pendulum-td3 host paused run", "3")
    (tmp_path / "r" / "group.json").write_text("somebody's")
    assert [document["kind"] for document in listed(tmp_path)] == ["run"]


def test_a_damaged_run_and_a_damaged_group(tmp_path: Path) -> None:
    made(tmp_path / "r")
    (tmp_path / "r" / "run.json").write_text("{")
    made_group(tmp_path / "g", [])
    (tmp_path / "g" / "group.json").write_text("{")
    for document in listed(tmp_path, with_members=True):
        assert "is damaged" in document["problem"]
        known = [document[name] for name in ("state", "seeds", "step", "steps")]
        assert known == ["damaged", [], 0, 0]
        assert document["experiment"] is document["board"] is document["return_mean"] is None
    assert {seeds_of(entry) for entry in entries(tmp_path)} == {"-"}


@pytest.mark.parametrize(
    ("runs", "changes", "expected"),
    [
        ([], {}, ("0 of 2 finished", 0, 0, None, None)),
        ([], {"steps": 100}, ("0 of 2 finished", 0, 200, None, None)),
        ([{}], {}, ("0 of 2 finished", 40, 200, None, None)),
        ([{**DONE, "return_mean": -5.0}], {}, ("1 of 2 finished", 100, 200, -5.0, None)),
        ([DONE, DONE], {}, ("finished", 200, 200, None, None)),
        (
            [{**DONE, "return_mean": -5.0}, {**DONE, "return_mean": -7.0}],
            {},
            ("finished", 200, 200, -6.0, 1.0),
        ),
        ([DONE], {"tune": TUNE}, ("paused, 1 of 2 finished", 100, 200, None, None)),
        ([DONE, DONE], {"tune": TUNE}, ("paused, finished", 200, 200, None, None)),
        ([DONE], {"tune": TUNE, "state": "finished"}, ("finished", 100, 200, None, None)),
    ],
)
def test_a_group_sums_up_its_runs(
    tmp_path: Path, runs: list[dict[str, Any]], changes: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    made_group(tmp_path / "g", runs, **changes)
    (document,) = listed(tmp_path)
    names = ("state", "step", "steps", "return_mean", "return_std")
    assert tuple(document[name] for name in names) == expected
    assert (document["kind"], document["seeds"], document["begun_us"]) == ("group", [0, 1], 7)
    has_finished = any(run.get("state") == "finished" for run in runs)
    assert document["length_mean"] == (20.0 if has_finished else None)


def test_members_follow_their_group(tmp_path: Path) -> None:
    made_group(tmp_path / "g", [{}, {"return_mean": -1.0}])
    made(tmp_path / "r", begun_us=9)
    assert [entry.name for entry in entries(tmp_path)] == ["g", "r"]
    every = entries(tmp_path, with_members=True)
    assert [entry.name for entry in every] == ["g", "g/s0", "g/s1", "r"]
    assert [entry.is_group for entry in every] == [True, False, False, False]
    assert every[0].words == "g pendulum-td3 host 0 of 2 finished group"
    assert (every[2].seeds, every[2].result, every[2].path) == ((1,), -1.0, tmp_path / "g" / "s1")
