"""Experiments and contracts: their headers, which boards they fit, and their descriptions.

firmware/build.json names the folder of each subject (experiment or contract), and the subject of
each program.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

from rltools_host.build import cmake, description, sizes, tools
from rltools_host.build.boards import Board, list_boards, load_board
from rltools_host.build.description import ExperimentDescription
from rltools_host.build.toolchains import list_toolchains
from rltools_host.errors import BuildError, UsageError, near_matches, unknown_name
from rltools_host.files import read_json, write_changed
from rltools_host.tree import PROJECT, TREE, near_path

HOST_BOARD = "host"
EXPERIMENT = "experiment"
CONTRACT = "contract"
GENERATED = re.compile(r"gym(-[a-z0-9]+)*")  # names of Gymnasium tasks
DIGITS = 16  # hexadecimal digits of the digest of the header's text, after the task's own name
DIGEST = re.compile(rf"-[0-9a-f]{{{DIGITS}}}$")
GATE = re.compile(r"^// Gate: ([\w-]+)$", re.MULTILINE)
INCLUDED = re.compile(r'^#include "([\w./-]+)"', re.MULTILINE)
REQUIRES = re.compile(r"\s*//\s*requires\s*:(.*)", re.IGNORECASE)  # as in cmake/board.cmake


class Subject(TypedDict):
    """A kind of header that programs are built for."""

    folder: str
    include: str


Program = TypedDict("Program", {"for": str, "header": str, "sources": list[str]})


class BuildDescription(TypedDict):
    """firmware/build.json."""

    flags: list[str]
    link_flags: list[str]
    include_directories: list[str]
    subjects: dict[str, Subject]
    programs: dict[str, Program]


@cache
def build_description() -> BuildDescription:
    """Return firmware/build.json."""
    document: BuildDescription = read_json(TREE.build_file)
    return document


def subject_of(program: str) -> str:
    """Return for which subject a program of firmware/build.json is built."""
    return build_description()["programs"][program]["for"]


def folder_of(subject: str) -> Path:
    """Return the folder of installed headers; a project has experiments/ and contracts/."""
    if subject == EXPERIMENT:
        return TREE.experiments
    return TREE.root / build_description()["subjects"][subject]["folder"]


def header_of(name: str, subject: str = EXPERIMENT) -> Path:
    """Return the header: experiments/pendulum_td3.h of pendulum-td3."""
    if is_generated(name, subject):
        return generated_header(name, subject)
    return written_header(name, subject)


def written_header(name: str, subject: str = EXPERIMENT) -> Path:
    """Return the path of a header that a person writes: the project's, else the installed one."""
    file = f"{name.replace('-', '_')}.h"
    own = PROJECT.root / f"{subject}s" / file
    return own if own.is_file() else folder_of(subject) / file


def struct_of(header: Path) -> str:
    """Return the name of a header's struct, PendulumTd3 of pendulum_td3.h (cmake/board.cmake)."""
    return "".join(word[:1].upper() + word[1:] for word in header.stem.split("_"))


def generated_header(name: str, subject: str = EXPERIMENT) -> Path:
    """Return the path of a generated header, of a Gymnasium task, as cmake/board.cmake does."""
    return PROJECT.generated / f"{subject}s" / f"{name.replace('-', '_')}.h"


def is_generated(name: str, subject: str = EXPERIMENT) -> bool:
    """Return whether the header is a generated one, and exists."""
    return is_of_task(name, subject) or (subject == EXPERIMENT and write_sized(name))


def is_of_task(name: str, subject: str = EXPERIMENT) -> bool:
    """Return whether this is the whole name of a task's experiment or contract with a header."""
    is_whole = GENERATED.fullmatch(name) and DIGEST.search(name)
    return bool(is_whole) and generated_header(name, subject).is_file()


def sizes_of_name(name: str) -> tuple[str, dict[str, tuple[int, ...]]] | None:
    """Return the written experiment and the sizes in a name with sizes; None for another name."""
    found = None if written_header(name).is_file() else sizes.split(name)
    return found if found is not None and written_header(found[0]).is_file() else None


