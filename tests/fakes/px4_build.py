"""How PX4's build compiles the module of integrations/px4, against px4_interface.h."""

from __future__ import annotations

import re
from pathlib import Path

from rltools_host.tree import TREE

TESTS = TREE.root / "tests/integrations/px4"
MODULE = TREE.root / "integrations/px4/src/modules/rlt_policy"
INCLUDE = TREE.include
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


def sources() -> list[Path]:
    """What the module's own CMakeLists.txt has compiled."""
    block = (
        (MODULE / "CMakeLists.txt").read_text().partition("SRCS")[2].partition("MODULE_CONFIG")[0]
    )
    return [MODULE / name for name in block.split()]


def code() -> str:
    """All that the module consists of."""
    return "".join(path.read_text() for path in [*sorted(MODULE.glob("*.h")), *sources()])


def interface(folder: Path, version: str) -> list[str]:
    """The headers that the module includes of PX4, and the flags that choose its version."""
    descriptor, setpoint_config = VERSIONS[version]
    for name in re.findall(r"#include <((?:px4_|uORB/|systemlib/|drivers/)\S+)>", code()):
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
