"""Builds firmware and host programs with CMake and Ninja, and reads what they are made of."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import re
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from rltools_host import paths, toolchain
from rltools_host.boards import Board, load_board
from rltools_host.errors import BuildError, UnknownNameError, unknown_name

COMPILING = re.compile(r"^\[\d+/\d+\] (Building|Linking|Generating) ")
PROGRESS = re.compile(r"^(\[\d+/\d+\] |ninja: )")


@dataclass(frozen=True)
class Hyperparameter:
    """A scalar that can be set without a rebuild; type is "F32" or "U32"."""

    name: str
    type: str
    default: float
    minimum: float
    maximum: float
    unit: str
    description: str


@dataclass(frozen=True)
class StateTensor:
    """An array of the training state; dtype as in safetensors, offset in the payload."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class ExperimentDescription:
    """What describe-<experiment> prints; `document` is all of it, also the networks.

    `sizes` has bytes of "state" (the checkpoint's payload), "learner", "replay" and "scratch".
    """

    name: str
    algorithm: str
    fingerprint: int
    environment: Mapping[str, Any]
    hyperparameters: tuple[Hyperparameter, ...]
    tensors: tuple[StateTensor, ...]
    sizes: Mapping[str, int]
    document: Mapping[str, Any]

    def hyperparameter(self, name: str) -> Hyperparameter:
        for hyperparameter in self.hyperparameters:
            if hyperparameter.name == name:
                return hyperparameter
        names = [hyperparameter.name for hyperparameter in self.hyperparameters]
        raise unknown_name("hyperparameter", name, names)


def list_experiments(directory: Path = paths.EXPERIMENTS_DIRECTORY) -> list[str]:
    """Names of all experiments: experiments/pendulum_td3.h is pendulum-td3."""
    return sorted(path.stem.replace("_", "-") for path in directory.glob("*.h"))


def require_experiment(name: str) -> None:
    if name not in list_experiments():
        raise unknown_name("experiment", name, list_experiments())


@contextlib.contextmanager
def build_lock(directory: Path) -> Iterator[None]:
    """One build at a time in a build tree; released even by a kill."""
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / ".rlt-lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def load_generator() -> ModuleType:
    """lib/protocol/generate.py, which is a script and not part of the package."""
    specification = importlib.util.spec_from_file_location("generate", paths.PROTOCOL_GENERATOR)
    if specification is None or specification.loader is None:
        raise BuildError(f"{paths.PROTOCOL_GENERATOR} is missing: restore it from git")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@cache
def generate_protocol() -> Path:
    """Brings the wire format's generated files up to date and returns their directory."""
    try:
        load_generator().generate(paths.PROTOCOL_DIRECTORY)
    except SystemExit as error:
        raise BuildError(f"the wire format cannot be generated: {error}") from None
    return paths.PROTOCOL_DIRECTORY


@cache
def load_dialect() -> ModuleType:
    """The wire format's Python module, generated when it is missing or out of date."""
    path = generate_protocol() / "python" / "rltools_dialect.py"
    specification = importlib.util.spec_from_file_location("rltools_dialect", path)
    if specification is None or specification.loader is None:
        raise BuildError(
            f"{path} cannot be loaded: delete {paths.PROTOCOL_DIRECTORY}, it is made again"
        )
    module = importlib.util.module_from_spec(specification)
    sys.modules["rltools_dialect"] = module
    specification.loader.exec_module(module)
    return module


def cmake_command(board: Board, directory: Path, options: Mapping[str, str]) -> list[str]:
    definitions = {
        "RLT_BOARD": board.name,
        "RLT_PROTOCOL_DIRECTORY": str(paths.PROTOCOL_DIRECTORY),
        "RLT_PYTHON": sys.executable,
        "CMAKE_MAKE_PROGRAM": toolchain.program("ninja"),
        **options,
    }
    return [
        toolchain.program("cmake"),
        *("-S", str(paths.REPOSITORY), "-B", str(directory), "-G", "Ninja"),
        *(f"-D{name}={value}" for name, value in definitions.items()),
    ]


