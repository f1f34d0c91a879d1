"""Runs policy images on this machine, through the code that boards run (policy/runtime.h).

What the core's headers say, as text: definitions of core/math.h in C, for a header that stands
alone, and the list of activations.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rltools_host.build.native import host_library
from rltools_host.clients.messages import POLICY_REASONS
from rltools_host.errors import BuildError, DamagedFileError, RltError, VerificationError
from rltools_host.runs.saves import (
    HEADER,
    header_bytes,
)
from rltools_host.tree import TREE

CORE = TREE.include / "rltools" / "core"
ACTIVATIONS = CORE.parent / "nn" / "activation.h"
CORE_MATH = (CORE / "float_bits.h", CORE / "fma.h", CORE / "math.h")  # in the order of their use


def core_math_source(functions: Sequence[str], prefix: str, macros: str) -> str:
    """The definitions of these functions of the core, and of all that they use, in order: in C99,
    which is C++11 as well. Their names begin with `prefix`, those of macros with `macros`."""
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
    names = "|".join(name for name in defined if defined[name] in needed)

    def renamed(match: re.Match[str]) -> str:
        code = re.sub(r"\bRLT_(\w+)", rf"{macros}_\1", match["code"])
        return re.sub(rf"\b({names})\b", rf"{prefix}_\1", code) + (match["comment"] or "")

    text = "\n\n".join(in_c(blocks[number]) for number in sorted(needed))
    return re.sub(r"^(?P<code>.*?)(?P<comment>//.*)?$", renamed, text, flags=re.MULTILINE)


# The C++ of the core's definitions, and the C that says the same.
IN_C = (
    (r"^template <class T>\n", ""),
    (r"\bif constexpr\b", "if"),
    (
        r"^inline constexpr bool (\w+) =\n(#if[^;]*)true;\n#else\n\s*false;\n#endif",
        r"enum {\n  \1 =\n\g<2>1\n#else\n    0\n#endif\n};",
    ),
    (r"\bstd::(u?int\d+_t)", r"\1"),
    (r"^inline constexpr ", "static const "),
    (r"\bconstexpr (?!inline)", "const "),
    (r"^\[\[gnu::always_inline\]\] (?:constexpr )?inline", "static inline RLT_ALWAYS_INLINE"),
    (r"^\[\[gnu::noinline\]\] inline", "static RLT_NOINLINE"),
    (r"^(?:constexpr )?inline ", "static inline "),
    (r"^struct (\w+) \{(.*?)^\};", r"typedef struct \1 {\2} \1;"),
    (r"\bstatic_cast<([\w ]+)>\(", r"(\1)("),
    (r"__builtin_fmaf\b", "RLT_FMAF"),
    (r"__builtin_fabsf\b", "RLT_FABSF"),
    (r"__builtin_inff\(\)", "RLT_INFINITY"),
    (r'__builtin_nanf\(""\)', "RLT_NAN"),
    (r"__builtin_memcpy\b", "memcpy"),
)
FUNCTION = re.compile(r"^static (?:inline )?(?:RLT_\w+ )?(\w+) \w+\(", re.MULTILINE)


def in_c(block: str) -> str:
    """A block of the core's definitions for float, in C99."""
    is_template = block.startswith("template") or "\ntemplate" in block
    for pattern, replacement in IN_C:
        block = re.sub(pattern, replacement, block, flags=re.MULTILINE | re.DOTALL)
    if is_template:
        block = re.sub(r"\bT\b", "float", block)
    made = FUNCTION.search(block)
    if made:
        block = re.sub(
            r"^( *)(if \(.*\) )?return (\{[^{}]*\});",
            lambda match: return_struct(made[1], *match.groups()),
            block,
            flags=re.MULTILINE,
        )
    return decimal_literals(block)


def return_struct(name: str, indent: str, condition: str | None, fields: str) -> str:
    """C returns a struct by its name."""
    if condition is None:
        return f"{indent}const {name} made = {fields};\n{indent}return made;"
    inner = return_struct(name, f"{indent}  ", None, fields)
    return f"{indent}{condition}{{\n{inner}\n{indent}}}"


def float_literal(value: float) -> str:
    """A literal of a finite binary32 number, with as few digits as tell it from every other."""
    number = np.float32(value)
    if not np.isfinite(number):
        raise ValueError(f"{value} has no literal")
    return f"{number!s}f"


def decimal_literals(text: str) -> str:
    """C++ has hexadecimal ones from C++17 on."""
    literal = re.compile(r"\b0x[0-9a-f]+(?:\.[0-9a-f]*)?p[-+]?\d+f\b")
    return literal.sub(lambda match: float_literal(float.fromhex(match[0][:-1])), text)


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


LAYER = struct.Struct("<HHBB2s")
REASONS = tuple(POLICY_REASONS)
Float32Array = NDArray[np.float32]


class DamagedPolicyError(DamagedFileError):
    """A policy image that a board would refuse; `reason` is one of REASONS."""

    def __init__(self, origin: str, reason: str, detail: str) -> None:
        super().__init__(f"{origin}: not a usable policy image ({reason}): {detail}")
        self.reason = reason


