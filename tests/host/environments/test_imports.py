"""A run's own word imports nothing; what the user names is imported."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest

from foreign_runs import make_evil_file, make_foreign_group, make_foreign_run, pendulum_task
from policy_run import make_policy_run
from policy_samples import patched, sample_images
from rltools_host.commands import cli
from rltools_host.environments import imports, server_start
from rltools_host.environments.imports import playable
from rltools_host.environments.player import flat_maker
from rltools_host.environments.server_start import ServerProcess, open_again, open_task
from rltools_host.environments.task import TaskRequest
from rltools_host.errors import DiskError, UsageError
from rltools_host.policies.evaluation import GYMNASIUM, evaluate_policy
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.saves import (
    HEADER,
)
from rltools_host.tree import PROJECT, Project

NOT_NAMED = "is Python code that a run names, and that you have not named here: it was not imported"


@pytest.fixture(autouse=True)
def nothing_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Project, "named_tasks", tmp_path / "named")
    monkeypatch.setattr(sys, "path", list(sys.path))


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The sentence of a command that is refused."""
    code = cli.run(words)
    output = capsys.readouterr()
    assert code != 0, output.out
    (error,) = [line for line in output.err.splitlines() if line.startswith("error: ")]
    return error


@pytest.mark.parametrize(
    ("source", "is_group"),
    [
        ("gym:{evil}:Make", False),
        ("gym:{evil}:Make", True),
        ("gym:evil:Evil-v0", False),
        ("gym:evil.sub:X-v0", False),
    ],
)
@pytest.mark.parametrize("words", ["evaluate {run}", "train --resume {run}", "report {run}"])
def test_a_run_that_names_code_imports_nothing(
    tmp_path: Path,
    words: str,
    source: str,
    is_group: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also in the folder in which it lies."""
    monkeypatch.chdir(tmp_path)
    evil = make_evil_file(tmp_path)
    if "sub" in source:
        evil = evil.rename(make_evil_file(tmp_path / "evil", "sub.py").with_name("__init__.py"))
    make = make_foreign_group if is_group else make_foreign_run
    run = make(tmp_path / "run", source.format(evil=evil))
    line = words.format(run=run).split()
    if line[0] == "report":
        assert cli.run(line) == 0
        assert (run / "report.html").is_file()
    else:
        sentence = refused(line, capsys)
        assert NOT_NAMED in sentence
        assert f"--task {source.format(evil=evil)}" in sentence
    assert not evil.with_name("executed").exists()


@pytest.mark.parametrize("words", ["export {run} --output {out}", "report {run} --output {out}"])
def test_what_needs_no_environment_needs_no_agreement(tmp_path: Path, words: str) -> None:
    evil = make_evil_file(tmp_path)
    run = make_foreign_run(tmp_path / "run", f"gym:{evil}:Make")
    assert cli.run(words.format(run=run, out=tmp_path / "out").split()) == 0
    assert not (tmp_path / "executed").exists()


def test_what_the_user_names_is_imported_then_and_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make_evil_file(tmp_path, "mine.py")
    run = make_foreign_run(tmp_path / "run", "gym:/home/somebody/tasks.py:PendulumEnv")
    evaluate = ["evaluate", str(run), "--episodes", "1"]
    assert "there is no file /home/somebody/tasks.py" in refused(evaluate, capsys)
    other = refused([*evaluate, "--task", "gym:mine.py:Other"], capsys)
    assert "was trained on gym:/home/somebody/tasks.py:PendulumEnv, not on gym:/" in other
    plain = refused([*evaluate, "--task", "gym:PendulumEnv"], capsys)  # a name of Gymnasium's own
    assert plain.startswith("error: the run was trained on gym:/home/somebody/tasks.py:Pendulum")
    assert not (tmp_path / "executed").exists()
    assert cli.run([*evaluate, "--task", "gym:mine.py:PendulumEnv"]) == 0
    assert (tmp_path / "executed").exists()
    again = make_foreign_run(tmp_path / "again", f"gym:{tmp_path}/mine.py:PendulumEnv")
    assert cli.run(["evaluate", str(again), "--episodes", "1"]) == 0


def test_a_new_run_names_its_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agreement is to that file, and to no other one."""
    monkeypatch.undo()  # the process that plays looks into the tree's own folder
    evil, other = (make_evil_file(tmp_path / name) for name in ("a", "b"))
    source = f"gym:{evil}:PendulumEnv"
    note = imports.note_of(evil)
    try:
        with contextlib.closing(open_task(TaskRequest(source))) as server:
            task = server.task
        assert note.is_file()
        open_again(task).close()
    finally:
        note.unlink()
    with pytest.raises(UsageError, match=NOT_NAMED):
        open_again(task)
    with pytest.raises(UsageError, match=NOT_NAMED):
        flat_maker(pendulum_task(f"gym:{other}:Make"))


def test_a_run_that_goes_on_asks_before_anything_is_done_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before packages are installed, or a process begins; a function is the user's own."""
    done: list[str] = []
    monkeypatch.setattr(server_start, "install_what_it_needs", done.append)
    monkeypatch.setattr(server_start, "ServerProcess", lambda *_: done.append("process"))
    monkeypatch.setattr(server_start, "ServerInThread", lambda *_: done.append("thread"))
    task = pendulum_task(f"gym:{make_evil_file(tmp_path)}:PendulumEnv")
    with pytest.raises(UsageError, match=NOT_NAMED):
        open_again(task)
    assert done == []
    open_again(task, lambda: None)
    assert done == ["thread"]
    imports.agree(task.source)
    open_again(task)
    assert done == ["thread", task.source, "process"]


def test_the_process_that_imports_asks_for_itself(tmp_path: Path) -> None:
    """It may find another file of the same name than who started it."""
    evil = make_evil_file(tmp_path)
    task = pendulum_task(f"gym:{evil}:PendulumEnv")
    with pytest.raises(UsageError, match=NOT_NAMED):
        ServerProcess(TaskRequest(task.source), task)
    assert not (tmp_path / "executed").exists()


def test_ids_of_gymnasiums_own_need_nobody(tmp_path: Path) -> None:
    imports.require_agreement("gym:Pendulum-v1")
    assert playable(pendulum_task("gym:Pendulum-v1"), None).source == "gym:Pendulum-v1"
    run = make_foreign_run(tmp_path / "run", "gym:Pendulum-v1")
    assert cli.run(["evaluate", str(run), "--episodes", "1"]) == 0
    with pytest.raises(UsageError, match=r"pendulum is not a task: write gym:FILE\.py:NAME"):
        playable(pendulum_task("gym:Pendulum-v1"), "pendulum")


@pytest.mark.parametrize("name", ["gym:CartPole-v1", "pendulum-td3"])
def test_a_run_goes_on_with_what_it_learns(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_foreign_run(tmp_path / "run", "gym:Pendulum-v1")
    sentence = refused(["train", name, "--resume", str(run)], capsys)
    assert "gym:Pendulum-v1, not o" in sentence
    assert name in sentence


def test_where_modules_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are found, and not imported."""
    monkeypatch.chdir(tmp_path)
    inner = make_evil_file(tmp_path / "outer", "inner.py")
    (tmp_path / "plain").mkdir()
    for source, file in (
        ("gym:Ant-v5", None),
        ("gym:outer.inner:X-v0", inner),
        ("gym:plain:X-v0", tmp_path / "plain"),
        (f"gym:{inner}:X", inner),
    ):
        assert imports.file_named_by(source) == file
    for source in ("gym:nowhere:X", "gym:outer.none:X", "gym:outer.inner.x:X", "gym:sys:X"):
        with pytest.raises(UsageError, match="there is no Python module"):
            imports.file_named_by(source)
    assert not inner.with_name("executed").exists()
    assert str(tmp_path) not in sys.path


def test_nothing_is_imported_from_the_present_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that plays a task begins in the folder that the user is in, which may be that of
    a foreign run."""
    monkeypatch.chdir(tmp_path)
    for name in ("numpy", "gymnasium", "json", "rltools_host"):
        make_evil_file(tmp_path, f"{name}.py")
    server = ServerProcess(TaskRequest("gym:Pendulum-v1"))
    server.close()
    assert not (tmp_path / "executed").exists()


def test_an_image_names_no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment is a text of the sender's, of which Gymnasium would import a part."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    make_evil_file(tmp_path)
    place = HEADER.size - 32
    image = patched(sample_images()["pendulum"], place, "32s", b"evil:Evil-v0")
    run = make_policy_run(tmp_path / "run", image)
    image_of_run = read_run_policy(run)
    assert image_of_run.environment == "evil:Evil-v0"
    with pytest.raises(UsageError, match="gymnasium has no environment evil:Evil-v0"):
        evaluate_policy(image_of_run, "run", 1, 0, GYMNASIUM)
    assert not (tmp_path / "executed").exists()


def test_a_file_finds_what_lies_beside_it(tmp_path: Path) -> None:
    """Each of the two processes that import it looks there, as Python does for a script."""
    make_evil_file(tmp_path / "tasks", "beside_it.py")
    file = tmp_path / "tasks" / "task.py"
    file.write_text("from beside_it import PendulumEnv\n")
    source = f"gym:{file}:PendulumEnv"
    ServerProcess(TaskRequest(source)).close()
    imports.agree(source)
    flat_maker(pendulum_task(source))().close()


def test_an_agreement_that_cannot_be_kept_is_none(tmp_path: Path) -> None:
    evil = make_evil_file(tmp_path)
    PROJECT.named_tasks.write_text("a file in the folder's place")
    with pytest.raises(DiskError, match="cannot write"):
        imports.agree(f"gym:{evil}:PendulumEnv")
    with pytest.raises(UsageError, match=NOT_NAMED):
        imports.require_agreement(f"gym:{evil}:PendulumEnv")
