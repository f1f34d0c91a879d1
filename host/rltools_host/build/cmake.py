"""Configuring build trees with CMake and building targets with Ninja."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

from rltools_host.build import prebuilt, tools
from rltools_host.build.boards import Board, list_boards, load_board
from rltools_host.build.toolchains import COMPILER_CACHE
from rltools_host.errors import BuildError, UsageError, unknown_name
from rltools_host.files import disk_error, read_json
from rltools_host.lines import aside
from rltools_host.system import commands_of_children, lock, readable
from rltools_host.tree import PROJECT, TREE, near_path, require_buildable


def load_module(name: str, path: Path) -> ModuleType:
    """Load a module that is not part of the package under this name."""
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None
    assert specification.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def load_generator() -> ModuleType:
    """Load lib/protocol/generate.py, a script."""
    return load_module("rltools_generator", TREE.protocol_generator)


@cache
def generate_protocol() -> Path:
    """Bring the generated files of the wire format up to date; return their directory."""
    try:
        load_generator().generate(PROJECT.protocol)
    except SystemExit as error:
        raise BuildError(f"the wire format cannot be generated: {error}") from None
    except OSError as error:
        raise disk_error(PROJECT.protocol, error) from None
    return PROJECT.protocol


@cache
def load_dialect() -> ModuleType:
    """Return the wire format's Python module, generated where it is out of date."""
    path = generate_protocol() / "python" / "rltools_dialect.py"
    return load_module("rltools_dialect", path)


SILENT_WAIT_S, ASK_AGAIN_S = 2.0, 0.05  # for another build
TRAIN = "train"  # the program of firmware/build.json that trains
LINK = "tree"  # in each build tree, to the sources
COMPILING = re.compile(rb"^\[\d+/\d+\] (Building|Linking|Generating) ", re.MULTILINE)
# What a build runs that compiles nothing: CMake's look for new files, and git's for the revision.
NO_COMPILERS = (b"--regenerate-during-build", b"VerifyGlobs.cmake", b"write_revision.cmake")
LOOK_S = 0.2  # between two looks at what a silent Ninja does
PROGRESS = re.compile(r"^(\[\d+/\d+\] |ninja: )")
COMPILER_ERROR = re.compile(
    r"(?P<file>[^\s:][^:]*):(?P<line>\d+):\d+: (?:fatal )?error: (?P<what>.*)"
)
STATIC_ASSERTION = re.compile(r"^static assertion failed(?: due to requirement '.*')?: ")
LINKER_ERROR = re.compile(
    r"((?:undefined reference to|undefined symbol:|region `\w+' overflowed by) ?.*)"
)
CMAKE_ERROR = re.compile(r"^CMake Error[^\n]*:\n+((?:  .*\n)+)", re.MULTILINE)


def require_place() -> None:
    """Raise UsageError where the path of the project or the tree cannot be built in."""
    for root in dict.fromkeys((PROJECT.root, TREE.root)):
        require_buildable(root)


@contextlib.contextmanager
def build_lock(directory: Path) -> Iterator[None]:
    """Let one process at a time build in a build tree; the lock ends with the process.

    Who waits for long says so.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = os.open(directory / ".rlt-lock", os.O_WRONLY | os.O_CREAT, 0o666)
    except OSError as error:
        raise disk_error(directory, error) from None
    try:
        silent_until = time.monotonic() + SILENT_WAIT_S
        while not (is_locked := lock(file)) and time.monotonic() < silent_until:
            time.sleep(ASK_AGAIN_S)
        if not is_locked:
            aside(f"Waiting: another rlt builds in {near_path(directory)}")
            lock(file, waits=True)
        yield
    finally:
        os.close(file)


def toolchain_options(board: Board) -> dict[str, str]:
    """Return the options with which another toolchain or compiler configures the tree again."""
    options = {"RLT_STAND_IN": board.toolchain.stand_in}
    if (file := board.toolchain.cmake_toolchain_file) is not None:
        options["CMAKE_TOOLCHAIN_FILE"] = str(TREE.root / file)
    return options


def compiler_launcher(folder: Path) -> list[str]:
    """Return the words that start a compiler in `folder` through ccache; none without ccache.

    CMake does it by cmake/compiler_cache.cmake. Files in the folder have the same names for ccache
    wherever it lies.
    """
    ccache = shutil.which(COMPILER_CACHE) if os.name != "nt" else None
    return [] if ccache is None else [str(TREE.toolchains / "cached"), str(folder), ccache]


def is_configured(directory: Path, source: Path, definitions: Mapping[str, str]) -> bool:
    """Return whether CMake has run here with these options; Ninja repeats it when inputs change."""
    if not (directory / "build.ninja").is_file():
        return False
    try:
        cache_text = (directory / "CMakeCache.txt").read_text(encoding="utf-8")
    except OSError:
        return False
    entries = dict(re.findall(r"^([A-Za-z_]\w*):\w+=(.*)$", cache_text, re.MULTILINE))
    folders = {"CMAKE_HOME_DIRECTORY": str(source), "CMAKE_CACHEFILE_DIR": str(directory)}
    return all(entries.get(name) == value for name, value in {**folders, **definitions}.items())


def link_tree(directory: Path) -> Path:
    """Return the link in a build tree by which the sources are compiled, wherever they lie.

    The tree itself on a file system without links (cmake/compiler_cache.cmake), and on Windows,
    where links need a right. What was compiled from another tree is compiled again.
    """
    if os.name == "nt":
        return TREE.root
    link = directory / LINK
    if not link.is_symlink() or link.readlink() != TREE.root:
        try:
            link.unlink(missing_ok=True)
            link.symlink_to(TREE.root)
        except OSError:
            return TREE.root
        (directory / ".ninja_log").unlink(missing_ok=True)
    return link


def messages(output: str) -> list[str]:
    """Return the lines of compiler and linker, without Ninja's progress and failed commands."""
    lines = []
    skip_command = False
    for line in output.splitlines():
        if not skip_command and not PROGRESS.match(line):
            lines.append(line)
        skip_command = line.startswith("FAILED: ")
    return lines


