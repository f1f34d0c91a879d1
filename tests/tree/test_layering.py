"""The include rules of docs/design.md, and that every header compiles alone everywhere."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import pytest

from include_rules import EXTERNAL_FOLDER, MUJOCO_FOLDER, violations
from rltools_host.build import cmake, experiments, tools
from rltools_host.build.boards import Board, list_boards, load_board
from rltools_host.build.tools import missing_tools
from rltools_host.tree import TREE

COMMON = json.loads(TREE.build_file.read_text())
HEADER_ROOTS = ("lib/rltools/include", "experiments", "firmware")
HOST_ONLY = (
    "rltools/kernels/simd/",
    "rltools/kernels/threads/",
    "rltools/devices/host",
    EXTERNAL_FOLDER,
    MUJOCO_FOLDER,
)
CMAKE_BOARDS = [board for board in list_boards() if board.toolchain.builder == "cmake"]
# One board of each toolchain, the one with the fewest needs: its flags, defines and device.
# Toolchains with standard headers of ours, which include least, are first, and this machine's last.
TOOLCHAINS = {
    board.toolchain.name: board
    for board in sorted(
        CMAKE_BOARDS,
        key=lambda b: (
            b.toolchain.native,
            not b.toolchain.system_include_directories,
        ),
    )
}


def folders_of(boards: Iterable[Board]) -> set[str]:
    """Where in firmware/ the sources of these boards are."""
    patterns = [pattern for board in boards for pattern in board.sources]
    return {pattern.removeprefix("firmware/").rpartition("/")[0] + "/" for pattern in patterns}


def headers() -> list[str]:
    """Every header, as it is included, but those that need a vendor's, which PlatformIO fetches."""
    others = [board for board in list_boards() if board.toolchain.builder != "cmake"]
    vendors = tuple(folders_of(others) - folders_of(CMAKE_BOARDS))
    names = []
    for root in HEADER_ROOTS:
        directory = TREE.root / root
        names += [str(path.relative_to(directory)) for path in sorted(directory.rglob("*.h"))]
    return [name for name in names if not name.startswith(vendors)]


@cache
def mujoco_folder() -> Path | None:
    """Where its package is; None where there is none for this Python."""
    tools.ensure_group("mujoco")
    importlib.invalidate_caches()
    found = importlib.util.find_spec("mujoco")
    return None if found is None or found.origin is None else Path(found.origin).parent


def headers_for(board: Board) -> list[str]:
    """The headers that this board's toolchain compiles: not those of another toolchain's boards."""
    own = [other for other in CMAKE_BOARDS if other.toolchain == board.toolchain]
    others = folders_of(CMAKE_BOARDS) - folders_of(own)
    left_out = (*others, *(() if board.toolchain.native else HOST_ONLY))
    if mujoco_folder() is None:
        left_out = (*left_out, MUJOCO_FOLDER)
    for name in experiments.names(experiments.EXPERIMENT):
        required = experiments.requirements(name)
        if experiments.lacking(name, board) or ("mujoco" in required and mujoco_folder() is None):
            left_out = (*left_out, experiments.header_of(name).name)
    return [name for name in headers() if not name.startswith(left_out)]


def mujoco_flags() -> list[str]:
    folder = mujoco_folder()
    return [] if folder is None else ["-isystem", f"{folder}/include", '-DRLT_MUJOCO_MODELS="x"']


def compile_command(board: Board, standard: str) -> list[str]:
    tools.require(*cmake.required_tools(board))
    flags = [flag for flag in [*COMMON["flags"], *board.flags] if not flag.startswith("-std=")]
    return [
        *(board.toolchain.compiler, f"-std={standard}", "-fsyntax-only", *flags),
        *(f"-I{TREE.root / directory}" for directory in COMMON["include_directories"]),
        *board.toolchain.include_flags,
        *(mujoco_flags() if board.toolchain.native else []),
        *("-isystem", str(cmake.generate_protocol() / "c")),
        '-DRLT_EXPERIMENT_HEADER="pendulum_td3.h"',
        "-DRLT_EXPERIMENT=PendulumTd3",
        '-DRLT_CONTRACT_HEADER="rltools/policy/contracts/pendulum.h"',
        "-DRLT_CONTRACT=Pendulum",
        f'-DRLT_DEVICE_HEADER="{board.device_header}"',
        f"-DRLT_DEVICE={board.device}",
        f'-DRLT_BOARD_NAME="{board.name}"',
        f"-DRLT_SYSTEM={board.address.system}",
        f"-DRLT_COMPONENT={board.address.component}",
    ]


