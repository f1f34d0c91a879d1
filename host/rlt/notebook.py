"""Magics of a notebook: `%rlt`, the command line, and `%%cpp`, a C++ program that is
compiled and run. `%load_ext rlt` brings both, and takes the notebook to the project's folder.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rltools_host.build import cmake, tools
from rltools_host.build.experiments import build_description
from rltools_host.build.toolchains import system_tools
from rltools_host.errors import RltError
from rltools_host.files import parse_json
from rltools_host.tree import PROJECT, TREE

COMPILER = "g++"
COMMAND = (sys.executable, "-m", "rltools_host")
FAILS = "--fails"


class CellError(RltError):
    """An error that ends a cell with a sentence and no traceback."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows."""
        return [f"error: {self}"]


def load_ipython_extension(shell: Any) -> None:
    """Register the magics; `shell` is IPython's InteractiveShell."""
    os.chdir(PROJECT.root)
    os.environ.pop("RLT_COMMAND", None)
    os.environ["PATH"] = f"{TREE.root}{os.pathsep}{os.environ.get('PATH', '')}"  # `rlt` is ours
    shell.register_magic_function(run_rlt, "line", "rlt")
    shell.register_magic_function(run_cpp, "cell", "cpp")
    shell.run_line_magic("config", "InlineBackend.figure_formats = ['svg']")


def run_rlt(line: str) -> Any:
    """Run `%rlt train pendulum-td3 --board host` as a shell runs `./rlt`.

    With --json, return the object that the command prints last. After `--fails "TEXT"` the command
    must fail with that text.
    """
    words, expected = expectation(shlex.split(line, comments=True))
    code, lines = printed([*COMMAND, *words], hide_last="--json" in words)
    judge(f"rlt {shlex.join(words)}", code, "".join(lines), expected)
    return parse_json(lines[-1]) if "--json" in words and not expected else None


def run_cpp(line: str, cell: str) -> None:
    """Compile the cell of `%%cpp` as a program, and run it.

    It is compiled with the flags of the firmware and those of the line, and may include every
    header of the core. With `--fails "TEXT"` it must not compile, and the compiler must print that
    text.
    """
    flags, expected = expectation(shlex.split(line))
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "cell"
        code, lines = compiled(cell, flags, program)
        judge("the compiler", code, "".join(lines), expected)
        if not expected:
            judge("the program", *printed([str(program)]))


def compiled(cell: str, flags: Sequence[str], program: Path) -> tuple[int, list[str]]:
    """Compile as printed() does, in a folder with a fixed name, so that ccache has a cell that was
    compiled before."""
    directory = PROJECT.build / "cell"
    tools.require(COMPILER)
    with cmake.build_lock(directory):
        source, object_file = directory / "cell.cpp", directory / "cell.o"
        source.write_text(cell, encoding="utf-8")
        compiler = str(system_tools()[COMPILER].path())
        command = [*cmake.compiler_launcher(PROJECT.root), compiler, *compiler_flags(), *flags]
        command += ["-c", str(source), "-o", str(object_file)]
        code, lines = printed(command, directory)
        if code == 0:
            code, shown = printed(
                [compiler, str(object_file), *flags, "-o", str(program)], directory
            )
            lines += shown
        return code, lines


def compiler_flags() -> list[str]:
    build = build_description()
    folders = (*(TREE.root / name for name in build["include_directories"]), PROJECT.root)
    return [*build["flags"], *(f"-I{folder}" for folder in folders)]


def expectation(words: list[str]) -> tuple[list[str], str]:
    """Return the words without `--fails "TEXT"`, and that text."""
    if FAILS not in words:
        return words, ""
    index = words.index(FAILS)
    return [*words[:index], *words[index + 2 :]], words[index + 1]


def judge(name: str, code: int, shown: Any, expected: str = "") -> None:
    """Raise an error that ends the cell, unless the outcome is the one that the cell states."""
    if not expected and code != 0:
        raise CellError(f"{name} ended with exit code {code}")
    if expected and (code == 0 or expected not in shown):
        raise CellError(f"{name} should have failed with: {expected}")


def printed(
    command: Sequence[str], folder: Path | None = None, hide_last: bool = False
) -> tuple[int, list[str]]:
    """Run the command and print its lines as they come; return its exit code and the lines. Paths
    in the project, the tree and the folder are shortened."""
    lines: list[str] = []
    roots = [PROJECT.root, TREE.root]
    if folder is not None:  # ccache names it as it lies from here
        roots = [folder, Path(os.path.relpath(folder)), *roots]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        for data in process.stdout:
            text = data.decode("utf-8", "replace")
            for root in roots:
                text = text.replace(f"{root}{os.sep}", "")
            lines.append(text)
            if shown := lines[-2:-1] if hide_last else lines[-1:]:
                print(shown[0], end="")
    if hide_last and process.returncode != 0:
        print(*lines[-1:], end="")
    return process.returncode, lines
