"""`rlt new`: what an environment of one's own begins as, and a project.

What `rlt new` writes: files of experiments/templates/. mass.h has the names my-mass, MyMass and
MY_MASS where the user's are to stand, and compiles as it is.

The part of an environment between `[contract]` and `[/contract]` can have a header of its own, from
which firmware is built that has policies pushed to it.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.build import experiments
from rltools_host.build.description import LONGEST_NAME
from rltools_host.build.firmware import link_for_platformio
from rltools_host.build.tools import DISTRIBUTION
from rltools_host.commands.options import Json, refuse
from rltools_host.errors import RltError, UsageError, unknown_name
from rltools_host.files import disk_error, parse_json, write_atomically
from rltools_host.lines import next_steps, plural, say
from rltools_host.tree import (
    MARKER,
    PROJECT,
    TREE,
    command_line,
    is_project,
    near_path,
    quoted,
    require_buildable,
)

FOLDER = TREE.experiments / "templates"
DEFAULT_START = "mass"
DEFAULT_NAME = "balance"
# What PlatformIO builds in a project that has none of its own yet.
OTHER_EXPERIMENT, OTHER_CONTRACT = "pendulum-td3", "pendulum"
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
CONTRACT = re.compile(r"  // \[contract\] (EDIT: .*\n)((?:.*\n)*?)  // \[/contract\]\n")
ACTION = re.compile(r'(?:"name": |kActions\[kActionDim\] = \{\{)"(\w+)", (?:"unit": )?"([^"]+)"')
SAFE = re.compile(r'"safe": ([-.0-9]+)|kSafeAction\[kActionDim\] = \{([-.0-9]+)f\}')
STEP = re.compile(r"STEP_S = ([.0-9]+)|kStepInterval_us = ([0-9]+)")
STEPS = re.compile(r"\bsteps=([0-9_]+)")
WHEELS = "wheels"  # where requirements.txt looks
# Files of a project: the path there, and in templates/project/.
OF_A_PROJECT = {
    MARKER: MARKER,
    "README.md": "README.md",
    "requirements.txt": "requirements.txt",
    ".gitignore": "gitignore",
    "platformio.ini": "platformio.ini",
    ".github/workflows/test.yml": "workflows/test.yml",
}
CONTRACT_HEADER = """\
// {comment}
#pragma once
#include "rltools/policy/contract.h"
namespace rlt::contracts {{
struct {struct} {{
  static constexpr const char* kContractName = "{name}";
{lines}}};
}}  // namespace rlt::contracts
"""


def starts(gymnasium: bool = False) -> list[str]:
    """Return the names that --like takes."""
    files = FOLDER.glob("*.py" if gymnasium else "*.h")
    return sorted(path.stem for path in files if not path.stem.endswith("_test"))


def file_of(name: str) -> str:
    return name.replace("-", "_")


def macro_of(name: str) -> str:
    return file_of(name).upper()


def struct_of(name: str) -> str:
    return experiments.struct_of(Path(file_of(name)))


def checked_name(name: str) -> str:
    """Return a name with hyphens; raise UsageError where files, C++ or builds cannot have it."""
    plain = name.replace("_", "-")
    if not NAME.fullmatch(plain) or len(plain) > LONGEST_NAME - len("-v0"):
        words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)
        near = "-".join(words).lower()
        hint = f", such as {near}" if NAME.fullmatch(near) and len(near) < LONGEST_NAME - 3 else ""
        raise UsageError(
            f'"{name}" names no experiment: {LONGEST_NAME - 3} characters at most, small letters, '
            f"digits and single hyphens, a letter first{hint}"
        )
    if experiments.GENERATED.fullmatch(plain):
        raise UsageError(
            f"{plain}: names that begin with gym are those of Gymnasium's tasks, choose another"
        )
    struct = struct_of(plain)
    macro = macro_of(plain)
    own = rf"{struct}|{struct}Environment|{macro}_STATE|{macro}_CONSTANTS"
    defined = re.compile(
        rf"^ *(?:(?:struct|class|using|enum(?: class)?) |#define )({own})\b", re.MULTILINE
    )
    for header in sorted(TREE.include.rglob("*.h")):
        if found := defined.search(header.read_text(encoding="utf-8")):
            path = header.relative_to(TREE.include)
            raise UsageError(
                f"{plain} would define {found[1]}, which {path} has: choose another name, "
                f"such as my-{plain}"
            )
    return plain


def renamed(text: str, start: str, name: str) -> str:
    """Replace the start's name by this one in all of its spellings."""
    old, new = f"my-{start}", name
    for spelling in (str, struct_of, file_of, macro_of):
        text = text.replace(spelling(old), spelling(new))
    return text