def is_users(file: Path) -> bool:
    """Return whether users write the file: in their project, or in a folder for their files."""
    folders = (PROJECT.root / name for name in ("experiments", "environments", "contracts"))
    return PROJECT.owns(file) or any(file.is_relative_to(folder) for folder in folders)


def mistake(output: str, directory: Path) -> str:
    """Return the first error in a file of the user's, else the first error; empty without one.

    It has the words of compiler, linker or CMake, with file and line.
    """
    found = [
        ((directory / match["file"]).resolve(), match)
        for match in map(COMPILER_ERROR.match, output.splitlines())
        if match
    ]
    for file, match in [each for each in found if is_users(each[0])] or found:
        near = file.relative_to(TREE.root) if file.is_relative_to(TREE.root) else near_path(file)
        return f"{near}:{match['line']}: {STATIC_ASSERTION.sub('', match['what'])}"
    if linker := LINKER_ERROR.search(output):
        return linker[1]
    if message := CMAKE_ERROR.search(output):
        return " ".join(message[1].split()).rstrip(".")
    return ""


def fail(what: str, output: str, log: Path) -> BuildError:
    """Print a failed build's messages; return an error with the first one and the log's path."""
    log.write_text(output, encoding="utf-8")
    sys.stderr.write("\n".join(messages(output)) + "\n")
    message = mistake(output, log.parent) or "correct the errors above"
    return BuildError(f"{what} failed: {message}; commands and errors are in {near_path(log)}")


def configure(board: Board, directory: Path, options: Mapping[str, str]) -> None:
    definitions = {
        "RLT_BOARD": board.firmware,
        "RLT_PROJECT_DIRECTORY": str(PROJECT.root),
        "RLT_PROTOCOL_DIRECTORY": str(PROJECT.protocol),
        # Found at each build: if one changes, CMake runs again.
        "RLT_PYTHON": sys.executable,
        "RLT_CCACHE": shutil.which(COMPILER_CACHE) or "",
        "CMAKE_MAKE_PROGRAM": tools.program("ninja"),
        **toolchain_options(board),
        **options,
    }
    source = link_tree(directory)
    if is_configured(directory, source, definitions):
        return
    compilers = directory.glob("CMakeFiles/*/CMakeCXXCompiler.cmake")
    for stale in (directory / "CMakeCache.txt", *compilers):
        stale.unlink(missing_ok=True)
    command = [tools.program("cmake"), "-S", str(source), "-B", str(directory), "-G", "Ninja"]
    command += [f"-D{name}={value}" for name, value in definitions.items()]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        raise fail(f"configuring for {board.name}", result.stdout, directory / "rlt-build.log")


announce: Callable[[str], None] = aside  # that something is compiled, once in a build


def compiles(ninja: int) -> bool:
    """Return whether Ninja has a command that runs and may compile; False where the system does not
    tell."""
    return any(
        not any(word in command for word in NO_COMPILERS) for command in commands_of_children(ninja)
    )


