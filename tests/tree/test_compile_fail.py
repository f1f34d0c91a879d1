"""The mistakes that users make: the compiler shows one sentence that names the mistake.

Each file of tests/compile_fail states mistakes, and what must be said of them, in comments:
  // says: TEXT        must be in the compiler's output; several lines are several texts
  // variant: MACRO    the file has several mistakes, each behind a macro; its texts follow
Without these macros, and with RLT_CORRECTED, the same file compiles. A header of experiments/ is
compiled as the firmware that trains it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from rltools_host.build import cmake, tools
from rltools_host.build.boards import load_board
from rltools_host.tree import TREE

DIRECTORY = TREE.root / "tests" / "compile_fail"
MAXIMUM_BYTES = 2500
OTHER_COMPILERS = ["clang++"] if shutil.which("clang++") else []
COMMON = json.loads(TREE.build_file.read_text())
# Checked by the linker: only a board with a linker script has a budget.
LINKED = {"replay_too_large"}
# Where memory is plenty, as on the host, the experiment's tiles are not used.
WITHOUT_WHOLE_BATCHES = {"tile_rows"}
# What every firmware that trains includes, whatever its experiment is.
PREFIX = """
#include RLT_DEVICE_HEADER
#include "app/link/board_node.h"
#include "app/train/application.h"
#include "rltools/rl/algorithms/dqn.h"
#include "rltools/rl/algorithms/ppo.h"
#include "rltools/rl/algorithms/sac.h"
#include "rltools/rl/algorithms/td3.h"
"""


@dataclass(frozen=True)
class Mistake:
    path: Path
    variant: str | None
    says: tuple[str, ...]

    def __str__(self) -> str:
        return self.path.stem if self.variant is None else f"{self.path.stem}-{self.variant}"


def mistakes_of(path: Path) -> list[Mistake]:
    mistakes: dict[str | None, list[str]] = {}
    variant = None
    for keyword, text in re.findall(r"^ *// (variant|says): (.+)$", path.read_text(), re.MULTILINE):
        if keyword == "variant":
            variant = text
        else:
            mistakes.setdefault(variant, []).append(text)
    return [Mistake(path, variant, tuple(says)) for variant, says in mistakes.items()]


SOURCES = sorted([*DIRECTORY.glob("*.cpp"), *DIRECTORY.glob("experiments/*.h")])
MISTAKES = [mistake for path in SOURCES for mistake in mistakes_of(path)]
COMPILED = [mistake for mistake in MISTAKES if mistake.path.stem not in LINKED]
EVERY_DAY = 6  # each so many of them is compiled every day; all of them take minutes


def include_flags() -> list[str]:
    return [f"-I{directory}" for directory in COMMON["include_directories"]]


def experiment_type(path: Path) -> str:
    return "".join(word.capitalize() for word in path.stem.split("_"))


def firmware_flags(board_name: str, experiment: Path) -> list[str]:
    """As CMake compiles a firmware's main file."""
    board = load_board(board_name)
    generated = cmake.generate_protocol() / "c"
    return [
        *("-isystem", str(generated.relative_to(TREE.root))),
        f'-DRLT_PROGRAM_HEADER="{COMMON["programs"]["train"]["header"]}"',
        "-I.",
        *(
            f"-D{name}"
            for name in board.definitions
            if name != "RLT_WHOLE_BATCH" or experiment.stem not in WITHOUT_WHOLE_BATCHES
        ),
    ]


