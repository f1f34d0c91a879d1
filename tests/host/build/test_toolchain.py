"""Setting up: the launcher, .venv, apt and the lock files, without changing this machine."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rltools_host.build import cmake, tools
from rltools_host.build import toolchains as description
from rltools_host.build.boards import list_boards, load_board
from rltools_host.build.toolchains import (
    Tool,
    group_stamp,
    load_toolchain,
    system_tools,
    toolchain_names,
)
from rltools_host.commands import doctor
from rltools_host.errors import BuildError, MissingToolError
from rltools_host.tree import HIDE_OPTIONAL, TREE
from tree_copies import copy_of_tree

LOCKED_GROUPS = sorted(tools.GROUPS | tools.STAND_INS)
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
    (tree / "host/requirements/default.txt").write_text("# nothing\n")
    return tree


def launch(
    tree: Path, *arguments: str, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "RLT_PYTHON": sys.executable, **variables}
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
    shutil.copy(tree / "host/requirements/default.txt", tree / ".venv/rlt-default.txt")


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


@pytest.mark.all
def test_launcher_takes_a_python_by_a_relative_path(tree: Path, tmp_path: Path) -> None:
    (tree / "host/rltools_host/__main__.py").write_text("print('started')\n")
    script(tmp_path / "here/python", f'exec "{sys.executable}" "$@"')
    result = launch(tree, cwd=tmp_path, RLT_PYTHON="here/python")
    assert result.stdout == "started\n", result.stderr


def test_launcher_with_an_old_python(tree: Path, tmp_path: Path) -> None:
    old = script(tmp_path / "python3.9", '[ "$1" = -V ] && echo "Python 3.9.2" || exit 1')
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
    environment = {**os.environ, "RLT_PYTHON": sys.executable}
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

    (moved / "host/requirements/default.txt").write_text("# another lock\n")
    changed = launch(moved)
    assert changed.returncode == 0
    assert "Installing Python packages" in changed.stderr
    assert "Setting up .venv" not in changed.stderr


@pytest.mark.all
def test_failed_installation_is_one_sentence_and_is_repeated(tree: Path) -> None:
    lock = tree / "host/requirements/default.txt"
    lock.write_text(f"no-such-package==1.0 --hash=sha256:{'0' * 64}\n")
    variables = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    for _ in range(2):
        result = launch(tree, **variables)
        assert result.returncode == MissingToolError.exit_code
        last = result.stderr.splitlines()[-1]
        assert last.startswith("error: pip could not install the Python packages of default")
        assert "Traceback" not in result.stderr


# What apt-get says of two packages.
URIS = (
    "'http://deb.example.org/pool/g.deb' g_12.2.0-14_amd64.deb 3600000 SHA256:ab\n"
    "'http://deb.example.org/pool/l%2b.deb' l_1_amd64.deb 123456 SHA256:cd"
)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with an apt-get that notes its calls and installs one tool, for an ordinary user."""
    bin_directory = tmp_path / "bin"
    script(bin_directory / "some-compiler.installed", "true")
    script(
        bin_directory / "apt-get",
        f'echo "$@" >> {tmp_path}/apt\n'
        f'case "$*" in *--print-uris) echo "{URIS}"; exit;; esac\n'
        f'case "$1" in install) mv {bin_directory}/some-compiler.installed '
        f"{bin_directory}/some-compiler;; esac",
    )
    monkeypatch.setenv("PATH", f"{bin_directory}:/bin:/usr/bin")
    tool = Tool("some-compiler", "some-package", "this test")
    use_tools(monkeypatch, tool)
    monkeypatch.setattr(tools.os, "geteuid", lambda: 1000)
    return tmp_path


def use_tools(monkeypatch: pytest.MonkeyPatch, tool: Tool) -> None:
    for module in (tools, doctor):
        monkeypatch.setattr(module, "system_tools", lambda: {tool.name: tool})
    monkeypatch.setattr(doctor, "summaries", list)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        (
            "{machine}/bin:/bin:/usr/bin",
            "sudo apt-get install -y --no-install-recommends some-pack",
        ),
        ("{machine}/bin", "run this line as root, then try again: apt-get"),
        ("{machine}/nothing", "some-compiler not found: install it with your system's"),
    ],
)
def test_who_may_not_install_is_told_the_line(
    machine: Path, monkeypatch: pytest.MonkeyPatch, path: str, sentence: str
) -> None:
    """With sudo that asks for a password, without sudo, and on another system than Debian."""
    if "/usr/bin" in path:
        script(machine / "bin/sudo", "exit 1")
    monkeypatch.setenv("PATH", path.format(machine=machine))
    with pytest.raises(MissingToolError, match=re.escape(sentence)):
        tools.require("some-compiler")
    assert not (machine / "apt").exists()