def compile_headers(
    names: Sequence[str], board: Board, standard: str, directory: Path
) -> subprocess.CompletedProcess[str]:
    """Compiles each header alone, twice in a file of its own, and all files by one command."""
    directory.mkdir(exist_ok=True)
    files = []
    for index, name in enumerate(names):
        file = directory / f"{index}_{Path(name).stem}.cpp"
        file.write_text(f'#include "{name}"\n#include "{name}"\n')
        files.append(str(file))
    command = [*compile_command(board, standard), *files]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


def headers_first_for(name: str) -> list[str]:
    """Those that no toolchain that is installed, and gives a header less for free, compiles."""
    others: set[str] = set()
    for other, board in TOOLCHAINS.items():
        if other == name:
            return [header for header in headers_for(board) if header not in others]
        if not missing_tools(cmake.required_tools(board)):
            others.update(headers_for(board))
    raise AssertionError(name)


@pytest.mark.parametrize("name", TOOLCHAINS)
@pytest.mark.all
def test_each_header_compiles_alone(name: str, tmp_path: Path) -> None:
    """Each once, where least is included without being asked for."""
    board = TOOLCHAINS[name]
    result = compile_headers(headers_first_for(name), board, "c++17", tmp_path / "alone")
    assert result.returncode == 0, result.stderr


@pytest.mark.all
def test_all_headers_compile_together_in_cpp20(tmp_path: Path) -> None:
    """Those of programs beside the others only: a translation unit has one."""
    board = load_board("host")
    programs = [program["header"] for program in COMMON["programs"].values()]
    others = [name for name in reversed(headers_for(board)) if name not in programs]
    file = tmp_path / "all.cpp"
    file.write_text("".join(f'#include "{name}"\n' for name in (*others, programs[0])))
    files = [file, *(tmp_path / f"{Path(name).parent.name}.cpp" for name in programs[1:])]
    for path, name in zip(files[1:], programs[1:], strict=True):
        path.write_text(f'#include "{name}"\n')
    command = [*compile_command(board, "c++20"), *map(str, files)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr


def test_each_header_is_compiled_by_a_toolchain() -> None:
    """By one of those that are installed here, whichever they are."""
    installed = [
        name for name, board in TOOLCHAINS.items() if not missing_tools(cmake.required_tools(board))
    ]
    compiled = [header for name in installed for header in headers_first_for(name)]
    assert len(compiled) == len(set(compiled))
    assert set(headers_for(TOOLCHAINS["host"])) <= set(compiled)


def test_tree_follows_the_include_rules() -> None:
    assert violations(TREE.root) == []


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("lib/core/a.h", '#include "rltools/nn/dense.h"', "core may not include nn"),
        ("lib/nn/a.h", "#include <immintrin.h>", "nn may not include immintrin.h"),
        ("lib/rl/a.h", f'#include "{MUJOCO_FOLDER}ant.h"', "may not include rltools/rl/env"),
        ("firmware/app/link/a.h", "#include <Arduino.h>", "may not include <Arduino.h>"),
        ("firmware/app/infer/a.h", '#include "app/services/b.h"', "may not reach rltools/rl"),
    ],
)
def test_a_violation_is_noticed(tmp_path: Path, path: str, text: str, expected: str) -> None:
    files = {
        path.replace("lib/", "lib/rltools/include/rltools/"): text,
        "firmware/app/services/b.h": '#include "rltools/rl/training.h"',
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{content}\n")
    (found,) = violations(tmp_path)
    assert expected in found


def test_only_a_program_includes_a_device_and_only_one(tmp_path: Path) -> None:
    header, source = tmp_path / "firmware/app/program.h", tmp_path / "firmware/a.cpp"
    header.parent.mkdir(parents=True)
    header.write_text("#include RLT_DEVICE_HEADER\n")
    included = '#include "app/program.h"\n'
    source.write_text(included + "int f();\n")
    assert len(violations(tmp_path)) == 1
    source.write_text(included + "int main() {}\n")
    assert violations(tmp_path) == []
    source.write_text(included + '#include "rltools/devices/host.h"\nint main() {}\n')
    assert len(violations(tmp_path)) == 1
