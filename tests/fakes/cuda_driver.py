"""NVIDIA's driver library on a computer without a GPU: cuda_driver.cpp as libcuda.so.1. Run as a
program, this file makes what that library loads: a shared library of a GPU's program (PTX)."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ptx import RUNTIME, translate

FOLDER = Path(__file__).resolve().parent
FLAGS = ("-O1", "-std=c++17", "-w", "-shared", "-fPIC")
PTX_FLAGS = (
    *("-march=native", "-ffp-contract=off", "-fno-strict-aliasing", "-U_FORTIFY_SOURCE"),
    f"-I{FOLDER}",
)
# The shared memory of a block: what a launch sizes, and how much the program itself has.
SHARED = """
extern "C" int ptx_shared_memory(u8** dynamic) {
  *dynamic = dynamic_shared;
  return static_cast<int>(__stop_ptx_shared - __start_ptx_shared);
}
"""


def build(folder: Path) -> Path:
    """Make libcuda.so.1 in a folder, and return the folder: LD_LIBRARY_PATH has it."""
    folder.mkdir(parents=True, exist_ok=True)
    _compile(FOLDER / "cuda_driver.cpp", folder / "libcuda.so.1", "-ldl")
    return folder


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """Return this process's environment with the library of `folder`. `variables` are those of
    cuda_driver.cpp, as MEMORY is STAND_IN_CUDA_MEMORY."""
    paths = [str(folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    return {
        **os.environ,
        "LD_LIBRARY_PATH": os.pathsep.join(paths),
        "STAND_IN_CUDA_TRANSLATE": shlex.join([sys.executable, str(Path(__file__).resolve())]),
        **{f"STAND_IN_CUDA_{name.upper()}": value for name, value in variables.items()},
    }


def make_program(ptx: str) -> Path:
    """Return the shared library of a program, which is compiled once."""
    text = translate(ptx).text + SHARED
    headers = "".join(path.read_text() for path in sorted(FOLDER.glob(f"{RUNTIME.stem}*.h")))
    digest = hashlib.sha256((text + headers).encode()).hexdigest()
    made = Path(tempfile.gettempdir()) / f"rlt-ptx-{digest}.so"
    if not made.exists():
        with tempfile.TemporaryDirectory(dir=made.parent) as folder:
            source, library = Path(folder) / "program.cpp", Path(folder) / "program.so"
            source.write_text(text)
            _compile(source, library, *PTX_FLAGS)
            library.replace(made)
    return made


def _compile(source: Path, target: Path, *flags: str) -> None:
    compiler = shlex.split(os.environ.get("CXX", "g++"))
    command = [*compiler, *FLAGS, str(source), "-o", str(target), *flags]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        errors = (line for line in result.stderr.splitlines() if "error:" in line.lower())
        raise OSError(next(errors, f"{compiler[0]} failed"))


def main(ptx: str, library: str) -> int:
    """Write the library. Loaded programs share no memory, so that each is a file of its own."""
    try:
        shutil.copyfile(make_program(Path(ptx).read_text()), library)
    except Exception as error:  # what ptx.py raises of a text that is no program
        print(f"{type(error).__name__}: {error}".splitlines()[0], file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
