"""integrations/esp_idf: on a flash that is played, and with ESP-IDF's flags for a RISC-V chip."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from programs import needed_symbols, output_of
from quadrotor_policies import assert_acts_as_here, recurrent_policy
from rltools_host.build.tools import missing_names
from rltools_host.policies import folders
from rltools_host.policies.image import parse_policy
from rltools_host.tree import TREE

TESTS = Path(__file__).parent
COMPONENT = TREE.root / "integrations/esp_idf/rlt_policy"
INCLUDES = [
    f"-I{folder}"
    for folder in (
        TESTS / "interface",
        TESTS,
        COMPONENT / "include",
        COMPONENT / "src",
        TREE.include,
        TREE.root / "tests/lib/policy",  # a flash whose power fails
    )
]
# What ESP-IDF's build gives the compiler: tools/cmake/build.cmake and CMakeLists.txt of 6.0.2.
IDF_FLAGS = (
    *("-ffunction-sections", "-fdata-sections", "-Wall", "-Werror", "-Wno-error=unused-function"),
    *("-Wno-error=unused-variable", "-Wno-error=unused-but-set-variable"),
    *("-Wno-error=deprecated-declarations", "-Wextra", "-Wno-unused-parameter"),
    *("-Wno-sign-compare", "-Wno-enum-conversion", "-gdwarf-4", "-ggdb", "-Wwrite-strings"),
    *("-fstrict-volatile-bitfields", "-fno-jump-tables", "-fno-tree-switch-conversion"),
)
CXX_FLAGS = ("-std=gnu++2b", "-fno-exceptions", "-fno-rtti", "-fuse-cxa-atexit")  # of 5.2 to 5.5
C_FLAGS = ("-std=gnu17", "-Wno-old-style-declaration")
CHIP = ("--specs=picolibc.specs", "-march=rv32imc", "-mabi=ilp32")  # ESP32-C3
STANDARD_HEADERS = ("-isystem", str(TREE.root / "lib/freestanding"))
HOST_FLAGS = ("-std=gnu++2b", "-O1", "-ffp-contract=off", "-march=native")
# Bytes for an ESP32-C3 with the defaults of the Kconfig: the core's, with what this adds to it.
MAX_TEXT = 20_400
MAX_RAM = 7_600  # 2,048 of them the last 64 actions, 2,688 for 16 recurrent units


def component_flags() -> list[str]:
    """What the component's CMakeLists.txt adds, with the defaults of its Kconfig."""
    options = re.findall(
        r"target_compile_\w+\(\$\{COMPONENT_LIB\} PRIVATE (.*)\)",
        (COMPONENT / "CMakeLists.txt").read_text(),
    )
    defaults = dict(
        re.findall(r"config (\w+)\n(?:.*\n)*? +default (\S+)", (COMPONENT / "Kconfig").read_text())
    )
    flags = []
    for word in " ".join(options).split():
        name, _, option = word.partition("=${CONFIG_")
        flags.append(f"-D{name}={defaults[option.rstrip('}')]}" if option else word)
    return [*flags, *(f"-DCONFIG_{name}={value}" for name, value in defaults.items())]


def compile_for_chip(source: Path, target: Path, *flags: str) -> None:
    if missing_names(["riscv64-unknown-elf-g++", "picolibc"]):
        pytest.skip("no compiler for RISC-V is installed")
    is_c = source.suffix == ".c"
    command = ["riscv64-unknown-elf-gcc" if is_c else "riscv64-unknown-elf-g++", *CHIP, *IDF_FLAGS]
    command += [*(C_FLAGS if is_c else CXX_FLAGS), *flags, *INCLUDES, *STANDARD_HEADERS]
    output_of(*command, "-c", source, "-o", target)


