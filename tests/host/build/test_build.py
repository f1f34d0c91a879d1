"""The build: flags, silence when up to date, memory budgets and forbidden functions."""

from __future__ import annotations

import json
import platform
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from programs import require_program
from rltools_host.build import cmake, experiments, firmware, tools
from rltools_host.build.boards import load_board
from rltools_host.errors import BuildError, UsageError
from rltools_host.tree import PROJECT, TREE
from tree_copies import configured, copy_of_tree

EXPERIMENT = "pendulum-td3"
COPIED = (
    *("CMakeLists.txt", "CMakePresets.json", "rlt.toml", "cmake", "boards", "toolchains"),
    *("firmware", "experiments", "lib", "host/native"),
)
CONTRACT = "pendulum"
PROBE = "firmware/qemu_mps2/probe.cpp"


def compile_commands(directory: Path) -> list[dict[str, str]]:
    commands: list[dict[str, str]] = json.loads((directory / "compile_commands.json").read_text())
    return commands


@pytest.mark.parametrize("name", ["host", pytest.param("qemu-cortex-m7", marks=pytest.mark.all)])
def test_every_source_is_compiled_with_the_flags_of_the_json_files(name: str) -> None:
    """And with the names that are derived from an experiment's file."""
    board = load_board(name)
    firmware.build_firmware(board, EXPERIMENT)
    common = json.loads(TREE.build_file.read_text())
    sources = {
        str(path)
        for pattern in [*common["programs"]["train"]["sources"], *board.sources]
        for path in TREE.root.glob(pattern)
    }
    commands = [
        entry
        for entry in compile_commands(PROJECT.board_build(name))
        if f"/train-{EXPERIMENT}.dir/firmware" in entry["output"]
    ]
    assert {str(Path(entry["file"]).resolve()) for entry in commands} == sources
    for entry in commands:
        # -Werror is of the compilers alone that the tests run with: cmake/firmware.cmake.
        words = entry["command"].replace("\\", "").replace("-Werror ", "").split()
        flags = [flag for flag in (*common["flags"], *board.flags) if flag != "-Werror"]
        first = words.index(flags[0])
        assert words[first : first + len(flags)] == flags
        assert {'-DRLT_EXPERIMENT_HEADER="pendulum_td3.h"', "-DRLT_EXPERIMENT=PendulumTd3"} <= {
            *words
        }


def test_an_unchanged_build_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    board = load_board("host")
    program = firmware.build_firmware(board, EXPERIMENT)
    before = program.stat().st_mtime_ns
    capfd.readouterr()
    assert firmware.build_firmware(board, EXPERIMENT) == program
    assert capfd.readouterr() == ("", "")
    assert program.stat().st_mtime_ns == before


def test_description_of_an_experiment() -> None:
    description = experiments.describe(EXPERIMENT)
    assert description.name == EXPERIMENT
    assert description.hyperparameter("gamma").default == pytest.approx(0.99)
    with pytest.raises(UsageError, match="did you mean gamma"):
        description.hyperparameter("gama")
    offset = 0
    for tensor in description.tensors:
        assert tensor.offset == offset
        item_bytes = {"F32": 4, "F64": 8, "U32": 4, "U8": 1}[tensor.dtype]
        offset += item_bytes * tensor.shape[0] * tensor.shape[1]
    assert offset == description.bytes_of["state"]
    names = [metric.name for metric in description.metrics]
    assert names == ["critic_1_loss", "critic_2_loss", "actor_loss"]
    learning = description.learning
    assert learning["environment"] == description.environment["name"]
    assert learning["environment.gravity_m_s2"] == 10
    assert learning["observations[2].maximum"] == 8
    assert learning["critic.activations[0]"] == "relu"
    assert len(learning) > 50
    assert description.environment["solved_return"] is None  # as Gymnasium has none


def test_c_and_python_speak_the_same_wire_format() -> None:
    """The checksum seeds of our messages, which cover every field's name and type."""
    dialect = cmake.load_dialect()
    folder = cmake.generate_protocol() / "c" / "rltools"
    found = 0
    for header in folder.glob("mavlink_msg_rlt_*.h"):
        text = header.read_text()
        match = re.search(r"#define MAVLINK_MSG_ID_RLT_\w+_CRC (\d+)", text)
        number = re.search(r"#define MAVLINK_MSG_ID_RLT_\w+ (\d+)", text)
        assert match
        assert number
        assert dialect.mavlink_map[int(number.group(1))].crc_extra == int(match.group(1))
        found += 1
    assert found >= 4


def test_protocol_that_is_wrong_is_refused_and_the_old_one_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = cmake.load_generator()
    generator.generate(tmp_path / "output")
    wrong = tmp_path / "rltools.xml"
    wrong.write_text(generator.DIALECT.read_text().replace('type="uint32_t"', 'type="text"', 1))
    monkeypatch.setattr(generator, "DIALECT", wrong)
    with pytest.raises(SystemExit, match=r"rltools\.xml: mavgen could not generate C from it"):
        generator.generate(tmp_path / "output")
    assert (tmp_path / "output/c/rltools/mavlink.h").is_file()
    assert (tmp_path / "output/python/rltools_dialect.py").is_file()


