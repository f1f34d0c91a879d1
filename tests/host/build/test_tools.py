"""What is run to set up .venv and to install packages, and what is said of it; nothing is run."""

from __future__ import annotations

import hashlib
import http.server
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rltools_host.build import tools
from rltools_host.build.toolchains import EGL_VENDORS, group_stamp, hide_optional_tools
from rltools_host.errors import MissingToolError
from rltools_host.tree import HIDE_OPTIONAL, PROJECT, TREE, Tree

VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
Call = tuple[list[str], tuple[int, ...]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of .venv, in which is what Python's own venv makes."""
    monkeypatch.setattr(Tree, "virtual_environment", tmp_path / ".venv")
    (tmp_path / ".venv" / "lib" / VERSION / "site-packages").mkdir(parents=True)
    return tmp_path / ".venv"


def calls(monkeypatch: pytest.MonkeyPatch, code: int = 0) -> list[Call]:
    """Of run_quietly: the command, and the file descriptors that it inherits."""
    found: list[Call] = []

    def run(command: list[str], _: Any, *inherited: int) -> subprocess.CompletedProcess[str]:
        found.append((command, inherited))
        return subprocess.CompletedProcess(command, code, "what it said\n")

    monkeypatch.setattr(tools, "run_quietly", run)
    return found


@pytest.mark.parametrize(
    ("stamps", "code", "works"),
    [
        ((), 0, False),
        (("environment",), 0, True),
        (("default",), 0, True),
        (("environment", "default"), 1, False),
        (("environment",), None, False),
    ],
)
def test_an_environment_works_whose_python_finds_what_is_needed(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    stamps: Sequence[str],
    code: int | None,
    works: bool,
) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        if code is None:
            raise FileNotFoundError(command[0])
        return subprocess.CompletedProcess(command, code)

    for name in stamps:
        (folder / f"rlt-{name}.txt").touch()
    monkeypatch.setattr(subprocess, "run", run)
    assert tools.environment_works() is works
    asked = [f"{folder}/bin/python", "-I", "-c", "import pip, rltools_host"]
    assert commands == ([asked] if stamps else [])


@pytest.mark.parametrize("stamps", [(), ("environment",), ("default",), ("environment", "default")])
def test_an_environment_is_made_where_none_works(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    stamps: Sequence[str],
) -> None:
    """It is damaged where one of its stamps is there."""
    for name in stamps:
        (folder / f"rlt-{name}.txt").touch()
    found = calls(monkeypatch)
    monkeypatch.setattr(tools, "ensurepip_exists", lambda: True)
    monkeypatch.setattr(tools, "environment_works", lambda: True)
    tools.create_environment(7)
    assert found == []
    monkeypatch.setattr(tools, "environment_works", lambda: False)
    tools.create_environment(7)
    again = " again, as it is damaged" if stamps else ""
    assert capsys.readouterr().err == f"Setting up .venv{again}\n"
    interpreter = os.path.realpath(sys.executable)
    assert found == [([interpreter, "-I", "-m", "venv", "--clear", str(folder)], (7,))]
    assert tools.environment_stamp().read_text() == f"{VERSION}\n"
    packages = folder / "lib" / VERSION / "site-packages"
    link = (packages / "rltools_host.pth").read_text()
    assert link.endswith("\n")
    assert not Path(link).is_absolute()
    assert (packages / link.strip()).resolve() == TREE.root / "host"


def test_what_could_not_be_made_has_no_stamp(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tools.environment_stamp().touch()
    monkeypatch.setattr(tools, "ensurepip_exists", lambda: True)
    monkeypatch.setattr(tools, "environment_works", lambda: False)
    calls(monkeypatch, code=1)
    with pytest.raises(MissingToolError) as refused:
        tools.create_environment(7)
    interpreter = os.path.realpath(sys.executable)
    assert str(refused.value) == f"{interpreter} cannot create {folder}: see above"
    assert capsys.readouterr().err.endswith("damaged\nwhat it said\n")
    assert not tools.environment_stamp().exists()


@pytest.mark.usefixtures("folder")
def test_debian_has_the_venv_module_in_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, str]] = []
    calls(monkeypatch)
    monkeypatch.setattr(tools, "environment_works", lambda: False)
    monkeypatch.setattr(tools, "ensurepip_exists", lambda: False)
    monkeypatch.setattr(tools, "apt_prefix", list)
    monkeypatch.setattr(
        tools,
        "install_packages",
        lambda found: asked.extend((each.name, each.package, each.needed_for) for each in found),
    )
    tools.create_environment(7)
    assert asked == [(f"the venv module of {VERSION}", f"{VERSION}-venv", "set-up")]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package index with the wheel that ensurepip brings, for a user who may not call apt-get."""
    module = importlib.util.find_spec("ensurepip")
    places = [Path("/usr/share/python-wheels")]  # Debian's
    places += [Path(module.origin).parent / "_bundled"] if module and module.origin else []
    wheels = [wheel for place in places for wheel in place.glob("pip-*.whl")]
    if not wheels:
        pytest.skip("Python brings no pip")
    wheel = wheels[0]
    monkeypatch.setattr(tools, "PIP_WHEEL", wheel.name)
    monkeypatch.setattr(tools, "PIP_SHA256", hashlib.sha256(wheel.read_bytes()).hexdigest())
    monkeypatch.setattr(tools, "ensurepip_exists", lambda: False)
    monkeypatch.setattr(tools, "environment_works", lambda: False)
    monkeypatch.setattr(tools, "apt_prefix", lambda: None)
    folder = tmp_path / "index"
    (folder / "pip").mkdir(parents=True)
    (folder / "pip/index.html").write_text(f'<a href="../files/{wheel.name}#sha256=0">pip</a>')
    (folder / "files").mkdir()
    shutil.copy(wheel, folder / "files")
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("localhost", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("PIP_INDEX_URL", f"http://localhost:{server.server_address[1]}")
        yield folder
        server.shutdown()


@pytest.mark.all
@pytest.mark.usefixtures("index")
def test_pip_comes_from_the_index_where_debian_lacks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tree, "virtual_environment", tmp_path / ".venv")
    with tools.environment_lock() as lock:
        tools.create_environment(lock)
    command = [str(tools.environment_python()), "-I", "-m", "pip", "--version"]
    assert subprocess.run(command, capture_output=True, check=True).stdout.startswith(b"pip ")


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("other", "than the locked one"),
        ("none", f"{VERSION}-venv"),
        ("no index", "or set PIP_INDEX_URL"),
    ],
)
def test_another_pip_is_refused(
    fault: str, sentence: str, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tree, "virtual_environment", tmp_path / ".venv")
    (wheel,) = (index / "files").glob("*.whl")
    if fault == "other":
        wheel.write_bytes(b"something else")
    elif fault == "no index":
        monkeypatch.delenv("PIP_INDEX_URL")
    else:
        wheel.unlink()
    with pytest.raises(MissingToolError, match=sentence):
        tools.create_environment(7)
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("is_begun", [False, True])
def test_how_a_group_is_installed(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_begun: bool,
) -> None:
    """Where pip was killed, all of its files once more."""
    monkeypatch.setattr(tools, "group_note", lambda group: f" ({group})")
    if is_begun:
        (folder / "rlt-fit.begun").touch()
    found = calls(monkeypatch)
    tools.install_group("fit", 7)
    lock_file = TREE.requirements / "fit.txt"
    again = ["--ignore-installed"] if is_begun else []
    pip = [f"{folder}/bin/python", "-I", "-m", "pip", "install", "--quiet", "--no-compile", *again]
    assert found == [([*pip, "--require-hashes", "-r", str(lock_file)], (7,))]
    what = "SciPy, which fits a quadrotor's parameters to the log of a flight"
    assert capsys.readouterr().err == f"Installing Python packages: {what} (fit)\n"
    assert group_stamp("fit").read_bytes() == lock_file.read_bytes()
    assert not (folder / "rlt-fit.begun").exists()
    assert tools.group_is_installed("fit")
    group_stamp("fit").write_text("another lock file")
    assert not tools.group_is_installed("fit")


@pytest.mark.usefixtures("folder")
def test_a_group_without_a_lock_file(monkeypatch: pytest.MonkeyPatch) -> None:
    found = calls(monkeypatch)
    tools.install_group("torch", 7)
    assert found[0][0][-2:] == ["--no-compile", *tools.PRESENT_WITHOUT_LOCK["torch"]]
    assert group_stamp("torch").read_text() == tools.PRESENT_WITHOUT_LOCK["torch"][0]


def test_a_group_that_could_not_be_installed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls(monkeypatch, code=1)
    with pytest.raises(MissingToolError) as refused:
        tools.install_group("fit", 7)
    assert str(refused.value) == (
        "pip could not install the Python packages of fit: see its message above; "
        "check the network, then run this again"
    )
    assert capsys.readouterr().err.endswith("\nwhat it said\n")
    assert (folder / "rlt-fit.begun").exists()
    assert not group_stamp("fit").exists()


@pytest.mark.usefixtures("folder")
def test_only_what_is_missing_is_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(tools, "create_environment", lambda lock: done.append(f"venv {lock > 0}"))
    monkeypatch.setattr(tools, "install_group", lambda group, _: done.append(group))
    tools.ensure_group("fit")
    assert done == ["venv True", "fit"]
    monkeypatch.setattr(tools, "group_is_installed", lambda _: True)
    tools.ensure_group("fit")
    assert done == ["venv True", "fit"]
    tools.set_up("fit")
    assert done == ["venv True", "fit", "venv True"]


def test_what_to_type_where_the_environment_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tree, "is_installed", True)
    monkeypatch.setattr(tools, "group_is_there", lambda _: False)
    assert tools.pip_line("fit") == "pip install 'rltools-host[fit]'"
    assert tools.pip_line("zig") == "pip install 'rltools-host[compiler]'"
    assert tools.pip_line("browser") == "pip install playwright"
    with pytest.raises(MissingToolError) as refused:
        tools.ensure_group("fit")
    line = "pip install 'rltools-host[fit]'"
    assert str(refused.value) == f"fit is not installed in {sys.prefix}: {line}"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"ZIG_GLOBAL_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/zig"),
        ({"HOME": "/c"}, "/c/.cache/zig"),
    ],
)
def test_where_zig_keeps_what_it_has_compiled(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str
) -> None:
    for name in ("ZIG_GLOBAL_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert tools.users_cache() == Path(expected)


@pytest.mark.parametrize(
    ("user", "programs", "prefix", "line"),
    [
        (0, {"apt-get", "sudo"}, [], "apt-get install"),
        (1000, {"apt-get", "sudo"}, ["sudo", "-n"], "sudo apt-get install"),
        (1000, {"apt-get"}, None, "apt-get install"),
        (0, {"sudo"}, None, "apt-get install"),
    ],
)
def test_who_may_install_packages(
    monkeypatch: pytest.MonkeyPatch,
    user: int,
    programs: set[str],
    prefix: list[str] | None,
    line: str,
) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        assert command == ["sudo", "-n", "true"]
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(tools.os, "geteuid", lambda: user)
    monkeypatch.setattr(tools.shutil, "which", lambda name: name if name in programs else None)
    monkeypatch.setattr(tools.subprocess, "run", run)
    assert tools.apt_prefix() == prefix
    assert tools.apt_line(["a", "b"]) == f"{line} -y --no-install-recommends a b"


@pytest.mark.parametrize(
    ("is_installed", "stands_in", "is_first"),
    [(True, True, True), (True, True, False), (True, False, True), (False, True, True)],
)
def test_the_first_link_of_a_wheel_is_announced(
    is_installed: bool,
    stands_in: bool,
    is_first: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It takes a minute in which nothing else is said."""
    found = SimpleNamespace(path=lambda: tmp_path, is_stood_in=stands_in)
    monkeypatch.setattr(tools, "system_tools", lambda: {"g++": found})
    monkeypatch.setattr(Tree, "is_installed", is_installed)
    monkeypatch.setattr(tools, "users_cache", lambda: tmp_path / ("none" if is_first else ""))
    tools.require("g++")
    is_said = is_installed and stands_in and is_first
    assert capsys.readouterr().err == (f"Compiling {tools.FIRST_LINK}\n" if is_said else "")


def test_optional_tools_can_be_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From this process and those that it starts; what every machine has stays."""
    (tmp_path / "llvm").mkdir()
    for name in ("llvm/clang", "node", "riscv64-unknown-elf-objcopy", "g++"):
        (tmp_path / name).write_text("#!/bin/sh\necho here\n")
        (tmp_path / name).chmod(0o755)
    for name in ("clang++", "clang-tidy"):
        (tmp_path / name).symlink_to("llvm/clang")
    names = ("clang++", "clang-tidy", "node", "riscv64-unknown-elf-objcopy")
    monkeypatch.setattr(PROJECT, "root", tmp_path / "project")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.defpath}")
    for variable in (HIDE_OPTIONAL, EGL_VENDORS):
        monkeypatch.setenv(variable, "0")
    hide_optional_tools()
    assert all(shutil.which(name) for name in names)
    monkeypatch.setenv(HIDE_OPTIONAL, "1")
    for _ in range(2):
        hide_optional_tools()
        assert not any(shutil.which(name) for name in names)
        assert subprocess.run(["g++"], capture_output=True, text=True).stdout == "here\n"
        assert {tool.name for tool in tools.missing_tools(("clang++", "libfuzzer", "g++"))} == {
            "clang++",
            "libfuzzer",
        }
