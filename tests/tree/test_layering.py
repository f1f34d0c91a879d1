"""The include rules of docs/design.md, and that every header compiles alone everywhere."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from include_rules import includes, violations
from rltools_host.build import cmake, experiments, tools
from rltools_host.build.boards import Board, list_boards, load_board
from rltools_host.build.tools import missing_tools
from rltools_host.tree import TREE

COMMON = json.loads(TREE.build_file.read_text())
HEADER_ROOTS = ("lib/rltools/include", "experiments", "firmware")
# Where a header of the tree is looked for, besides the folder of the file that includes it.
INCLUDE_ROOTS = (
    *HEADER_ROOTS,
    "host/native",
    "tests/lib",
    "tests/firmware",
    "integrations/px4/src",
)
MUJOCO_ONLY = ("rltools/rl/environments/mujoco/",)
HOST_ONLY = (
    "rltools/kernels/simd/",
    "rltools/kernels/threads/",
    "rltools/devices/host",
    "rltools/rl/environments/external/",
    *MUJOCO_ONLY,
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
        left_out = (*left_out, *MUJOCO_ONLY)
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


def test_a_header_that_does_not_compile_alone_is_noticed(tmp_path: Path) -> None:
    lacking = tmp_path / "lacks_an_include.h"
    lacking.write_text("#pragma once\ninline std::uint32_t f() { return 0; }\n")
    repeated = tmp_path / "defines_twice.h"
    repeated.write_text("inline int f() { return 0; }\n")
    for header in (lacking, repeated):
        names = ["rltools/core/tensor.h", str(header), "rltools/core/math.h"]
        result = compile_headers(names, load_board("host"), "c++17", tmp_path / header.stem)
        assert result.returncode != 0
        assert header.name in result.stderr


def test_tree_follows_the_include_rules() -> None:
    assert violations(TREE.root) == []


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("core/a.h", '#include "rltools/nn/dense.h"', "core may not include nn"),
        ("nn/a.h", "#include <immintrin.h>", "nn may not include immintrin.h"),
        (
            "rl/environments/a.h",
            '#include "rltools/rl/environments/mujoco/ant.h"',
            "may not include rltools/rl/environments/mujoco/ant.h, which is for experiments",
        ),
        (
            "rl/a.h",
            '#include "rltools/rl/symmetry/symmetry.h"',
            "may not include rltools/rl/symmetry/symmetry.h, which may be absent",
        ),
    ],
)
def test_violation_in_the_library_is_noticed(
    tmp_path: Path, path: str, text: str, expected: str
) -> None:
    file = tmp_path / "lib/rltools/include/rltools" / path
    file.parent.mkdir(parents=True)
    file.write_text(f"#pragma once\n{text}\n")
    found = violations(tmp_path)
    assert len(found) == 1
    assert expected in found[0]


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("app/link/a.h", "#include <Arduino.h>", "may not include <Arduino.h>"),
        ("app/link/a.h", '#include "rltools/rl/training.h"', "app/link may not reach rltools/rl"),
        ("x/a.cpp", '#include "rltools/devices/host.h"\nint f();', "has no main"),
        (
            "x/a.cpp",
            '#include "rltools/devices/host.h"\n#include RLT_DEVICE_HEADER\nint main() {}',
            "includes 2 devices' headers",
        ),
    ],
)
def test_violation_in_firmware_is_noticed(
    tmp_path: Path, path: str, text: str, expected: str
) -> None:
    file = tmp_path / "firmware" / path
    file.parent.mkdir(parents=True)
    file.write_text(f"{text}\n")
    found = violations(tmp_path)
    assert len(found) == 1
    assert expected in found[0]


def test_learning_behind_another_header_of_an_inference_program_is_noticed(tmp_path: Path) -> None:
    for name, text in (
        ("infer/program.h", '#include "app/services/a.h"\n'),
        ("services/a.h", '#include "rltools/rl/training.h"\n'),
    ):
        file = tmp_path / "firmware" / "app" / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
    assert violations(tmp_path) == [
        "firmware/app/infer/program.h: app/infer may not reach rltools/rl/training.h"
    ]


def test_device_header_behind_another_header_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "firmware" / "app").mkdir(parents=True)
    (tmp_path / "firmware" / "app" / "program.h").write_text("#include RLT_DEVICE_HEADER\n")
    (tmp_path / "firmware" / "a.cpp").write_text('#include "app/program.h"\nint f();\n')
    assert len(violations(tmp_path)) == 1
    (tmp_path / "firmware" / "a.cpp").write_text('#include "app/program.h"\nint main() {}\n')
    assert violations(tmp_path) == []


def graph_of_headers(tree: Path, names: Iterable[str]) -> dict[Path, set[Path]]:
    """What each header of the tree includes of the others."""
    files = {tree / name for name in names}
    return {
        file: {
            place
            for include in includes(file.read_text(encoding="utf-8"))
            for folder in (file.parent, *(tree / root for root in INCLUDE_ROOTS))
            if (place := folder / (include.quoted or include.system or "-")) in files
        }
        for file in files
    }


def test_no_headers_include_each_other() -> None:
    listed = subprocess.run(
        ["git", "-C", str(TREE.root), "ls-files", "*.h"], check=True, capture_output=True, text=True
    ).stdout.split()
    graph = graph_of_headers(TREE.root, listed)
    assert any("integrations/px4" in str(file) and graph[file] for file in graph)
    TopologicalSorter(graph).prepare()
