"""Runs policy images on this machine, through the code that boards run (policy/runtime.h)."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rltools_host.build.native import host_library
from rltools_host.clients.messages import POLICY_REASONS
from rltools_host.errors import DamagedFileError, RltError, VerificationError
from rltools_host.runs.policy_file import HEADER

LAYER = struct.Struct("<HHB3s")
REASONS = tuple(POLICY_REASONS)
Float32Array = NDArray[np.float32]


class DamagedPolicyError(DamagedFileError):
    """A policy image that a board would refuse; `reason` is one of REASONS."""

    def __init__(self, origin: str, reason: str, detail: str) -> None:
        super().__init__(f"{origin}: not a usable policy image ({reason}): {detail}")
        self.reason = reason


class PolicyRunner:
    """The native code's view of an image whose bytes are `data`, and its scratch memory."""

    def __init__(self, data: bytes, origin: str) -> None:
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
        self.observation_dim, self.action_dim, self.layer_count = HEADER.unpack_from(data)[5:8]
        last = HEADER.size + (self.layer_count - 1) * LAYER.size
        self.output_dim = LAYER.unpack_from(data, last)[1]
        self.scratch = np.empty(self.library.rlt_policy_scratch_floats(self.policy), np.float32)

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
        """What is done where there is no finite action: in the channels' units, and normalised."""
        action, normalised = np.empty((2, self.action_dim), np.float32)
        self.library.rlt_policy_safe_action(self.policy, action.ctypes.data, normalised.ctypes.data)
        return action, normalised

    def run(self, observation: ArrayLike) -> tuple[Float32Array, Float32Array]:
        """Outputs and actions."""
        values = np.ascontiguousarray(observation, np.float32)
        if values.ndim not in (1, 2) or values.shape[-1] != self.observation_dim:
            raise RltError(
                f"{self.origin} takes {self.observation_dim} observations, not {values.shape}"
            )
        count = 1 if values.ndim == 1 else len(values)
        outputs = np.empty((count, self.output_dim), np.float32)
        actions = np.empty((count, self.action_dim), np.float32)
        self.library.rlt_policy_evaluate(
            self.policy,
            values.ctypes.data,
            count,
            outputs.ctypes.data,
            actions.ctypes.data,
            self.scratch.ctypes.data,
        )
        rows = values.shape[:-1]
        return outputs.reshape(*rows, self.output_dim), actions.reshape(*rows, self.action_dim)

    def trace(self, observation: ArrayLike) -> tuple[int, Float32Array]:
        """The checksum of all layers' outputs for one observation, and the output."""
        values = np.ascontiguousarray(observation, np.float32)
        output = np.empty(self.output_dim, np.float32)
        trace = self.library.rlt_policy_trace(
            self.policy, values.ctypes.data, output.ctypes.data, self.scratch.ctypes.data
        )
        return int(trace), output

    def layer_checksums(self, observation: ArrayLike) -> tuple[int, ...]:
        """CRC-32 of each layer's output for one observation."""
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
