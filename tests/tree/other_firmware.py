"""What other people's firmware is compiled with: few standard headers, and strict warnings."""

from __future__ import annotations

from pathlib import Path

# A C++ standard library of two headers: PX4's NuttX has not many more.
STANDARD_HEADERS = {
    "cstdint": """#include <stdint.h>
namespace std { using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::uint8_t;
using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::uintptr_t; }
""",
    "cstddef": """#include <stddef.h>
namespace std { using ::size_t; using ::ptrdiff_t; }
""",
}
# Without exceptions and run-time types, and with PX4's warnings.
FLAGS = (
    *("-std=c++17", "-O2", "-ffp-contract=off"),
    *("-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"),
    *("-Wall", "-Wextra", "-Wfloat-equal", "-Wcast-align", "-Wshadow", "-Wdouble-promotion"),
    "-Werror",
)


def two_standard_headers(folder: Path) -> list[str]:
    """The flags for these headers, beside the compiler's own and those of C."""
    standard = folder / "standard"
    standard.mkdir()
    for name, text in STANDARD_HEADERS.items():
        (standard / name).write_text(text)
    return ["-nostdinc++", "-isystem", str(standard)]
