"""Pickles as data: an interpreter of pickle's opcodes that cannot call anything.

PyTorch's checkpoints and VecNormalize's files are pickles. Python's own reader imports and calls
what a pickle names. This one returns a `Global` for a name and a `Call` for a call, which nothing
executes. pickletools decodes the opcodes and runs nothing either.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_PICKLE_BYTES = 64_000_000
MAX_OPCODES = 2_000_000
LARGEST_KEY = 2**31  # of whole numbers: below it, hashes differ
Array = NDArray[np.float64]
KINDS = {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"}
MAX_DIMENSIONS = 8
MAX_ELEMENTS = 50_000_000  # numbers of one file


class UnreadableError(Exception):
    """A fault of a foreign file, as a clause: "its zip archive is damaged"."""


@dataclass(frozen=True)
class Global:
    """The name of a global in a pickle: "torch.FloatStorage"."""

    name: str


@dataclass(eq=False)
class Call:
    """A call that a pickle asks for, with its arguments, and what it puts into the result.

    Nothing executes it.
    """

    function: Any
    arguments: Any
    state: Any = None
    items: dict[Any, Any] = field(default_factory=dict)
    values: list[Any] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the name of what is called; empty where that is no global."""
        return self.function.name if isinstance(self.function, Global) else ""


@dataclass(frozen=True, eq=False)
class Persistent:
    """A reference to what lies outside of the pickle: a storage of PyTorch."""

    identity: Any


class _Mark:
    pass


CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
VALUES = (
    *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "INT", "LONG", "FLOAT", "BINFLOAT"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "SHORT_BINSTRING", "BINSTRING"),
)
IGNORED = ("PROTO", "FRAME")


def is_key(value: Any) -> bool:
    """Return whether the value may be a dict's key.

    Other values' hashes could collide without end.
    """
    if isinstance(value, int):
        return abs(value) < LARGEST_KEY
    return value is None or isinstance(value, str | bytes)


