"""integrations/px4: its logic on the host, and its module with PX4's flags against interfaces."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from other_firmware import two_standard_headers
from rltools_host import paths
from rltools_host.boards.description import load_board
from rltools_host.toolchain.tools import missing_tools

TESTS = Path(__file__).parent
MODULE = paths.REPOSITORY / "integrations/px4/src/modules/rlt_policy"
INCLUDE = paths.REPOSITORY / "lib/rltools/include"
# What PX4's build gives the compiler, but for its warnings of C.
PX4_FLAGS = (
    *("-O2", "-g", "-fdata-sections", "-ffunction-sections", "-fomit-frame-pointer"),
    *("-fmerge-all-constants", "-fno-signed-zeros", "-fno-trapping-math", "-freciprocal-math"),
    *("-fno-math-errno", "-fno-strict-aliasing", "-fvisibility=hidden", "-fno-strength-reduce"),
    *("-fno-builtin-printf", "-fcheck-new", "-Wall", "-Wextra", "-Werror", "-Warray-bounds"),
    *("-Wcast-align", "-Wdisabled-optimization", "-Wdouble-promotion", "-Wfatal-errors"),
    *("-Wfloat-equal", "-Wformat-security", "-Winit-self", "-Wlogical-op", "-Wpointer-arith"),
    *("-Wshadow", "-Wuninitialized", "-Wunknown-pragmas", "-Wunused-variable", "-Wformat=1"),
    *("-Wunused-but-set-variable", "-Wreorder", "-Wno-missing-field-initializers"),
    *("-Wno-unused-parameter", "-Wno-stringop-truncation", "-Wno-format-truncation"),
    "-Wno-overloaded-virtual",
)
# And for its firmware.
NUTTX_FLAGS = (
    *("-fno-rtti", "-fno-exceptions", "-fno-sized-deallocation", "-fno-threadsafe-statics"),
    "-Wframe-larger-than=2048",
)
# (the module has a Descriptor, modes are configured by setpoint_config): PX4's versions
VERSIONS = {"template": (0, 0), "descriptor": (1, 0), "setpoint-config": (1, 1)}


def module_flags() -> list[str]:
    """What the module's own CMakeLists.txt adds to PX4's flags, the definitions left out."""
    text = (MODULE / "CMakeLists.txt").read_text()
    block = text.partition("COMPILE_FLAGS")[2].partition("INCLUDES")[0]
    flags = re.findall(r"^\s+(-f\S+)$", block, re.MULTILINE)
    (standard,) = re.findall(r"CXX_STANDARD (\d+)", text)
    return [f"-std=gnu++{standard}", *flags]


def parameters() -> dict[str, tuple[str, str]]:
    """Type and default of each parameter of module.yaml."""
    found: dict[str, tuple[str, str]] = {}
    for entry in re.split(r"\n {8}(?=RLT_)", (MODULE / "module.yaml").read_text())[1:]:
        (kind,) = re.findall(r"^ {12}type: (\S+)$", entry, re.MULTILINE)
        (default,) = re.findall(r"^ {12}default: (\S+)$", entry, re.MULTILINE)
        found[entry.partition(":")[0]] = (kind, default)
    return found


def interface(folder: Path, version: str) -> list[str]:
    """The headers that the module includes of PX4, and the flags that choose its version."""
    descriptor, setpoint_config = VERSIONS[version]
    source = (MODULE / "rlt_policy_module.cpp").read_text()
    for name in re.findall(r"#include <((?:px4_|uORB/|systemlib/)\S+)>", source):
        if name == "uORB/topics/setpoint_config.h" and not setpoint_config:
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text('#include "px4_interface.h"\n')
    lines = " ".join(
        f"X({name}, {'float' if kind == 'float' else 'int32_t'}, {default})"
        for name, (kind, default) in parameters().items()
    )
    (folder / "px4_test_parameters.h").write_text(f"#define PX4_TEST_PARAMETERS(X) {lines}\n")
    return [
        *(f"-I{folder}", f"-I{TESTS}", f"-I{MODULE}", f"-I{INCLUDE}"),
        f"-DRLT_PX4_HAS_DESCRIPTOR={descriptor}",
        f"-DRLT_TEST_SETPOINT_CONFIG={setpoint_config}",
    ]


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    return result


def build_and_run(source: str, doctest_main: Path, program: Path, *flags: str) -> None:
    run(["g++", *flags, str(TESTS / source), str(doctest_main), "-o", str(program)])
    assert "Status: SUCCESS!" in run([str(program)]).stdout


def test_the_mode_on_the_host(doctest_main: Path, tmp_path: Path) -> None:
    """With the sanitizers, and without a contraction that PX4 would not make either."""
    flags = ["-std=c++17", "-O0", "-march=native", "-ffp-contract=off", "-Wall", "-Wextra"]
    flags += ["-Werror", "-Wshadow", "-Wdouble-promotion", "-Wcast-align"]
    flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    includes = [f"-I{TESTS}", f"-I{MODULE}", f"-I{INCLUDE}"]
    build_and_run("px4_mode.cpp", doctest_main, tmp_path / "mode", *flags, *includes)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_module_on_the_host(version: str, doctest_main: Path, tmp_path: Path) -> None:
    # doctest and the test compare floats, and use what the module must not
    allowed = ("-Wno-float-equal", "-Wno-double-promotion", "-Wno-shadow")
    flags = [*PX4_FLAGS, *allowed, *module_flags(), "-march=native", "-O0", "-g0"]
    flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    flags += interface(tmp_path, version)
    build_and_run("px4_module.cpp", doctest_main, tmp_path / "module", *flags)


def compile_module(folder: Path, version: str, compiler: list[str], *flags: str) -> None:
    command = [*compiler, *PX4_FLAGS, *NUTTX_FLAGS, *module_flags(), *flags]
    command += [*interface(folder, version), *two_standard_headers(folder)]
    run([*command, "-c", str(MODULE / "rlt_policy_module.cpp"), "-o", str(folder / "module.o")])


@pytest.mark.parametrize("version", VERSIONS)
def test_the_module_compiles_with_the_flags_of_px4(version: str, tmp_path: Path) -> None:
    compile_module(tmp_path, version, ["g++"])


@pytest.mark.parametrize("version", VERSIONS)
def test_the_module_compiles_for_a_flight_controller(version: str, tmp_path: Path) -> None:
    board = load_board("qemu-cortex-m7")
    if missing_tools((board.toolchain.compiler,)):
        pytest.skip("no compiler for Arm is installed")
    compile_module(tmp_path, version, [board.toolchain.compiler], *board.flags)


def test_every_parameter_is_used_and_fits_px4() -> None:
    source = (MODULE / "rlt_policy_module.cpp").read_text()
    assert set(re.findall(r"px4::params::(\w+)", source)) == set(parameters())
    assert all(len(name) <= 16 for name in parameters())


def test_bits_are_not_left_to_the_compiler() -> None:
    assert {"-fno-reciprocal-math", "-fsigned-zeros", "-ffp-contract=off"} <= set(module_flags())