def write_sized(name: str) -> bool:
    """Write the header of an experiment with other sizes (sizes.py); return whether it is one."""
    if (found := sizes_of_name(name)) is None:
        return False
    cmake.require_place()
    base = written_header(found[0])
    texts = texts_of(base)
    sizes.check(*found, "".join(texts))
    header = generated_header(name)
    up = "../" * len(header.parent.relative_to(PROJECT.root).parts)
    include = f"{up}experiments/{base.name}" if PROJECT.owns(base) else base.name
    written = sizes.header_text(name, struct_of(header), struct_of(base), include, texts)
    write_changed(header, written)
    return True


def texts_of(header: Path) -> list[str]:
    """Return a header's text, then those of the experiments that it includes."""
    texts: dict[Path, str] = {}
    waiting = [header]
    while waiting:
        path = waiting.pop(0)
        if path in texts:
            continue
        texts[path] = path.read_text(encoding="utf-8")
        for name in INCLUDED.findall(texts[path]):
            paths = (path.parent / name, TREE.experiments / name)
            waiting += [candidate for candidate in paths if candidate.is_file()][:1]
    return list(texts.values())


def sized(name: str, more: Mapping[str, tuple[int, ...]]) -> str:
    """Return the experiment's name with these sizes; raise UsageError where it cannot have them."""
    base, given = sizes_of_name(name) or (name, {})
    for size in more:
        if size in given:
            raise UsageError(f"{size} is given twice, as {name} has it: give it once")
    header = written_header(base)
    if more and header.is_file():
        sizes.check(base, {**given, **more}, "".join(texts_of(header)))
    return sizes.name_of(base, {**given, **more})


def whole_name(name: str, subject: str) -> str:
    """Return the name that builds use: `gym-servo` with the digest of the only such task."""
    if not GENERATED.fullmatch(name) or DIGEST.search(name):
        return name
    header = generated_header(name, subject)
    found = header.parent.glob(f"{header.stem}_{'[0-9a-f]' * DIGITS}.h")
    whole = sorted(path.stem.replace("_", "-") for path in found)
    if len(whole) > 1:
        raise UsageError(
            f"{len(whole)} tasks have a {subject} {name}: name one of them, {' or '.join(whole)}"
        )
    return whole[0] if whole else name


def names(subject: str, board: Board | None = None) -> list[str]:
    """Return the names of all of a kind, or of those that fit a board."""
    headers = PROJECT.files(f"{subject}s", "*.h", folder_of(subject))
    known = sorted(header.stem.replace("_", "-") for header in headers)
    return known if board is None else [name for name in known if not lacking(name, board, subject)]


def requirements(name: str, subject: str = EXPERIMENT) -> tuple[str, ...]:
    """Return what the header's lines `// Requires: hosted` require of a board."""
    return requirements_of(header_of(name, subject))


def gate(experiment: str) -> str | None:
    """Return the gate that the header's line `// Gate: hover` names; None without one."""
    header = header_of(experiment)
    if not header.is_file():  # the run comes from another tree
        return None
    found = GATE.search(header.read_text(encoding="utf-8"))
    return found[1] if found else None


def requirements_of(header: Path) -> tuple[str, ...]:
    """Return the words of a header's lines `// Requires: hosted`."""
    found: list[str] = []
    for number, line in enumerate(header.read_text(encoding="utf-8").splitlines(), 1):
        if match := REQUIRES.match(line):
            found += checked_words(match.group(1), f"{header.parent.name}/{header.name}:{number}")
    return tuple(found)


def checked_words(text: str, location: str) -> list[str]:
    """Return the words of such a line; raise BuildError for one that nothing provides."""
    words = re.findall(r"[^\s,]+", text)
    known = {word for board in list_boards() for word in board.provides}
    known |= {word for toolchain in list_toolchains() for word in toolchain.provides}
    if not words:
        raise BuildError(f"{location}: names no requirement: {near_matches('', known)}")
    for word in words:
        if word not in known:
            raise BuildError(
                f'{location}: requires "{word}", which no board provides: '
                f"{near_matches(word, known)}"
            )
    return words


def lacking(name: str, board: Board, subject: str = EXPERIMENT) -> list[str]:
    """Return what the header requires and the board does not provide."""
    return [word for word in requirements(name, subject) if word not in board.provides]


def install_requirements(name: str, subject: str = EXPERIMENT) -> None:
    """Install the groups of Python packages that the header requires."""
    for word in requirements(name, subject):
        if word in tools.GROUPS:
            tools.ensure_group(word)


