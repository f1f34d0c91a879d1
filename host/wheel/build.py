"""Builds the wheel with programs of this system in it.

python host/wheel/build.py [FOLDER [EXPERIMENT or CONTRACT ...]]

For computers without a compiler (host/rltools_host/build/prebuilt.py): all that this machine and
the emulated Cortex-M7 train and infer, or what is named. This machine's are compiled by Zig, for
the least processor and C library that are supported. `pip wheel .` builds the wheel without
programs, for every system.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from rltools_host.build import cmake, prebuilt, tools
from rltools_host.build.boards import Board, load_board
from rltools_host.build.experiments import (
    CONTRACT,
    EXPERIMENT,
    HOST_BOARD,
    names,
    native_board,
    requirements,
    subject_of,
)
from rltools_host.tree import TREE

BOARDS = (HOST_BOARD, "host-threads", "qemu-cortex-m7")  # the last one's run in Unicorn, too
LIBRARIES = ("policy", "pilot", "flight")  # host/native/<name>_library.cpp
PROGRAMS = TREE.root / "build" / "prebuilt"


def files_of(board: Board, chosen: Sequence[str]) -> dict[str, list[str]]:
    """Return the files of each target of a board, of what needs nothing but a compiler.

    chosen: experiments and contracts; none: all.
    """
    files: dict[str, list[str]] = {}
    for program in cmake.programs_of(board):
        subject = subject_of(program)
        for name in chosen or names(subject, board):
            if name in names(subject, board) and "mujoco" not in requirements(name, subject):
                file = Path(program, name + board.program_suffix)
                maps = [str(file.with_suffix(".map"))] if board.toolchain.link_map else []
                files[cmake.firmware_target(name, program)] = [str(file), *maps]
                files |= {target: [target] for target in beside(board, subject, name)}
    if board.name == HOST_BOARD:
        files |= {name: [f"lib{name}.so"] for name in LIBRARIES}
    return files


def beside(board: Board, subject: str, name: str) -> list[str]:
    """Return the programs of this machine for an experiment or a contract, by their names."""
    if not board.toolchain.native:
        return []
    if subject == CONTRACT:
        return [f"describe-contract-{name}"]
    return [f"describe-{name}", f"simulate-{name}"] if native_board(name) == board else []


def build(board: Board, targets: Iterable[str]) -> Path:
    """Build in a tree of its own, what runs here by Zig."""
    directory = PROGRAMS / "build" / board.name
    options = {}
    if board.toolchain.native:
        options["RLT_STAND_IN"] = str(TREE.toolchains / "zig-portable-c++")
    announcement = f"Building the programs of {board.name}"
    return cmake.build_targets(
        board, list(targets), directory=directory, options=options, announcement=announcement
    )


def keep(board: Board, directory: Path, files: Mapping[str, Iterable[str]]) -> int:
    """Copy the files of each target, write what they are, and return their size."""
    native = board.toolchain.native
    folder = PROGRAMS / "prebuilt" / board.firmware
    shutil.rmtree(folder, ignore_errors=True)
    size = 0
    for name in (name for each in files.values() for name in each):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(directory / name, folder / name)
        size += (folder / name).stat().st_size
    is_x86 = native and platform.machine() == "x86_64"
    content = prebuilt.Content(
        system=platform.system() if native else "",
        machine=platform.machine() if native else "",
        features=prebuilt.X86_64_V3 if is_x86 else (),
        sources_sha256=prebuilt.sources_sha256(),
        targets={
            target: {name: prebuilt.sha256(folder / name) for name in each}
            for target, each in files.items()
        },
    )
    (folder / prebuilt.CONTENT).write_text(json.dumps(asdict(content), indent=1))
    return size


def main() -> None:
    output, *chosen = [*sys.argv[1:], *(["dist"] if len(sys.argv) == 1 else [])]
    if unknown := set(chosen).difference(names(EXPERIMENT), names(CONTRACT)):
        sys.exit(f"error: no experiment or contract {', '.join(sorted(unknown))}")
    tools.ensure_group("zig")
    for name in BOARDS:
        board = load_board(name)
        files = files_of(board, chosen)
        size = keep(board, build(board, files), files)
        print(f"{name}: {size / 1e6:.1f} MB")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", output]
    environment = {**os.environ, "RLT_PREBUILT": str(PROGRAMS / "prebuilt")}
    subprocess.run([*command, str(TREE.root)], env=environment, check=True)


if __name__ == "__main__":
    main()