def begun(file: str, start: str, name: str) -> str:
    """Return a file of the start under this name."""
    known = starts(file.endswith(f"{start}.py"))
    if start not in known:
        raise unknown_name("start", start, known)
    return renamed((FOLDER / file).read_text(encoding="utf-8"), start, name)


def in_cpp(name: str, start: str = DEFAULT_START, has_contract: bool = False) -> dict[str, str]:
    """Return environment and experiment in one header, a test, and the contract if asked for."""
    text = begun(f"{start}.h", start, name)
    test = begun(f"{start}_test.py", start, name)
    stem, struct = file_of(name), struct_of(name)
    files = {}
    stated = CONTRACT.search(text)
    assert stated is not None
    comment, lines = stated.groups()
    if has_contract:
        files[f"contracts/{stem}.h"] = CONTRACT_HEADER.format(
            name=name,
            struct=struct,
            comment=comment.replace("a policy", f"{name}'s policy").strip(),
            lines=lines,
        )
        text = CONTRACT.sub("", text)
        text = text.replace(" : EnvironmentD", f" : contracts::{struct}, EnvironmentD")
        text = text.replace('#include "', f'#include "contracts/{stem}.h"\n#include "', 1)
    else:
        text = CONTRACT.sub(lambda found: f"  // {found[1]}{found[2]}", text)
    files[f"experiments/{stem}.h"] = text
    files[f"tests/test_{stem}.py"] = test
    return files


def steps_of(text: str) -> str:
    """Return the number of environment steps in which a task in Python learns."""
    found = STEPS.search(text)
    assert found is not None
    return found[1].replace("_", "")


def assumption(texts: Sequence[str]) -> str:
    """Return the line on a contract's values that these files assume."""
    whole = "\n".join(texts)
    (name, unit), safe, step = (ACTION.findall(whole)[-1], SAFE.search(whole), STEP.search(whole))
    assert safe is not None
    assert step is not None
    value = float(safe[1] or safe[2])
    step_us = round(float(step[1]) * 1e6) if step[1] else int(step[2])
    where = '"safe" and STEP_S' if step[1] else "kSafeAction and kStepInterval_us"
    return (
        f"assumed: where something is wrong the action is {name} {value:g} {unit}, and a step "
        f"takes {step_us:,} us; state it by {where}"
    )


EXPERIMENTS = Path("experiments")


def training_of(name: str, files: Mapping[str, str], folder: Path = EXPERIMENTS) -> list[str]:
    """Return the words of `rlt train` for the experiment, or the task in Python, of these files.

    folder: experiments/, as seen from where they are typed.
    """
    file = f"{file_of(name)}.py"
    if (text := files.get(str(EXPERIMENTS / file))) is None:
        return [name]
    return [f"gym:{folder / file}:{struct_of(name)}", "--steps", steps_of(text)]


def project_files(name: str, files: Mapping[str, str]) -> dict[str, str]:
    """Return what a new project has beside the files of its first experiment."""
    in_firmware = f"experiments/{file_of(name)}.h" in files
    has_contract = f"contracts/{file_of(name)}.h" in files
    words = {
        "my-task": name,
        "my-training": " ".join(training_of(name, files)),
        "my-experiment": name if in_firmware else OTHER_EXPERIMENT,
        "my-contract": name if has_contract else OTHER_CONTRACT,
    }
    texts = {}
    for path, source in OF_A_PROJECT.items():
        text = (FOLDER / "project" / source).read_text(encoding="utf-8")
        for placeholder, word in words.items():
            text = text.replace(placeholder, word)
        texts[path] = text
    return texts


def name_for(folder: Path) -> str:
    """Return the name of a project's first experiment: its folder's, where that can be one."""
    try:
        return checked_name(folder.name)
    except UsageError:
        return DEFAULT_NAME


def write(files: Mapping[str, str], root: Path) -> list[Path]:
    """Write all files, or none: raise UsageError where one exists."""
    paths = {root / name: text for name, text in files.items()}
    for path in paths:
        if is_there(path):
            raise UsageError(
                f"{path} is there already: nothing was written, choose another name or folder"
            )
    written: list[Path] = []
    try:
        for path, text in paths.items():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise disk_error(path, error) from None
            write_atomically(path, text.encode())
            written.append(path)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    return written


def write_experiment(name: str, files: Mapping[str, str]) -> list[Path]:
    """Write files into the project; raise UsageError where the name is taken."""
    if name in experiments.list_experiments():
        raise UsageError(f"there is an experiment {name} already: choose another name")
    require_buildable(PROJECT.root)
    return write(files, PROJECT.root)


