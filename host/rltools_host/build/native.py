"""Shared libraries of host/native, and modules of WebAssembly.

A library describes its functions and records itself (host/native/describe.h). Modules are
experiments (firmware/web) and the flights of a quadrotor (host/native/flight_module.cpp), compiled
by Zig.
"""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rltools_host.build import cmake, tools
from rltools_host.build.experiments import (
    build_description,
    header_of,
    is_of_task,
    require_experiment,
    requirements,
    struct_of,
)
from rltools_host.build.toolchains import system_tools
from rltools_host.errors import UsageError
from rltools_host.files import write_changed
from rltools_host.tree import PROJECT, TREE

TYPES: Mapping[str | None, Any] = {
    None: None,
    "i4": ctypes.c_int32,
    "u4": ctypes.c_uint32,
    "u8": ctypes.c_uint64,
    "f4": ctypes.c_float,
    "f8": ctypes.c_double,
    "pointer": ctypes.c_void_p,
    "text": ctypes.c_char_p,
}


class NativeLibrary:
    """A loaded library: its functions by name, its records as NumPy types, and its description.

    A pointer in a record is an address.
    """

    def __init__(self, path: Path) -> None:
        self.functions = ctypes.CDLL(str(path))
        self.functions.rlt_describe.restype = ctypes.c_char_p
        self.description: Mapping[str, Any] = json.loads(self.functions.rlt_describe())
        for name, types in self.description["functions"].items():
            function = getattr(self.functions, name)
            function.restype = TYPES[types["result"]]
            function.argtypes = [TYPES[argument] for argument in types["arguments"]]
        self.records: Mapping[str, np.dtype[Any]] = {
            name: record_type(layout)
            for name, layout in self.description.get("records", {}).items()
        }


def record_type(layout: Mapping[str, Any]) -> np.dtype[Any]:
    fields = layout["fields"]
    return np.dtype(
        {
            "names": [field["name"] for field in fields],
            "formats": [
                (element_type(field["type"]), (field["elements"],) if field["elements"] else ())
                for field in fields
            ],
            "offsets": [field["offset"] for field in fields],
            "itemsize": layout["bytes"],
        }
    )


def element_type(stated: Any) -> np.dtype[Any]:
    if isinstance(stated, Mapping):
        return record_type(stated)
    return np.dtype(np.uintp if stated in ("pointer", "text") else stated)


@cache
def host_library(name: str) -> NativeLibrary:
    """Load the library of host/native/<name>_library.cpp, built where necessary."""
    return NativeLibrary(cmake.host_library(name))


COMPILER_GROUP = "zig"
# Multiply-add of relaxed SIMD, where engine and processor fuse it; exact everywhere.
KINDS = {"lanes": ("-msimd128", "-mrelaxed-simd"), "exact": ("-msimd128",)}
LIBRARY = "firmware/web/library.cpp"
SOURCES = ("firmware/web/module.cpp", LIBRARY, "firmware/app/train/train_step.cpp")
FLIGHT = "quadrotor.flight"  # the name of a module; no experiment has it
FLIGHT_SOURCES = ("host/native/flight_module.cpp", LIBRARY)
PROVIDES = ("hosted",)  # requirements of experiments that a browser fulfills
# Where nobody calls it by its name, each exported function constructs all variables again.
CONSTRUCT = "-Wl,--export=__wasm_call_ctors"
DEVICE, DEVICE_HEADER = "WebAssembly", "rltools/devices/web_assembly.h"


def web_directory() -> Path:
    """Return the folder in which modules are built."""
    return PROJECT.build / "web-modules"


def module_path(name: str, kind: str) -> Path:
    return web_directory() / name / f"{kind}.wasm"


def lacking_in_browsers(experiment: str) -> list[str]:
    """Return what the experiment requires and a browser does not have."""
    return [word for word in requirements(experiment) if word not in PROVIDES]


def require_web(experiment: str) -> None:
    """Raise UsageError unless a browser can run this experiment."""
    require_experiment(experiment)
    if is_of_task(experiment):
        raise UsageError(
            f"{experiment} was written for a Gymnasium task, which Python plays: name others"
        )
    if needed := lacking_in_browsers(experiment):
        raise UsageError(
            f"{experiment} needs {', '.join(needed)}, which WebAssembly has not: name others"
        )


