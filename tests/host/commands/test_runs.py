"""`rlt runs`: what is listed, and that nothing is lost but what was to be deleted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from policy_run import GROUP
from rltools_host.commands import cli
from rltools_host.errors import DiskError
from rltools_host.files import FolderLock
from rltools_host.runs import inventory
from rltools_host.runs.group import GroupFolder
from rltools_host.tree import Project
from run_folders import new_group, new_run

RUN: dict[str, Any] = {
    "format": 4,
    "experiment": "pendulum-td3",
    "board": "host",
    "state": "finished",
    "seed": 3,
    "steps": 1_000_000,
    "step": 1_000_000,
    "return_mean": -149.12,
    "return_std": 93.0,
}
OF_VARIANT = {"name": "a", "label": "with", "settings": []}
EVERY_FILE = (
    *("metrics.jsonl", "report.html", "sources-0123456789ab.tar.gz", "events.out.tfevents.1.h"),
    *("gate-hover.json", "flight-host.json", "flight-host.html", "hil-host.json"),
    *("policy.rltp", "checkpoint.safetensors", ".run.json.17.partial"),
)


def made(path: Path, **changes: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = new_run(path, {**RUN, **changes})
    files = {"policy.rltp": b"p", "checkpoint.safetensors": b"c"}
    folder.commit(7, "ab" * 32, files, folder.content)
    folder.close()
    return path


def made_group(path: Path) -> Path:
    asked = {"kind": "study", "experiment": "pendulum-ppo", "variants": [OF_VARIANT]}
    new_group(path, {**GROUP, **asked})
    for seed, value in ((0, -100.0), (1, -300.0)):
        made(path / "a" / f"s{seed}", experiment="pendulum-ppo", seed=seed, return_mean=value)
    return path


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Project, "runs", property(lambda _: tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    made(tmp_path / "runs" / "first")
    made_group(tmp_path / "runs" / "all")
    made(tmp_path / "runs" / "last", seed=4, return_mean=None, state="paused", step=5, board="b")
    return tmp_path / "runs"


def tree(path: Path) -> list[tuple[str, int]]:
    return sorted(
        (str(each.relative_to(path)), each.lstat().st_mtime_ns) for each in path.rglob("*")
    )


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert cli.run(["runs", *words, "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["runs"]
    return found


def names(found: list[dict[str, Any]]) -> list[str]:
    return [each["name"] for each in found]


def test_what_is_listed(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = tree(runs)
    found = listed(capsys)
    assert names(found) == ["first", "all", "last"]
    assert (found[0]["return_mean"], found[0]["seeds"], found[0]["kind"]) == (-149.12, [3], "run")
    group = found[1]
    assert (group["return_mean"], group["return_std"]) == (-200.0, 100.0)
    assert (group["seeds"], group["state"], group["kind"]) == ([0, 1], "finished", "group")
    assert group["steps"] == 2_000_000
    blocks = sum(each.lstat().st_blocks for each in [runs / "all", *(runs / "all").rglob("*")])
    assert group["disk_bytes"] == 512 * blocks > 0
    assert names(listed(capsys, "--members")) == ["first", "all", "all/a/s0", "all/a/s1", "last"]
    assert tree(runs) == before, "looking changes nothing"


def test_a_damaged_run_does_not_hide_the_others(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (runs / "first" / "run.json").write_text('{"steps": "x\x1b[2J"}')
    assert cli.run(["runs"]) == 0
    out = capsys.readouterr().out
    assert "first  " in out
    assert "damaged" in out
    assert "note: " in out
    assert "last" in out
    assert "\x1b" not in out
    assert cli.run(["runs", "delete", "first", "--yes"]) == 5
    assert (runs / "first" / "run.json").is_file()


# -- rename ----------------------------------------------------------------------------------------


def test_rename(runs: Path) -> None:
    content = (runs / "first" / "run.json").read_bytes()
    assert cli.run(["runs", "rename", "first", "best of all"]) == 0
    assert (runs / "best of all" / "run.json").read_bytes() == content
    assert not (runs / "first").exists()
    assert cli.run(["runs", "rename", "latest", "new"]) == 0
    assert (runs / "new" / "run.json").is_file()
    assert cli.run(["runs", "rename", "all", "group"]) == 0
    assert GroupFolder.open(runs / "group").title == "A title"


def test_rename_replaces_nothing(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "empty").mkdir()
    (runs / "nowhere").symlink_to("/nonexistent")
    for name in ("empty", "nowhere", "last"):
        assert cli.run(["runs", "rename", "first", name]) == 2
        assert "is there already: choose another name" in capsys.readouterr().err
    assert cli.run(["runs", "rename", "all/a/s0", "s7"]) == 2
    assert "rename the group" in capsys.readouterr().err


# -- delete ----------------------------------------------------------------------------------------


def test_delete_takes_all_that_is_ours(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in EVERY_FILE:
        (runs / "first" / name).write_text("x")
    (runs / "first" / ".save-9-abcdefabcdef.17.partial").mkdir()
    (runs / "first" / ".save-9-abcdefabcdef.17.partial" / "policy.rltp").write_text("x")
    (runs / "all" / ".work").mkdir()
    for name in ("a-s0.job", "pendulum-ppo"):
        (runs / "all" / ".work" / name).write_text("x")
    for name in ("curves.csv", "report.html"):
        (runs / "all" / name).write_text("x")
    assert cli.run(["runs", "delete", "first", "all", "--yes", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["left"] == []
    assert document["freed_bytes"] > 0
    assert [path.name for path in runs.iterdir()] == ["last"]


def test_files_of_others_stay(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = (
        *("first/notes.txt", "first/save-7-abababababab/mine", "first/my/run/policy.rltp"),
        *("all/notes.txt", "all/a/s0/notes.txt", "all/other/report.html"),
    )
    for name in mine:
        (runs / name).parent.mkdir(parents=True, exist_ok=True)
        (runs / name).write_text("mine")
    assert cli.run(["runs", "delete", "first", "all", "--yes"]) == 0
    assert "left    runs/first/notes.txt, which is not of the run" in capsys.readouterr().out
    assert all((runs / name).read_text() == "mine" for name in mine)
    files = {str(p.relative_to(runs)) for p in runs.rglob("*") if p.is_file()}
    assert {name for name in files if not name.startswith("last")} == set(mine)


def test_no_link_is_followed(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outside = runs.parent / "outside"
    made(outside / "run")
    (outside / "policy.rltp").write_text("x")
    before = tree(outside)
    (runs / "linked").symlink_to(outside / "run")
    assert cli.run(["runs", "delete", "linked", "--yes"]) == 2
    assert "is a symbolic link: name the folder that it leads to" in capsys.readouterr().err
    assert cli.run(["runs", "rename", "linked", "x"]) == 2
    (runs / "first" / "save-8-abcdefabcdef").symlink_to(outside)
    (runs / "first" / "report.html").symlink_to(outside / "policy.rltp")
    (runs / "first" / ".x.1.partial").symlink_to(outside)
    os.rename(runs / "all" / "a" / "s1", outside.parent / "s1")
    (runs / "all" / "a" / "s1").symlink_to(outside.parent / "s1")
    moved = tree(outside.parent / "s1")
    assert cli.run(["runs", "delete", "first", "all", "--yes"]) == 0
    assert tree(outside) == before
    assert tree(outside.parent / "s1") == moved


def test_another_tools_run_is_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = runs / "other"
    other.mkdir()
    (other / "policy.rltp").write_text("x")
    for content in ("{}", '{"experiment": "pendulum-td3"}', '{"format": 4}', "[]"):
        (other / "run.json").write_text(content)
        assert cli.run(["runs", "delete", "other", "--yes"]) == 5
        assert "remove that folder by hand" in capsys.readouterr().err or content == "[]"
    assert (other / "policy.rltp").is_file()
    assert cli.run(["runs", "delete", ".", "--yes"]) == 2
    assert runs.is_dir()


@pytest.mark.parametrize("within", ["first", "all", "all/a/s1"])
@pytest.mark.parametrize("words", [["delete", "last", "NAME", "--yes"], ["rename", "NAME", "x"]])
def test_a_run_in_training_is_refused(
    runs: Path, capsys: pytest.CaptureFixture[str], within: str, words: list[str]
) -> None:
    lock = FolderLock(runs / within)
    lock.take()
    before = tree(runs)
    try:
        name = within.split("/")[0]
        assert cli.run(["runs", *(name if word == "NAME" else word for word in words)]) == 2
    finally:
        lock.release()
    assert "another rlt is training in " in capsys.readouterr().err
    assert tree(runs) == before, "and what was named before it stays"


def test_it_asks(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.run(["runs", "delete", "first"]) == 2
    assert "not on a terminal, so nothing can be confirmed: --yes" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", type("Terminal", (), {"isatty": lambda _: True})())
    asked: list[str] = []
    answers = iter([False, True])

    def confirm(question: str, err: bool) -> bool:
        assert err
        asked.append(question)
        return next(answers)

    monkeypatch.setattr("typer.confirm", confirm)
    assert cli.run(["runs", "delete", "first"]) == 1
    assert (runs / "first" / "run.json").is_file()
    assert cli.run(["runs", "delete", "first", "first", "runs/first"]) == 0
    assert not (runs / "first").exists()
    assert asked == ["Delete this run?"] * 2


def test_a_deletion_that_was_broken_off_can_be_repeated(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unlink, calls = os.unlink, 0

    def unlink_some(*arguments: Any, **named: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > most:
            raise OSError(5, "Input/output error")
        unlink(*arguments, **named)

    most = 0
    while True:
        calls, code = 0, 0
        with monkeypatch.context() as patch:
            patch.setattr(inventory.os, "unlink", unlink_some)
            code = cli.run(["runs", "delete", "all", "--yes"])
        if code == 0:
            break
        assert code == DiskError.exit_code
        assert "Input/output error" in capsys.readouterr().err
        assert (runs / "all" / "group.json").is_file()
        most = 1
    assert not (runs / "all").exists()
