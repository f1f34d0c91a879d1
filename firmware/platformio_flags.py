"""PlatformIO pre-script: flags and sources from firmware/build.json, boards/ and toolchains/.

The program is RLT_PROGRAM of the environment, or else custom_program of platformio.ini; what it is
for (an experiment, a contract) is RLT_SUBJECT, or else custom_experiment or custom_contract.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

Import("env")  # noqa: F821 - SCons provides it

environment = env  # noqa: F821
# Of a project elsewhere, build/platformio/environments.ini says where the tree is.
repository = Path(environment.GetProjectOption("custom_tree", environment.subst("$PROJECT_DIR")))
board_name = environment["PIOENV"]
common = json.loads((repository / "firmware" / "build.json").read_text("utf-8"))
if (repository / "host").is_dir():
    sys.path.insert(0, str(repository / "host"))
else:  # of a wheel, in whose package the tree is
    sys.path.append(str(repository.parents[1]))

from rltools_host.build import tools  # noqa: E402
from rltools_host.build.boards import load_board  # noqa: E402
from rltools_host.build.cmake import require_program  # noqa: E402
from rltools_host.build.experiments import header_of, is_generated, require_subject  # noqa: E402
from rltools_host.errors import RltError  # noqa: E402
from rltools_host.tree import PROJECT  # noqa: E402

try:
    board = load_board(board_name)
except RltError as error:
    sys.exit(str(error))


def subject_definitions(program: dict[str, Any]) -> list[str]:
    """experiments/pendulum_td3.h is pendulum-td3 and holds struct PendulumTd3; so do contracts."""
    subject = program["for"]
    name = os.environ.get("RLT_SUBJECT") or environment.GetProjectOption(f"custom_{subject}")
    try:
        require_subject(subject, name, board)
    except RltError as error:
        sys.exit(str(error))
    path = header_of(name, subject)
    header = common["subjects"][subject]["include"] + path.name
    if PROJECT.owns(path) or is_generated(name, subject):
        header = str(path)
    struct = "".join(word[:1].upper() + word[1:] for word in name.split("-"))
    define = f"RLT_{subject.upper()}"
    return [f'{define}_HEADER="{header}"', f"{define}={struct}"]


def generate_headers() -> list[str]:
    """Run the generators that CMake runs, with .venv's Python; return include flags."""
    python = repository / ".venv" / "bin" / "python"
    interpreter = str(python) if python.exists() else environment.subst("$PYTHONEXE")
    revision = Path(environment.subst("$BUILD_DIR")) / "revision"
    header = f"HEADER={revision / 'rlt_revision.h'}"
    script = str(repository / "cmake" / "write_revision.cmake")
    generator = str(repository / "lib" / "protocol" / "generate.py")
    commands = [
        [interpreter, "-I", generator, str(PROJECT.protocol)],
        [tools.program("cmake"), "-D", header, "-P", script],
    ]
    for command in commands:
        if subprocess.run(command).returncode != 0:
            sys.exit(f"{' '.join(command)} failed: run ./rlt doctor, which sets up .venv")
    return [f"-I{revision}", f"-isystem{PROJECT.protocol / 'c'}"]


def source_filter(pattern: str) -> str:
    folder, _, rest = pattern.partition("/")
    if folder != "firmware":
        sys.exit(f"{pattern}: sources of a board lie in firmware/")
    return f"+<{rest}>"


program_name = os.environ.get("RLT_PROGRAM") or environment.GetProjectOption("custom_program")
try:
    require_program(board, program_name)
except RltError as error:
    sys.exit(str(error))
program = common["programs"][program_name]
header = f'RLT_PROGRAM_HEADER="{program["header"]}"'
flags = [
    *(f"-D{entry}" for entry in (header, *board.definitions, *subject_definitions(program))),
    *(f"-I{repository / directory}" for directory in common["include_directories"]),
    *(f"-I{directory}" for directory in PROJECT.include_directories),
    *board.toolchain.include_flags,
    *generate_headers(),
    *common["flags"],
    *board.flags,
]
# Only the project's own sources: a framework would not compile with these warnings as errors.
environment.Replace(
    COMPILATIONDB_PATH=os.path.join("$BUILD_DIR", "compile_commands.json"),
    SRC_BUILD_FLAGS=[shlex.quote(flag) for flag in flags],
    SRC_FILTER=[source_filter(pattern) for pattern in [*program["sources"], *board.sources]],
)
if board.linker_script:  # others have their framework's
    environment.Append(
        LIBS=list(board.toolchain.link_libraries),
        LINKFLAGS=[
            *common["flags"],
            *board.flags,
            *common["link_flags"],
            *board.link_flags,
            "-Wl,--print-memory-usage",
            '"-Wl,-Map=$BUILD_DIR/firmware.map"',
            shlex.quote(f"-T{PROJECT.path_of(board.linker_script)}"),
        ],
    )
    environment.Depends("$PROGPATH", str(PROJECT.path_of(board.linker_script)))
