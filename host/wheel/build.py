"""Builds the wheel with programs of this system in it.

python host/wheel/build.py [FOLDER [EXPERIMENT ...]]

For computers without a compiler (host/rltools_host/build/prebuilt.py): all experiments of this
machine (or those that are named), by Zig for the least processor and C library that are supported,
and what the demo puts on its emulated board. `pip wheel .` builds the wheel without programs, for
every system.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from rltools_host.build import cmake, prebuilt, tools
from rltools_host.build.boards import Board, load_board
from rltools_host.build.cmake import TRAIN, firmware_target
from rltools_host.build.experiments import (
    HOST_BOARD,
    list_experiments,
    native_board,
    requirements,
)
from rltools_host.tree import TREE

OF_THE_DEMO = "pendulum-td3"
LIBRARIES = ("policy", "pilot", "flight")  # host/native/<name>_library.cpp
PROGRAMS = TREE.root / "build" / "prebuilt"


def of_this_machine(board: Board, chosen: Sequence[str]) -> dict[str, list[str]]:
    """Return the files of each target, of the experiments that need nothing but a compiler."""
    libraries = LIBRARIES if board.name == HOST_BOARD else ()
    files = {name: [f"lib{name}.so"] for name in libraries}
    for name in chosen or list_experiments(board):
        if "mujoco" in requirements(name):
            continue
        files[firmware_target(name)] = [f"{TRAIN}/{name}"]
        if native_board(name) == board:
            files |= {target: [target] for target in (f"describe-{name}", f"simulate-{name}")}
    return files


def compile_here(board: Board, targets: Iterable[str]) -> Path:
    directory = PROGRAMS / "build" / board.name
    options = {"RLT_STAND_IN": str(TREE.toolchains / "zig-portable-c++")}
    announcement = f"Building the programs of {board.name}"
    return cmake.build_targets(
        board, list(targets), directory=directory, options=options, announcement=announcement
    )


def keep(board: Board, directory: Path, files: Mapping[str, Iterable[str]], portable: bool) -> int:
    """Copy the files of each target, write what they are, and return their size."""
    folder = PROGRAMS / "prebuilt" / board.firmware
    shutil.rmtree(folder, ignore_errors=True)
    size = 0
    for name in (name for names in files.values() for name in names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(directory / name, folder / name)
        size += (folder / name).stat().st_size
    is_x86 = not portable and platform.machine() == "x86_64"
    content = prebuilt.Content(
        system="" if portable else platform.system(),
        machine="" if portable else platform.machine(),
        features=prebuilt.X86_64_V3 if is_x86 else (),
        sources_sha256=prebuilt.sources_sha256(),
        targets={
            target: {name: prebuilt.sha256(folder / name) for name in names}
            for target, names in files.items()
        },
    )
    text = msgspec.json.format(msgspec.json.encode(content), indent=1)
    (folder / prebuilt.CONTENT).write_bytes(text)
    return size


def main() -> None:
    output, *chosen = [*sys.argv[1:], *(["dist"] if len(sys.argv) == 1 else [])]
    tools.ensure_group("zig")
    for name in (HOST_BOARD, "host-threads"):
        board = load_board(name)
        files = of_this_machine(board, chosen)
        size = keep(board, compile_here(board, files), files, portable=False)
        print(f"{name}: {size / 1e6:.1f} MB")
    emulated = load_board("qemu-cortex-m7")
    target = firmware_target(OF_THE_DEMO)
    program = Path(TRAIN, OF_THE_DEMO + emulated.program_suffix)
    files = {target: [str(program), str(program.with_suffix(".map"))]}
    size = keep(emulated, cmake.build_targets(emulated, [target]), files, portable=True)
    print(f"{emulated.name}: {size / 1e6:.1f} MB")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", output]
    environment = {**os.environ, "RLT_PREBUILT": str(PROGRAMS / "prebuilt")}
    subprocess.run([*command, str(TREE.root)], env=environment, check=True)


if __name__ == "__main__":
    main()
