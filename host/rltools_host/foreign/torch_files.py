"""Checkpoints of PyTorch (the zip format of torch.save since 1.6), read without PyTorch and without
unpickling: nested dicts of names, with arrays of double precision for tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rltools_host.foreign.archives import Archive
from rltools_host.foreign.arrays import MOST_DIMENSIONS, Array, array_of
from rltools_host.foreign.pickles import Made, Persistent, UnreadableError, read_pickle

# By the name of the storage's class.
STORAGES = {
    "DoubleStorage": "<f8",
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "BFloat16Storage": "<u2",  # the upper half of a float
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "<i1",
    "ByteStorage": "<u1",
    "BoolStorage": "<b1",
}
REBUILT = ("torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state")
DEEPEST = 12
MOST_VALUES = 1_000_000  # that the pickle's dicts and lists have, counted where they are met
MOST_ELEMENTS = 50_000_000  # of all tensors together
OLD_FORMAT = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19"  # of torch.save before 1.6


def data_pickle(archive: Archive) -> str | None:
    """The entry that describes the tensors; None where the archive is none of PyTorch's."""
    found = [name for name in archive.names if name.split("/")[1:] == ["data.pkl"]]
    return found[0] if len(found) == 1 else None


def read_torch(archive: Archive) -> Any:
    """Dicts, lists, numbers and texts as they are, tensors as arrays."""
    name = data_pickle(archive)
    if name is None:
        raise UnreadableError("its zip archive is none of PyTorch's, it has no one data.pkl")
    folder = name.partition("/")[0]
    order = f"{folder}/byteorder"
    if order in archive and archive.read(order).strip() != b"little":
        raise UnreadableError("it was written by a big-endian machine: save it on another one")
    if f"{folder}/constants.pkl" in archive:
        raise UnreadableError(
            "it is a TorchScript program: save the module's state_dict() with torch.save"
        )
    return _Reader(archive, folder).plain(read_pickle(archive.read(name)), 0)


class _Reader:
    """Makes arrays of the tensors that a pickle describes, within bounds."""

    def __init__(self, archive: Archive, folder: str) -> None:
        self.archive, self.folder = archive, folder
        self.storages: dict[str, NDArray[Any]] = {}
        self.values = 0
        self.elements = 0

    def plain(self, value: Any, depth: int) -> Any:
        """The value with arrays for tensors, and None for what is of no use here."""
        self.values += 1
        if self.values > MOST_VALUES:
            raise UnreadableError(f"it has more than {MOST_VALUES:,} values")
        if depth > DEEPEST:
            return None
        if isinstance(value, dict):
            return {key: self.plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.plain(item, depth + 1) for item in value]
        if not isinstance(value, Made):
            return value if isinstance(value, str | int | float) else None
        if value.name in REBUILT and isinstance(value.arguments, tuple) and value.arguments:
            return self.plain(value.arguments[0], depth + 1)
        if value.name == "torch._utils._rebuild_tensor_v2":
            return self.tensor(value.arguments)
        if value.name in ("collections.OrderedDict", "collections.defaultdict"):
            return {key: self.plain(item, depth + 1) for key, item in value.items.items()}
        if isinstance(value.state, dict) and "_modules" in value.state:
            raise UnreadableError(
                "it is a whole module, whose code would have to be executed: save its state_dict()"
            )
        return array_of(value)

    def tensor(self, arguments: Any) -> Array:
        try:
            storage, offset, size, stride = arguments[:4]
            if not isinstance(storage, Persistent):
                raise TypeError
            _, kind, key, _, _ = storage.identity
            name = kind.name.rpartition(".")[2]
            dtype = np.dtype(STORAGES[name])
            numbers = (offset, *size, *stride)
            if any(type(number) is not int or number < 0 for number in numbers):
                raise ValueError
            if len(size) != len(stride) or len(size) > MOST_DIMENSIONS or type(key) is not str:
                raise ValueError
        except (TypeError, ValueError, AttributeError, KeyError):
            raise UnreadableError("a tensor in it has a type or a place that is not read") from None
        flat = self.storage(key, dtype)
        elements = math.prod(size)
        self.elements += elements
        last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        if elements and (last >= flat.size or elements > flat.size):
            raise UnreadableError("a tensor in it does not lie within its storage")
        if self.elements > MOST_ELEMENTS:
            raise UnreadableError(f"it has more than {MOST_ELEMENTS:,} numbers")
        if elements == 0:
            return np.zeros(0)
        steps = [step * dtype.itemsize for step in stride]
        view = np.lib.stride_tricks.as_strided(flat[offset:], tuple(size), steps, writeable=False)
        if name == "BFloat16Storage":
            return (view.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return view.astype(np.float64)

    def storage(self, key: str, dtype: np.dtype[Any]) -> NDArray[Any]:
        if key not in self.storages:
            data = self.archive.read(f"{self.folder}/data/{key}")
            whole = len(data) - len(data) % dtype.itemsize
            self.storages[key] = np.frombuffer(data[:whole], dtype)
        if self.storages[key].dtype != dtype:
            raise UnreadableError("two tensors in it have one storage, and different types")
        return self.storages[key]
