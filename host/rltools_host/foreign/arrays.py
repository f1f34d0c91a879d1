"""Arrays of NumPy that lie in a pickle, as arrays of double precision."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rltools_host.foreign.pickles import Made, UnreadableError

Array = NDArray[np.float64]
KINDS = {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"}
MOST_DIMENSIONS = 8


def array_of(value: Any) -> Array | None:
    """The numbers of an array or a scalar; None for what is none. No value is changed."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return np.asarray(_finite_double(value))
    if not isinstance(value, Made) or not value.name.startswith("numpy."):
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
    numbers = np.frombuffer(data, np.dtype((">" if order == ">" else "<") + kind))
    count = 1
    for size in shape if len(shape) <= MOST_DIMENSIONS else [-1]:
        if type(size) is not int or not 0 <= size <= numbers.size:
            raise UnreadableError("an array of NumPy's in it has another size than its shape")
        count *= size
    if numbers.size != count:
        raise UnreadableError("an array of NumPy's in it has another size than its shape")
    return numbers.reshape(shape, order="F" if is_fortran else "C").astype(np.float64)


def _bytes(content: Any) -> bytes:
    """Bytes since protocol 3; before, text in Latin-1; or a `bytearray` of such."""
    if isinstance(content, Made) and content.name == "_codecs.encode":
        return str(content.arguments[0]).encode("latin-1")
    if isinstance(content, Made) and content.name.endswith(".bytearray"):
        return _bytes(content.arguments[0])
    if not isinstance(content, bytes | bytearray):
        raise UnreadableError("an array of NumPy's in it has no bytes")
    return bytes(content)


def npy_array(data: bytes) -> Array:
    """The numbers of a file of NumPy's; UnreadableError where it has others, or is damaged."""
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise UnreadableError("an array in it is not in NumPy's format 1.0")
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
        if dtype.kind not in "fiub" or len(shape) > MOST_DIMENSIONS:
            raise UnreadableError("an array in it is not of numbers")
        numbers = np.frombuffer(data, dtype, math.prod(shape), file.tell())
        return numbers.reshape(shape, order="F" if is_fortran else "C").astype(np.float64)
    except (ValueError, TypeError, OverflowError, SyntaxError, EOFError):
        raise UnreadableError("an array of NumPy's in it is damaged") from None
