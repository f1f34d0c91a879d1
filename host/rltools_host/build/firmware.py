"""Building a board's firmware with CMake or PlatformIO, and its use of the memories."""

from __future__ import annotations

import configparser
import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from rltools_host.build import tools
from rltools_host.build.boards import Board
from rltools_host.build.cmake import TRAIN, build_targets, firmware_target, require_program
from rltools_host.build.experiments import install_requirements, require_subject, subject_of
from rltools_host.errors import BuildError, MissingToolError, UsageError
from rltools_host.files import disk_error, read_json, write_atomically
from rltools_host.lines import aside
from rltools_host.tree import PROJECT, TREE, VARIABLE, require_buildable

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

ALLOCATED, WRITTEN = 2, 3  # flags of an ELF's section: SHF_ALLOC, and with SHF_WRITE


@dataclass(frozen=True)
class LinkerRegion:
    name: str
    origin: int
    length: int


def linker_regions(link_map: str) -> list[LinkerRegion]:
    """Return the regions of a link map's section "Memory Configuration"."""
    table = link_map.partition("Memory Configuration")[2].partition("Linker script and memory map")[
        0
    ]
    rows = re.findall(r"^(\S+)\s+(0x[0-9a-f]+)\s+(0x[0-9a-f]+)", table, re.MULTILINE)
    return [
        LinkerRegion(name, int(origin, 16), int(length, 16))
        for name, origin, length in rows
        if name != "*default*"
    ]


@contextlib.contextmanager
def opened_elf(program: Path) -> Iterator[ELFFile]:
    """Open an ELF; raise BuildError where it is none or damaged."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    with program.open("rb") as file:
        try:
            yield ELFFile(file)
        except ELFError as error:
            raise BuildError(
                f"{program} is not the firmware's ELF ({error}): delete build/ and build again"
            ) from None


def section_sizes(program: Path) -> dict[str, int]:
    """Return the size of each section of an ELF by its name."""
    with opened_elf(program) as elf:
        return {section.name: section["sh_size"] for section in elf.iter_sections()}


def allocated_ranges(elf: ELFFile) -> list[tuple[int, int]]:
    """Return the address ranges [begin, end) that an ELF occupies: sections, and load images."""
    ranges = [
        (section["sh_addr"], section["sh_addr"] + section["sh_size"])
        for section in elf.iter_sections()
        if section["sh_flags"] & ALLOCATED and section["sh_size"]
    ]
    for segment in elf.iter_segments("PT_LOAD"):
        if segment["p_filesz"] and segment["p_paddr"] != segment["p_vaddr"]:
            ranges.append((segment["p_paddr"], segment["p_paddr"] + segment["p_filesz"]))
    return ranges


class MemoryUsage(TypedDict):
    name: str
    use: str
    used_bytes: int
    bytes: int


def memory_usage(board: Board, program: Path) -> list[MemoryUsage]:
    """Return the use of each memory of the board; empty without a link map."""
    if not board.toolchain.link_map or not board.memory:
        return []
    with opened_elf(program) as elf:
        ranges = allocated_ranges(elf)
    regions = {
        region.name: region
        for region in linker_regions(program.with_suffix(".map").read_text("utf-8"))
    }
    usage: list[MemoryUsage] = []
    for memory in board.memory:
        used_bytes = 0
        for name in memory.regions:
            if name not in regions:
                raise UsageError(
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


@dataclass(frozen=True)
class Footprint:
    """The bytes of a program on a board."""

    flash_bytes: int  # code, constants and initial values
    ram_bytes: int  # memories that it writes to, with code that runs there


def footprint(board: Board, program: Path) -> Footprint | None:
    """Return the footprint of firmware; None without a link map."""
    usage = {entry["name"]: int(entry["used_bytes"]) for entry in memory_usage(board, program)}
    if not usage:
        return None
    with opened_elf(program) as elf:
        loaded = [segment["p_filesz"] for segment in elf.iter_segments("PT_LOAD")]
        written = [
            section["sh_addr"]
            for section in elf.iter_sections()
            if section["sh_size"] and section["sh_flags"] & WRITTEN == WRITTEN
        ]
    regions = linker_regions(program.with_suffix(".map").read_text("utf-8"))
    written_regions = {
        region.name
        for region in regions
        if any(0 <= address - region.origin < region.length for address in written)
    }
    memories = [memory.name for memory in board.memory if written_regions & {*memory.regions}]
    return Footprint(sum(loaded), sum(usage[name] for name in memories))


def memory_lines(usage: Sequence[MemoryUsage]) -> list[str]:
    return [
        f"  {entry['name']}  {entry['used_bytes']:>9,} of {entry['bytes']:,} bytes "
        f"({100 * entry['used_bytes'] / entry['bytes']:.1f} %)  {entry['use']}"
        for entry in usage
    ]


FOLDERS = ("boards", "packages", "platforms")
FLAGS_SCRIPT = "firmware/platformio_flags.py"
UNREACHABLE_REGISTRY = (
    "InternetConnectionError",
    "HTTPClientError",
    "Could not install package",
    "UnknownPackageError",
    "Could not find the package",
    "You are not connected to the Internet",
)


def program_path(board: Board, name: str, program: str = TRAIN) -> Path:
    """Return the path of CMake's result: build/<board>/<program>/<experiment or contract>."""
    directory = PROJECT.board_build(board.firmware) / program
    return directory / f"{name}{board.program_suffix}"


def build_firmware(board: Board, name: str, program: str = TRAIN) -> Path:
    """Build the program for this experiment or contract where necessary; return its path."""
    require_program(board, program)
    require_subject(subject_of(program), name, board)
    install_requirements(name, subject_of(program))
    return BUILDERS[board.toolchain.builder](board, name, program)


