"""The core by itself, lib/rltools, taken in by other projects: each kind once, with its own tools
where they are, and otherwise by the layout that they ask for and a compiler."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from programs import require_program
from rltools_host.build import tools
from rltools_host.build.firmware import platformio_environment
from rltools_host.tree import TREE

CORE = TREE.root / "lib" / "rltools"
# A critic's forward pass, and all of an algorithm's headers: it returns 0 where they compute.
PROGRAM = """\
#include "rltools/devices/generic.h"
#include "rltools/rl/algorithms/td3.h"
int main() { return rlt::math::floor(rlt::math::cos(0.0f)) == 1.0f ? 0 : 1; }
"""
CONSUMER = """\
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES CXX)
{taken_in}
add_executable(consumer main.cpp)
target_link_libraries(consumer PRIVATE rltools::rltools)
"""
CORTEX_M7 = ("-mcpu=cortex-m7", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-d16")


def run(*words: str | Path, **options: object) -> str:
    result = subprocess.run(
        list(map(str, words)),
        capture_output=True,
        text=True,
        timeout=280,
        **options,  # type: ignore[call-overload]
    )
    assert result.returncode == 0, (words, result.stdout, result.stderr)
    return str(result.stdout)


def configured(source: Path, build: Path, *options: str) -> Path:
    cmake, ninja = tools.program("cmake"), tools.program("ninja")
    run(cmake, "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}", *options)
    return build


def consume(folder: Path, taken_in: str, *options: str) -> None:
    """Builds another project's program with the core and that project's own flags, and runs it."""
    require_program("g++")
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(CONSUMER.format(taken_in=taken_in))
    (folder / "main.cpp").write_text(PROGRAM)
    build = configured(folder, folder / "build", *options)
    run(tools.program("cmake"), "--build", build)
    commands = (build / "build.ninja").read_text()
    assert "-ffp-contract=off" in commands
    run(build / "consumer")


def test_a_folder_of_another_project(tmp_path: Path) -> None:
    consume(tmp_path / "consumer", f'add_subdirectory("{CORE}" rltools)')


@pytest.mark.all
def test_cmake_fetches_its_content(tmp_path: Path) -> None:
    """A repository with the core in lib/rltools, as ours has it."""
    repository = tmp_path / "repository"
    shutil.copytree(CORE, repository / "lib" / "rltools")
    git = ("git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@b.c")
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "all")):
        run(*git, *words)
    revision = run(*git, "rev-parse", "HEAD").strip()
    consume(
        tmp_path / "consumer",
        "include(FetchContent)\n"
        f'FetchContent_Declare(rltools GIT_REPOSITORY "file://{repository}" GIT_TAG {revision}\n'
        "  SOURCE_SUBDIR lib/rltools)\n"
        "FetchContent_MakeAvailable(rltools)",
    )


@pytest.mark.all
def test_cmake_finds_the_installed_package(tmp_path: Path) -> None:
    cmake, prefix = tools.program("cmake"), tmp_path / "installed"
    run(cmake, "--install", configured(CORE, tmp_path / "build"), "--prefix", prefix)
    assert not (prefix / "src").exists(), "what is Arduino's"
    version = json.loads((CORE / "library.json").read_text())["version"]
    found = f"find_package(rltools {version} REQUIRED)"
    consume(tmp_path / "consumer", found, f"-DCMAKE_PREFIX_PATH={prefix}")
    paths = "".join(path.read_text() for path in prefix.rglob("*.cmake"))
    assert str(TREE.root) not in paths, "it can be moved"


@pytest.mark.all
def test_arduino_s_library_has_its_layout_and_compiles_as_a_sketch(tmp_path: Path) -> None:
    """Arduino's tools take headers from src/, behind Arduino.h's macros."""
    cmake, library = tools.program("cmake"), tmp_path / "libraries" / "rltools"
    build = configured(CORE, tmp_path / "build")
    run(cmake, "--install", build, "--component", "arduino", "--prefix", library)
    assert sorted(path.name for path in library.iterdir()) == ["library.properties", "src"]
    lines = (library / "library.properties").read_text().splitlines()
    properties = dict(line.split("=", 1) for line in lines)
    assert (library / "src" / properties["includes"]).is_file()
    if tools.missing_names(["arm-none-eabi-g++"]):
        pytest.skip("no compiler for Arm is installed")
    sketch = tmp_path / "sketch.cpp"
    macros = TREE.root / "tests" / "lib" / "core" / "arduino_macros.h"
    sketch.write_text(f'#include "{macros}"\n{PROGRAM}')
    strict = ("-std=gnu++17", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti")
    run("arm-none-eabi-g++", *CORTEX_M7, *strict, f"-I{library / 'src'}", "-fsyntax-only", sketch)


@pytest.mark.all
def test_platformio_takes_it_as_a_dependency(tmp_path: Path) -> None:
    """By library.json, for a project of its own with an emulated board's platform."""
    if tools.missing_names(["arm-none-eabi-g++"]):
        pytest.skip("no compiler for Arm is installed")
    tools.ensure_group("platformio")
    for name in ("platforms/rltools_emulated", "platforms/packages/tool-scons", "boards"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to(TREE.root / name)
    shutil.copytree(TREE.toolchains, tmp_path / "toolchains")
    # With a license it would ask the registry for the list of them.
    library = tmp_path / "library"
    shutil.copytree(CORE, library)
    manifest = json.loads((library / "library.json").read_text())
    assert manifest.pop("license") == "MIT"
    (library / "library.json").write_text(json.dumps(manifest))
    flags = " ".join((*CORTEX_M7, "-std=gnu++17", "-Wl,--entry=main", "-nostartfiles"))
    (tmp_path / "platformio.ini").write_text(
        "[platformio]\nboards_dir = boards\nplatforms_dir = platforms\n"
        "packages_dir = platforms/packages\ncore_dir = core\n\n[env:mine]\n"
        f"platform = rltools_emulated\nboard = qemu-cortex-m7\nlib_deps = symlink://{library}\n"
        f"build_flags = {flags}\nextra_scripts = link.py\n"
    )
    words = ", ".join(f'"{flag}"' for flag in (*CORTEX_M7, "-Wl,--entry=main", "-nostartfiles"))
    (tmp_path / "link.py").write_text(f'Import("env")\nenv.Append(LINKFLAGS=[{words}])\n')
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.cpp").write_text(PROGRAM)
    environment = {
        name: value
        for name, value in platformio_environment("pendulum-td3").items()
        if not name.startswith("PLATFORMIO_") or "SETTING" in name
    }
    command = (sys.executable, "-m", "platformio", "run", "-v", "-d", tmp_path)
    said = run(*command, env=environment, cwd=tmp_path)
    assert "rltools @ " in said
    (compiled,) = (line for line in said.splitlines() if line.endswith("src/main.cpp"))
    assert "-ffp-contract=off" in compiled
    assert (tmp_path / ".pio" / "build" / "mine" / "firmware.elf").is_file()


@pytest.mark.all
def test_espressif_s_component_manager_packs_it(tmp_path: Path) -> None:
    if find_spec("idf_component_manager") is None:
        pytest.skip("idf-component-manager is not installed")
    folder = tmp_path / "rltools"
    shutil.copytree(CORE, folder)
    compote = Path(sys.executable).with_name("compote")
    options = ("--project-dir", folder, "--name", "rltools", "--dest-dir", tmp_path / "dist")
    run(
        *(compote, "component", "pack", *options),
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    (archive,) = (tmp_path / "dist").glob("rltools_*.tgz")
    members = run("tar", "-tzf", archive)
    assert "include/rltools/rl/training.h" in members
