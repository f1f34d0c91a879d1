"""The program of a GPU, which Zig compiles: firmware/cuda, for an experiment.

Its instructions (PTX) are text. The GPU's driver makes them those of its own architecture.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rltools_host.build import cmake, tools
from rltools_host.build.boards import load_board
from rltools_host.build.experiments import (
    build_description,
    header_of,
    require_experiment,
    texts_of,
)
from rltools_host.build.native import COMPILER_GROUP, subject_of_header, zig_words
from rltools_host.errors import BuildError
from rltools_host.files import files_below, write_atomically
from rltools_host.lines import aside
from rltools_host.tree import PROJECT, TREE

BOARD = "cuda"
ARCHITECTURE = "sm_75+ptx71"  # GPUs since 2018, with a driver since 2020
SOURCE = "firmware/cuda/agents.cpp"
FLAGS = ("-D__FP_FAST_FMAF", "-g0", "-nostdinc++", "-w")
# Of a thread. Two blocks of 9 warps share a multiprocessor then: each of its four schedulers has
# 16,384 registers, for 5 warps. Where it has 228 KB of shared memory they also share that.
REGISTERS = 96
MOST_SHARED_BYTES = 112 * 1024
DIGITS = 16  # hexadecimal digits of a digest


def build_ptx(experiment: str, shared_bytes: int) -> Path:
    """Build the program for blocks with so much shared memory, unless it is there.

    Its name is the digest of all that it is made from: Zig writes either the names of the headers
    that it has read, or the instructions.
    """
    require_experiment(experiment, load_board(BOARD))
    cmake.require_place()
    tools.ensure_group(COMPILER_GROUP)
    directory = PROJECT.build / "cuda" / experiment
    with cmake.build_lock(directory):
        words = [*zig_words(), *flags_of(experiment, shared_bytes)]
        path = directory / f"{shared_bytes}-{digest_of_sources(experiment, words)}.ptx"
        if path.is_file():
            return path
        aside(f"Building {experiment} for a GPU")
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "agents.ptx"
            command = [*words, "-S", str(TREE.root / SOURCE), "-o", str(made)]
            built = subprocess.run(command, capture_output=True, text=True, errors="replace")
            if built.returncode != 0 or not made.is_file():
                said = built.stderr.strip() or f"Zig ended with {built.returncode}"
                raise BuildError(f"building {experiment} for a GPU failed: {said}")
            earlier = list(directory.glob(f"{shared_bytes}-*.ptx"))
            write_atomically(path, made.read_bytes())
        for other in earlier:
            other.unlink(missing_ok=True)
    return path


def program_of(experiment: str, shared_bytes: int) -> bytes:
    """Return the text of the program, built where necessary."""
    return build_ptx(experiment, shared_bytes).read_bytes()


def flags_of(experiment: str, shared_bytes: int) -> list[str]:
    build = build_description()
    folders = [TREE.root / folder for folder in build["include_directories"]]
    header, struct = subject_of_header(experiment)
    return [
        *("-target", "nvptx64-cuda", f"-mcpu={ARCHITECTURE}"),
        *(flag for flag in build["flags"] if not flag.startswith("-W")),
        *FLAGS,
        *("-isystem", str(TREE.root / "lib" / "freestanding")),
        *(f"-I{folder}" for folder in (*folders, *PROJECT.include_directories)),
        f"-iquote{PROJECT.root}",
        '-DRLT_DEVICE_HEADER="rltools/devices/block.h"',
        f"-DRLT_SHARED_BYTES={shared_bytes}",
        f'-DRLT_EXPERIMENT_HEADER="{header}"',
        f"-DRLT_EXPERIMENT=rlt::{struct}",
    ]


def digest_of_sources(experiment: str, words: Sequence[str]) -> str:
    """Return a digest of the core, the firmware, the experiment's headers and the words that
    compile them."""
    digest = hashlib.sha256("\0".join(words).encode())
    folders = ("lib", "firmware")
    names = [name for folder in folders for name in files_below(str(TREE.root / folder), folder)]
    for name in sorted(names):
        digest.update(f"{name}\0".encode() + (TREE.root / name).read_bytes())
    for text in texts_of(header_of(experiment)):
        digest.update(text.encode())
    return digest.hexdigest()[:DIGITS]
