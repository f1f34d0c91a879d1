"""One module parses the JSON of files: files.py, which bounds their length, depth and texts."""

from __future__ import annotations

import ast
from pathlib import Path

from rltools_host.tree import TREE

HOST = TREE.root / "host"
# What is parsed there is no file: lines of a process that the module has started, or has been
# started by, what a library that it has loaded or pip says of itself, or a document that was parsed
# already.
OF_PROCESSES = {
    *("build/experiments.py", "build/native.py"),
    *("commands/new.py", "commands/self_test.py"),
    "environments/server_start.py",
    *(
        "runs/task.py",
        "policies/episodes.py",
        "training/hyperparameters.py",
        "training/parallel_runs.py",
    ),
}


def parsers_in(source: str) -> set[str]:
    """Which of json.load, json.loads and msgspec's decoder a module names."""
    named = {
        ast.unparse(node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)
    }
    return named & {"json.load", "json.loads", "msgspec.json.decode", "msgspec.json.Decoder"}


def names_of(module: Path) -> str:
    return module.relative_to(HOST / "rltools_host").as_posix()


def test_one_module_parses_the_json_of_files() -> None:
    found = {
        names_of(module): parsers_in(module.read_text(encoding="utf-8"))
        for module in (HOST / "rltools_host").rglob("*.py")
    }
    parsing = {name for name, parsers in found.items() if parsers}
    assert not [name for name, parsers in found.items() if "json.load" in parsers]
    assert parsing <= {"files.py", *OF_PROCESSES}, "read_json() or parse_json() of files.py"
    for module in HOST.rglob("*.py"):
        assert "from json import" not in module.read_text(encoding="utf-8")
