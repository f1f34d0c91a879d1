"""Programs that a wheel brought: taken as they are, or not at all."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from rltools_host.build import cmake, prebuilt
from rltools_host.build.boards import load_board
from rltools_host.build.prebuilt import Content
from rltools_host.errors import BuildError
from rltools_host.tree import PROJECT, TREE

TARGET, FILE = "train-pendulum-td3", "train/pendulum-td3"
PROGRAM = b"a program"
Put = Callable[..., Path]


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Put]:
    """A function that puts a program into a wheel's folder, on a computer without a compiler."""
    folder = tmp_path / "prebuilt"
    monkeypatch.setattr(prebuilt, "has_compiler", lambda _: False)
    monkeypatch.setattr(prebuilt, "folder_of", lambda _: folder)

    def write(data: bytes = PROGRAM, **other: object) -> Path:
        (folder / FILE).parent.mkdir(parents=True, exist_ok=True)
        (folder / FILE).write_bytes(PROGRAM)
        digest = prebuilt.sha256(folder / FILE)
        (folder / FILE).write_bytes(data)
        targets = {TARGET: {FILE: digest}}
        content = asdict(Content("", "", (), prebuilt.sources_sha256(), targets)) | other
        (folder / prebuilt.CONTENT).write_text(json.dumps(content))
        prebuilt.content_of.cache_clear()
        return folder

    yield write
    prebuilt.content_of.cache_clear()


def provided(directory: Path, *targets: str) -> bool:
    board = load_board("host")
    return prebuilt.provide(board, prebuilt.files_of(board, targets), directory)


def test_a_program_is_taken_and_may_be_executed(put: Put, tmp_path: Path) -> None:
    put()
    directory = tmp_path / "build"
    assert provided(directory, TARGET)
    assert (directory / FILE).read_bytes() == PROGRAM
    assert (directory / FILE).stat().st_mode & 0o111 == 0o111
    assert provided(directory, TARGET)  # a second time
    assert not provided(directory, TARGET, "describe-pendulum-td3")
    (directory / FILE).write_bytes(b"compiled here")
    assert not provided(directory, TARGET)
    assert (directory / FILE).read_bytes() == b"compiled here"


@pytest.mark.parametrize(
    "other",
    [
        {"sources_sha256": "0" * 64},
        {"system": "Plan 9"},
        {"machine": "pdp11"},
        {"features": ("avx2", "of another processor")},
        {"targets": {}},
    ],
)
def test_what_is_of_other_sources_or_another_computer_is_compiled(
    put: Put, tmp_path: Path, other: dict[str, object]
) -> None:
    put(**other)
    assert not provided(tmp_path / "build", TARGET)
    assert not (tmp_path / "build").exists()


def test_a_damaged_one_is_refused(put: Put, tmp_path: Path) -> None:
    folder = put(b"something else")
    with pytest.raises(BuildError, match="is damaged or missing: install the wheel again"):
        provided(tmp_path / "build", TARGET)
    (folder / prebuilt.CONTENT).write_text('{"system": 3}')
    prebuilt.content_of.cache_clear()
    with pytest.raises(BuildError, match=r"content\.json is damaged"):
        provided(tmp_path / "build", TARGET)


def test_a_build_takes_it_and_needs_no_tool(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put()
    directory = tmp_path / "build"
    monkeypatch.setattr(type(PROJECT), "board_build", lambda _, name: directory / name)
    monkeypatch.setattr(cmake.tools, "require", lambda *_: pytest.fail("a tool is looked for"))
    assert (cmake.build_targets(load_board("host"), [TARGET]) / FILE).read_bytes() == PROGRAM


def test_a_program_of_an_earlier_wheel_is_replaced(put: Put, tmp_path: Path) -> None:
    put()
    directory = tmp_path / "build"
    assert provided(directory, TARGET)
    folder = put(targets={TARGET: {FILE: hashlib.sha256(b"a newer one").hexdigest()}})
    (folder / FILE).write_bytes(b"a newer one")
    assert provided(directory, TARGET)
    assert (directory / FILE).read_bytes() == b"a newer one"


def test_what_the_project_has_of_its_own_is_compiled(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put()
    monkeypatch.setitem(PROJECT.__dict__, "root", tmp_path)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "mine.h").touch()
    assert prebuilt.files_of(load_board("host"), [TARGET])
    (tmp_path / "experiments" / "pendulum_td3.h").touch()
    assert not prebuilt.files_of(load_board("host"), [TARGET])


def test_a_computer_with_a_compiler_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    board = load_board("host")
    monkeypatch.setenv("RLT_CXX", "zig")  # which is asked for, so that its programs are
    assert prebuilt.has_compiler(board)
    monkeypatch.delenv("RLT_CXX")
    monkeypatch.setenv("PATH", "/nowhere")
    assert not prebuilt.has_compiler(board)


def test_a_wheel_states_which_processor_its_programs_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And has no program of a build before."""
    monkeypatch.syspath_prepend(TREE.root / "host" / "wheel")
    build = importlib.import_module("build")
    monkeypatch.delitem(sys.modules, "build")
    board, made = load_board("host"), tmp_path / "made"
    monkeypatch.setattr(build, "PROGRAMS", tmp_path)
    monkeypatch.setattr(prebuilt, "has_compiler", lambda _: False)
    monkeypatch.setattr(prebuilt, "folder_of", lambda _: tmp_path / "prebuilt" / board.firmware)
    monkeypatch.setattr(prebuilt.platform, "system", lambda: "Linux")
    monkeypatch.setattr(prebuilt.platform, "machine", lambda: "x86_64")
    (made / FILE).parent.mkdir(parents=True)
    for name in ("train/an-earlier-one", FILE):
        (made / name).write_bytes(PROGRAM)
        build.keep(board, build.SYSTEMS["linux-x86_64"], made, {TARGET: [name]})
    kept = (tmp_path / "prebuilt").rglob("*")
    assert {path.name for path in kept if path.is_file()} == {prebuilt.CONTENT, Path(FILE).name}
    for features, runs in ((prebuilt.X86_64_V3, True), (prebuilt.X86_64_V3[1:], False)):
        monkeypatch.setattr(prebuilt, "processor_features", lambda has=features: frozenset(has))
        prebuilt.content_of.cache_clear()
        assert provided(tmp_path / f"build-{runs}", TARGET) == runs
    prebuilt.content_of.cache_clear()
