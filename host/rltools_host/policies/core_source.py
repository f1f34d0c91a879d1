"""Definitions of core/math.h as text, for a header that stands alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rltools_host import paths
from rltools_host.errors import BuildError

CORE = paths.REPOSITORY / "lib" / "rltools" / "include" / "rltools" / "core"
CORE_MATH = (CORE / "float_bits.h", CORE / "fma.h", CORE / "math.h")  # in the order of their use


def core_math_source(functions: Sequence[str]) -> str:
    """The definitions of these functions of the core, and of all that they use, in order."""
    body = "\n\n".join(namespace_body(path.read_text(encoding="utf-8")) for path in CORE_MATH)
    blocks = [drop_double(block.strip()) for block in re.split(r"\n\s*\n", body)]
    blocks = [block for block in blocks if block and not block.startswith("// ----")]
    defined = {name: number for number, block in enumerate(blocks) for name in defined_names(block)}
    needed: set[int] = set()
    waiting = list(functions)
    while waiting:
        name = waiting.pop()
        if name not in defined:
            raise BuildError(f"{CORE}/*.h do not define {name} for float: restore them from git")
        number = defined[name]
        if number not in needed:
            needed.add(number)
            words = set(re.findall(r"\w+", without_comments(blocks[number])))
            waiting += sorted(words & defined.keys())
    return "\n\n".join(blocks[number] for number in sorted(needed))


def namespace_body(text: str) -> str:
    """What a header defines in namespace math, but for the functions of double."""
    body = text.partition("namespace math {")[2].partition("}  // namespace math")[0]
    return body.partition("// ---- Double")[0]


def drop_double(block: str) -> str:
    """A block of definitions without those for double, which stand on one line."""
    return "\n".join(line for line in block.splitlines() if not re.match(r"inline double", line))


def without_comments(text: str) -> str:
    return re.sub(r"//.*", "", text)


def defined_names(block: str) -> list[str]:
    """The functions, constants and types that a block defines at its left margin."""
    value = r"^(?:\[\[[\w:]+\]\] )?(?:inline |constexpr )+[\w:<>]+ (\w+)(?:\(| =)"
    matches = re.finditer(rf"{value}|^struct (\w+)", block, re.MULTILINE)
    return [match[1] or match[2] for match in matches]
