"""Programs that a test runs: compilers, what they make, and scripts in node."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rltools_host.build import cmake, tools
from rltools_host.build.toolchains import COMPILER_CACHE
from rltools_host.tree import TREE, VARIABLE

COMPILER = re.compile(r"(.*-)?g(cc|\+\+)")
SOURCES = (".cpp", ".c")


def output_of(*command: object, timeout: float = 300.0) -> str:
    """What a program prints, which must succeed. What a compiler has compiled before, in a test's
    folder of any name, ccache has, where it is installed."""
    words = [str(word) for word in command]
    if (
        COMPILER.fullmatch(words[0])
        and "-o" in words
        and all(map(shutil.which, (words[0], COMPILER_CACHE)))
    ):
        return compiled(words, timeout)
    return printed(words, timeout)


def printed(words: Sequence[str], timeout: float, **options: Any) -> str:
    result = subprocess.run(words, capture_output=True, text=True, timeout=timeout, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def in_project(folder: Path, *words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run Python with these words in a project elsewhere; it must end with this exit code."""
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    environment |= {"PYTHONPATH": str(TREE.root / "host"), "TERM": "dumb"}
    result = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == code, (words, result.stdout, result.stderr)
    return result


def require_program(name: str) -> None:
    """Skip the test where this machine lacks a program that is looked for by its name, also where
    another one stands in for it."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} not found")


def require_node() -> None:
    if missing := tools.missing_names(("node",)):
        pytest.skip(f"not installed (rlt doctor): {missing[0]}")


def in_node(*words: object, given: Any = None) -> str:
    """What a script of the page's prints in node; `given` is what it reads, as JSON."""
    require_node()
    return printed(["node", *map(str, words)], 300.0, input=json.dumps(given))


def compiled(words: list[str], timeout: float) -> str:
    """ccache takes one source at a time, and nothing that is linked at once. By a link, the tree
    has the same path from any clone."""
    target = Path(words[words.index("-o") + 1])
    assert target.is_absolute()
    link = target.parent / "link-to-tree"
    if not link.is_symlink():
        link.symlink_to(TREE.root)
    words = [word.replace(f"{TREE.root}{os.sep}", f"{link.name}{os.sep}") for word in words]
    launcher = cmake.compiler_launcher(target.parent)
    there: dict[str, Any] = {"cwd": target.parent}
    sources = [word for word in words if word.endswith(SOURCES) and not word.startswith("-")]
    if "-c" in words or not sources:
        return printed([*launcher, *words], timeout, **there)
    place = words.index("-o")
    flags = [word for word in [*words[:place], *words[place + 2 :]] if word not in sources]
    is_object = [flag.endswith(".o") for flag in flags]
    to_compile = [flag for flag, left_out in zip(flags, is_object, strict=True) if not left_out]
    said, objects = "", []
    for number, source in enumerate(sources):
        objects.append(f"{target}.{number}.o")
        call = [*launcher, *to_compile, "-c", source, "-o", objects[-1]]
        said += printed(call, timeout, **there)
    return said + printed([*flags[:1], *objects, *flags[1:], "-o", str(target)], timeout, **there)


def needed_symbols(nm: str, *objects: object) -> set[str]:
    """What objects use that none of them defines, as a compiler's nm says."""
    symbols = [line.split() for line in output_of(nm, *objects).splitlines()]
    undefined = {words[1] for words in symbols if len(words) == 2 and words[0] == "U"}
    return undefined - {words[2] for words in symbols if len(words) == 3}
