"""Builds a wheel with compiled programs in it.

python host/wheel/build.py SYSTEM [FOLDER [EXPERIMENT or CONTRACT ...]]

For computers of a SYSTEM without a compiler (host/rltools_host/build/prebuilt.py): all that such a
computer and the emulated Cortex-M7 train and infer, or what is named. Zig compiles the computer's
own, for the least processor and C library that are supported. `pip wheel .` builds the wheel
without programs, for every system.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True)
class System:
    """Computers for which Zig compiles: as Python, Zig, CMake and the tag of a wheel name them."""

    system: str
    machine: str
    target: str
    processor: str  # the compiler's flag for the least one
    features: Sequence[str]  # which it has beyond all of its kind
    tag: str


SYSTEMS = {
    "linux-x86_64": System(
        *("Linux", "x86_64", "x86_64-linux-gnu.2.28", "-march=x86_64_v3", prebuilt.X86_64_V3),
        "manylinux_2_28_x86_64",
    ),
    "linux-aarch64": System(
        *("Linux", "aarch64", "aarch64-linux-gnu.2.28", "-mcpu=generic", ()),
        "manylinux_2_28_aarch64",
    ),
    "windows-x86_64": System(
        *("Windows", "AMD64", "x86_64-windows-gnu", "-march=x86_64_v3", prebuilt.X86_64_V3),
        "win_amd64",
    ),
    "macos-arm64": System(
        *("Darwin", "arm64", "aarch64-macos.12.0", "-mcpu=apple_m1", ()),
        "macosx_12_0_arm64",
    ),
}


def files_of(board: Board, of: System, chosen: Sequence[str]) -> dict[str, list[str]]:
    """Return the files of each target of a board, of what needs nothing but a compiler.

    chosen: experiments and contracts; none: all.
    """
    files: dict[str, list[str]] = {}
    suffix = board.program_suffix
    if board.toolchain.native:
        suffix = ".exe" if of.system == "Windows" else ""
    for program in cmake.programs_of(board):
        subject = subject_of(program)
        for name in chosen or names(subject, board):
            if name in names(subject, board) and "mujoco" not in requirements(name, subject):
                file = Path(program, name + suffix)
                maps = [str(file.with_suffix(".map"))] if board.toolchain.link_map else []
                files[cmake.firmware_target(name, program)] = [str(file), *maps]
                files |= {target: [target + suffix] for target in beside(board, subject, name)}
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


def build(board: Board, of: System, targets: Iterable[str]) -> Path:
    """Build in a tree of its own, by Zig what runs on the computer itself."""
    directory = PROGRAMS / "build" / f"{of.tag if board.toolchain.native else ''}{board.name}"
    options = {}
    if board.toolchain.native:
        words = (str(TREE.toolchains / "zig-c++"), "-target", of.target, "-s")
        options["RLT_STAND_IN"] = ";".join((*words, "-Wno-unused-command-line-argument"))
        options["RLT_LEAST_PROCESSOR"] = of.processor
        options["CMAKE_SYSTEM_NAME"] = of.system
    announcement = f"Building the programs of {board.name}"
    return cmake.build_targets(
        board, list(targets), directory=directory, options=options, announcement=announcement
    )


def keep(board: Board, of: System, directory: Path, files: Mapping[str, Iterable[str]]) -> int:
    """Copy the files of each target, write what they are, and return their size."""
    native = board.toolchain.native
    folder = PROGRAMS / "prebuilt" / board.firmware
    shutil.rmtree(folder, ignore_errors=True)
    size = 0
    for name in (name for each in files.values() for name in each):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(directory / name, folder / name)
        size += (folder / name).stat().st_size
    content = prebuilt.Content(
        system=of.system if native else "",
        machine=of.machine if native else "",
        features=of.features if native else (),
        sources_sha256=prebuilt.sources_sha256(),
        targets={
            target: {name: prebuilt.sha256(folder / name) for name in each}
            for target, each in files.items()
        },
    )
    (folder / prebuilt.CONTENT).write_text(json.dumps(asdict(content), indent=1))
    return size


def main() -> None:
    if sys.argv[1:2] not in [[name] for name in SYSTEMS]:
        sys.exit(f"error: name a system: {', '.join(SYSTEMS)}")
    of = SYSTEMS[sys.argv[1]]
    output, *chosen = sys.argv[2:] or ["dist"]
    if unknown := set(chosen).difference(names(EXPERIMENT), names(CONTRACT)):
        sys.exit(f"error: no experiment or contract {', '.join(sorted(unknown))}")
    tools.ensure_group("zig")
    for name in BOARDS:
        board = load_board(name)
        files = files_of(board, of, chosen)
        size = keep(board, of, build(board, of, files), files)
        print(f"{name}: {size / 1e6:.1f} MB")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", output]
    environment = {**os.environ, "RLT_PREBUILT": str(PROGRAMS / "prebuilt"), "RLT_TAG": of.tag}
    subprocess.run([*command, str(TREE.root)], env=environment, check=True)


if __name__ == "__main__":
    main()
