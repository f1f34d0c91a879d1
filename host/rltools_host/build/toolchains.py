"""Toolchains as data, toolchains/<toolchain>.json; the system tools and the groups of packages."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from rltools_host.errors import BuildError, unknown_name
from rltools_host.files import parse_json
from rltools_host.tree import HIDE_OPTIONAL, PROJECT, TREE

BUILDERS = {"cmake": "CMake", "platformio": "PlatformIO"}  # build/firmware.py calls them
COMPILER_CACHE = "ccache"  # cmake/compiler_cache.cmake; `rlt test` installs it where it can
WITHOUT_OPTIONAL = "without-optional"  # in build/, folders of links
WHOLE_PATH = "RLT_WHOLE_PATH"  # what PATH was before
# What tests look for besides the optional tools that toolchains name.
HIDDEN_BESIDE = ("debootstrap", "llvm-*", "nodejs")
EGL_VENDORS = "__EGL_VENDOR_LIBRARY_FILENAMES"  # where libglvnd looks for libraries to draw with
HEADER_DIRECTORIES = ("/usr/include", "/usr/local/include", "/opt/homebrew/include")


@dataclass(frozen=True)
class Tool:
    """A program or library of the system, its Debian package and its purpose."""

    name: str
    package: str  # empty: the stand-in alone
    needed_for: str
    optional: bool = False  # `rlt test` does not need it
    file: str = ""  # of a library, as the compiler finds it; {machine}: this processor
    header: str = ""  # of a library that is headers only
    compiler: str = ""  # the one that finds it; empty: the toolchain's
    stand_in: str = ""  # a program of the tree to use instead
    group: str = ""  # the Python packages that the stand-in needs

    @property
    def is_program(self) -> bool:
        return not self.file and not self.header

    def path(self) -> str | None:
        if self.optional and self.name != COMPILER_CACHE and optional_tools_are_hidden():
            return None
        return self.system_path() or self.stand_in_path()

    @property
    def is_of_group(self) -> bool:
        """Return whether it is a program of the tree that a group of Python packages runs."""
        return bool(self.group) and not self.package

    @property
    def is_asked_for(self) -> bool:
        """Return whether RLT_CXX=zig asks for the stand-in."""
        return bool(self.group) and os.environ.get("RLT_CXX") == self.group

    @property
    def is_hidden(self) -> bool:
        """Return whether the system's compiler is hidden, so that its stand-in is used: where that
        is asked for, and on Windows, where GCC puts vectors at addresses that AVX refuses."""
        return self.is_asked_for or (bool(self.group) and os.name == "nt")

    def system_path(self) -> str | None:
        if self.is_hidden or not self.package:
            return None
        if self.file:
            return compiler_file(self.compiler, self.file.format(machine=platform.machine()))
        return header_file(self.header) if self.header else shutil.which(self.name)

    @property
    def is_stood_in(self) -> bool:
        return bool(self.group and self.package) and self.system_path() is None

    def stand_in_path(self) -> str | None:
        """Return the path of the stand-in where its packages are installed, else None."""
        installed = bool(self.group) and group_is_there(self.group)
        return str(TREE.file(self.stand_in)) if installed else None

    def stand_in_words(self) -> list[str]:
        """Return the words that call the stand-in; none where it is not installed."""
        path = self.stand_in_path()
        if path is None or os.name != "nt":
            return [path] if path else []
        # No shell runs toolchains/zig-c++ there, which calls this.
        package = importlib.util.find_spec("ziglang")
        (folder,) = (package and package.submodule_search_locations) or [""]
        return [f"{folder}/zig.exe".replace("\\", "/"), "c++", "-O3", "-fno-sanitize=undefined"]


# Of no toolchain.
GIT = Tool("git", "git", "the revision in firmware and runs")


def group_stamp(group: str) -> Path:
    """Return the file with the entries of the lock that were installed."""
    return TREE.virtual_environment / f"rlt-{group}.txt"


@dataclass(frozen=True)
class Group:
    """A group of Python packages in the lock."""

    needed_for: str
    module: str  # by which it is known where the user has installed it
    # Of its locked wheels, for CPython 3.11 on Linux x86-64, also those that other groups have; 0:
    # `needed_for` says it, or it is not known.
    megabytes: int = 0
    extra: str = ""  # of the wheel, with the same packages


GROUPS: Mapping[str, Group] = {
    "default": Group("command line, link, plots, CMake and Ninja", "typer", 90),
    "test": Group("pytest and what the tests compare with", "pytest", 67),
    "lint": Group("ruff, mypy, clang-format", "ruff", 30),
    "platformio": Group(
        "PlatformIO and SCons, to build for and flash boards", "platformio", 8, "platformio"
    ),
    "crazyflie": Group("cflib, for the radio and USB of a Crazyflie", "cflib", 55, "crazyflie"),
    "fit": Group(
        "SciPy, which fits a quadrotor's parameters to the log of a flight", "scipy", 52, "fit"
    ),
    "onnx": Group("ONNX and onnxruntime, to write policies as models", "onnxruntime", 51, "onnx"),
    "parquet": Group(
        "Apache Arrow, to write the steps of episodes as Parquet", "pyarrow", 55, "parquet"
    ),
    "esp-idf": Group(
        "Espressif's component manager, which packs the component for ESP-IDF",
        "idf_component_manager",
        7,
    ),
    "mujoco": Group(
        "MuJoCo, for the experiments that simulate with it, and what Gymnasium needs of it",
        *("mujoco", 51, "mujoco"),
    ),
    "tune": Group("Optuna, which searches hyperparameters", "optuna", 24, "tune"),
    "ray": Group("Ray, for trials on a cluster", "ray", 83, "ray"),
    "ulog": Group("pyulog, which reads the logs of PX4", "pyulog", 17, "ulog"),
    "wandb": Group("Weights & Biases, to log runs there", "wandb", 28, "wandb"),
    "browser": Group(
        "Playwright, which drives Chromium in the tests of the page", "playwright", 55
    ),
    "docs": Group("Sphinx, which builds the documentation and runs its tutorials", "myst_nb", 38),
    "unicorn": Group("Unicorn, which emulates a Cortex-M7", "unicorn", 17, "unicorn"),
    "ptxas": Group("NVIDIA's assembler, which says what a GPU's program takes", "nvidia"),
}
STAND_INS: Mapping[str, Group] = {  # for system tools that are missing and may not be installed
    "zig": Group(
        "Zig's C++ compiler, as the system has none: 101 MB to fetch, 411 MB unpacked",
        "ziglang",
        extra="compiler",
    ),
}
ALL_GROUPS: Mapping[str, Group] = {**GROUPS, **STAND_INS}
# A line of apt-get --print-uris: address, file, bytes, checksum.
ADDRESS = re.compile(r"^'[^']+' \S+ (\d+) ", re.MULTILINE)


def group_is_there(group: str) -> bool:
    """Return whether a group of packages is installed, in any version.

    A checkout's environment has a stamp, a user's has the packages.
    """
    if TREE.is_installed:
        return importlib.util.find_spec(ALL_GROUPS[group].module) is not None
    return group_stamp(group).is_file()


def group_note(group: str) -> str:
    """Return ` (89 MB to fetch, or less)`; empty where the size is not known."""
    size = ALL_GROUPS[group].megabytes
    return f" ({size} MB to fetch, or less)" if size else ""


def packages_note(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return such a note for what this command of apt-get would fetch."""
    try:
        asked = subprocess.run(
            [*command, "--print-uris"],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    size = sum(map(int, ADDRESS.findall(asked.stdout)))
    return f": {max(size / 1e6, 0.1):,.1f} MB to fetch" if size else ""


@dataclass(frozen=True)
class Toolchain:
    """The tools that build programs for a kind of processor, and those that emulate it."""

    name: str
    title: str
    builder: str  # a name of BUILDERS
    native: bool = False  # whether its programs run on this machine
    prefix: str = ""  # of the compiler and its binutils
    processor: str = ""  # as CMake calls it
    cmake_toolchain_file: str | None = None  # from the root of the repository
    program_suffix: str = ""
    link_map: bool = False  # whether <program>.map is written, which tells the memories' use
    flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    link_libraries: tuple[str, ...] = ()  # linked last, in this order
    system_include_directories: tuple[str, ...] = ()  # from the root of the repository
    cortex_m: bool = False  # whether CMSIS-DSP is for its processors
    provides: tuple[str, ...] = ()  # what an experiment may require
    tools: tuple[Tool, ...] = ()  # for every build
    libraries: tuple[Tool, ...] = ()  # for builds that name them
    emulators: tuple[Tool, ...] = ()

    @property
    def compiler(self) -> str:
        return f"{self.prefix}g++"

    @property
    def stand_in(self) -> str:
        """Return the compiler that stands in for the system's, as CMake is given one: its path, and
        words before all others; empty without one."""
        standing_in = [tool for tool in self.tools if tool.is_stood_in]
        return next((";".join(tool.stand_in_words()) for tool in standing_in), "")

    @property
    def include_flags(self) -> list[str]:
        """Return the flags for the toolchain's own standard headers."""
        directories = [str(TREE.root / name) for name in self.system_include_directories]
        return [flag for directory in directories for flag in ("-isystem", directory)]


def parse_toolchain(name: str, document: Mapping[str, Any]) -> Toolchain:
    """Read a description; raise KeyError, TypeError or ValueError where it is wrong."""
    known = {field.name for field in fields(Toolchain)} - {"name"}
    for key in document:
        if key not in known:
            raise ValueError(f'unknown key "{key}"')
    if document["builder"] not in BUILDERS:
        raise ValueError(f'builder "{document["builder"]}" is none of {", ".join(BUILDERS)}')
    values: dict[str, Any] = {
        key: tuple(v) if isinstance(v, list) else v for key, v in document.items()
    }
    compiler = f"{document.get('prefix', '')}g++"
    for key in values.keys() & {"tools", "libraries", "emulators"}:
        values[key] = tuple(Tool(**{"compiler": compiler, **entry}) for entry in values[key])
    if values.get("native") and os.name == "nt":
        values["program_suffix"] = ".exe"
    return Toolchain(name=name, **values)


def toolchain_names() -> list[str]:
    return sorted(path.stem for path in TREE.toolchains.glob("*.json"))


@cache
def load_toolchain(name: str) -> Toolchain:
    if name not in toolchain_names():
        raise unknown_name("toolchain", name, toolchain_names())
    path = TREE.toolchains / f"{name}.json"
    try:
        return parse_toolchain(name, parse_json(path.read_bytes()))
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise BuildError(
            f"{path}: not a toolchain's description: {reason}; see docs/porting.md"
        ) from None


def list_toolchains() -> list[Toolchain]:
    """Return all toolchains, this machine's own first."""
    toolchains = [load_toolchain(name) for name in toolchain_names()]
    return sorted(toolchains, key=lambda toolchain: not toolchain.native)


@cache
def system_tools() -> dict[str, Tool]:
    """Return every tool that some toolchain names, and those of none."""
    found = [
        tool
        for toolchain in list_toolchains()
        for tool in (*toolchain.tools, *toolchain.libraries, *toolchain.emulators)
    ]
    return {tool.name: tool for tool in (*found, GIT)}


def compiler_file(compiler: str, name: str) -> str | None:
    """Return the path of one of a compiler's libraries; None where it does not find it."""
    if shutil.which(compiler) is None:
        return None
    command = [compiler, f"-print-file-name={name}"]
    path = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return path if os.path.isabs(path) else None


def header_file(name: str) -> str | None:
    for directory in HEADER_DIRECTORIES:
        header = os.path.join(directory, name)
        if os.path.exists(header):
            return header
    return None


def optional_tools_are_hidden() -> bool:
    """Return whether HIDE_OPTIONAL is set."""
    return os.environ.get(HIDE_OPTIONAL) == "1"


def hide_optional_tools(*, again: bool = False) -> None:
    """Hide the optional tools from this process and its children, where HIDE_OPTIONAL is set.

    PATH becomes a folder of links to the other programs, and EGL finds no library.
    again: link what was installed since.
    """
    path = os.environ.get("PATH", os.defpath)
    is_done = any(Path(part).parent.name == WITHOUT_OPTIONAL for part in path.split(os.pathsep))
    if not optional_tools_are_hidden() or (is_done and not again):
        return
    whole = os.environ.get(WHOLE_PATH, path) if is_done else path
    directories = whole.split(os.pathsep)
    # Named after this PATH, so that a program with another one makes a folder of its own.
    digest = hashlib.sha256(os.pathsep.join(directories).encode(errors="surrogateescape"))
    shown = PROJECT.build / WITHOUT_OPTIONAL / digest.hexdigest()[:16]
    patterns, folders = list(HIDDEN_BESIDE), set[str]()
    for toolchain in list_toolchains():
        tools = (*toolchain.tools, *toolchain.libraries, *toolchain.emulators)
        for tool in tools:
            if tool.optional and tool.is_program and tool.name != COMPILER_CACHE:
                is_compiler = bool(toolchain.prefix) and tool.name == toolchain.compiler
                patterns.append(f"{toolchain.prefix}*" if is_compiler else tool.name)
                found = shutil.which(tool.name, path=whole)
                folders.add(os.path.dirname(os.path.realpath(found or "/")))
    folders -= {os.path.realpath(directory) for directory in directories} | {"/"}
    links: dict[str, str] = {}
    for directory in directories:
        for program in os.scandir(directory) if os.path.isdir(directory) else ():
            folder = os.path.dirname(os.path.realpath(program.path))
            if folder not in folders and not any(fnmatch(program.name, name) for name in patterns):
                links.setdefault(program.name, program.path)  # the first of PATH counts
    shown.mkdir(parents=True, exist_ok=True)
    for name in {entry.name for entry in os.scandir(shown)} - links.keys():
        (shown / name).unlink(missing_ok=True)
    for name, target in links.items():
        with contextlib.suppress(FileExistsError):
            os.symlink(target, shown / name)
    os.environ |= {
        "PATH": path if is_done else str(shown),
        WHOLE_PATH: whole,
        EGL_VENDORS: os.devnull,
    }