class _Machine:
    """The stack machine of one pickle."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.actions: dict[str, Callable[[Any], object]] = {
            "EMPTY_DICT": lambda _: self.stack.append({}),
            "EMPTY_LIST": lambda _: self.stack.append([]),
            "EMPTY_TUPLE": lambda _: self.stack.append(()),
            "EMPTY_SET": lambda _: self.stack.append([]),
            "MARK": lambda _: self.stack.append(_Mark),
            "POP": lambda _: self.stack.pop(),
            "DUP": lambda _: self.stack.append(self.stack[-1]),
            "POP_MARK": lambda _: self.to_mark(),
            "TUPLE": lambda _: self.stack.append(tuple(self.to_mark())),
            "TUPLE1": lambda _: self.stack.append(tuple(self.take(1))),
            "TUPLE2": lambda _: self.stack.append(tuple(self.take(2))),
            "TUPLE3": lambda _: self.stack.append(tuple(self.take(3))),
            "LIST": lambda _: self.stack.append(self.to_mark()),
            "FROZENSET": lambda _: self.stack.append(self.to_mark()),
            "DICT": lambda _: self.push_pairs(self.to_mark()),
            "GLOBAL": lambda name: self.stack.append(Global(str(name).replace(" ", ".", 1))),
            "STACK_GLOBAL": lambda _: self.push_global(*self.take(2)),
            "BINPERSID": lambda _: self.stack.append(Persistent(self.take(1)[0])),
            "REDUCE": lambda _: self.stack.append(Call(*self.take(2))),
            "NEWOBJ": lambda _: self.stack.append(Call(*self.take(2))),
            "NEWOBJ_EX": lambda _: self.stack.append(Call(*self.take(3)[:2])),
            "BUILD": lambda _: self.build(self.take(1)[0]),
            "SETITEM": lambda _: self.set_items(self.take(2)),
            "SETITEMS": lambda _: self.set_items(self.to_mark()),
            "APPEND": lambda _: self.add(self.take(1)),
            "APPENDS": lambda _: self.add(self.to_mark()),
            "ADDITEMS": lambda _: self.add(self.to_mark()),
            "MEMOIZE": lambda _: self.remember(len(self.memo)),
            **dict.fromkeys(("BINPUT", "LONG_BINPUT", "PUT"), self.remember),
            **dict.fromkeys(("BINGET", "LONG_BINGET", "GET"), self.recall),
            **dict.fromkeys(VALUES, self.stack.append),
        }

    def take(self, count: int) -> list[Any]:
        if len(self.stack) < count:
            raise UnreadableError("a pickle in it takes more from its stack than there is")
        values = self.stack[-count:]
        del self.stack[-count:]
        return values

    def to_mark(self) -> list[Any]:
        for index in range(len(self.stack) - 1, -1, -1):
            if self.stack[index] is _Mark:
                values = self.stack[index + 1 :]
                del self.stack[index:]
                return values
        raise UnreadableError("a pickle in it has no mark where one is needed")

    def push_global(self, module: Any, name: Any) -> None:
        is_text = isinstance(module, str) and isinstance(name, str)
        self.stack.append(Global(f"{module}.{name}" if is_text else "?"))

    def push_pairs(self, values: list[Any]) -> None:
        self.stack.append({})
        self.set_items(values)

    def set_items(self, values: list[Any]) -> None:
        target = self.stack[-1]
        items = target.items if isinstance(target, Call) else target
        if not isinstance(items, dict) or len(values) % 2:
            raise UnreadableError("a pickle in it sets items of what has none")
        for key, value in zip(values[::2], values[1::2], strict=True):
            if is_key(key):  # no reader needs others
                items[key] = value

    def add(self, values: list[Any]) -> None:
        target = self.stack[-1]
        (target.values if isinstance(target, Call) else target).extend(values)

    def build(self, state: Any) -> None:
        if isinstance(self.stack[-1], Call):
            self.stack[-1].state = state

    def remember(self, key: Any) -> None:
        self.memo[int(key)] = self.stack[-1]

    def recall(self, key: Any) -> None:
        if int(key) not in self.memo:
            raise UnreadableError("a pickle in it recalls what it never remembered")
        self.stack.append(self.memo[int(key)])


def read_pickle(data: bytes) -> Any:
    """Return what a pickle describes: plain values, and Global, Call and Persistent for everything
    else."""
    if len(data) > MAX_PICKLE_BYTES:
        raise UnreadableError(f"a pickle in it has more than {MAX_PICKLE_BYTES:,} bytes")
    machine = _Machine()
    try:
        for number, (opcode, argument, _) in enumerate(pickletools.genops(io.BytesIO(data))):
            if number >= MAX_OPCODES:
                raise UnreadableError(f"a pickle in it has more than {MAX_OPCODES:,} operations")
            if opcode.name == "STOP":
                return machine.take(1)[0]
            if opcode.name in CONSTANTS:
                machine.stack.append(CONSTANTS[opcode.name])
            elif opcode.name in machine.actions:
                machine.actions[opcode.name](argument)
            elif opcode.name not in IGNORED:
                raise UnreadableError(f"a pickle in it has {opcode.name}, which is not supported")
    except (ValueError, IndexError, TypeError, AttributeError, OverflowError):
        raise UnreadableError("a pickle in it is damaged") from None
    raise UnreadableError("a pickle in it has no end")


# -- arrays of NumPy in them, as arrays of double precision ----------------------------------------


def array_of(value: Any) -> Array | None:
    """Return the numbers of an array or a scalar in double precision, or None for another value."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return np.asarray(_finite_double(value))
    if not isinstance(value, Call) or not value.name.startswith("numpy."):
        return None
    function = value.name.rpartition(".")[2]
    try:
        if function == "_reconstruct":
            _, shape, dtype, is_fortran, content = value.state
            return _numbers(content, dtype, shape, bool(is_fortran))
        if function == "scalar":
            return _numbers(value.arguments[1], value.arguments[0], (), False)
        if function == "_frombuffer":
            content, dtype, shape, order = value.arguments
            return _numbers(content, dtype, shape, order == "F")
    except (TypeError, ValueError, AttributeError, IndexError):
        raise UnreadableError("an array of NumPy's in it contradicts itself") from None
    return None


def _finite_double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of many digits
        raise UnreadableError("a number in it is too large") from None


def _numbers(content: Any, dtype: Any, shape: Any, is_fortran: bool) -> Array:
    kind = dtype.arguments[0] if dtype.name.endswith("dtype") else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise UnreadableError("an array of NumPy's in it is not of numbers")
    order = dtype.state[1] if isinstance(dtype.state, tuple) else "<"
    data = _bytes(content)
    if len(data) > MAX_ELEMENTS:  # an element has a byte at least
        raise UnreadableError(f"an array of NumPy's in it has more than {MAX_ELEMENTS:,} bytes")
    numbers = np.frombuffer(data, np.dtype((">" if order == ">" else "<") + kind))
    count = 1
    for size in shape if len(shape) <= MAX_DIMENSIONS else [-1]:
        if type(size) is not int or not 0 <= size <= numbers.size:
            raise UnreadableError("an array of NumPy's in it has another size than its shape")
        count *= size
    if numbers.size != count:
        raise UnreadableError("an array of NumPy's in it has another size than its shape")
    return numbers.reshape(shape, order="F" if is_fortran else "C").astype(np.float64)


def _bytes(content: Any) -> bytes:
    """Return bytes as they are since protocol 3, from text in Latin-1 as before, or from a
    `bytearray` of these."""
    if isinstance(content, Call) and content.name.endswith(".bytearray"):
        content = content.arguments[0]
    if isinstance(content, Call) and content.name == "_codecs.encode":
        content = content.arguments[0]
        if isinstance(content, str):
            return content.encode("latin-1")
    if not isinstance(content, bytes | bytearray):
        raise UnreadableError("an array of NumPy's in it has no bytes")
    return bytes(content)
