"""Files of tensors, read within bounds and without unpickling: zip archives, of which nothing is
unpacked to the disk; PyTorch's checkpoints in them (the format of torch.save since 1.6), as nested
dicts of names with arrays of double precision; and safetensors
(https://huggingface.co/docs/safetensors)."""

from __future__ import annotations

import io
import math
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from rltools_host.documents import Count, printable, shown, typed
from rltools_host.files import parse_json
from rltools_host.policies.importing.pickles import (
    MAX_DIMENSIONS,
    MAX_ELEMENTS,
    Array,
    Call,
    Persistent,
    UnreadableError,
    array_of,
    read_pickle,
)
from rltools_host.runs.checkpoint import MAXIMUM_HEADER_BYTES

LONGEST_REASON = 200
MAX_ENTRIES = 10_000
MAX_ENTRY_BYTES = 128_000_000
MAX_HEADER_BYTES = 4_000_000  # of safetensors
MAX_BYTES = 512_000_000  # of all entries that are read
DAMAGES = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, struct.error),
    *(NotImplementedError, RuntimeError, OverflowError),  # an unknown compression, or a password
)


class Archive:
    """A zip archive whose entries are read whole, with UnreadableError where one is damaged, too
    large or missing."""

    def __init__(self, data: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
            entries = self._zip.infolist()
        except DAMAGES:
            raise UnreadableError("it is a damaged zip archive") from None
        if len(entries) > MAX_ENTRIES:
            raise UnreadableError(f"its zip archive has more than {MAX_ENTRIES:,} entries")
        self.names = [entry.filename for entry in entries]
        self._known = set(self.names)
        self._bytes = 0

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def read(self, name: str) -> bytes:
        if name not in self._known:
            raise UnreadableError(f"its zip archive has no entry {shown(name)}")
        try:
            with self._zip.open(name) as entry:
                data = entry.read(MAX_ENTRY_BYTES + 1)  # never more, whatever the header says
        except DAMAGES:
            raise UnreadableError(
                f"the entry {shown(name)} of its archive is damaged, or packed in a way that is "
                "not supported"
            ) from None
        self._bytes += len(data)
        if len(data) > MAX_ENTRY_BYTES or self._bytes > MAX_BYTES:
            raise UnreadableError(
                f"it unpacks to more than {MAX_ENTRY_BYTES:,} bytes an entry, or "
                f"{MAX_BYTES:,} in all"
            )
        return data


def doubles(values: NDArray[Any], *, is_bfloat16: bool) -> Array:
    """Return the values in double precision. bfloat16 is the upper half of a float, in 16 bits."""
    if is_bfloat16:
        return (values.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return values.astype(np.float64)


# -- PyTorch's checkpoints -------------------------------------------------------------------------

# By the storage's class.
STORAGES = {
    "DoubleStorage": "<f8",
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "BFloat16Storage": "<u2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "<i1",
    "ByteStorage": "<u1",
    "BoolStorage": "<b1",
}
REBUILT = ("torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state")
DEEPEST = 12
MAX_VALUES = 1_000_000  # of the pickle's dicts and lists, counted each time they occur
OLD_FORMAT = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19"  # of torch.save before 1.6


def data_pickle(archive: Archive) -> str | None:
    """Return the entry that describes the tensors, or None where the archive is not PyTorch's."""
    found = [name for name in archive.names if name.split("/")[1:] == ["data.pkl"]]
    return found[0] if len(found) == 1 else None


def read_torch_and_pickle(archive: Archive) -> tuple[Any, Any]:
    """Return dicts, lists, numbers and texts unchanged, and tensors as arrays; and the pickle
    itself, which has the calls for what is no tensor."""
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
    stated = read_pickle(archive.read(name))
    return _Reader(archive, folder).plain(stated, 0), stated


class _Reader:
    """A reader of the tensors that a pickle describes, within bounds."""

    def __init__(self, archive: Archive, folder: str) -> None:
        self.archive, self.folder = archive, folder
        self.storages: dict[str, NDArray[Any]] = {}
        self.values = 0
        self.elements = 0

    def plain(self, value: Any, depth: int) -> Any:
        """Return the value with arrays for tensors, and None for what is of no use here."""
        self.values += 1
        if self.values > MAX_VALUES:
            raise UnreadableError(f"it has more than {MAX_VALUES:,} values")
        if depth > DEEPEST:
            return None
        if isinstance(value, dict):
            return {key: self.plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.plain(item, depth + 1) for item in value]
        if not isinstance(value, Call):
            return value if isinstance(value, str | int | float) else None
        if value.name in REBUILT and isinstance(value.arguments, tuple) and value.arguments:
            return self.plain(value.arguments[0], depth + 1)
        if value.name == "torch._utils._rebuild_tensor_v2":
            return self.tensor(value.arguments)
        if value.name in ("collections.OrderedDict", "collections.defaultdict"):
            return {key: self.plain(item, depth + 1) for key, item in value.items.items()}
        if isinstance(value.state, dict) and "_modules" in value.state:
            raise UnreadableError(
                "it is a whole module, whose code would have to be executed: save its state_dict() "
                "where that code is, torch.save(module.state_dict(), FILE)"
            )
        array = array_of(value)
        self.count(0 if array is None else array.size)
        return array

    def count(self, elements: int) -> None:
        self.elements += elements
        if self.elements > MAX_ELEMENTS:
            raise UnreadableError(f"it has more than {MAX_ELEMENTS:,} numbers")

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
            if len(size) != len(stride) or len(size) > MAX_DIMENSIONS or type(key) is not str:
                raise ValueError
        except (TypeError, ValueError, AttributeError, KeyError):
            raise UnreadableError(
                "a tensor in it has a type or offset that is not supported"
            ) from None
        flat = self.storage(key, dtype)
        elements = math.prod(size)
        last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        if elements and (last >= flat.size or elements > flat.size):
            raise UnreadableError("a tensor in it does not lie within its storage")
        self.count(elements)
        if elements == 0:
            return np.zeros(0)
        steps = [step * dtype.itemsize for step in stride]
        view = np.lib.stride_tricks.as_strided(flat[offset:], tuple(size), steps, writeable=False)
        return doubles(view, is_bfloat16=name == "BFloat16Storage")

    def storage(self, key: str, dtype: np.dtype[Any]) -> NDArray[Any]:
        if key not in self.storages:
            data = self.archive.read(f"{self.folder}/data/{key}")
            whole = len(data) - len(data) % dtype.itemsize
            self.storages[key] = np.frombuffer(data[:whole], dtype)
        if self.storages[key].dtype != dtype:
            raise UnreadableError("two tensors in it have one storage, and different types")
        return self.storages[key]


# -- safetensors -----------------------------------------------------------------------------------

DTYPES = {
    **{f"F{bits}": f"<f{bits // 8}" for bits in (16, 32, 64)},
    **{f"I{bits}": f"<i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"<u{bits // 8}" for bits in (8, 16, 32, 64)},
    "BOOL": "<b1",
    "BF16": "<u2",
}


def is_safetensors(data: bytes) -> bool:
    """Return whether the data begins with the length of a header, and a header."""
    return data[8:9] == b"{" and 2 <= int.from_bytes(data[:8], "little") <= MAXIMUM_HEADER_BYTES


class _Entry(Struct, frozen=True):
    """A tensor as a header states it. The package checks the rest."""

    dtype: str
    shape: Annotated[list[Count], Meta(max_length=MAX_DIMENSIONS)]
    data_offsets: tuple[Count, Count]


def checked_texts(data: bytes) -> dict[str, str]:
    """Return the texts of `__metadata__`. Raise UnreadableError or ValueError unless all tensors
    together have the bytes that follow.

    The package copies each of them, also where they overlap.
    """
    length = int.from_bytes(data[:8], "little")
    if length > MAX_HEADER_BYTES:
        raise UnreadableError(f"its header has more than {MAX_HEADER_BYTES:,} bytes")
    header = parse_json(data[8 : 8 + length])
    texts = header.pop("__metadata__", None) or {}
    entries: dict[str, _Entry] = typed(header, dict[str, _Entry])
    stated = sum(end - begin for begin, end in (each.data_offsets for each in entries.values()))
    if stated > len(data):
        raise UnreadableError("its tensors overlap")
    if sum(math.prod(each.shape) for each in entries.values()) > MAX_ELEMENTS:
        raise UnreadableError(f"it has more than {MAX_ELEMENTS:,} numbers")
    return texts


def read_safetensors(data: bytes) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the tensors by their names, and the texts of `__metadata__`."""
    from safetensors import SafetensorError, deserialize

    try:
        texts = checked_texts(data)
        found = dict(deserialize(data))  # type: ignore[no-untyped-call]
        tensors = {name: _tensor(found[name]) for name in sorted(found)}  # it has any order
    except (SafetensorError, ValueError) as error:
        reason = printable(str(error))[:LONGEST_REASON]
        raise UnreadableError(f"it is a damaged safetensors file: {reason}") from None
    return tensors, texts


def _tensor(entry: Mapping[str, Any]) -> Array:
    kind, shape = entry["dtype"], entry["shape"]
    if kind not in DTYPES or len(shape) > MAX_DIMENSIONS:
        raise UnreadableError("a tensor in it has a type or a shape that is not supported")
    numbers = np.frombuffer(entry["data"], DTYPES[kind]).reshape(shape)
    return doubles(numbers, is_bfloat16=kind == "BF16")
