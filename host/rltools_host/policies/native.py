"""host/native/policy_library.cpp, which runs policy images as boards do."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any

from rltools_host.build import cmake


@cache
def policy_library() -> ctypes.CDLL:
    """The library, built where it is not up to date."""
    library = ctypes.CDLL(str(cmake.host_library("policy")))
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_float
    signatures: Mapping[str, tuple[Any, list[Any]]] = {
        "rlt_policy_reason_count": (ctypes.c_int, []),
        "rlt_policy_reason_text": (ctypes.c_char_p, [ctypes.c_int]),
        "rlt_policy_object_bytes": (size, []),
        "rlt_policy_open": (ctypes.c_int, [pointer, size, pointer, pointer]),
        "rlt_policy_scratch_floats": (size, [pointer]),
        "rlt_policy_check_examples": (ctypes.c_int, [pointer, pointer, size, pointer]),
        "rlt_policy_safe_action": (None, [pointer, pointer, pointer]),
        "rlt_policy_evaluate": (None, [pointer, pointer, size, pointer, pointer, pointer]),
        "rlt_policy_next_sum": (number, [number, number, ctypes.c_uint32, number, number]),
        "rlt_policy_layers": (None, [pointer, pointer, pointer, pointer, pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library
