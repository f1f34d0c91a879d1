"""Files of safetensors (https://huggingface.co/docs/safetensors), read within bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rltools_host.files import parse_json
from rltools_host.foreign.arrays import MOST_DIMENSIONS, Array
from rltools_host.foreign.pickles import UnreadableError
from rltools_host.runs.checkpoint import MAXIMUM_HEADER_BYTES

DTYPES = {
    **{f"F{bits}": f"<f{bits // 8}" for bits in (16, 32, 64)},
    **{f"I{bits}": f"<i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"<u{bits // 8}" for bits in (8, 16, 32, 64)},
    "BOOL": "<b1",
    "BF16": "<u2",  # the upper half of a float
}


def is_safetensors(data: bytes) -> bool:
    """By how it begins: the header's length, and the header."""
    return data[8:9] == b"{" and 2 <= int.from_bytes(data[:8], "little") <= MAXIMUM_HEADER_BYTES


def read_safetensors(data: bytes) -> tuple[dict[str, Array], dict[str, str]]:
    """The tensors by their names, and the texts of `__metadata__`."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 + length:
        raise UnreadableError("it is cut off within its header")
    try:
        header = parse_json(data[8 : 8 + length])
    except ValueError:
        raise UnreadableError("its header is no JSON") from None
    if not isinstance(header, dict):
        raise UnreadableError("its header is no table of tensors")
    metadata = header.pop("__metadata__", {})
    payload = memoryview(data)[8 + length :]
    tensors = {name: _tensor(payload, entry) for name, entry in header.items()}
    if sum(values.size for values in tensors.values()) > len(payload):
        raise UnreadableError("tensors in it overlap")
    texts = metadata.items() if isinstance(metadata, dict) else ()
    return tensors, {key: value for key, value in texts if isinstance(value, str)}


def _tensor(payload: memoryview, entry: Any) -> Array:
    try:
        kind, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        dtype = np.dtype(DTYPES[kind])
        sizes = (*shape, begin, end)
        if any(type(size) is not int or size < 0 for size in sizes):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise UnreadableError("a tensor in it has a type or a place that is not read") from None
    count = math.prod(shape)
    if len(shape) > MOST_DIMENSIONS or not begin <= end <= len(payload):
        raise UnreadableError("a tensor in it does not lie within the file")
    if end - begin != count * dtype.itemsize:
        raise UnreadableError("a tensor in it has another size than its shape")
    numbers = np.frombuffer(payload[begin:end], dtype).reshape(shape)
    if kind == "BF16":
        return (numbers.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return numbers.astype(np.float64)