@pytest.fixture
def stand_in(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Some packages have a program that does the same as the compiler."""
    tool = Tool("some-compiler", "some-package", "this test", stand_in="like-it", group="zig")
    use_tools(monkeypatch, tool)
    monkeypatch.setattr(TREE, "root", machine)
    monkeypatch.setattr(tools, "group_is_installed", lambda group: group_stamp(group).is_file())
    script(machine / "like-it", f'echo "$@" >> {machine}/linked')
    (machine / ".venv").mkdir()
    monkeypatch.setattr(tools, "ensure_group", lambda group: group_stamp(group).touch())
    return machine


def test_packages_stand_in_for_a_compiler_where_none_may_be_installed(
    stand_in: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script(stand_in / "bin/sudo", "exit 1")
    tools.require("some-compiler")
    assert tools.system_tools()["some-compiler"].path() == str(stand_in / "like-it")
    assert "empty.cpp -o" in (stand_in / "linked").read_text()
    assert "once: about 70 s of a processor" in capsys.readouterr().err
    assert doctor.run() == 0
    assert "like-it instead" in capsys.readouterr().out
    (stand_in / "bin/some-compiler.installed").rename(stand_in / "bin/some-compiler")
    tool = tools.system_tools()["some-compiler"]
    assert tool.path() == str(stand_in / "bin/some-compiler")
    monkeypatch.setenv("RLT_CXX", "zig")
    assert tool.path() == str(stand_in / "like-it")


def test_the_system_s_compiler_is_preferred_where_it_may_be_installed(
    stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root."""
    script(stand_in / "bin/sudo", "exit 1")
    monkeypatch.setattr(tools.os, "geteuid", lambda: 0)
    tools.require("some-compiler")
    assert (stand_in / "bin/some-compiler").exists()
    assert not (stand_in / "linked").exists()


def test_a_build_tree_is_of_one_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board = load_board("host")
    monkeypatch.setattr(TREE, "root", tmp_path)
    (tmp_path / ".venv").mkdir()
    monkeypatch.setattr(description.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert cmake.toolchain_options(board) == {"RLT_STAND_IN": ""}
    monkeypatch.setenv("RLT_CXX", "zig")
    group_stamp("zig").touch()
    program = str(tmp_path / "toolchains/zig-c++")
    assert cmake.toolchain_options(board) == {"RLT_STAND_IN": program}


@pytest.mark.parametrize("optional", [True, False])
def test_doctor_says_how_to_get_what_is_missing(
    machine: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    optional: bool,
) -> None:
    """And is content without optional tools."""
    use_tools(monkeypatch, Tool("some-compiler", "some-package", "this test", optional=optional))
    line = "apt-get install -y --no-install-recommends some-package"
    assert doctor.run() == (0 if optional else MissingToolError.exit_code)
    printed = capsys.readouterr()
    assert line in printed.out
    assert ("this test (optional)" in printed.out) == optional
    assert printed.err.strip().endswith("" if optional else line)
    (machine / "bin/some-compiler.installed").rename(machine / "bin/some-compiler")
    assert doctor.run() == 0


def test_libraries_are_found_by_their_toolchains_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(description, "compiler_file", lambda compiler, name: f"/{compiler}/{name}")
    monkeypatch.delenv(HIDE_OPTIONAL, raising=False)
    known = system_tools()
    machine = platform.machine()  # x86_64
    assert known["libfuzzer"].path() == f"/clang++/libclang_rt.fuzzer-{machine}.a"
    assert known["arm-none-eabi-libstdc++"].path() == "/arm-none-eabi-g++/libstdc++.a"
    optional = {tool.name for tool in known.values() if tool.optional}
    assert optional == {
        *("riscv64-unknown-elf-g++", "picolibc", "qemu-system-riscv32"),
        *("ccache", "clang++", "libfuzzer", "wasm-ld", "node", "chromium", "xtensa-lx106-elf-g++"),
        "doxygen",
    }


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


def test_what_boards_name_is_known() -> None:
    for board in list_boards():
        if board.emulator is not None:
            emulators = [tool.name for tool in board.toolchain.emulators]
            assert board.emulator.program in emulators


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expecting"),
        ("{}", "'builder' is missing"),
        ('{"builder": "cmake"}', "title"),
        ('{"title": "x", "builder": "make"}', 'builder "make" is none of cmake, platformio'),
        ('{"title": "x", "builder": "cmake", "prefixes": ""}', 'unknown key "prefixes"'),
        ('{"title": "x", "builder": "cmake", "tools": [{"name": "x"}]}', "package"),
    ],
)
def test_wrong_toolchain_is_named(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "mine.json").write_text(text)
    with pytest.raises(BuildError, match=reason) as error:
        load_toolchain("mine", tmp_path)
    assert "mine.json: not a toolchain's description" in str(error.value)


def requirements(group: str) -> list[str]:
    """The requirements of a lock file, each as one line."""
    text = (TREE.requirements / f"{group}.txt").read_text()
    lines = text.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]


@pytest.mark.parametrize("group", LOCKED_GROUPS)
def test_lock_files_pin_everything_with_hashes(group: str) -> None:
    lines = requirements(group)
    assert lines
    for line in lines:
        assert re.match(r"[a-z0-9._-]+==[^ ;]+ .*--hash=sha256:[0-9a-f]{64}", line), line
        assert "://" not in line


def test_lock_files_agree_with_each_other() -> None:
    pins: dict[tuple[str, str], set[str]] = {}
    for group in LOCKED_GROUPS:
        for line in requirements(group):
            name, _, rest = line.partition("==")
            version, _, marker = rest.partition("--hash")[0].partition(";")
            pins.setdefault((name, marker.strip()), set()).add(version.strip())
    assert {key: versions for key, versions in pins.items() if len(versions) > 1} == {}


def test_lock_files_hold_what_pyproject_names() -> None:
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