def build_with_cmake(board: Board, name: str, program: str) -> Path:
    file = program_path(board, name, program)
    before = modification_time(file)
    build_targets(board, [firmware_target(name, program)])
    if modification_time(file) != before:
        aside(*memory_lines(memory_usage(board, file)))
    return file


def modification_time(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


def platformio_environment(subject: str, program: str = TRAIN) -> dict[str, str]:
    """Return the settings of PlatformIO: what is built, no telemetry and no search for updates."""
    return {
        **os.environ,
        "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "No",
        "PLATFORMIO_SETTING_CHECK_PLATFORMIO_INTERVAL": "9999",
        "PLATFORMIO_SETTING_CHECK_PRUNE_SYSTEM_THRESHOLD": "0",
        "PLATFORMIO_NO_ANSI": "true",
        VARIABLE: str(PROJECT.root),  # PlatformIO itself runs in the tree
        **project_folders(),
        "RLT_PROGRAM": program,
        "RLT_SUBJECT": subject,
    }


def project_folders() -> dict[str, str]:
    """Return PlatformIO's folders for a project elsewhere than the tree."""
    if not PROJECT.is_elsewhere:
        return {}
    return {
        f"PLATFORMIO_{name.upper()}": folder
        for name, folder in link_for_platformio(PROJECT.root).items()
    }


def link_for_platformio(project: Path) -> dict[str, str]:
    """Link PlatformIO's folders for a project elsewhere than the tree.

    PlatformIO keeps what it downloads beside our platform and package, which are links then. `pio
    run` in the project reads the tree's environments from a file there.
    """
    require_buildable(project)
    workspace = project / "build" / "platformio"
    links = {
        "platforms/rltools_emulated": TREE.root / "platforms" / "rltools_emulated",
        "packages/tool-scons": TREE.root / "platforms" / "packages" / "tool-scons",
        **{
            f"boards/{path.name}": path
            for folder in (TREE.boards, project / "boards")
            for path in folder.glob("*.json")
        },
    }
    shutil.rmtree(workspace / "boards", ignore_errors=True)
    try:
        for name, target in links.items():
            (workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (workspace / name).unlink(missing_ok=True)
            (workspace / name).symlink_to(target)
    except OSError as error:
        raise disk_error(workspace, error) from None
    folders = {
        "workspace_dir": str(workspace),
        **{f"{name}_dir": str(workspace / name) for name in FOLDERS},
    }
    write_atomically(workspace / ENVIRONMENTS, environments_for_platformio(folders).encode())
    return folders


ENVIRONMENTS = "environments.ini"  # what a project's platformio.ini includes


def environments_for_platformio(folders: Mapping[str, str]) -> str:
    """Return the tree's platformio.ini with absolute paths, less what a project states itself."""
    settings = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    settings.read_string((TREE.root / "platformio.ini").read_text(encoding="utf-8"))
    sources = str(TREE.root / "firmware")
    settings["platformio"] = {**folders, "src_dir": sources, "include_dir": sources}
    common = settings["env"]
    common["extra_scripts"] = f"pre:{TREE.root / FLAGS_SCRIPT}"
    common["custom_tree"] = str(TREE.root)
    for subject in ("experiment", "contract"):
        common.pop(f"custom_{subject}")
    for board in TREE.boards.glob("*.json"):
        partitions = read_json(board).get("build", {}).get("arduino", {}).get("partitions")
        if partitions and settings.has_section(f"env:{board.stem}"):
            own = settings[f"env:{board.stem}"]
            own["board_build.arduino.partitions"] = str(TREE.root / partitions)
    lines = ["; Written by `rlt doctor`, of the tree's platformio.ini."]
    for name in settings.sections():
        lines += ["", f"[{name}]", *(f"{key} = {value}" for key, value in settings[name].items())]
    return "\n".join(lines) + "\n"


def run_platformio(
    arguments: Sequence[str],
    subject: str,
    program: str = TRAIN,
    *,
    show: bool = False,
) -> tuple[int, str]:
    """Run `pio ARGUMENTS` in the tree; return its exit code and output."""
    tools.ensure_group("platformio")
    process = subprocess.Popen(
        [sys.executable, "-m", "platformio", *arguments],
        cwd=TREE.root,
        env=platformio_environment(subject, program),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    output = []
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            output.append(line)
            if show:
                sys.stderr.write(line)
    return process.returncode, "".join(output)


def platformio_failure(board: Board, what: str, output: str) -> Exception:
    log = PROJECT.board_build(board.name) / "rlt-build.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(output, encoding="utf-8")
    if any(sign in output for sign in UNREACHABLE_REGISTRY):
        return MissingToolError(
            f"PlatformIO could not download the packages for {board.name} from its registry: "
            f"connect to the Internet and try again (its messages are in {log})"
        )
    return BuildError(f"{what} failed: see PlatformIO's messages above; they are also in {log}")


def build_with_platformio(board: Board, subject: str, program: str = TRAIN) -> Path:
    """Build firmware with PlatformIO for a board that CMake does not build; return its path."""
    aside(f"Building {subject} for {board.name} with PlatformIO")
    code, output = run_platformio(["run", "-e", board.name], subject, program)
    if code != 0:
        sys.stderr.write(output)
        raise platformio_failure(board, f"building {subject} for {board.name}", output)
    return PROJECT.build / "platformio" / "build" / board.name / "firmware.elf"


# For each name of toolchain.description.BUILDERS.
BUILDERS: dict[str, Callable[[Board, str, str], Path]] = {
    "cmake": build_with_cmake,
    "platformio": build_with_platformio,
}
