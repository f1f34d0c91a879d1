"""What fits a board: what an experiment requires, and the programs that a board is built with."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import gymnasium
import pytest

from programs import require_program
from rltools_host.build import cmake, experiments, firmware, tools
from rltools_host.build.boards import list_boards, load_board
from rltools_host.build.catalog import list_environments
from rltools_host.drones.flight.gate import load_gate
from rltools_host.errors import BuildError, UsageError
from rltools_host.policies.episodes import gymnasium_has
from rltools_host.tree import PROJECT, TREE, Tree
from tree_copies import configured, copy_of_tree, ninja

HOST, EMULATED, FLASHED = (load_board(name) for name in ("host", "qemu-cortex-m7", "teensy41"))
HOSTED = "// Arms of a robot.\n// Requires: hosted\n#pragma once\nstruct RobotArm {};\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Experiments of this test: one for every board, one for those with an operating system."""
    directory = tmp_path / "experiments"
    directory.mkdir()
    text = "// Requires nothing: fits every board.\n#pragma once\nstruct Anywhere {};\n"
    (directory / "anywhere.h").write_text(text)
    (directory / "robot_arm.h").write_text(HOSTED)
    monkeypatch.setattr(Tree, "experiments", directory)
    monkeypatch.setattr(PROJECT, "root", tmp_path)
    return directory


def test_gymnasiums_own_environments_are_known_without_it() -> None:
    for name, specification in gymnasium.registry.items():
        if str(specification.entry_point).startswith("gymnasium.envs.") and "/" not in name:
            assert experiments.is_of_gymnasium(name), name
    assert not experiments.is_of_gymnasium("rlt/Pendulum-v1")
    assert not experiments.is_of_gymnasium("Pendulum")


@pytest.mark.parametrize("experiment", experiments.list_experiments())
def test_what_is_evaluated_next_exists(experiment: str) -> None:
    """A gate; or Gymnasium, where the environment of the experiment's header is one of its own."""
    environment = environment_of(experiment)
    options = experiments.evaluation_options(experiment, environment)
    if "--gate" in options:
        assert load_gate(options[1]).name == options[1]
        return
    assert bool(options) == gymnasium_has(environment)


def environment_of(experiment: str) -> str:
    """The name of the one whose header its header includes, or that of its base."""
    known = {environment.header: environment.name for environment in list_environments()}
    for text in experiments.texts_of(experiments.header_of(experiment)):
        headers = (TREE.include / name for name in re.findall(r'#include "([^"]+)"', text))
        if names := [known[header] for header in headers if header in known]:
            (name,) = names
            return name
    raise AssertionError(f"{experiment} includes no environment")


def test_experiments_of_a_board_are_those_that_fit(folder: Path) -> None:
    assert folder.is_dir()
    assert experiments.list_experiments() == ["anywhere", "robot-arm"]
    for board in list_boards():
        expected = ["anywhere", "robot-arm"] if board.toolchain.native else ["anywhere"]
        assert experiments.list_experiments(board) == expected, board.name


