"""The wheel on Windows: Python and our programs for Windows, in Wine (tests/fakes/wine.py)."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from foreign_files import FOLDER
from rltools_host.build import tools
from rltools_host.tree import TREE
from tree_copies import copy_of_tree
from waiting import wait_for
from wine import CompilerServer, Windows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

HASH_OF_300_STEPS = "1c4d11e54c2ed0c4cc32f7723d81b34e4f39c9fd5d65e6f6d593198ebc4f08e9"
HASH_OF_10000_STEPS = "cb477b641fdc"
PUSHES = 8
CHECKOUT = (
    *("rlt", "rlt.cmd", "rlt.toml", "host", "lib", "firmware", "cmake", "toolchains", "boards"),
    *("experiments", "CMakeLists.txt", "pyproject.toml", "docs", "integrations"),
)


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windows]:
    """A computer without a compiler, with a wheel that has the programs of two experiments."""
    if shutil.which("wine") is None:
        pytest.skip("wine not found")
    tools.ensure_group("zig")
    folder = tmp_path_factory.mktemp("my windows")
    build = [sys.executable, TREE.root / "host/wheel/build.py", "windows-x86_64", folder / "dist"]
    subprocess.run([*build, "pendulum-td3", "pendulum-sac", "pendulum"], check=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    machine = Windows(folder, wheel)
    yield machine
    machine.close()


@pytest.fixture(scope="module")
def project(windows: Windows) -> Path:
    """A project whose folder has a space in its name, with a run of 10,000 steps."""
    folder = windows.folder / "my robots"
    folder.mkdir()
    assert "next  cd bot\n" in windows.rlt("new", "--project", "bot", directory=folder)
    project = folder / "bot"
    words = ("train", "pendulum-td3", "--board", "host", "--out", r"runs\one")
    said = windows.rlt(*words, directory=project)
    assert f"state {HASH_OF_10000_STEPS}" in said
    assert r"next  rlt evaluate runs\one --in gymnasium" in said
    return project


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--help", "Start with"),
        ("demo", f"The state: {HASH_OF_10000_STEPS}"),  # on the emulated board, too
        ("train pendulum-td3 --board unicorn-cortex-m7 --steps 300", HASH_OF_300_STEPS),
        ("train pendulum-td3 --board host-threads --steps 300", HASH_OF_300_STEPS),
        ("train pendulum-sac --board host --steps 300 --seeds 0-1", "seed 1: finished"),
        ("train pendulum-td3 --steps 10100 --resume one", "finished 10,100 steps"),
        ("evaluate one --episodes 2", "2 deterministic episodes"),
        ("evaluate one --episodes 2 --in gymnasium", "Pendulum-v1"),
        ("report one", "wrote"),
        ("export one --to c --output c", "wrote c"),
        ("hil --board host --run one", "1,009 of 1,009 inputs"),
        ("push one --board host", "confirmed: active in slot"),
        ("policies --board host", "active"),
        ("runs rename one two", r"runs\one is now runs\two"),
        ("runs rename two one", r"runs\two is now runs\one"),
        ("import {sac} --contract pendulum --out runs/sac", "Stable-Baselines3 SAC"),
    ],
)
def test_a_command_works(windows: Windows, project: Path, line: str, expected: str) -> None:
    words = line.format(sac=FOLDER / "sb3_sac.zip").split()
    assert expected in windows.rlt(*words, directory=project)


@pytest.mark.parametrize("line", ["doctor", "check pendulum-td3"])
def test_what_needs_a_compiler_says_how_to_get_one(
    windows: Windows, project: Path, line: str
) -> None:
    said = windows.rlt(*line.split(), directory=project, code=3)
    assert 'pip install "rltools-host[compiler]"' in said
    assert "apt-get" not in said


def test_a_push_whose_board_is_killed_leaves_a_policy(windows: Windows, project: Path) -> None:
    """At any moment: the storage of its policies stays whole."""
    choice = random.Random(0)
    windows.rlt("push", "one", "--board", "host", directory=project)
    for _ in range(PUSHES):
        words = ("-m", "rltools_host", "push", "one", "--board", "host")
        pushing = windows.start(*words, directory=project)
        wait_for(lambda pushing=pushing: board_processes() or pushing.poll() is not None, 60)
        time.sleep(choice.uniform(0, 1.5))
        for process in board_processes():
            os.kill(process, 9)
        pushing.communicate(timeout=120)
        listed = windows.rlt("policies", "--board", "host", "--json", directory=project)
        slots = [json.loads(line) for line in listed.splitlines() if line.startswith("{")]
        assert any("active" in json.dumps(slot) for slot in slots), listed


def board_processes() -> list[int]:
    """The programs `infer` that run in Wine."""
    return [
        int(folder.name)
        for folder in Path("/proc").glob("[0-9]*")
        if b"infer\\pendulum.exe" in command_line(folder)
    ]


def command_line(folder: Path) -> bytes:
    try:
        return (folder / "cmdline").read_bytes()
    except OSError:
        return b""


def test_what_a_user_wrote_is_compiled(windows: Windows, project: Path) -> None:
    """By CMake and Ninja for Windows; what Zig compiles is Zig's own for Windows."""
    with CompilerServer() as server:
        windows.add_compiler(windows.packages, server.port)
        words = ("train", "bot", "--board", "host", "--steps", "600")
        assert "finished 600 steps" in windows.rlt(*words, directory=project)
        assert "nothing is wrong" in windows.rlt("check", "bot", directory=project)
        words = ("train", "gym:Pendulum-v1", "--algorithm", "sac", "--steps", "300")
        small = ("--set", "hidden=16,16", "--set", "learning_starts=100")
        there = windows.rlt(*words, *small, "--out", r"runs\gym", directory=project)
        assert "finished 300 steps" in there
        assert "wrote page" in windows.rlt(
            "web", "pendulum-td3", "--out", "page", directory=project
        )


def test_a_checkout_sets_itself_up(windows: Windows) -> None:
    """By uv for Windows, which the user has; then as on a machine with Zig."""
    uv, checkout = windows.folder / "uv", windows.folder / "checkout"
    windows.install(uv, "uv")
    windows.environment["WINEPATH"] = f"Z:{uv / 'bin'}"
    copy_of_tree(checkout, *CHECKOUT)

    def printed(*words: str, python: Path | None = None) -> str:
        process = windows.start(*words, directory=checkout, python=python)
        said, _ = process.communicate(timeout=1200)
        assert process.returncode == 0, said
        return said

    assert "Start with: .\\rlt demo" in printed("rlt", "--help")
    code = "from rltools_host.build import tools; tools.ensure_group('zig')"
    printed("-I", "-c", code, python=checkout / ".venv/Scripts/python.exe")
    with CompilerServer() as server:
        windows.add_compiler(checkout / ".venv/Lib/site-packages", server.port)
        said = printed("rlt", "train", "pendulum-td3", "--board", "host", "--steps", "300")
    assert f"state {HASH_OF_300_STEPS} verified" in said
    assert "next  .\\rlt evaluate" in said