class PolicyRunner:
    """The native code's view of an image whose bytes are `data`, and its scratch memory."""

    def __init__(self, data: bytes, origin: str, safe_action: Sequence[float | None] = ()) -> None:
        """safe_action: what somebody states of it; else it is that of the image's contract."""
        native = host_library("policy")
        self.library = native.functions
        self.reasons: list[str] = native.description["reasons"]  # in words
        self.origin = origin
        self.bytes = np.frombuffer(data, np.uint8).copy()  # on a boundary of at least four bytes
        self.policy = ctypes.create_string_buffer(native.description["object_bytes"])
        where = ctypes.c_uint32()
        reason = self.library.rlt_policy_open(
            self.bytes.ctypes.data, self.bytes.size, self.policy, ctypes.byref(where)
        )
        if reason:
            raise DamagedPolicyError(origin, REASONS[reason], self.reasons[reason])
        header = HEADER.unpack_from(data)
        self.observation_dim, self.action_dim, self.layer_count = header[5:8]
        last = header_bytes(header[1]) + (self.layer_count - 1) * LAYER.size
        self.output_dim = LAYER.unpack_from(data, last)[1]
        self.state_dim = int(self.library.rlt_policy_state_dim(self.policy))
        self.scratch = np.empty(self.library.rlt_policy_scratch_floats(self.policy), np.float32)
        stated = [np.nan if value is None else value for value in safe_action]
        self.safe = np.array(stated or [np.nan] * self.action_dim, np.float32)
        self.normalized_safe = np.empty(self.action_dim, np.float32)
        # Whether the contract that the image is made for states one.
        self.has_safe_action = bool(
            self.library.rlt_policy_safe_action(
                self.policy, self.safe.ctypes.data, self.normalized_safe.ctypes.data
            )
        )

    def check_examples(self) -> None:
        where = ctypes.c_uint32()
        reason = self.library.rlt_policy_check_examples(
            self.policy, self.scratch.ctypes.data, self.scratch.size, ctypes.byref(where)
        )
        if reason:
            raise VerificationError(
                f"{self.origin}: example {where.value} gives other bits on this machine than "
                "on the device that wrote the image: one of them computes wrongly, do not use it"
            )

    def safe_action(self) -> tuple[Float32Array, Float32Array]:
        """What is done where there is no finite action: in the channels' units, and normalized."""
        return self.safe.copy(), self.normalized_safe.copy()

    def begin(self, count: int = 1) -> Float32Array:
        """Hidden states of zeros (count, state_dim), as at the beginning of an episode."""
        return np.zeros((count, self.state_dim), np.float32)

    def run(
        self, observation: ArrayLike, states: Float32Array | None = None
    ) -> tuple[Float32Array, Float32Array]:
        """Outputs and actions. states: those of begin(), a row for each observation, which move on;
        None: each is the first observation of an episode."""
        values = np.ascontiguousarray(observation, np.float32)
        if values.ndim not in (1, 2) or values.shape[-1] != self.observation_dim:
            raise RltError(
                f"{self.origin} takes {self.observation_dim} observations, not {values.shape}"
            )
        count = 1 if values.ndim == 1 else len(values)
        require_states(self.origin, states, (count, self.state_dim))
        outputs = np.empty((count, self.output_dim), np.float32)
        actions = np.empty((count, self.action_dim), np.float32)
        self.library.rlt_policy_evaluate(
            self.policy,
            values.ctypes.data,
            count,
            None if states is None else states.ctypes.data,
            self.safe.ctypes.data,
            outputs.ctypes.data,
            actions.ctypes.data,
            self.scratch.ctypes.data,
        )
        rows = values.shape[:-1]
        return outputs.reshape(*rows, self.output_dim), actions.reshape(*rows, self.action_dim)

    def trace(
        self, observation: ArrayLike, state: Float32Array | None = None
    ) -> tuple[int, Float32Array]:
        """The checksum of all layers' outputs for one observation, and the output; state: of
        begin()."""
        values = np.ascontiguousarray(observation, np.float32)
        output = np.empty(self.output_dim, np.float32)
        require_states(self.origin, state, (1, self.state_dim))
        trace = self.library.rlt_policy_trace(
            self.policy,
            values.ctypes.data,
            None if state is None else state.ctypes.data,
            output.ctypes.data,
            self.scratch.ctypes.data,
        )
        return int(trace), output

    def layer_checksums(self, observation: ArrayLike) -> tuple[int, ...]:
        """CRC-32 of each layer's output for one observation, the first of an episode."""
        values = np.ascontiguousarray(observation, np.float32)
        output = np.empty(self.output_dim, np.float32)
        layers = np.empty(self.layer_count, np.uint32)
        self.library.rlt_policy_layers(
            self.policy,
            values.ctypes.data,
            layers.ctypes.data,
            output.ctypes.data,
            self.scratch.ctypes.data,
        )
        return tuple(map(int, layers))


def require_states(origin: str, states: Float32Array | None, shape: tuple[int, int]) -> None:
    """The native code writes to them."""
    if states is None:
        return
    if states.shape != shape or states.dtype != np.float32 or not states.flags.c_contiguous:
        raise RltError(
            f"{origin} has hidden states of shape {shape} and float32, as begin() makes them, not "
            f"{states.dtype} of shape {states.shape}"
        )