def build_modules(names: Sequence[str]) -> None:
    """Build both kinds of each module, an experiment's or FLIGHT, where they are out of date.

    Each has a folder and a lock of its own: two processes wait for each other at the same module
    alone.
    """
    cmake.require_place()
    tools.ensure_group(COMPILER_GROUP)
    at_once = max(1, (os.cpu_count() or 1) // (len(KINDS) * len(SOURCES)))
    with ThreadPoolExecutor(at_once) as workers:
        for _ in workers.map(build_module, names):
            pass


def build_module(name: str) -> None:
    directory = web_directory() / name
    with cmake.build_lock(directory):
        text = ninja_file(name, cmake.link_tree(directory))
        write_changed(directory / "build.ninja", text)
        modules = [module_path(name, kind).name for kind in KINDS]
        announcement = f"Building {name} for browsers"
        cmake.run_ninja("building for WebAssembly", directory, modules, announcement)


def ninja_file(name: str, tree: Path) -> str:
    """Return Ninja's file of a module: an object for each source, a module for each kind.

    The tree is a link, so ccache knows its sources from any clone.
    """
    build = build_description()
    folders = (
        *(tree / folder for folder in build["include_directories"]),
        *PROJECT.include_directories,
    )
    flags = [
        *(flag for flag in build["flags"] if flag != "-Werror"),
        *("-nostdlib", "-isystem", quoted(tree / "lib" / "freestanding")),
        *(f"-I{quoted(folder)}" for folder in folders),
        f"-iquote{quoted(PROJECT.root)}",
        quoted(f'-DRLT_DEVICE_HEADER="{DEVICE_HEADER}"'),
        *(f"-DRLT_DEVICE={DEVICE}", "-DRLT_WHOLE_BATCH"),
    ]
    compiler = f"{' '.join(map(quoted, zig_words()))} -target wasm32-freestanding"
    launched = " ".join([*map(quoted, cmake.compiler_launcher(PROJECT.root)), compiler])
    lines = [
        "ninja_required_version = 1.5",
        f"flags = {' '.join(flags)}",
        "rule compile",
        f"  command = {launched} $flags $kind $subject -MMD -MF $out.d -c $in -o $out",
        "  depfile = $out.d",
        "  deps = gcc",
        "rule link",
        f"  command = {compiler} -nostdlib -Wl,--no-entry {CONSTRUCT} -s $in -o $out",
    ]
    for kind, kind_flags in KINDS.items():
        objects = []
        for source in FLIGHT_SOURCES if name == FLIGHT else SOURCES:
            objects.append(f"{kind}/{Path(source).stem}.o")
            lines += [
                f"build {objects[-1]}: compile {escaped(tree / source)}",
                f"  kind = {' '.join(kind_flags)}",
                f"  subject = {subject_flags(name)}",
            ]
        lines.append(f"build {module_path(name, kind).name}: link {' '.join(objects)}")
    return "\n".join(lines) + "\n"


def subject_of_header(name: str) -> tuple[str, str]:
    """Return how an experiment's header is included, and its struct."""
    header = header_of(name)
    is_of_tree = header.parent == TREE.experiments
    included = header.name if is_of_tree else header.relative_to(PROJECT.root).as_posix()
    return included, struct_of(header)


def subject_flags(name: str) -> str:
    if name == FLIGHT:
        return ""
    header, struct = subject_of_header(name)
    define = quoted(f'-DRLT_EXPERIMENT_HEADER="{header}"')
    return f"{define} -DRLT_EXPERIMENT={struct}"


def zig_words() -> list[str]:
    """Return the words that call Zig's C++ compiler."""
    return system_tools()[tools.NATIVE_COMPILER].stand_in_words()


def escaped(path: Path) -> str:
    """Return a path as Ninja reads it."""
    return "".join(f"${c}" if c in "$ :" else c for c in str(path))


def quoted(word: Path | str) -> str:
    """Return a word as the shell reads it in Ninja's file, or on Windows the program."""
    text = subprocess.list2cmdline([str(word)]) if os.name == "nt" else shlex.quote(str(word))
    return text.replace("$", "$$")