def experiment_flags(experiment: Path, folder: Path) -> list[str]:
    """By a header, which is read behind what is precompiled."""
    header = folder / "experiment.h"
    header.write_text(
        f'#define RLT_EXPERIMENT_HEADER "{experiment.relative_to(TREE.root)}"\n'
        f"#define RLT_EXPERIMENT {experiment_type(experiment)}\n"
    )
    return ["-include", str(header)]


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """In the tree's root, by relative paths: the output does not depend on where the tree lies."""
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(
        command,
        cwd=TREE.root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which PREFIX is precompiled, so that GCC takes a third of the time. It reads the
    text where a board's macros are others."""
    tools.require("g++")
    folder = tmp_path_factory.mktemp("prefix")
    (folder / "prefix.h").write_text(PREFIX)
    command = ["g++", *COMMON["flags"], *include_flags(), *firmware_flags("host", SOURCES[0])]
    command += ["-x", "c++-header", str(folder / "prefix.h"), "-o", str(folder / "prefix.h.gch")]
    result = run(command)
    assert result.returncode == 0, result.stdout
    return folder


def compile_file(
    compiler: str, path: Path, macro: str | None, prefix: Path
) -> subprocess.CompletedProcess[str]:
    command = [compiler, *COMMON["flags"], *include_flags(), "-fsyntax-only"]
    if path.suffix == ".h":
        command += firmware_flags("host", path)
        if compiler == "g++":
            command += ["-include", str(prefix / "prefix.h")]
        command += [*experiment_flags(path, prefix), "firmware/host/main.cpp"]
    else:
        command.append(str(path.relative_to(TREE.root)))
    return run(command if macro is None else [*command, f"-D{macro}"])


def check_message(mistake: Mistake, output: str) -> None:
    for text in mistake.says:
        assert text in output
    assert len(output.encode()) < MAXIMUM_BYTES, output
    assert output.count("error: ") == 1, output


@pytest.mark.parametrize(
    "mistake",
    [
        mistake if index % EVERY_DAY == 0 else pytest.param(mistake, marks=pytest.mark.all)
        for index, mistake in enumerate(COMPILED)
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "compiler", ["g++", *(pytest.param(name, marks=pytest.mark.all) for name in OTHER_COMPILERS)]
)
def test_mistake_is_named_in_one_sentence(compiler: str, mistake: Mistake, prefix: Path) -> None:
    result = compile_file(compiler, mistake.path, mistake.variant, prefix)
    assert result.returncode != 0
    check_message(mistake, result.stdout)


@pytest.mark.parametrize(
    "path", [path for path in SOURCES if path.stem not in LINKED], ids=lambda path: path.stem
)
@pytest.mark.all
def test_corrected_twin_compiles_in_silence(path: Path, prefix: Path) -> None:
    result = compile_file("g++", path, "RLT_CORRECTED", prefix)
    assert result.returncode == 0, result.stdout
    assert result.stdout == ""


# -- The memory budget: checked by the linker, with the board's own script and flags -------------

PLACED_REPLAY = """
#include RLT_DEVICE_HEADER
#include RLT_EXPERIMENT_HEADER
#include "board_api.h"
RLT_BULK volatile rlt::Replay<rlt::RLT_EXPERIMENT> replay;
extern "C" void reset_handler() { replay.flags[0] = 1; }
"""


def link_replay(header: Path, corrected: bool, directory: Path) -> subprocess.CompletedProcess[str]:
    """A program for the emulated board that holds the experiment's replay buffer only."""
    board = load_board("qemu-cortex-m7")
    tools.require(*cmake.required_tools(board))
    source = directory / "replay.cpp"
    source.write_text(PLACED_REPLAY)
    command = [board.toolchain.compiler, *COMMON["flags"], *board.flags, *include_flags()]
    command += [*firmware_flags("qemu-cortex-m7", header), *experiment_flags(header, directory)]
    command += [*board.link_flags, "-T", str(board.linker_script), str(source)]
    command += ["-o", str(directory / "replay.elf")]
    if corrected:
        command.append("-DRLT_CORRECTED")
    return run(command)


@pytest.mark.parametrize("mistake", [m for m in MISTAKES if m.path.stem in LINKED], ids=str)
def test_budget_exceeded_is_named_in_one_sentence(mistake: Mistake, tmp_path: Path) -> None:
    result = link_replay(mistake.path, corrected=False, directory=tmp_path)
    assert result.returncode != 0
    for text in mistake.says:
        assert text in result.stdout
    assert len(result.stdout.encode()) < MAXIMUM_BYTES, result.stdout
    assert re.search(r"region `RAM2' overflowed by \d+ bytes", result.stdout)


@pytest.mark.parametrize("mistake", [m for m in MISTAKES if m.path.stem in LINKED], ids=str)
def test_budget_kept_links(mistake: Mistake, tmp_path: Path) -> None:
    result = link_replay(mistake.path, corrected=True, directory=tmp_path)
    assert result.returncode == 0, result.stdout


# -- The test itself ---------------------------------------------------------------------------


def test_every_file_states_a_mistake() -> None:
    assert {mistake.path for mistake in MISTAKES} == set(SOURCES)