def test_memory_of_the_emulated_board_is_what_the_linker_counted() -> None:
    require_program("arm-none-eabi-g++")
    board = load_board("qemu-cortex-m7")
    program = firmware.build_firmware(board, EXPERIMENT)
    ninja = [tools.program("ninja"), "-C", str(program.parents[1]), "-t", "commands"]
    ninja.append(cmake.firmware_target(EXPERIMENT))
    commands = subprocess.run(ninja, capture_output=True, text=True, check=True).stdout
    link = next(line for line in commands.splitlines() if "--print-memory-usage" in line)
    words = [word for word in shlex.split(link.split(" && ")[1]) if "-Map=" not in word]
    words[words.index("-o") + 1] = "/dev/null"
    printed = subprocess.run(
        words, cwd=program.parents[1], capture_output=True, text=True, check=True
    ).stdout
    counted = dict(re.findall(r"(\w+):\s+(\d+) B\s", printed))
    usage = {entry["name"]: entry for entry in firmware.memory_usage(board, program)}
    assert set(usage) == {"RAM1", "RAM2"}
    for name, entry in usage.items():
        assert entry["used_bytes"] == int(counted[name])
        assert 0 < entry["used_bytes"] <= entry["bytes"] == 512 * 1024


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources, with an added file of firmware to put mistakes into, built once."""
    tree = copy_of_tree(tmp_path_factory.mktemp("a tree"), *COPIED)
    (tree / PROBE).write_text("")
    return tree


@pytest.fixture
def copied_tree(tree: Path, move_to: Callable[[Path], None]) -> Iterator[Path]:
    """The copy in place of the repository."""
    move_to(tree)
    yield tree
    (tree / PROBE).write_text("")


def probe(statement: str, declarations: str = "") -> str:
    """A source file whose statement is run before main, so that the linker keeps it."""
    return (
        f"#include <cstdlib>\n#include <cstdio>\n#include <cstdint>\n{declarations}\n"
        f"__attribute__((constructor)) void probe() {{ {statement} }}\n"
    )


def build_with_probe() -> Path:
    """The program that takes the compiler the shortest; all are linked alike."""
    return firmware.build_firmware(load_board("qemu-cortex-m7"), CONTRACT, "infer")


FORBIDDEN = {
    "keep = std::malloc(40);": "__wrap_malloc",
    "keep = std::calloc(4, 10);": "__wrap_calloc",
    "keep = std::realloc(keep, 40);": "__wrap_realloc",
    "std::free(keep);": "__wrap_free",
    "keep = new int;": "__wrap__Znwj",
    "keep = new int[10];": "__wrap__Znaj",
    "delete static_cast<int*>(keep);": "__wrap__ZdlPv",
    'std::printf("%f", 1.0);': "__wrap__malloc_r",
    "__cxa_throw(keep, keep, nullptr);": "__wrap___cxa_throw",
}


def test_linking_fails_when_firmware_allocates_or_throws(
    copied_tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_program("arm-none-eabi-g++")
    declarations = (
        "void* volatile keep;\n"
        'extern "C" void __cxa_throw(void*, void*, void (*)(void*)) __attribute__((noreturn));'
    )
    (copied_tree / PROBE).write_text(probe(" ".join(FORBIDDEN), declarations))
    with pytest.raises(BuildError, match="building for qemu-cortex-m7 failed") as error:
        build_with_probe()
    shown = capfd.readouterr().err
    log = Path(str(error.value).partition(" are in ")[2]).read_text()
    for symbol in FORBIDDEN.values():
        assert f"undefined reference to `{symbol}" in shown
        assert f"undefined reference to `{symbol}" in log


def test_linking_fails_when_a_memory_is_exceeded(
    copied_tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_program("arm-none-eabi-g++")
    declarations = '#include "board_api.h"\nRLT_BULK volatile char big[600 * 1024];'
    (copied_tree / PROBE).write_text(probe("big[0] = 1;", declarations))
    with pytest.raises(BuildError):
        build_with_probe()
    assert re.search(r"RAM2 is exceeded|region `RAM2' overflowed", capfd.readouterr().err)


@pytest.mark.all
def test_only_what_has_changed_is_compiled(copied_tree: Path, tmp_path: Path) -> None:
    """Counted are the compiler's calls, for what `rlt train` on this machine needs. They do not
    optimize: that is the longest part of them, and changes nothing of what is counted."""
    calls = tmp_path / "calls"
    launcher = tmp_path / "compile"
    launcher.write_text(f'#!/bin/sh\necho "$*" >> "{calls}"\nexec "$@" -O0\n')
    launcher.chmod(0o755)

    def compiled() -> list[str]:
        """The source files that a build compiles."""
        calls.write_text("")
        cmake.build_targets(
            load_board("host"),
            [f"describe-{EXPERIMENT}", cmake.firmware_target(EXPERIMENT)],
            directory=tmp_path / "build",
            options={"CMAKE_CXX_COMPILER_LAUNCHER": str(launcher)},
        )
        lines = calls.read_text().splitlines()
        return sorted(Path(line.split(" -c ")[1]).name for line in lines if " -c " in line)

    everything = compiled()
    assert {"describe.cpp", "main.cpp", "board.cpp"} <= set(everything)
    assert compiled() == []
    for name in ("lib/rltools/include/rltools/rl/algorithms/td3.h", "experiments/pendulum_td3.h"):
        (copied_tree / name).touch()
        assert compiled() == ["describe.cpp", "main.cpp", "train_step.cpp"], name
    (copied_tree / "firmware/host/board.cpp").touch()
    assert compiled() == ["board.cpp"]


def test_compile_error_is_shown_as_it_is(
    copied_tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_program("arm-none-eabi-g++")
    (copied_tree / PROBE).write_text("int f() { return no_such_name; }\n")
    with pytest.raises(BuildError):
        build_with_probe()
    shown = capfd.readouterr().err
    assert "'no_such_name' was not declared in this scope" in shown
    assert "-fno-exceptions" not in shown


@pytest.mark.parametrize("change", ["WRITE", "REMOVE"])
@pytest.mark.all
def test_a_header_that_comes_or_goes_while_cmake_runs(
    tree: Path, tmp_path: Path, change: str
) -> None:
    """As training of another Gymnasium task writes one; seen in a run of all the tests."""
    header = tree / "build/gymnasium_tasks/experiments/gym_other_sac.h"
    header.parent.mkdir(parents=True, exist_ok=True)
    if change == "REMOVE":
        header.write_text("// Requires: hosted\n")
    hook = tmp_path / "between_two_looks.cmake"
    hook.write_text(
        "function(rlt_between)\n"
        f'  file({change} "{header}" "// Requires: hosted")\n'
        "endfunction()\n"
        "variable_watch(experiment_headers rlt_between)\n"
    )
    options = (f"-DRLT_PROTOCOL_DIRECTORY={PROJECT.protocol}", f"-DCMAKE_PROJECT_INCLUDE={hook}")
    try:
        result = configured(tree, tmp_path / "build", "host", *options)
        assert header.exists() == (change == "WRITE")
        assert result.returncode == 0, result.stderr
    finally:
        header.unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (  # GCC, at first in a file of the core, whose use is the mistake
            "lib/rltools/include/rltools/rl/a.h:84:5: error: no type named 'Scalar'\n"
            "/p/experiments/cart.h:46:47: error: 'velocty' was not declared; did you mean 'y'?\n",
            "/p/experiments/cart.h:46: 'velocty' was not declared; did you mean 'y'?",
        ),
        (
            "{tree}/lib/rltools/include/rltools/rl/environment.h:208:17: error: static assertion "
            "failed: the environment has no function observe\n",
            "lib/rltools/include/rltools/rl/environment.h:208: the environment has no function "
            "observe",
        ),
        (  # Clang, as Zig's compiler
            "/p/experiments/cart.h:4:10: fatal error: 'sack.h' file not found\n",
            "/p/experiments/cart.h:4: 'sack.h' file not found",
        ),
        (
            "ld: a.o: in function `step':\na.cpp:(.text+0x1): undefined reference to `other()'\n",
            "undefined reference to `other()'",
        ),
        (
            "CMake Error at cmake/board.cmake:94 (message):\n  a.json: no\n  program.\n\n\nCall\n",
            "a.json: no program",
        ),
        ("something else\n", ""),
    ],
)
def test_a_mistake_is_what_the_compiler_says_first_of_the_users_files(
    output: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PROJECT, "root", Path("/p"))
    assert cmake.mistake(output.replace("{tree}", str(TREE.root)), tmp_path) == said


@pytest.mark.skipif(platform.machine() != "x86_64", reason="an instruction of x86")
@pytest.mark.parametrize("instruction", ["vfmaddsub132ps", "vfmadd132ps"])
def test_products_and_sums_that_a_compiler_joins_are_refused(
    instruction: str, tmp_path: Path
) -> None:
    """GCC 12 makes vfmaddsub of a*b - c*d beside a*b + c*d; kernels have vfmadd."""
    source, program = tmp_path / "a.cpp", tmp_path / "a.o"
    source.write_text(f'void f() {{ __asm__("{instruction} %xmm0, %xmm1, %xmm2"); }}\n')
    subprocess.run(["g++", "-c", source, "-o", program], check=True)
    command = [TREE.root / "cmake/forbid_contraction.sh", "objdump", program, "my_task.h"]
    result = subprocess.run(command, capture_output=True, text=True)
    is_refused = instruction.startswith("vfmaddsub")
    assert (result.returncode, program.exists()) == (int(is_refused), not is_refused)
    assert ("write a*b - c*d as a*b + minus_c*d" in result.stderr) == is_refused
