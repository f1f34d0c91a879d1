"""Writes the pages of this folder from what they are about: the lists of hyperparameters in C++,
the commands as typer has them, and the documentation of `rlt` in Python; and the tables of metrics
in the pages of the algorithms.

.venv/bin/python docs/reference/write.py
"""

from __future__ import annotations

import inspect
import os
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from rltools_host import cli
from rltools_host.build.catalog import algorithms
from rltools_host.commands import COMMANDS
from rltools_host.tree import TREE

FOLDER = Path(__file__).resolve().parent
# Between them stands an algorithm's table of metrics, in its page.
BEGIN, END = "<!-- metrics: docs/reference/write.py -->", "<!-- end of metrics -->"
GENERATED = (
    "Written by `docs/reference/write.py`; `tests/tree/test_reference.py` says when it is stale."
)


@cache
def lists(*arguments: str) -> str:
    """What hyperparameters.cpp prints of the lists in C++."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "print"
        source = FOLDER / "hyperparameters.cpp"
        compiler = os.environ.get("CXX", "c++")
        known = algorithms()
        calls = " ".join(f"X({algorithm.struct})" for algorithm in known.values())
        command = [compiler, "-std=c++17", f"-I{TREE.include}", f"-DRLT_ALGORITHMS(X)={calls}"]
        for name in known:
            command += ["-include", f"rltools/rl/algorithms/{name}.h"]
        command += [str(source), "-o", str(program)]
        subprocess.run(command, check=True)
        shown = subprocess.run([program, *arguments], check=True, capture_output=True, text=True)
        return shown.stdout


def hyperparameters() -> str:
    return f"""# Hyperparameters

`--set name=value` of `rlt train`, `settings` in Python, parameters over MAVLink. An experiment may
set other defaults; `rlt train` refuses a name that its experiment does not have.

{GENERATED}
{lists()}"""


def with_metrics(name: str) -> str:
    """The algorithm's page as it is, with the table of its metrics between the marks."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    title = Path(name).stem
    sections = (section.partition("\n") for section in lists("metrics").split("\n## "))
    table = next(rows.strip() for algorithm, _, rows in sections if algorithm.lower() == title)
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def commands() -> str:
    lines = ["# Commands", "", GENERATED, "", "| command | what it does |", "|---|---|"]
    entries = list(all_commands())
    for words, summary, _ in entries:
        lines.append(f"| [`rlt {words}`](#rlt-{words.replace(' ', '-')}) | {summary} |")
    for words, _, command in entries:
        lines += ["", f"## rlt {words}", "", *described(command)]
    return "\n".join(lines) + "\n"


def all_commands() -> Iterator[tuple[str, str, Any]]:
    """The words behind `rlt`, the summary and the command, as typer runs it."""
    for name, entry in COMMANDS.items():
        yield name, entry.summary, cli.load(name, entry)


def described(command: Any) -> Iterator[str]:
    """The text of its help, its example, and a table of what it takes."""
    yield from str(command.help).replace("\b\n", "").splitlines()
    yield from ("", f"    {str(command.epilog).partition(': ')[2]}", "")
    yield from ("| option | meaning | default |", "|---|---|---|")
    for parameter in command.params:
        if parameter.name == "help" or getattr(parameter, "hidden", False):
            continue
        default = parameter.default
        shown = "" if default in (None, False, "", ()) or callable(default) else f"{default}"
        yield f"| `{words_of(parameter)}` | {cell(parameter.help)} | {cell(shown)} |"


def words_of(parameter: Any) -> str:
    metavar = str(parameter.metavar or "").strip("[]")
    if parameter.param_type_name == "argument":
        return metavar or parameter.name.upper()
    name = ", ".join([*parameter.opts, *parameter.secondary_opts])
    return name if parameter.is_flag else f"{name} {metavar or 'VALUE'}"


def cell(text: Any) -> str:
    return " ".join(str(text or "").split()).replace("|", "\\|")


def python() -> str:
    import rlt

    lines = [
        "# Python: `import rlt`",
        "",
        GENERATED,
        "",
        "```text",
        str(rlt.__doc__).strip(),
        "```",
    ]
    for name in rlt.__all__:
        thing = getattr(rlt, name)
        if callable(thing):
            lines += ["", f"## rlt.{name}", "", "```text", *documented(name, thing), "```"]
    return "\n".join(lines) + "\n"


def documented(name: str, thing: Any) -> Iterator[str]:
    """Its signature and documentation; of a class those of its public members too."""
    if not inspect.isclass(thing):
        yield signature(name, thing)
    yield from indented(thing)
    if not inspect.isclass(thing):
        return
    for member, value in vars(thing).items():
        if member.startswith("_") and member != "__call__":
            continue
        if isinstance(value, property):
            yield from ("", member, *indented(value.fget))
        elif callable(value) or isinstance(value, classmethod):
            yield from ("", signature(member, getattr(thing, member)), *indented(value))


def signature(name: str, function: Any) -> str:
    """In lines of their own where the parameters are many."""
    whole = inspect.signature(function)
    texts = []
    for parameter in whole.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in texts:
            texts.append("*")
        texts.append(str(parameter).replace("'", ""))
    texts = [text for text in texts if text != "self"]
    result = str(whole.return_annotation).replace("'", "")
    line = f"{name}({', '.join(texts)}) -> {result}"
    if len(line) <= 100:
        return line
    return "\n".join([f"{name}(", *(f"    {text}," for text in texts), f") -> {result}"])


def indented(thing: Any) -> list[str]:
    text = inspect.getdoc(getattr(thing, "__func__", thing)) or ""
    return [f"    {line}".rstrip() for line in text.splitlines()]


PAGES = {
    "hyperparameters.md": hyperparameters,
    "commands.md": commands,
    "python.md": python,
    **{
        f"../algorithms/{path.name}": partial(with_metrics, f"../algorithms/{path.name}")
        for path in sorted(FOLDER.parent.glob("algorithms/*.md"))
    },
}


def main() -> None:
    for name, write in PAGES.items():
        (FOLDER / name).write_text(write(), encoding="utf-8")


if __name__ == "__main__":
    main()
