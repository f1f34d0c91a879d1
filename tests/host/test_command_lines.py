"""Every command line that a user is told to type exists."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from command_lines import is_line, problem
from rltools_host.commands import COMMANDS, cli
from rltools_host.errors import UsageError
from rltools_host.tree import TREE

PACKAGE = TREE.root / "host" / "rltools_host"
ANY = "…"  # in place of a value that is known when the program runs only
ALL_WORDS = [[name] for name in COMMANDS]
QUOTED = re.compile(r"`(?:\./)?rlt ([^`]+)`")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def text_of(node: ast.expr) -> str | None:
    """A constant text, or an f-string with ANY for its values."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [text_of(part) if isinstance(part, ast.Constant) else ANY for part in node.values]
        return "".join(part or "" for part in parts)
    return None


def made_lines(tree: ast.AST) -> Iterator[list[str]]:
    """The words of each call of command_line; what is unpacked may be nothing."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "command_line":
            words = [word for word in node.args if not isinstance(word, ast.Starred)]
            if words:  # or else the launcher alone
                yield [text_of(word) or ANY for word in words]


def texts(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Each text, and whether it is for readers of the source alone."""
    nodes = list(ast.walk(tree))
    silent = set()
    for node in nodes:
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            silent.add(body[0].value)
    inner = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.expr) and node not in inner and (text := text_of(node)):
            yield text, node in silent


@cache
def parsed(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


@cache
def texts_of(module: Path) -> tuple[tuple[str, bool], ...]:
    return tuple(texts(parsed(module)))


def all_options() -> set[str]:
    options = {"--help"}
    for name, entry in COMMANDS.items():
        for parameter in cli.load(name, entry).params:
            options |= {*parameter.opts, *parameter.secondary_opts}
    return options


def test_command_lines_exist() -> None:
    wrong = []
    for module in modules():
        lines = list(made_lines(parsed(module)))
        for text, _ in texts_of(module):
            for quoted in QUOTED.findall(text):
                words = shlex.split(quoted)
                lines.append(words if is_line(words) else [*words, "--help"])
        wrong += [f"{module.name}: {found}" for words in lines if (found := problem(words))]
    assert wrong == []


def test_options_that_errors_name_exist() -> None:
    known = all_options()
    unknown = []
    for module in modules():
        for node in ast.walk(parsed(module)):
            if isinstance(node, ast.Raise) and node.exc is not None:
                for text, _ in texts(node.exc):
                    found = set(OPTION.findall(text)) - known
                    unknown += [f"{module.relative_to(PACKAGE)}: {name}" for name in found]
    assert unknown == []


def annotated_paths(words: list[str]) -> list[str]:
    """The parameters of a command's function that are paths or runs."""
    function = COMMANDS[words[0]].part("command")
    hints = get_type_hints(function, include_extras=True)
    found = []
    for name, hint in hints.items():
        kind, *marks = get_args(hint) or (hint,)
        runs = [mark for mark in marks if getattr(mark, "metavar", "") == "RUN"]
        if Path in (kind, *get_args(kind)) or runs:
            found.append(name)
    return found


def given(parameter: Any, value: str) -> list[str]:
    """The words that give a parameter this value; of an option by its shortest name."""
    names = sorted((name for name in parameter.opts if name.startswith("-")), key=len)
    return [*names[:1], value]


@pytest.mark.parametrize("words", ALL_WORDS, ids=" ".join)
def test_empty_path_is_refused(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `--out "$DIR"` gives where DIR is not set: it would be the present folder."""
    command = cli.load(words[-1], COMMANDS[words[0]])
    monkeypatch.setattr(type(command), "invoke", lambda *_: pytest.fail("it was called"))
    by_name = {parameter.name: parameter for parameter in command.params}
    for name in annotated_paths(words):
        parameter = by_name[name]
        needed = [p for p in command.params if p.required and p is not parameter]
        others = [word for p in needed for word in given(p, "x")]
        assert cli.run([*words, *others, *given(parameter, "")]) == UsageError.exit_code
        error = capsys.readouterr().err
        shown = parameter.opts[0] if given(parameter, "") != [""] else parameter.metavar
        assert re.fullmatch(rf"error: {shown} is empty: name a [a-z ]+\n", error), error


@pytest.mark.parametrize("words", ALL_WORDS, ids=" ".join)
def test_example_exists(words: list[str]) -> None:
    example = shlex.split(COMMANDS[words[0]].part("EXAMPLE"))
    assert example[: len(words)] == words
    assert problem(example) is None