def write_project(folder: Path, name: str, files: Mapping[str, str]) -> list[Path]:
    """Write a new project with its first experiment; raise UsageError where files exist."""
    if (TREE.experiments / f"{file_of(name)}.h").is_file():
        raise UsageError(f"there is an experiment {name} already: choose another name")
    require_buildable(folder)
    if is_project(folder):
        command = command_line("new", name)
        raise UsageError(
            f"{near_path(folder)} is a project already: write an experiment there with `{command}`"
        )
    of_project = {
        path: text
        for path, text in project_files(name, files).items()
        if not is_there(folder / path)
    }
    return write({**of_project, **files}, folder)


def is_there(path: Path) -> bool:
    return path.exists() or path.is_symlink()


EXAMPLE = "new balance"


def run(
    name: str | None,
    start: str = DEFAULT_START,
    *,
    gymnasium: bool = False,
    contract: bool = False,
    project: Path | None = None,
    json_output: bool = False,
) -> None:
    """Write the files, and print their paths and what to type next."""
    folder = None if project is None else project.resolve()
    if name is not None:
        name = checked_name(name)
    elif folder is not None:
        name = name_for(folder)
    else:
        raise UsageError(f"name what to begin, such as `{command_line(*EXAMPLE.split())}`")
    if gymnasium:  # the task, its training and a test in one file
        files = {f"experiments/{file_of(name)}.py": begun(f"{start}.py", start, name)}
    else:
        files = in_cpp(name, start, contract)
    kept: list[Path] = []  # what a repository has already, and what stays as it is
    if folder is not None:
        kept = [folder / path for path in OF_A_PROJECT if is_there(folder / path)]
        written = write_project(folder, name, files)
        with contextlib.suppress(OSError, RltError):  # `rlt doctor` repeats it
            link_for_platformio(folder)
    else:
        written = write_experiment(name, files)
    for path in written:
        count = len(path.read_text("utf-8").splitlines())
        print(f"wrote {near_path(path)}, {plural(count, 'line')}")
    for path in kept:
        print(f"kept {near_path(path)}, which was there")
    say(sys.stdout, assumption([*files.values()]))
    seen = near_path(PROJECT.root / EXPERIMENTS) if folder is None else EXPERIMENTS
    training = training_of(name, files, seen)
    say_next(training, folder)
    if json_output:
        paths = [str(path) for path in written]
        print(json.dumps({"name": name, "task": training[0], "files": paths}))


def line_for_wheel(project: Path) -> list[str]:
    """Return the line that puts the wheel of requirements.txt into the project, if it is known."""
    if not (project / "requirements.txt").is_file() or (project / WHEELS).is_dir():
        return []
    if not TREE.is_installed:
        return [f"pip wheel --no-deps -w {WHEELS} {quoted(TREE.root)}"]
    from importlib.metadata import distribution
    from urllib.parse import unquote, urlsplit

    stated = parse_json(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    wheel = Path(unquote(urlsplit(stated.get("url", "")).path))
    return [f"mkdir {WHEELS} && cp {quoted(wheel)} {WHEELS}/"] if wheel.is_file() else []


def say_next(training: Sequence[str], project: Path | None) -> None:
    lines, change = [], "change what is marked EDIT"
    guide = TREE.root / "docs" / "your_environment.md"
    with contextlib.ExitStack() as there:
        if project is not None:
            lines.append(f"cd {quoted(near_path(project))}")
            there.enter_context(contextlib.chdir(project))
            lines += line_for_wheel(project)
        lines.append(command_line("train", *training))
        if project is not None:
            lines.append(command_line("test"))
        if guide.is_file():  # the wheel has no documents
            change += f": {near_path(guide)}"
    print("\n".join(next_steps(*lines, change)))


def command(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Its name: lower-case letters and hyphens."),
    ] = None,
    start: Annotated[
        str,
        typer.Option(
            "--like",
            metavar="START",
            help=f"What it is until you change it: {' or '.join(starts())}.",
            autocompletion=lambda: starts(),
        ),
    ] = DEFAULT_START,
    gymnasium: Annotated[
        bool, typer.Option("--gymnasium", help="In Python, with Gymnasium's interface.")
    ] = False,
    contract: Annotated[
        bool,
        typer.Option(
            "--contract", help="With a header of its own for what a board gets and gives."
        ),
    ] = False,
    project: Annotated[
        Path | None,
        typer.Option(
            "--project", metavar="DIR", help="In a new project there, with README, test and CI."
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    """Write files that compile and learn as they are, into experiments/ of the project."""
    if gymnasium:
        refuse(context, "with --gymnasium", "contract")
    options = {"gymnasium": gymnasium, "contract": contract, "json_output": json_output}
    run(name, start, project=project, **options)
