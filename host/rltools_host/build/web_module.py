"""Compiles experiments as modules of WebAssembly (firmware/web), with Zig's compiler."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from rltools_host.build import cmake
from rltools_host.build.experiments import (
    build_description,
    header_of,
    is_generated,
    is_recurrent,
    require_experiment,
    requirements,
    struct_of,
)
from rltools_host.errors import UsageError
from rltools_host.project import PROJECT
from rltools_host.toolchain import tools
from rltools_host.tree import TREE

COMPILER_GROUP = "zig"
# Multiply-add of relaxed SIMD, where engine and processor fuse it; exact everywhere.
KINDS = {"lanes": ("-msimd128", "-mrelaxed-simd"), "exact": ("-msimd128",)}
SOURCES = (
    "firmware/web/module.cpp",
    "firmware/web/library.cpp",
    "firmware/app/train/train_step.cpp",
)
PROVIDES = ("hosted",)  # of what experiments require: memory, as on a machine with a system
DEVICE, DEVICE_HEADER = "WebAssembly", "rltools/devices/web_assembly.h"


def web_directory() -> Path:
    """Where modules are built."""
    return PROJECT.build / "web-modules"


def module_path(experiment: str, kind: str) -> Path:
    return web_directory() / f"{experiment}-{kind}.wasm"


def lacking_in_browsers(experiment: str) -> list[str]:
    """What it requires and a browser has not."""
    return [word for word in requirements(experiment) if word not in PROVIDES]


def require_web(experiment: str) -> None:
    """That there is this experiment, and that a browser can have what it requires."""
    require_experiment(experiment)
    if is_generated(experiment):
        raise UsageError(
            f"{experiment} was written for a task of Gymnasium's, which Python plays: name others"
        )
    if needed := lacking_in_browsers(experiment):
        raise UsageError(
            f"{experiment} needs {', '.join(needed)}, which WebAssembly has not: name others"
        )
    if is_recurrent(experiment):
        raise UsageError(
            f"the policy of {experiment} is recurrent, and the page plays policy images (format "
            "1), which hold no hidden state: name others"
        )


def build_modules(experiments: Sequence[str]) -> None:
    """Builds both kinds of each experiment's module, where they are not up to date."""
    for experiment in experiments:
        require_web(experiment)
    tools.ensure_group(COMPILER_GROUP)
    directory = web_directory()
    with cmake.build_lock(directory):
        (directory / "build.ninja").write_text(ninja_file(experiments), encoding="utf-8")
        modules = [f"{name}-{kind}.wasm" for name in experiments for kind in KINDS]
        result = subprocess.run(
            [tools.program("ninja"), "-C", str(directory), *modules],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if result.returncode != 0:
            raise cmake.fail("building for WebAssembly", result.stdout, directory / "rlt-build.log")


def ninja_file(experiments: Sequence[str]) -> str:
    """What Ninja reads: an object for each source, a module for each kind."""
    build = build_description()
    places = (
        *(TREE.root / folder for folder in build["include_directories"]),
        *PROJECT.include_directories,
    )
    flags = [
        *build["flags"],
        *("-nostdlib", "-isystem", quoted(TREE.root / "lib" / "freestanding")),
        *(f"-I{quoted(place)}" for place in places),
        f"-DRLT_DEVICE_HEADER='\"{DEVICE_HEADER}\"'",
        *(f"-DRLT_DEVICE={DEVICE}", "-DRLT_WHOLE_BATCH"),
    ]
    compiler = f"{quoted(TREE.toolchains / 'zig-c++')} -target wasm32-freestanding"
    lines = [
        "ninja_required_version = 1.5",
        f"flags = {' '.join(flags)}",
        "rule compile",
        f"  command = {compiler} $flags $kind $subject -MMD -MF $out.d -c $in -o $out",
        "  depfile = $out.d",
        "  deps = gcc",
        "rule link",
        f"  command = {compiler} -nostdlib -Wl,--no-entry -s $in -o $out",
    ]
    for experiment in experiments:
        header = header_of(experiment)
        subject = f"-DRLT_EXPERIMENT_HEADER='\"{header}\"' -DRLT_EXPERIMENT={struct_of(header)}"
        for kind, kind_flags in KINDS.items():
            objects = []
            for source in SOURCES:
                name = f"{experiment}-{kind}/{Path(source).stem}.o"
                objects.append(name)
                lines += [
                    f"build {name}: compile {escaped(TREE.root / source)}",
                    f"  kind = {' '.join(kind_flags)}",
                    f"  subject = {subject}",
                ]
            lines.append(f"build {experiment}-{kind}.wasm: link {' '.join(objects)}")
    return "\n".join(lines) + "\n"


def escaped(path: Path) -> str:
    """As Ninja reads a path."""
    return "".join(f"${c}" if c in "$ :" else c for c in str(path))


def quoted(path: Path) -> str:
    """As the shell reads a path, behind Ninja."""
    return shlex.quote(str(path)).replace("$", "$$")