def is_configured(directory: Path, options: Mapping[str, str]) -> bool:
    """Whether CMake has run here with these options; Ninja repeats that when inputs change."""
    if not (directory / "build.ninja").is_file():
        return False
    try:
        cache_text = (directory / "CMakeCache.txt").read_text(encoding="utf-8")
    except OSError:
        return False
    entries = dict(re.findall(r"^([A-Za-z_]\w*):\w+=(.*)$", cache_text, re.MULTILINE))
    expected = {
        **options,
        "CMAKE_HOME_DIRECTORY": str(paths.REPOSITORY),
        "CMAKE_CACHEFILE_DIR": str(directory),
        "RLT_PYTHON": sys.executable,
        "CMAKE_MAKE_PROGRAM": toolchain.program("ninja"),
    }
    return all(entries.get(name) == value for name, value in expected.items())


def messages(output: str) -> list[str]:
    """What compiler and linker said, without Ninja's progress and the command that failed."""
    lines = []
    skip_command = False
    for line in output.splitlines():
        if not skip_command and not PROGRESS.match(line):
            lines.append(line)
        skip_command = line.startswith("FAILED: ")
    return lines


def fail(what: str, output: str, log: Path) -> BuildError:
    """Shows a failed build's own messages as they are, and returns the error that names the log."""
    log.write_text(output, encoding="utf-8")
    sys.stderr.write("\n".join(messages(output)) + "\n")
    return BuildError(f"{what} failed: correct the errors above; commands and errors are in {log}")


def configure(board: Board, directory: Path, options: Mapping[str, str]) -> None:
    if is_configured(directory, options):
        return
    stale_cache = directory / "CMakeCache.txt"
    stale_cache.unlink(missing_ok=True)
    command = cmake_command(board, directory, options)
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        raise fail(f"configuring for {board.name}", result.stdout, directory / "rlt-build.log")


def run_ninja(board: Board, directory: Path, targets: Sequence[str], announcement: str) -> None:
    command = [toolchain.program("ninja"), "-C", str(directory), *targets]
    output = []
    announced = False
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as ninja:
        assert ninja.stdout is not None
        for line in ninja.stdout:
            output.append(line)
            if not announced and COMPILING.match(line):
                print(announcement, file=sys.stderr, flush=True)
                announced = True
    if ninja.returncode != 0:
        raise fail(f"building for {board.name}", "".join(output), directory / "rlt-build.log")


def required_tools(board: Board) -> tuple[str, ...]:
    compilers = (
        ("g++",) if board.toolchain == "host" else ("arm-none-eabi-g++", "arm-none-eabi-libstdc++")
    )
    return (*compilers, *board.libraries)


def build_targets(
    board: Board,
    targets: Sequence[str],
    *,
    directory: Path | None = None,
    options: Mapping[str, str] | None = None,
    announcement: str | None = None,
) -> Path:
    """Configures where necessary, builds targets (none: all) and returns the build tree."""
    directory = directory or paths.board_build_directory(board.name)
    toolchain.require(*required_tools(board))
    generate_protocol()
    with build_lock(directory):
        configure(board, directory, options or {})
        message = announcement or f"Building {', '.join(targets) or 'everything'} for {board.name}"
        run_ninja(board, directory, targets, message)
    return directory


def build_firmware(board: Board, experiment: str) -> Path:
    """The firmware that trains this experiment on this board, built where it is not up to date."""
    require_experiment(experiment)
    if not board.built_by_cmake:
        from rltools_host import flash

        return flash.build_with_platformio(board, experiment)
    directory = paths.board_build_directory(board.name)
    program = directory / f"{experiment}{board.program_suffix}"
    before = modification_time(program)
    build_targets(board, [experiment])
    if modification_time(program) != before:
        for line in memory_lines(memory_usage(board, program)):
            print(line, file=sys.stderr)
    return program


