"""The native code that runs policy images on this machine as boards do (policy/runtime.h), and the
core's list of activations."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rltools_host.build.native import host_library
from rltools_host.errors import BuildError, DamagedFileError, RefusedError, RltError
from rltools_host.policies import POLICY_REASONS
from rltools_host.runs.saves import (
    HEADER,
    header_bytes,
)
from rltools_host.tree import TREE

ACTIVATION_HEADER = TREE.include / "rltools" / "nn" / "activation.h"


def float_literal(value: float) -> str:
    """Return a C literal of a finite binary32 number, with the fewest digits that identify it."""
    number = np.float32(value)
    if not np.isfinite(number):
        raise ValueError(f"{value} has no literal")
    return f"{number!s}f"


@cache
def activations() -> tuple[str, ...]:
    """Return the names of RLT_ACTIVATION_LIST, in its order."""
    text = ACTIVATION_HEADER.read_text(encoding="utf-8").replace("\\\n", "")
    found = re.search(r"^#define RLT_ACTIVATION_LIST\(X\)(.*)$", text, re.MULTILINE)
    names = re.findall(r"\bX\((\w+)", found[1]) if found else []
    if not names:
        raise BuildError(f"{ACTIVATION_HEADER} has no list of activations: restore it from git")
    return tuple(names)


LAYER = struct.Struct("<HHBB2s")
REASONS = tuple(POLICY_REASONS)
Float32Array = NDArray[np.float32]


class DamagedPolicyError(DamagedFileError):
    """A policy image that a board would refuse; `reason` is one of REASONS."""

    def __init__(self, origin: str, reason: str, detail: str) -> None:
        super().__init__(f"{origin}: not a usable policy image ({reason}): {detail}")
        self.reason = reason


class PolicyRunner:
    """The native code for an image whose bytes are `data`, and its scratch memory."""

    def __init__(self, data: bytes, origin: str, safe_action: Sequence[float | None] = ()) -> None:
        """Open the image. safe_action: overrides that of the image's contract."""
        native = host_library("policy")
        self.library = native.functions
        self.reasons: list[str] = native.description["reasons"]  # in words
        self.origin = origin
        self.bytes = np.frombuffer(data, np.uint8).copy()  # aligned to four bytes or more
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
        # Whether the image's contract states one.
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
            raise RefusedError(
                f"{self.origin}: example {where.value} gives other bits on this machine than "
                "on the device that wrote the image: one of them computes wrongly, do not use it"
            )

    def safe_action(self) -> tuple[Float32Array, Float32Array]:
        """Return the action for ticks without a finite one: in the channels' units, and
        normalized."""
        return self.safe.copy(), self.normalized_safe.copy()

    def begin(self, count: int = 1) -> Float32Array:
        """Return hidden states of zeros (count, state_dim), as at the beginning of an episode."""
        return np.zeros((count, self.state_dim), np.float32)

    def run(
        self, observation: ArrayLike, states: Float32Array | None = None
    ) -> tuple[Float32Array, Float32Array]:
        """Return outputs and actions.

        states: those of begin(), a row for each observation, which are updated in place; None: each
        observation is the first of an episode.
        """
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
        """Return the checksum of all layers' outputs for one observation, and the last layer's
        output.

        state: of begin(), updated in place.
        """
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
        """Return the CRC-32 of each layer's output for one observation, the first of an episode."""
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
    """Raise RltError unless the array is what the native code may write states to."""
    if states is None:
        return
    if states.shape != shape or states.dtype != np.float32 or not states.flags.c_contiguous:
        raise RltError(
            f"{origin} has hidden states of shape {shape} and float32, as begin() makes them, not "
            f"{states.dtype} of shape {states.shape}"
        )
