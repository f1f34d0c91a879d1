"""The archive of sources in a run's folder: what is compiled from it is what is compiled here."""

from __future__ import annotations

import ast
import io
import json
import os
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from programs import require_program
from rltools_host.build import cmake, experiments, firmware, tools
from rltools_host.build.boards import load_board
from rltools_host.build.toolchains import WITHOUT_OPTIONAL
from rltools_host.runs import provenance
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.provenance import Sources, read_sources
from rltools_host.training import board
from rltools_host.tree import PROJECT, TREE
from run_folders import document_of
from training_bench import installed_bench

EXPERIMENT = "pendulum-td3"
SMALL = {"lib/a.h": "a\n", "boards/b.json": "{}\n", "CMakeLists.txt": "project(x)\n"}


def unpack(archive: Sources, folder: Path) -> Path:
    with tarfile.open(fileobj=io.BytesIO(archive.data)) as tar:
        tar.extractall(folder)  # filters came with Python 3.11.4
    return folder


def sources_of(tree: Path, generated: Sequence[str] = ()) -> Sources:
    """The archive of a tree, which is the project, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TREE, "root", tree)
        patch.setattr(PROJECT, "root", tree)
        return read_sources(generated)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(read_sources(), tmp_path_factory.mktemp("sources"))


def configured(tree: Path, board: str, build: Path) -> Path:
    require_program(load_board(board).toolchain.compiler)
    command = [tools.program("cmake"), "-S", tree, "-B", build, "-G", "Ninja"]
    values = {
        "RLT_BOARD": board,
        "RLT_PYTHON": sys.executable,
        "CMAKE_MAKE_PROGRAM": tools.program("ninja"),
    }
    options = [f"-D{name}={value}" for name, value in values.items()]
    result = subprocess.run([*command, *options], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return build


def commands(tree: Path, board: str, build: Path) -> list[list[str]]:
    """The words of what builds every program of the board, without the names of the folders."""
    targets = [
        cmake.firmware_target(name, program)
        for program in cmake.programs_of(load_board(board))
        for name in experiments.names(experiments.subject_of(program), load_board(board))
    ]
    ninja = [tools.program("ninja"), "-C", configured(tree, board, build), "-t", "commands"]
    result = subprocess.run([*ninja, *targets], capture_output=True, text=True, check=True)
    links = PROJECT.build / WITHOUT_OPTIONAL
    folders = ((links, "LINKS"), (sys.prefix, "PYTHON"), (build, "BUILD"), (tree, "TREE"))

    def neutral(word: str) -> str:
        for folder, name in folders:
            word = word.replace(str(folder), name)
        return word

    # By words: CMake quotes those that have a space.
    return [[neutral(word) for word in shlex.split(line)] for line in result.stdout.splitlines()]


# -- it can be compiled ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "board",
    [
        "host",
        *(
            pytest.param(board, marks=pytest.mark.all)
            for board in ("host-threads", "qemu-cortex-m7", "qemu-rv32imc")
        ),
    ],
)
def test_archive_is_built_by_the_same_commands(unpacked: Path, board: str, tmp_path: Path) -> None:
    if missing := tools.missing_names(cmake.required_tools(load_board(board))):
        pytest.skip(f"{', '.join(missing)} not installed")
    here = commands(TREE.root, board, tmp_path / "of-tree")
    assert len(here) > 20
    assert commands(unpacked, board, tmp_path / "of-archive") == here


@pytest.mark.all
def test_archive_builds_the_experiment(unpacked: Path, tmp_path: Path) -> None:
    build = configured(unpacked, "host", tmp_path)
    target = f"describe-{EXPERIMENT}"
    command = [tools.program("ninja"), "-C", build, target]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
    output = subprocess.run([build / target], capture_output=True, check=True).stdout
    fingerprint = experiments.describe(EXPERIMENT).fingerprint
    assert json.loads(output)["fingerprint"] == fingerprint


def test_archive_has_what_platformio_needs(unpacked: Path) -> None:
    """Its script's modules, its settings, and our platform, but nothing that it downloads."""
    script = ast.parse((TREE.root / "firmware/platformio_flags.py").read_text())
    imports = [node for node in ast.walk(script) if isinstance(node, ast.ImportFrom)]
    lines = [ast.unparse(node) for node in imports if str(node.module).startswith("rltools_host")]
    assert lines
    program = "; ".join([f"import sys; sys.path.insert(0, {str(unpacked / 'host')!r})", *lines])
    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True)
    assert (unpacked / "platformio.ini").is_file()
    ours = [
        path.relative_to(TREE.root)
        for folder in ("rltools_emulated", "packages/tool-scons")
        for path in (TREE.root / "platforms" / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    ]
    assert len(ours) > 4
    kept = [path for path in (unpacked / "platforms").rglob("*") if path.is_file()]
    assert sorted(path.relative_to(unpacked) for path in kept) == sorted(ours)


# -- its bytes -------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in SMALL.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_name_says_the_content(tree: Path) -> None:
    archive = sources_of(tree)
    (tree / "lib/.a.h.swp").write_text("an editor's")
    (tree / "lib/__pycache__").mkdir()
    (tree / "lib/__pycache__/a.pyc").write_text("Python's")
    (tree / "docs").mkdir()
    (tree / "docs/a.md").write_text("a document")
    os.utime(tree / "lib/a.h", (0, 0))
    assert sources_of(tree) == archive
    (tree / "lib/a.h").write_text("b\n")
    changed = sources_of(tree)
    assert changed.name != archive.name
    (tree / "lib/a.h").chmod(0o755)
    assert sources_of(tree).name not in (archive.name, changed.name)


def test_a_projects_files_are_among_the_trees(
    tree: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive is a project itself, whatever the tree has of the same names."""
    monkeypatch.setattr(TREE, "root", tree)
    for name in ("experiments/mine.h", "environments/a/mine.h", "boards/b.json", "notes/x.md"):
        (project / name).parent.mkdir(parents=True)
        (project / name).write_text("mine\n")
    archive = unpack(read_sources(), tmp_path / "unpacked")
    found = {path.relative_to(archive).as_posix() for path in archive.rglob("*") if path.is_file()}
    assert found == {*SMALL, "rlt.toml", "experiments/mine.h", "environments/a/mine.h"}
    assert (archive / "boards/b.json").read_text() == "mine\n"


def test_files_come_out_as_they_went_in(tree: Path) -> None:
    long = f"lib/{'folder/' * 12}{'n' * 60}.h"  # more than a tar's field of a name holds
    (tree / long).parent.mkdir(parents=True)
    (tree / long).write_text("a\n")
    more = [f"lib/{number}.h" for number in range(20)]  # in order by chance only
    for name in more:
        (tree / name).write_text(name)
    (tree / "boards/b.json").write_bytes(b"x" * provenance.BLOCK)
    (tree / "lib/a.h").chmod(0o755)
    with tarfile.open(fileobj=io.BytesIO(sources_of(tree).data)) as tar:
        members = {member.name: member for member in tar}
        assert list(members) == sorted([*SMALL, long, *more])
        assert {name: members[name].mode for name in SMALL} == {
            **dict.fromkeys(SMALL, 0o644),
            "lib/a.h": 0o755,
        }
        for name, member in members.items():
            content = tar.extractfile(member)
            assert content is not None
            assert content.read() == (tree / name).read_bytes()


# -- when they are read ----------------------------------------------------------------------------


def test_sources_are_those_from_before_the_build(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tree: Path
) -> None:
    """Who edits while the compiler runs, or while the board is started, changes the next run."""
    bench = installed_bench(monkeypatch)
    before = sources_of(tree)
    monkeypatch.setattr(board, "read_sources", lambda generated: sources_of(tree, generated))

    def build_firmware(*_: object) -> None:
        (tree / "lib/a.h").write_text("edited meanwhile\n")

    monkeypatch.setattr(firmware, "build_firmware", build_firmware)
    try:
        bench.train(tmp_path / "run")
        folder = RunFolder.open(tmp_path / "run")
        assert [session["sources"] for session in document_of(folder)["sessions"]] == [before.name]
        assert (folder.path / before.name).read_bytes() == before.data
        after = sources_of(tree)
        bench.train(tmp_path / "run", resume=str(folder.path), steps=1100)
        sessions = document_of(RunFolder.open(tmp_path / "run"))["sessions"]
        assert [session["sources"] for session in sessions] == [before.name, after.name]
        assert (folder.path / after.name).read_bytes() == after.data
    finally:
        bench.close()


def test_headers_of_a_task_of_gymnasiums_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(PROJECT, "root", tmp_path)
    assert board.generated_headers("pendulum-td3") == []
    name = "gym-servo-sac-0123456789abcdef"
    header = experiments.generated_header(name)
    contract = experiments.generated_header("gym-servo-fedcba9876543210", experiments.CONTRACT)
    for path, text in ((header, f'#include "../contracts/{contract.name}"\n'), (contract, "c\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    names = board.generated_headers(name)
    assert [tmp_path / name for name in names] == [header, contract]
    archive = unpack(sources_of(tmp_path, names), tmp_path / "unpacked")
    assert [(archive / name).is_file() for name in names] == [True, True]
