"""Checkpoints: exact conversion both ways, and refusal of any damage, byte by byte."""

from __future__ import annotations

import json
import random
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import safetensors
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from fake_board import initial_state
from fake_experiment import FINGERPRINT, STATE_BYTES, TENSORS, fake_experiment
from rltools_host.errors import (
    BoardMismatchError,
    DamagedFileError,
    RltError,
    UnknownNameError,
)
from rltools_host.runs.checkpoint import (
    Checkpoint,
    build_image,
    from_safetensors,
    load_checkpoint,
    parse_image,
    save_checkpoint,
    to_safetensors,
)

EXPERIMENT = fake_experiment()
CHECKPOINT = Checkpoint(
    experiment="fake-td3",
    fingerprint=FINGERPRINT,
    step=1234,
    payload=initial_state(5),
    hyperparameters={"seed": 5, "learning_rate": 0.001, "steps": 4294967295},
    versions={"rltools_host": "0.1.0", "git_revision": "abc"},
)
FILE = to_safetensors(CHECKPOINT, TENSORS)
HEADER_BYTES = int.from_bytes(FILE[:8], "little")
IMAGE = build_image(FINGERPRINT, 1234, CHECKPOINT.payload)


@settings(deadline=None)
@given(
    st.integers(0, 1000).map(lambda seed: random.Random(seed).randbytes(STATE_BYTES)),
    st.integers(0, 0xFFFFFFFF),
    st.integers(0, 0xFFFFFFFF),
)
def test_round_trip_is_exact(payload: bytes, step: int, fingerprint: int) -> None:
    image = build_image(fingerprint, step, payload)
    parsed = parse_image(image, "a board")
    assert (parsed.fingerprint, parsed.step, parsed.payload) == (fingerprint, step, payload)
    checkpoint = Checkpoint("fake-td3", fingerprint, step, payload, {"seed": step}, {"a": "b"})
    loaded, _ = from_safetensors(to_safetensors(checkpoint, TENSORS), "a file")
    assert loaded == checkpoint
    assert build_image(loaded.fingerprint, loaded.step, loaded.payload) == image


def test_safetensors_library_reads_the_same_tensors(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, CHECKPOINT, TENSORS)
    tensors = load_file(path)
    assert sorted(tensors) == sorted(tensor.name for tensor in TENSORS)
    numpy_types = {"F32": np.float32, "U32": np.uint32, "U8": np.uint8}
    for tensor in TENSORS:
        loaded = tensors[tensor.name]
        assert loaded.dtype == numpy_types[tensor.dtype]
        assert loaded.shape == tensor.shape
        begin = tensor.offset
        assert loaded.tobytes() == CHECKPOINT.payload[begin : begin + loaded.nbytes]
    with safetensors.safe_open(path, "np") as file:
        metadata = file.metadata()
    assert metadata["experiment"] == "fake-td3"
    assert metadata["fingerprint"] == "1234abcd"
    assert metadata["step"] == "1234"
    assert metadata["state_sha256"] == CHECKPOINT.state_sha256
    assert json.loads(metadata["hyperparameters"]) == CHECKPOINT.hyperparameters


def test_load_verifies_and_agrees(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, CHECKPOINT, TENSORS)
    assert load_checkpoint(path, EXPERIMENT) == CHECKPOINT
    assert [entry.name for entry in tmp_path.iterdir()] == ["checkpoint.safetensors"]


@pytest.mark.parametrize("flip", [0x01, 0x20, 0x80, 0xFF])
def test_every_damaged_byte_of_the_file_is_found(flip: int) -> None:
    """Each byte of length and header, and a byte of each kind of the payload."""
    places = [*range(8 + HEADER_BYTES), *range(8 + HEADER_BYTES, len(FILE), 97), len(FILE) - 1]
    for place in places:
        damaged = bytearray(FILE)
        damaged[place] ^= flip
        with pytest.raises(DamagedFileError, match=r"the file is damaged: .*; restore it or start"):
            from_safetensors(bytes(damaged), "the file")


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_every_damaged_byte_of_the_image_is_found(flip: int) -> None:
    for place in [*range(64), *range(64, len(IMAGE), 53), len(IMAGE) - 1]:
        damaged = bytearray(IMAGE)
        damaged[place] ^= flip
        with pytest.raises(DamagedFileError, match="checkpoint from a board"):
            parse_image(bytes(damaged), "a board")


def test_image_of_another_format_version_is_named() -> None:
    image = bytearray(IMAGE)
    image[4] = 2
    crc = struct.pack("<I", zlib.crc32(bytes(image[:56])))
    with pytest.raises(BoardMismatchError, match="has format 2, this host reads 1"):
        parse_image(bytes(image[:56]) + crc + bytes(image[60:]), "a board")


@settings(deadline=None)
@given(st.integers(0, len(FILE) - 1))
def test_cut_files_are_found(length: int) -> None:
    with pytest.raises(DamagedFileError):
        from_safetensors(FILE[:length], "the file")
    with pytest.raises(DamagedFileError):
        parse_image(IMAGE[: min(length, len(IMAGE) - 1)], "a board")


@given(st.binary(min_size=1, max_size=100))
def test_longer_files_are_found(tail: bytes) -> None:
    with pytest.raises(DamagedFileError):
        from_safetensors(FILE + tail, "the file")
    with pytest.raises(DamagedFileError):
        parse_image(IMAGE + tail, "a board")


@given(st.binary(max_size=300))
def test_any_file_is_one_sentence(data: bytes) -> None:
    for read in (from_safetensors, parse_image):
        with pytest.raises(RltError):
            read(data, "the file")
    header = len(data).to_bytes(8, "little") + data
    with pytest.raises(DamagedFileError):
        from_safetensors(header, "the file")


def test_checkpoint_of_another_experiment(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, CHECKPOINT, TENSORS)
    with pytest.raises(
        BoardMismatchError,
        match=r'is of experiment "fake-td3", not of "other-sac": resume the run with ',
    ):
        load_checkpoint(path, fake_experiment("other-sac"))


def test_checkpoint_of_another_version_names_both_fingerprints(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, CHECKPOINT, TENSORS)
    with pytest.raises(
        BoardMismatchError,
        match=r"fingerprint 1234abcd, .* now has 00000007: check out revision abc",
    ):
        load_checkpoint(path, fake_experiment(fingerprint=7))


def test_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"holds no checkpoint.safetensors: .* start a new"):
        load_checkpoint(tmp_path / "checkpoint.safetensors", EXPERIMENT)


def test_state_of_another_size_is_not_saved(tmp_path: Path) -> None:
    wrong = Checkpoint("fake-td3", FINGERPRINT, 1, CHECKPOINT.payload + b"x")
    with pytest.raises(BoardMismatchError, match=f"has {STATE_BYTES + 1} bytes.*flash"):
        save_checkpoint(tmp_path / "checkpoint.safetensors", wrong, TENSORS)
    assert list(tmp_path.iterdir()) == []
