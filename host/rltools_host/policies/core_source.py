"""What the core's headers say, as text: definitions of core/math.h, for a header that stands alone,
and the list of activations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from rltools_host.errors import BuildError
from rltools_host.tree import TREE

CORE = TREE.include / "rltools" / "core"
ACTIVATIONS = CORE.parent / "nn" / "activation.h"
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


@cache
def activations() -> Mapping[str, str]:
    """RLT_ACTIVATION_LIST, in its order: an activation's name, and its value at x in C++."""
    text = ACTIVATIONS.read_text(encoding="utf-8").replace("\\\n", "")
    found = re.search(r"^#define RLT_ACTIVATION_LIST\(X\)(.*)$", text, re.MULTILINE)
    calls = re.split(r"\bX\(", found[1])[1:] if found else []
    entries = [macro_arguments(call) for call in calls]
    if not entries or any(len(entry) != 4 for entry in entries):
        raise BuildError(f"{ACTIVATIONS} has no list of activations: restore it from git")
    return {name: value for name, _, value, _ in entries}


def macro_arguments(text: str) -> list[str]:
    """The arguments of a macro's call, from the one behind its parenthesis on."""
    arguments, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth < 0 or (letter == "," and depth == 0):
            arguments.append(" ".join(text[start:place].split()))
            start = place + 1
        if depth < 0:
            break
    return arguments
