"""Shared libraries of host/native, whose functions and records are what they state of themselves
(host/native/describe.h)."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rltools_host.build import cmake

TYPES: Mapping[str | None, Any] = {
    None: None,
    "i4": ctypes.c_int32,
    "u4": ctypes.c_uint32,
    "u8": ctypes.c_uint64,
    "f4": ctypes.c_float,
    "f8": ctypes.c_double,
    "pointer": ctypes.c_void_p,
    "text": ctypes.c_char_p,
}


class NativeLibrary:
    """A loaded library: its functions by their names, its records as NumPy's types, in which a
    pointer is an address, and the rest of its description."""

    def __init__(self, path: Path) -> None:
        self.functions = ctypes.CDLL(str(path))
        self.functions.rlt_describe.restype = ctypes.c_char_p
        self.description: Mapping[str, Any] = json.loads(self.functions.rlt_describe())
        for name, types in self.description["functions"].items():
            function = getattr(self.functions, name)
            function.restype = TYPES[types["result"]]
            function.argtypes = [TYPES[argument] for argument in types["arguments"]]
        self.records: Mapping[str, np.dtype[Any]] = {
            name: record_type(layout)
            for name, layout in self.description.get("records", {}).items()
        }


def record_type(layout: Mapping[str, Any]) -> np.dtype[Any]:
    fields = layout["fields"]
    return np.dtype(
        {
            "names": [field["name"] for field in fields],
            "formats": [
                (element_type(field["type"]), (field["elements"],) if field["elements"] else ())
                for field in fields
            ],
            "offsets": [field["offset"] for field in fields],
            "itemsize": layout["bytes"],
        }
    )


def element_type(stated: Any) -> np.dtype[Any]:
    if isinstance(stated, Mapping):
        return record_type(stated)
    return np.dtype(np.uintp if stated in ("pointer", "text") else stated)


@cache
def host_library(name: str) -> NativeLibrary:
    """host/native/<name>_library.cpp, built where it is not up to date."""
    return NativeLibrary(cmake.host_library(name))