@pytest.mark.parametrize("board", [EMULATED, FLASHED], ids=lambda board: board.name)
def test_a_board_that_does_not_fit_is_one_sentence(
    folder: Path, board: experiments.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is built."""
    assert folder.is_dir()
    monkeypatch.setattr(experiments.cmake, "build_targets", lambda *_: pytest.fail("was built"))
    with pytest.raises(UsageError) as error:
        experiments.describe("robot-arm", board)
    assert str(error.value) == (
        f"robot-arm is not for {board.name}, which does not provide hosted: "
        "boards that fit: host, host-threads"
    )


def test_what_platformio_runs_needs_no_package() -> None:
    """firmware/platformio_flags.py runs with PlatformIO's Python, which has none of ours."""
    script = "import sys; sys.path.insert(0, sys.argv[1]); import rltools_host.build.experiments"
    command = [sys.executable, "-I", "-S", "-c", script, str(TREE.root / "host")]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what CMake and PlatformIO read, with an experiment for hosted boards."""
    names = ("CMakeLists.txt", "cmake", "boards", "toolchains", "firmware", "experiments", "lib")
    others = ("host", "platforms", "platformio.ini", "rlt.toml")
    tree = copy_of_tree(tmp_path / "tree", *names, *others)
    (tree / "experiments/robot_arm.h").write_text(HOSTED)
    return tree


def configure(tree: Path, board: str) -> subprocess.CompletedProcess[str]:
    return configured(tree, tree / "build" / board, board)


def targets(tree: Path, board: str) -> set[str]:
    result = configure(tree, board)
    assert result.returncode == 0, result.stderr
    files = json.loads((tree / "build" / board / "compile_commands.json").read_text())
    return {part[:-4] for entry in files for part in entry["output"].split("/") if ".dir" in part}


@pytest.mark.all
def test_cmake_makes_no_target_of_an_experiment_that_does_not_fit(tree: Path) -> None:
    header = tree / "experiments/robot_arm.h"
    on_board = targets(tree, EMULATED.name)
    assert "train-robot-arm" not in on_board
    assert "train-pendulum-td3" in on_board
    header.write_text("#pragma once\n")
    assert ninja(tree / "build" / EMULATED.name, "build.ninja").returncode == 0
    assert "train-robot-arm" in targets(tree, EMULATED.name)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("// Requires: hosts", 'experiments/robot_arm.h: requires "hosts", which no board'),
        pytest.param(
            "// Requires:",
            'experiments/robot_arm.h: "// Requires:" names nothing; known are hosted;mujoco',
            marks=pytest.mark.all,
        ),
    ],
)
def test_cmake_refuses_an_unknown_word(tree: Path, line: str, reason: str) -> None:
    require_program("arm-none-eabi-g++")
    (tree / "experiments/robot_arm.h").write_text(f"{line}\n")
    result = configure(tree, EMULATED.name)
    assert result.returncode != 0
    assert reason in " ".join(result.stderr.split())


@pytest.mark.all
def test_a_board_may_provide_what_its_toolchain_does_not(
    tree: Path, move_to: Callable[[Path], None]
) -> None:
    path = tree / "boards" / f"{EMULATED.name}.json"
    document = json.loads(path.read_text())
    document["rltools"]["provides"] = ["hosted"]
    path.write_text(json.dumps(document))
    move_to(tree)
    assert load_board(EMULATED.name).provides == ("hosted",)
    assert "train-robot-arm" in targets(tree, EMULATED.name)


@pytest.mark.all
def test_platformio_refuses_what_does_not_fit(tree: Path, move_to: Callable[[Path], None]) -> None:
    """An experiment, and a program that the board is not built with."""
    tools.ensure_group("platformio")
    move_to(tree)
    for experiment, sentence in (
        ("robot-arm", "robot-arm is not for qemu-cortex-m7, which does not provide hosted"),
        ("pendulum-td3", "qemu-cortex-m7 is not built with the program train"),
    ):
        if experiment == "pendulum-td3":
            write_programs(tree, [])
        code, output = firmware.run_platformio(["run", "-e", EMULATED.name], experiment)
        assert code != 0
        assert sentence in output
        assert "Traceback" not in output


# -- programs ----------------------------------------------------------------------------------


def write_programs(tree: Path, programs: list[str]) -> None:
    path = tree / "boards" / f"{EMULATED.name}.json"
    document = json.loads(path.read_text())
    document["rltools"]["programs"] = programs
    path.write_text(json.dumps(document))


def test_a_board_is_built_with_all_programs_or_those_it_names() -> None:
    assert cmake.programs_of(EMULATED) == list(json.loads(TREE.build_file.read_text())["programs"])
    assert cmake.programs_of(replace(EMULATED, programs=("train",))) == ["train"]
    assert cmake.programs_of(replace(EMULATED, programs=())) == []
    with pytest.raises(BuildError, match=r'qemu-cortex-m7\.json: no program "trane" in'):
        cmake.programs_of(replace(EMULATED, programs=("trane",)))


def test_a_program_that_a_board_is_not_built_with_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before anything is built."""
    monkeypatch.setattr(firmware, "build_targets", lambda *_: pytest.fail("was built"))
    monkeypatch.setattr(cmake, "list_boards", lambda: [HOST, EMULATED])
    with pytest.raises(UsageError, match='unknown program "trane": did you mean train'):
        firmware.build_firmware(HOST, "pendulum-td3", "trane")
    with pytest.raises(UsageError) as error:
        firmware.build_firmware(replace(HOST, programs=()), "pendulum-td3")
    assert str(error.value) == (
        "host is not built with the program train: boards that are: host, qemu-cortex-m7"
    )


@pytest.mark.all
def test_cmake_makes_targets_of_the_boards_programs(tree: Path) -> None:
    write_programs(tree, ["train"])
    assert "train-pendulum-td3" in targets(tree, EMULATED.name)
    write_programs(tree, [])
    assert configure(tree, EMULATED.name).returncode == 0
    known = ninja(tree / "build" / EMULATED.name, "-t", "targets").stdout
    assert "train-" not in known
    write_programs(tree, ["trane"])
    result = configure(tree, EMULATED.name)
    assert result.returncode != 0
    assert 'no program "trane" in firmware/build.json' in " ".join(result.stderr.split())


# -- MuJoCo ------------------------------------------------------------------------------------

SIMULATED = "// Requires: mujoco\n#pragma once\nstruct RobotArm {};\n"


def python_without_mujoco(folder: Path) -> Path:
    """A Python's folders, with nothing but the program, which is this Python."""
    python = folder / "bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return python


def install_mujoco(python: Path) -> None:
    """Copies what is built with from this Python's packages."""
    tools.ensure_group("mujoco")
    import mujoco

    source = Path(mujoco.__file__).parent
    packages = python.parent.parent / "lib/python3.99/site-packages"
    shutil.copytree(source / "include", packages / "mujoco/include")
    for library in source.glob("libmujoco.*"):
        shutil.copy(library, packages / "mujoco")
    models = "gymnasium/envs/mujoco/assets"
    shutil.copytree(source.parent / models, packages / models)


def test_where_mujoco_is_missing_only_what_requires_it_says_so(tree: Path, tmp_path: Path) -> None:
    require_program("g++")
    (tree / "experiments/robot_arm.h").write_text(SIMULATED)
    (tree / "experiments/walker.h").write_text(HOSTED.replace("RobotArm", "Walker"))
    python = python_without_mujoco(tmp_path / "an environment")
    build = tmp_path / "a build"
    result = configured(tree, build, "host", f"-DRLT_PYTHON={python}")
    assert result.returncode == 0, result.stderr
    assert "MuJoCo" not in result.stdout + result.stderr
    everything = ninja(build, "-t", "inputs", "all").stdout
    for name in ("train-pendulum-td3", "train-walker", "describe-walker"):
        assert name in everything
    assert "robot-arm" not in everything
    for target in ("train-robot-arm", "describe-robot-arm", "simulate-robot-arm"):
        result = ninja(build, target)
        assert result.returncode != 0
        (line,) = [line for line in result.stdout.splitlines() if line.startswith("error: ")]
        assert line.startswith("error: robot_arm.h needs MuJoCo 4")
        assert f"{python} -m pip install --require-hashes -r" in line


@pytest.mark.all
def test_mujoco_is_found_once_it_is_installed_whatever_its_path(tmp_path: Path) -> None:
    """The next build finds it, and the program the library."""
    python = python_without_mujoco(tmp_path / "an environment")
    build = tmp_path / "a build"
    assert configured(TREE.root, build, "host", f"-DRLT_PYTHON={python}").returncode == 0
    assert ninja(build, "mujoco_episodes").returncode != 0
    install_mujoco(python)
    result = ninja(build, "mujoco_episodes")
    assert result.returncode == 0, result.stdout
    command = [build / "mujoco_episodes", "Hopper-v4", "0", "0", "0"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    model = next(python.parent.parent.rglob("hopper.xml"))
    model.unlink()
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.startswith(f"Hopper-v4: MuJoCo cannot load the model {model}: ")
    assert len(result.stderr.splitlines()) == 1


def test_firmware_is_built_without_a_look_at_mujoco(tree: Path, tmp_path: Path) -> None:
    require_program("arm-none-eabi-g++")
    (tree / "experiments/robot_arm.h").write_text(SIMULATED)
    python = python_without_mujoco(tmp_path / "an environment")
    install_mujoco(python)
    result = configured(tree, tmp_path / "build", EMULATED.name, f"-DRLT_PYTHON={python}")
    assert result.returncode == 0, result.stderr
    written = (tmp_path / "build/build.ninja").read_text()
    assert "train-pendulum-td3" in written
    assert "robot-arm" not in written
    verified = (tmp_path / "build/CMakeFiles/VerifyGlobs.cmake").read_text()
    for word in ("site-packages/mujoco", "libmujoco", "RLT_MUJOCO"):
        assert word not in written
        assert word not in verified
