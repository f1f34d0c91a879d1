"""Setting up: the launcher, .venv, apt and the lock files, without changing this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rltools_host.build import tools
from rltools_host.build.toolchains import (
    ALL_GROUPS,
    load_toolchain,
    system_tools,
    toolchain_names,
)
from rltools_host.errors import MissingToolError
from rltools_host.tree import TREE
from tree_copies import copy_of_tree

LOCKED_GROUPS = sorted([*ALL_GROUPS, tools.INSTALLER])
# uv of .venv is found, where a tree locks none.
WITH_UV = {"PATH": os.pathsep.join([os.path.dirname(tools.find_uv() or ""), os.environ["PATH"]])}
LAUNCHER_FILES = ("rlt", "host/rltools_host", "host/requirements")


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the launcher and the host tools, without packages to install."""
    tree = copy_of_tree(tmp_path / "a tree", *LAUNCHER_FILES)
    (tree / "host/requirements/lock.txt").write_text("# nothing\n")
    return tree


def launch(
    tree: Path, *arguments: str, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "RLT_PYTHON": sys.executable, **WITH_UV, **variables}
    return subprocess.run(
        [tree / "rlt", *arguments],
        cwd=cwd or tree,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def set_up_already(tree: Path) -> None:
    """Makes .venv look complete, with a Python that prints how it was called."""
    script(tree / ".venv/bin/python", 'for argument; do printf "<%s>" "$argument"; done')
    shutil.copy(tree / "host/requirements/lock.txt", tree / ".venv/rlt-lock.txt")


def test_launcher_passes_arguments_on(tree: Path, tmp_path: Path) -> None:
    set_up_already(tree)
    result = launch(tree, "train", "a b", "", "--set=x=1", cwd=tmp_path)
    main = tree / "host/rltools_host/__main__.py"
    assert result.stdout == f"<-I><{main}><train><a b><><--set=x=1>"
    assert result.stderr == ""


def test_launcher_works_through_links(tree: Path, tmp_path: Path) -> None:
    set_up_already(tree)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/rlt").symlink_to("../link")
    (tmp_path / "link").symlink_to(tree / "rlt")
    result = subprocess.run([tmp_path / "bin/rlt", "x"], capture_output=True, text=True, cwd="/")
    assert result.stdout.startswith("<-I>")
    assert result.stdout.endswith(f"<{tree / 'host/rltools_host/__main__.py'}><x>")


def test_launcher_without_python(tree: Path) -> None:
    result = launch(tree, RLT_PYTHON="python-that-is-not-there")
    assert result.returncode == MissingToolError.exit_code
    assert "python-that-is-not-there not found: install Python 3.11 or newer" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_launcher_with_an_old_python(tree: Path, tmp_path: Path) -> None:
    old = script(tmp_path / "python3.9", "echo 3.9.2; echo $0")
    result = launch(tree, RLT_PYTHON=str(old))
    assert result.returncode == MissingToolError.exit_code
    assert "is Python 3.9.2, but 3.11 or newer is needed" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.all
def test_launcher_sets_up_once_when_started_several_times(tree: Path) -> None:
    """Three at once: each works, one of them makes .venv, and the tree can be moved afterwards."""
    script_path = tree / "host/rltools_host/__main__.py"
    script_path.write_text(
        "import site, sys; site.main(); import rltools_host; "
        "print(rltools_host.__file__, sys.prefix)\n"
    )
    environment = {**os.environ, "RLT_PYTHON": sys.executable, **WITH_UV}
    started = [
        subprocess.Popen(
            [tree / "rlt"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    outputs = [process.communicate(timeout=180) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], outputs
    expected = f"{tree / 'host/rltools_host/__init__.py'} {tree / '.venv'}\n"
    assert [stdout for stdout, _ in outputs] == [expected] * 3
    assert "".join(stderr for _, stderr in outputs).count("Setting up .venv") == 1

    moved = tree.with_name("moved")
    tree.rename(moved)
    again = launch(moved)
    assert again.stdout == f"{moved / 'host/rltools_host/__init__.py'} {moved / '.venv'}\n"
    assert again.stderr == ""

    (moved / "host/requirements/lock.txt").write_text("# another lock, of other groups\n")
    assert not launch(moved).stderr
    changed = (moved / ".venv/rlt-lock.txt").read_text()
    assert changed == "# another lock, of other groups\n"


@pytest.mark.all
def test_failed_installation_is_one_sentence_and_is_repeated(tree: Path) -> None:
    lock = tree / "host/requirements/lock.txt"
    lock.write_text(f"none-such==1.0 --hash=sha256:{'0' * 64}\n    # groups: default\n")
    variables = {"UV_NO_INDEX": "1", "UV_FIND_LINKS": ""}
    for _ in range(2):
        result = launch(tree, **variables)
        assert result.returncode == MissingToolError.exit_code
        last = result.stderr.splitlines()[-1]
        assert last.startswith("error: the Python packages of default could not be installed")
        assert "Traceback" not in result.stderr


# -- descriptions of toolchains ----------------------------------------------------------------


@pytest.mark.parametrize("name", toolchain_names())
def test_what_a_toolchain_names_exists(name: str) -> None:
    toolchain = load_toolchain(name)
    assert toolchain.title
    file = toolchain.cmake_toolchain_file
    assert file is None or (TREE.root / file).is_file()
    assert toolchain.native == (name == "host")
    for tool in (*toolchain.tools, *toolchain.libraries, *toolchain.emulators):
        assert system_tools()[tool.name] == tool, "another toolchain has another of that name"


def requirements(group: str) -> list[str]:
    """The lock's requirements of a group, each as one line."""
    lines = tools.locked(group).replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]


@pytest.mark.parametrize("group", LOCKED_GROUPS)
def test_the_lock_pins_everything_with_hashes(group: str) -> None:
    lines = requirements(group)
    assert lines
    for line in lines:
        assert re.match(r"[a-z0-9._-]+==[^ ;]+ .*--hash=sha256:[0-9a-f]{64}", line), line
        assert "://" not in line


def test_cmake_compiles_with_the_locked_mujoco() -> None:
    """Which CMake states by itself, as archives of a run's sources have no lock."""
    stated = re.search(
        r"RLT_MUJOCO_VERSION ([\d.]+)\)", (TREE.root / "cmake/mujoco.cmake").read_text()
    )
    assert stated
    assert f"\nmujoco-core=={stated[1]} " in f"\n{tools.locked('mujoco')}"


def test_the_lock_holds_what_pyproject_names() -> None:
    project = tomllib.loads((TREE.root / "pyproject.toml").read_text())
    wanted = {"default": project["project"]["dependencies"], **project["dependency-groups"]}
    assert sorted(wanted) == LOCKED_GROUPS
    for group, entries in wanted.items():
        included = [entry["include-group"] for entry in entries if isinstance(entry, dict)]
        named = [entry for entry in entries if isinstance(entry, str)]
        named += [entry for other in included for entry in wanted[other]]
        names = {re.split(r"[^\w-]", name)[0].lower() for name in named}
        locked = {line.partition("==")[0] for line in requirements(group)}
        assert names
        assert names <= locked
