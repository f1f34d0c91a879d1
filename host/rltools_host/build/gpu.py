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
from rltools_host.build.experiments import (
    build_description,
    header_of,
    require_experiment,
    requirements,
    texts_of,
)
from rltools_host.build.native import COMPILER_GROUP, PROVIDES, subject_of_header, zig_words
from rltools_host.errors import BuildError, UsageError
from rltools_host.files import write_atomically
from rltools_host.lines import aside
from rltools_host.tree import PROJECT, TREE

ARCHITECTURE = "sm_75+ptx71"  # GPUs since 2018, with a driver since 2020
SOURCE = "firmware/cuda/agents.cpp"
FLAGS = ("-D__FP_FAST_FMAF", "-g0", "-nostdinc++", "-w")
# Of a thread: two blocks of 288 share the 65,536 of a multiprocessor, and where it has 228 KB of
# shared memory also that.
REGISTERS = 112
MOST_SHARED_BYTES = 112 * 1024
DIGITS = 16  # hexadecimal digits of a digest


def require_gpu_can_train(experiment: str) -> None:
    """Raise UsageError if the experiment needs what a GPU has not."""
    require_experiment(experiment)
    if needed := [word for word in requirements(experiment) if word not in PROVIDES]:
        raise UsageError(
            f"{experiment} needs {', '.join(needed)}, which a GPU has not: train it with "
            "--board host"
        )


def build_ptx(experiment: str, shared_bytes: int) -> Path:
    """Build the program for blocks with so much shared memory, unless it is there.

    Its name is the digest of all that it is made from: Zig writes either the names of the headers
    that it has read, or the instructions.
    """
    require_gpu_can_train(experiment)
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
    """Return a digest of the core, the program, the experiment's headers and the words that compile
    them."""
    digest = hashlib.sha256("\0".join(words).encode())
    folders = [TREE.root / "lib", (TREE.root / SOURCE).parent]
    for path in sorted(path for folder in folders for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path}\0".encode() + path.read_bytes())
    for text in texts_of(header_of(experiment)):
        digest.update(text.encode())
    return digest.hexdigest()[:DIGITS]
