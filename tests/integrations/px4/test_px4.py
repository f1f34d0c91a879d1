"""integrations/px4: its logic on the host, and its module with PX4's flags against interfaces."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from other_firmware import two_standard_headers
from programs import output_of
from px4_build import (
    INCLUDE,
    MODULE,
    NUTTX_FLAGS,
    PX4_FLAGS,
    TESTS,
    VERSIONS,
    code,
    interface,
    module_flags,
    parameters,
    sources,
)
from rltools_host.build.boards import load_board
from rltools_host.build.tools import missing_tools

NEWEST = list(VERSIONS)[-1]
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
WITH_SANITIZERS = pytest.param(SANITIZERS, id="sanitizers", marks=pytest.mark.all)


def build_and_run(source: str, doctest_main: Path, program: Path, *flags: str) -> None:
    output_of("g++", *flags, TESTS / source, doctest_main, "-o", program)
    assert "Status: SUCCESS!" in output_of(program)


@pytest.mark.parametrize("sanitizers", [pytest.param((), id="plain"), WITH_SANITIZERS])
def test_the_mode_on_the_host(
    sanitizers: tuple[str, ...], doctest_main: Path, tmp_path: Path
) -> None:
    """Without a contraction that PX4 would not make either."""
    flags = ["-std=c++17", "-O0", "-march=native", "-ffp-contract=off", "-Wall", "-Wextra"]
    flags += ["-Werror", "-Wshadow", "-Wdouble-promotion", "-Wcast-align", *sanitizers]
    includes = [f"-I{TESTS}", f"-I{MODULE}", f"-I{INCLUDE}"]
    build_and_run("px4_mode.cpp", doctest_main, tmp_path / "mode", *flags, *includes)


@pytest.mark.parametrize(
    ("version", "sanitizers"),
    [
        pytest.param(NEWEST, (), id=NEWEST),
        *(
            pytest.param(version, (), id=version, marks=pytest.mark.all)
            for version in VERSIONS
            if version != NEWEST
        ),
        *(
            pytest.param(
                version,
                SANITIZERS,
                id=f"{version}-sanitizers",
                marks=pytest.mark.all if version == NEWEST else pytest.mark.slow,
            )
            for version in VERSIONS
        ),
    ],
)
def test_the_module_on_the_host(
    version: str, sanitizers: tuple[str, ...], doctest_main: Path, tmp_path: Path
) -> None:
    # doctest and the test compare floats, and use what the module must not
    allowed = ("-Wno-float-equal", "-Wno-double-promotion", "-Wno-shadow")
    flags = [*PX4_FLAGS, *allowed, *module_flags(), "-march=native", "-O0", "-g0"]
    flags += [*sanitizers, *interface(tmp_path, version)]
    build_and_run("px4_module.cpp", doctest_main, tmp_path / "module", *flags)


@pytest.mark.all
@pytest.mark.parametrize("version", VERSIONS)
def test_the_module_compiles_for_a_flight_controller(version: str, tmp_path: Path) -> None:
    board = load_board("qemu-cortex-m7")
    compiler = board.toolchain.compiler
    if missing_tools((compiler,)):
        pytest.skip("no compiler for Arm is installed")
    flags = [*PX4_FLAGS, *NUTTX_FLAGS, *module_flags(), *board.flags]
    flags.append("-D_POSIX_THREADS=1")  # NuttX has them
    flags += [*interface(tmp_path, version), *two_standard_headers(tmp_path)]
    for source in sources():
        output_of(compiler, *flags, "-c", source, "-o", tmp_path / f"{source.stem}.o")


def test_every_source_is_compiled() -> None:
    assert sorted(sources()) == sorted(MODULE.glob("*.cpp"))


def test_every_parameter_is_used_and_fits_px4() -> None:
    assert set(re.findall(r"px4::params::(\w+)", code())) == set(parameters())
    assert all(len(name) <= 16 for name in parameters())


def test_bits_are_not_left_to_the_compiler() -> None:
    assert {"-fno-reciprocal-math", "-fsigned-zeros", "-ffp-contract=off"} <= set(module_flags())