def modification_time(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


def host_library(name: str) -> Path:
    """The shared library from host/native/<name>_library.cpp, built where it is not up to date."""
    return build_targets(load_board("host"), [name]) / f"lib{name}.so"


def describe(experiment: str, board: Board | None = None) -> ExperimentDescription:
    """The experiment's description, from the program describe-<experiment>.

    Where it is to be trained on `board` and that one is built in the same tree, the firmware is
    built beside it: both at once.
    """
    require_experiment(experiment)
    host = load_board("host")
    target = f"describe-{experiment}"
    targets = [target, experiment] if board is not None and board.name == host.name else [target]
    program = build_targets(host, targets) / target
    result = subprocess.run([program], capture_output=True, text=True, timeout=60)
    if result.returncode != 0:
        raise BuildError(f"{program} ended with code {result.returncode}: {result.stderr.strip()}")
    try:
        return parse_description(json.loads(result.stdout))
    except (KeyError, TypeError, ValueError) as error:
        raise BuildError(f"{program} printed no experiment description: {error!r}") from None


def parse_description(document: Mapping[str, Any]) -> ExperimentDescription:
    return ExperimentDescription(
        name=document["name"],
        algorithm=document["algorithm"],
        fingerprint=int(document["fingerprint"]),
        environment=document["environment"],
        hyperparameters=tuple(Hyperparameter(**entry) for entry in document["hyperparameters"]),
        tensors=tuple(
            StateTensor(entry["name"], entry["dtype"], tuple(entry["shape"]), int(entry["offset"]))
            for entry in document["state"]
        ),
        sizes=document["bytes"],
        document=document,
    )


@dataclass(frozen=True)
class LinkerRegion:
    name: str
    origin: int
    length: int


def linker_regions(link_map: str) -> list[LinkerRegion]:
    """The regions of a link map's section "Memory Configuration"."""
    table = link_map.partition("Memory Configuration")[2].partition("Linker script and memory map")[
        0
    ]
    rows = re.findall(r"^(\S+)\s+(0x[0-9a-f]+)\s+(0x[0-9a-f]+)", table, re.MULTILINE)
    return [
        LinkerRegion(name, int(origin, 16), int(length, 16))
        for name, origin, length in rows
        if name != "*default*"
    ]


def allocated_ranges(elf: bytes) -> list[tuple[int, int]]:
    """Address ranges [begin, end) that a 32-bit ELF occupies: sections, and their load images."""
    if elf[:6] != b"\x7fELF\x01\x01":
        raise BuildError(
            "the firmware is not a 32-bit little-endian ELF: delete build/ and build again"
        )
    program_offset, section_offset = struct.unpack_from("<II", elf, 28)
    entry_sizes = struct.unpack_from("<HHHH", elf, 42)
    program_size, program_count, section_size, section_count = entry_sizes
    ranges = []
    for index in range(section_count):
        _, _, flags, address, _, size = struct.unpack_from(
            "<IIIIII", elf, section_offset + index * section_size
        )
        if flags & 2 and size:  # SHF_ALLOC
            ranges.append((address, address + size))
    for index in range(program_count):
        kind, _, virtual_address, physical_address, file_bytes = struct.unpack_from(
            "<IIIII", elf, program_offset + index * program_size
        )
        if kind == 1 and file_bytes and physical_address != virtual_address:  # PT_LOAD
            ranges.append((physical_address, physical_address + file_bytes))
    return ranges


def memory_usage(board: Board, program: Path) -> list[dict[str, Any]]:
    """Bytes in each memory of the board: name, use, used_bytes, bytes; empty for the host."""
    if board.toolchain == "host" or not board.memory:
        return []
    ranges = allocated_ranges(program.read_bytes())
    regions = {
        region.name: region for region in linker_regions(program.with_suffix(".map").read_text())
    }
    usage = []
    for memory in board.memory:
        used_bytes = 0
        for name in memory.regions:
            if name not in regions:
                raise UnknownNameError(
                    f"boards/{board.name}.json: {board.linker_script} has no region {name}"
                )
            region = regions[name]
            ends = [end for begin, end in ranges if 0 <= begin - region.origin < region.length]
            used_bytes += max(ends, default=region.origin) - region.origin
        usage.append(
            {
                "name": memory.name,
                "use": memory.use,
                "used_bytes": used_bytes,
                "bytes": memory.bytes,
            }
        )
        if used_bytes > memory.bytes:
            raise BuildError(
                f"{program.name} needs {used_bytes:,} bytes in {memory.name}, but {board.name} has "
                f"{memory.bytes:,}: make the network, the batch or the replay buffer smaller"
            )
    return usage


def memory_lines(usage: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"  {entry['name']}  {entry['used_bytes']:>9,} of {entry['bytes']:,} bytes "
        f"({100 * entry['used_bytes'] / entry['bytes']:.1f} %)  {entry['use']}"
        for entry in usage
    ]