@pytest.fixture(scope="module")
def component(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("esp_idf") / "rlt_policy.o"
    compile_for_chip(COMPONENT / "src/rlt_policy.cpp", target, "-Og", *component_flags())
    return target


@pytest.mark.all
def test_it_compiles_with_the_flags_of_esp_idf_and_fits(component: Path) -> None:
    sizes: dict[str, int] = {}
    for line in output_of("riscv64-unknown-elf-size", "-A", component).splitlines():
        if match := re.match(r"\.s?(text|rodata|data|bss)\S*\s+(\d+)", line):
            sizes[match[1]] = sizes.get(match[1], 0) + int(match[2])
    assert 0 < sizes["text"] <= MAX_TEXT
    assert sizes["rodata"] <= 1900  # the sentences of its errors, too
    assert sizes.get("data", 0) + sizes["bss"] <= MAX_RAM


@pytest.mark.all
def test_it_needs_nothing_but_the_interface(component: Path) -> None:
    """No heap, no exceptions, no constructors of globals, no float arithmetic of the C library."""
    undefined = needed_symbols("riscv64-unknown-elf-nm", component)
    declared = (TESTS / "interface/esp_idf_interface.h").read_text()
    others = {name for name in undefined if f"{name}(" not in declared}
    assert {"esp_partition_write", "xSemaphoreTake"} <= undefined
    arithmetic = {name for name in others if re.fullmatch(r"__\w+sf\w*", name)}
    guards = {"__cxa_guard_acquire", "__cxa_guard_release"}
    assert others - arithmetic <= {"memcpy", "memset", "memcmp", "strlen", *guards}
    assert "init_array" not in output_of("riscv64-unknown-elf-objdump", "-h", component)


def test_the_header_is_c_and_its_structs_are_those_of_the_library(tmp_path: Path) -> None:
    """For the chip, from C and C++: sizes and offsets."""
    fields = {
        "rlt_channel_t": ("name", "unit", "minimum", "maximum"),
        "rlt_contract_t": (
            *("step_interval_us", "observation_dim", "action_dim", "observations", "actions"),
            "safe_action",
        ),
        "rlt_limits_t": (
            *("max_age_us", "jitter_us", "max_equal", "range_margin", "recovery_ticks"),
            "give_up_ticks",
        ),
    }
    numbers = [
        f"sizeof({name})" if field is None else f"offsetof({name}, {field})"
        for name, names in fields.items()
        for field in (None, *names)
    ]
    header = '#include <stddef.h>\n#include "rlt_policy.h"\n'
    text = header + f"const unsigned char numbers[] = {{{', '.join(numbers)}}};\n"
    contents = []
    for suffix in ("c", "cpp"):
        source = tmp_path / f"numbers.{suffix}"
        source.write_text(text if suffix == "c" else text.replace("const", "extern const", 1))
        target = tmp_path / f"{suffix}.o"
        compile_for_chip(source, target)
        binary = tmp_path / f"{suffix}.bin"
        sections = ("-j", ".rodata*", "-j", ".srodata*")
        output_of("riscv64-unknown-elf-objcopy", "-O", "binary", *sections, target, binary)
        contents.append(binary.read_bytes())
    assert len(contents[0]) >= len(numbers)
    assert contents[0] == contents[1]


def test_the_component_on_a_flash_that_is_played(doctest_main: Path, tmp_path: Path) -> None:
    """Its functions from C; the power fails at every byte of a push and of each start after it."""
    contract = tmp_path / "contract.o"
    output_of(
        "gcc", *IDF_FLAGS, *C_FLAGS, *INCLUDES, "-c", TESTS / "esp_idf_contract.c", "-o", contract
    )
    warnings = [flag for flag in IDF_FLAGS if flag.startswith("-W")]
    program = tmp_path / "program"
    sources = (TESTS / "esp_idf_program.cpp", contract, doctest_main)
    output_of("g++", *HOST_FLAGS, *warnings, *INCLUDES, *sources, "-o", program)
    assert "Status: SUCCESS!" in output_of(program)


CONTROL_TASK = """\
#include <cstdio>
#include "esp_idf_flash.h"
#include "recurrent_ppo_policy.h"
#include "rlt_policy.cpp"
extern const std::uint8_t built_in[] __attribute__((aligned(4))) = {IMAGE};
int main() {
  const rlt_policy_config_t config = {&recurrent_ppo_contract, "policies", {}, built_in,
                                      sizeof(built_in)};
  if (rlt_policy_init(&config) != ESP_OK) return 1;
  float observation[13], action[4];
  for (unsigned now_us = 2000; std::fread(observation, sizeof(observation), 1, stdin) == 1;) {
    rlt_policy_step(now_us, observation, now_us, action);
    std::fwrite(action, sizeof(action), 1, stdout);
    now_us += 2000;
  }
  return 0;
}
"""


@pytest.mark.all  # 4 s of a processor
def test_the_exported_component_keeps_a_hidden_state(tmp_path: Path) -> None:
    """By its control task's function, with the defaults of its Kconfig and a policy that sees its
    actions of before: over steps of training and a fault, with this machine's bits."""
    image = parse_policy(recurrent_policy())
    name, files = folders.esp_idf_component(image)
    folder = tmp_path / name
    folders.write_folder(folder, files, folders.ESP_IDF_MARK)
    rows = ",".join(str(byte) for byte in (folder / folders.EMBEDDED).read_bytes())
    (tmp_path / "main.cpp").write_text(CONTROL_TASK.replace("IMAGE", rows))
    program = tmp_path / "program"
    places = (folder / "include", folder / "src", TESTS / "interface", TESTS)
    includes = [f"-I{place}" for place in (*places, TREE.root / "tests/lib/policy")]
    includes += ["-idirafter", str(TREE.include)]  # what the flash that is played needs besides
    flags = [flag for flag in component_flags() if flag.startswith("-D")]
    output_of("g++", *HOST_FLAGS, *flags, *includes, tmp_path / "main.cpp", "-o", program)
    seen = np.random.default_rng(4).uniform(-0.9, 0.9, (60, 13)).astype("<f4")
    seen[:, 6] = 0.5
    seen[33, 2] = np.nan
    assert_acts_as_here(program, image, seen)


@pytest.mark.all
def test_two_tasks_at_once_race_for_nothing(doctest_main: Path, tmp_path: Path) -> None:
    """test_esp_idf_shared_policy.cpp with the thread sanitizer."""
    program = tmp_path / "place"
    flags = ("-std=c++17", "-O0", "-g", "-march=native", "-ffp-contract=off", "-fsanitize=thread")
    output_of(
        "g++",
        *flags,
        *INCLUDES,
        "-pthread",
        TESTS / "test_esp_idf_shared_policy.cpp",
        doctest_main,
        "-o",
        program,
    )
    assert "Status: SUCCESS!" in output_of(program)
