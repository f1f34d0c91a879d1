"""Which run a name means, in which order runs stand, and where a new one may go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rltools_host.errors import DiskError, UsageError
from rltools_host.runs.names import (
    begun_us_now,
    example_of,
    find_group,
    find_run,
    in_numbers,
    make_empty,
    new_run_path,
    require_empty,
    result_file,
    run_names,
)
from rltools_host.tree import PROJECT


def made(path: Path, begun: Any = None, file: str = "run.json", **stated: Any) -> Path:
    path.mkdir(parents=True)
    (path / file).write_text(json.dumps({"begun_us": begun, **stated}))
    return path


def test_runs_of_one_moment_stand_by_their_numbers(tmp_path: Path) -> None:
    for name in ("r-10", "r-2", "r"):
        made(tmp_path / name, 5)
    made(tmp_path / "early", 4)
    made(tmp_path / "g", 6, "group.json")
    assert run_names(tmp_path) == ["early", "r", "r-2", "r-10"]
    assert run_names(tmp_path, ("run.json", "group.json")) == ["early", "r", "r-2", "r-10", "g"]
    assert in_numbers("r-2x") == [(-1, "r-"), (2, ""), (-1, "x")]
    made(tmp_path / "ahead", 2**52)  # the clock was set back since
    assert begun_us_now(tmp_path / "new") == 2**52 + 1


def test_which_run_a_name_means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(PROJECT, "root", tmp_path)
    runs = tmp_path / "runs"
    first = made(runs / "first", 1)
    made(runs / "last", 2)
    group = made(runs / "g", 3, "group.json")
    inner = made(group / "s0", 1)
    assert find_run("first") == find_run(first) == first
    for newest in ("latest", "runs/latest"):
        with pytest.raises(UsageError, match=r"^runs/g is a group of runs: .* as runs/g/s0$"):
            find_run(newest)
    assert find_run("runs/g/latest") == Path("runs/g/s0")
    assert find_group("latest") == find_group("g") == group
    for name in ("nothing", "", inner):
        assert find_group(name) is None
    newest = made(runs / "newest", 4)
    assert find_group("latest") is None, "a run is newer"
    assert find_run("runs/latest") == Path("runs/newest")
    monkeypatch.chdir(group)
    assert find_run("./runs/latest/") == newest, "wherever one is"
    assert find_run("runs/first") == first
    assert example_of(group) == f", such as {inner.name}"
    assert example_of(first / "nothing") == ""
    made(runs / "latest", 0)  # one that somebody called so
    assert find_run(runs / "latest") == runs / "latest"


def test_a_run_is_suggested_from_all(project: Path) -> None:
    """Not from the last few only, and by a part of its name."""
    names = ("ppo9", "20260101-cart-long", "cpp", *(f"x{number}" for number in range(9)))
    for begun, name in enumerate(names):
        made(project / "runs" / name, begun)
    for typed, said in (
        ("pp09", r"did you mean ppo9"),
        ("cart-long", r"did you mean 20260101-cart-long"),
        ("zzz", r"the last of 12 are x4, x5, x6, x7, x8$"),
    ):
        with pytest.raises(UsageError, match=said):
            find_run(typed)


def test_where_a_new_run_may_be_written(tmp_path: Path) -> None:
    require_empty(tmp_path / "nothing")
    make_empty(tmp_path / "new" / "run")
    make_empty(tmp_path / "new" / "run")
    file = tmp_path / "file"
    file.touch()
    for refuses in (require_empty, make_empty):
        with pytest.raises(UsageError) as refused:
            refuses(file)
        assert str(refused.value) == f"{file} is not a folder: choose another with --out"
    with pytest.raises(DiskError):
        make_empty(file / "run")
    with pytest.raises(UsageError) as refused:
        require_empty(tmp_path)
    assert str(refused.value) == f"{tmp_path} is not empty: choose another folder with --out"
    for kind in ("run.json", "group.json"):
        held = made(tmp_path / f"a {kind}", file=kind)
        with pytest.raises(UsageError) as refused:
            require_empty(held)
        assert str(refused.value) == (
            f"{held} is not empty: choose another folder with --out, or resume the run with "
            f"--resume '{held}'"
        )


def test_a_new_run_takes_the_next_number(project: Path) -> None:
    paths = [new_run_path("r") for _ in range(3)]
    assert [path.name for path in paths] == ["r", "r-2", "r-3"]
    assert all(path.is_dir() and path.parent == project / "runs" for path in paths)
    assert (result_file("hil", "host"), result_file("flight", "*", ".html")) == (
        "hil-host.json",
        "flight-*.html",
    )