def task_in(path: Path) -> str:
    """Return how a file's task is named: with its first class that derives from an Env, as far as
    the text shows."""
    text = path.read_text(encoding="utf-8", errors="replace")
    found = re.search(r"^class (\w+)\([^)]*\bEnv\b", text, re.MULTILINE)
    return f"gym:{near_path(path)}:{found[1] if found else 'CLASS'}"


def require_subject(subject: str, name: str, board: Board | None = None) -> None:
    """Raise UsageError unless there is one of this name and it fits the board."""
    known = names(subject)
    if name not in known and not is_generated(name, subject):
        own = PROJECT.root / "experiments" / f"{name.replace('-', '_')}.py"
        for path in (Path(name), own):
            if subject == EXPERIMENT and path.suffix == ".py" and path.is_file():
                raise UsageError(f"{near_path(path)} is a file of Python: name {task_in(path)}")
        raise unknown_name(subject, name, known)
    if board is not None and (missing := lacking(name, board, subject)):
        fitting = [other.name for other in list_boards() if not lacking(name, other, subject)]
        remedy = f"boards that fit: {', '.join(fitting)}" if fitting else "no board fits"
        raise UsageError(
            f"{name} is not for {board.name}, which does not provide {', '.join(missing)}: {remedy}"
        )
    header = header_of(name, subject)
    defined = rf"\b(struct|class|using)\s+{struct_of(header)}\b"
    if not re.search(defined, header.read_text(encoding="utf-8")):
        raise BuildError(
            f"{near_path(header)} defines no struct {struct_of(header)}: name it after the file"
        )


def list_experiments(board: Board | None = None) -> list[str]:
    """Return the names of all experiments, or of those that fit a board."""
    return names(EXPERIMENT, board)


def require_experiment(name: str, board: Board | None = None) -> None:
    """Raise UsageError unless there is this experiment and it fits the board."""
    require_subject(EXPERIMENT, name, board)


def native_board(experiment: str) -> Board:
    """Return the board of this machine that simulates the experiment: host, or one that fits."""
    require_experiment(experiment)
    native = [board for board in list_boards() if board.toolchain.native]
    for board in sorted(native, key=lambda board: board.name != HOST_BOARD):
        if not lacking(experiment, board):
            return board
    raise UsageError(
        f"{experiment} fits no board of this machine, and needs one to be described: "
        f"boards of this machine are {', '.join(board.name for board in native)}"
    )


def describe_contract(name: str) -> Mapping[str, Any]:
    """Return what the program describe-contract-<name> prints: channels and rate."""
    require_subject(CONTRACT, name)
    return printed(cmake.host_program(load_board(HOST_BOARD), [f"describe-contract-{name}"]))


def printed(program: Path) -> Mapping[str, Any]:
    """Return the description that a program of this machine prints."""
    result = subprocess.run([program], capture_output=True, text=True, timeout=60)
    if result.returncode != 0:
        raise BuildError(f"{program} ended with code {result.returncode}: {result.stderr.strip()}")
    try:
        document: Mapping[str, Any] = json.loads(result.stdout)
    except ValueError as error:
        raise BuildError(f"{program} printed no description: {error!r}") from None
    return document


def evaluation_options(experiment: str, environment: str) -> tuple[str, ...]:
    """Return the options of `rlt evaluate` that judge a policy best.

    The experiment's own gate, or Gymnasium where it has the environment; none for the core's
    simulator.
    """
    if stated := gate(experiment):
        return ("--gate", stated)
    return ("--in", "gymnasium") if is_of_gymnasium(environment) else ()


def is_of_gymnasium(environment: str) -> bool:
    """Return whether Gymnasium has an environment of this name.

    Its list is read, which takes a hundredth of the time of an import.
    """
    found = importlib.util.find_spec("gymnasium")
    if found is None or found.origin is None:
        return False
    listed = Path(found.origin).parent / "envs" / "__init__.py"
    try:
        return f'id="{environment}"' in listed.read_text(encoding="utf-8")
    except OSError:
        return False


def describe(experiment: str, board: Board | None = None) -> ExperimentDescription:
    """Return the experiment's description, from the program describe-<experiment>.

    Firmware for a `board` of the same build tree is built at the same time.
    """
    require_experiment(experiment, board)
    host = native_board(experiment)
    install_requirements(experiment)
    target = f"describe-{experiment}"
    beside = (
        [cmake.firmware_target(experiment)] if board is not None and board.name == host.name else []
    )
    return description.experiment(printed(cmake.host_program(host, [target, *beside])))