def run_ninja(
    what: str, directory: Path, targets: Sequence[str], announcement: str, niceness: int = 0
) -> None:
    """Build targets; print the announcement once something is compiled. `what` names the build in
    an error."""
    command = [tools.program("ninja"), "-C", str(directory), *targets]
    if niceness:
        command = ["nice", "-n", str(niceness), *command]
    output, announced = b"", not announcement
    with subprocess.Popen(
        command,
        env={**os.environ, "LANGUAGE": "en"},  # English messages; ccache ignores this variable
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as ninja:
        assert ninja.stdout is not None
        try:
            while True:
                # Ninja names what it has compiled, and not what it compiles.
                has_said = readable([ninja.stdout], LOOK_S)
                if has_said:
                    said = os.read(ninja.stdout.fileno(), 65536)
                    output += said
                    if not said:
                        break
                if not announced and (COMPILING.search(output) or compiles(ninja.pid)):
                    announce(announcement)
                    announced = True
        except BaseException:  # interrupted: Ninja ends its compilers, and removes half files
            ninja.terminate()
            ninja.wait()
            raise
    text = output.decode(errors="replace")
    if ninja.returncode != 0:
        raise fail(what, text, directory / "rlt-build.log")


def required_tools(
    board: Board, targets: Sequence[str] = (), *, to_run: bool = False
) -> tuple[str, ...]:
    """Return the names of the system tools that building for this board, or running, needs.

    targets: of programs; none: of any program, also one that no wheel brings.
    """
    emulator = (board.emulator.program,) if to_run and board.emulator is not None else ()
    if prebuilt.files_of(board, targets):
        return emulator
    return (*(tool.name for tool in board.toolchain.tools), *emulator)


def missing_optional_tools(board: Board, *, to_run: bool = False) -> list[str]:
    """Return the optional tools, and those of Python packages, that this board needs and that are
    not installed."""
    missing = tools.missing_tools(required_tools(board, to_run=to_run))
    return [tool.name for tool in missing if tool.optional or tool.is_of_group]


def programs_of(board: Board) -> list[str]:
    """Return the programs of firmware/build.json that are built for this board."""
    known = list(read_json(TREE.build_file)["programs"])
    if board.programs is None:
        return known
    if unknown := [program for program in board.programs if program not in known]:
        raise BuildError(
            f'boards/{board.name}.json: no program "{unknown[0]}" in firmware/build.json: '
            f"known are {', '.join(known)}"
        )
    return list(board.programs)


def require_program(board: Board, program: str = TRAIN) -> None:
    """Raise UsageError unless there is this program and it is built for this board."""
    known = read_json(TREE.build_file)["programs"]
    if program not in known:
        raise unknown_name("program", program, known)
    if program not in programs_of(board):
        others = [other.name for other in list_boards() if program in programs_of(other)]
        raise UsageError(
            f"{board.name} is not built with the program {program}: "
            f"boards that are: {', '.join(others)}"
        )


def firmware_target(experiment: str, program: str = TRAIN) -> str:
    """Return the target that builds a program of firmware/build.json for an experiment."""
    return f"{program}-{experiment}"


def build_targets(
    board: Board,
    targets: Sequence[str],
    *,
    directory: Path | None = None,
    options: Mapping[str, str] | None = None,
    announcement: str | None = None,
    niceness: int = 0,
) -> Path:
    """Configure if necessary, build targets (none: all) and return the build tree.

    Where a wheel brought them, and there is no compiler, nothing is built. An empty announcement
    prints nothing. With a `niceness` above 0 the compilers leave the processors to other programs.
    """
    is_own = directory is None and options is None
    directory = directory or PROJECT.board_build(board.firmware)
    require_place()
    if is_own and (files := prebuilt.files_of(board, targets)):
        with build_lock(directory):
            if prebuilt.provide(board, files, directory):
                return directory
    tools.require(*required_tools(board))
    generate_protocol()
    with build_lock(directory):
        configure(board, directory, options or {})
        message = announcement
        if message is None:
            message = f"Building {', '.join(targets) or 'everything'} for {board.name}"
        run_ninja(f"building for {board.name}", directory, targets, message, niceness)
    return directory


def host_library(name: str) -> Path:
    """Build host/native/<name>_library.cpp where necessary, and return the library's path."""
    return build_targets(load_board("host"), [name]) / f"lib{name}.so"


def host_program(board: Board, targets: Sequence[str]) -> Path:
    """Build targets for this machine where necessary, and return the first one's program."""
    return build_targets(board, targets) / f"{targets[0]}{board.program_suffix}"


# -- the C++ tests, in a build tree of their own (cmake/host.cmake) --------------------------------

BACKGROUND = 10  # niceness of the C++ tests, which are built beside the Python tests
TEST_OPTIONS = {"RLT_TESTS": "ON"}


def tests_directory() -> Path:
    return PROJECT.build / "tests"


def tests_named(expression: str) -> list[str]:
    """Return the C++ tests whose name has one of the words of "a or b"."""
    require_place()
    tools.require("doctest")
    generate_protocol()
    with build_lock(tests_directory()):
        configure(load_board("host"), tests_directory(), TEST_OPTIONS)
    words = [re.escape(word) for word in expression.split(" or ")]
    command = ctest_command(["--show-only", "-R", "|".join(words)])
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.findall(r"Test +#\d+: (\w+)", listed)


def build_tests(targets: Sequence[str]) -> None:
    """Build targets of the C++ tests, with what the other programs leave of the processors."""
    tools.require("doctest")
    build_targets(
        load_board("host"),
        targets,
        directory=tests_directory(),
        options=TEST_OPTIONS,
        announcement="Building the C++ tests",
        niceness=BACKGROUND,
    )


def ctest_command(selection: Sequence[str]) -> list[str]:
    """Return the command that runs the built C++ tests that `selection` names."""
    ctest = str(Path(tools.program("cmake")).with_name("ctest"))
    return [
        *(ctest, "--test-dir", str(tests_directory()), "--output-on-failure"),
        *(f"-j{os.cpu_count() or 1}", *selection),
    ]
