"""Which format a foreign file has, by how it begins, and the policy in it."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np

from rltools_host.errors import DamagedFileError, UnknownNameError
from rltools_host.files import read_limited
from rltools_host.foreign import leapp, onnx_files, stable_baselines3, state_dicts
from rltools_host.foreign.network import ForeignPolicy, Stage, check_stages
from rltools_host.foreign.pickles import MOST_DIMENSIONS, Array, UnreadableError
from rltools_host.foreign.state_dicts import Given
from rltools_host.foreign.tensor_files import (
    OLD_FORMAT,
    Archive,
    data_pickle,
    is_safetensors,
    read_safetensors,
    read_torch,
)

MOST_BYTES = 512_000_000
NO_PATH = Path()
CLEANRL = ".cleanrl_model"
ZIP = b"PK\x03\x04"
KNOWN = "the .zip of Stable-Baselines3 and sbx, .pt and .pth, .safetensors, .onnx, LEAPP's .yaml"


def content_of(path: Path) -> bytes:
    """A file's bytes; one sentence where it cannot be read."""
    try:
        return read_limited(path, MOST_BYTES)
    except FileNotFoundError:
        raise UnknownNameError(f"there is no file {path}") from None
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise DamagedFileError(f"{path} cannot be imported: {error}") from None


def read_foreign(path: Path, content: bytes, given: Given) -> ForeignPolicy:
    """The policy in a file. DamagedFileError: why it cannot be imported, in one sentence."""
    try:
        with np.errstate(all="ignore"):  # of numbers that are refused
            policy = policy_in(content, given, path)
            check_stages(policy.stages)
    except UnreadableError as error:
        raise DamagedFileError(f"{path} cannot be imported: {error}") from None
    return policy


def policy_in(content: bytes, given: Given, path: Path = NO_PATH) -> ForeignPolicy:
    """path: for formats that do not begin by something of their own, and for what lies beside."""
    if content.startswith(ZIP):
        archive = Archive(content)
        if stable_baselines3.is_archive(archive):
            given.nothing("Stable-Baselines3 archive")
            return stable_baselines3.policy_in(archive)
        if data_pickle(archive) is not None:
            is_cleanrl = path.suffix == CLEANRL
            return state_dicts.policy_in(read_torch(archive), given, is_cleanrl=is_cleanrl)
        if stable_baselines3.is_sbx_archive(archive):
            return stable_baselines3.sbx_policy_in(archive, given)
        raise UnreadableError("its zip archive is none of Stable-Baselines3's, sbx's and PyTorch's")
    if is_safetensors(content):
        tensors, _ = read_safetensors(content)
        return state_dicts.policy_in(tensors, given, keeps_order=False)  # they are sorted
    if path.suffix in leapp.ENDINGS:
        given.nothing("description of LEAPP")
        return leapp.described_policy(content, path, content_of)
    if path.suffix == ".onnx":
        given.nothing("model of ONNX")
        return onnx_files.policy_in(content)
    if content.startswith(OLD_FORMAT):
        raise UnreadableError(
            "it is in PyTorch's format from before 1.6: load it and save it again with torch.save"
        )
    raise UnreadableError(f"it is of no kind that is read: {KNOWN} are")


def read_normaliser(path: Path, content: bytes) -> list[Stage]:
    """The stages of a VecNormalize that was saved beside a policy."""
    try:
        with np.errstate(all="ignore"):
            return stable_baselines3.vec_normalize(content)
    except UnreadableError as error:
        raise DamagedFileError(f"{path} cannot be read as a normaliser: {error}") from None


def arrays_in_npz(path: Path) -> dict[str, Array]:
    """The arrays of NumPy's savez, by their names."""
    content = content_of(path)
    try:
        archive = Archive(content)
        names = [name for name in archive.names if name.endswith(".npy")]
        return {name.removesuffix(".npy"): npy_array(archive.read(name)) for name in names}
    except UnreadableError as error:
        raise DamagedFileError(f"{path} cannot be read: {error}") from None


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
