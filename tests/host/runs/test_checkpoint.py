"""Checkpoints: exact conversion both ways, and refusal of any damage, byte by byte."""

from __future__ import annotations

import json
import random
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file

from checkpoint_files import with_metadata
from fake_board import initial_state
from fake_experiment import FINGERPRINT, STATE_BYTES, TENSORS, fake_experiment
from rltools_host.build.description import StateTensor
from rltools_host.errors import (
    BoardMismatchError,
    DamagedFileError,
    RltError,
    UsageError,
)
from rltools_host.runs.checkpoint import (
    IMAGE_HEADER,
    Checkpoint,
    build_image,
    from_safetensors,
    load_checkpoint,
    parse_image,
    require_size,
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
    path.write_bytes(to_safetensors(CHECKPOINT, TENSORS))
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


@pytest.mark.parametrize("flip", [0x01, 0x80])
def test_every_damaged_byte_of_the_file_is_found(flip: int) -> None:
    """Each byte of length and header, and a byte of each kind of the payload."""
    places = [*range(8 + HEADER_BYTES), *range(8 + HEADER_BYTES, len(FILE), 97), len(FILE) - 1]
    for place in places:
        damaged = bytearray(FILE)
        damaged[place] ^= flip
        with pytest.raises(DamagedFileError, match=r"the file (is damaged: |has format )"):
            from_safetensors(bytes(damaged), "the file")


def test_a_state_that_no_checkpoint_can_count() -> None:
    require_size("e", [StateTensor("replay", "U8", (2**16, 2**15), 0)])
    large = [StateTensor("replay", "F32", (2**20, 2**10), 0)]
    with pytest.raises(UsageError, match=r"e has a training state of 4,294,967,296 bytes, and a"):
        require_size("e", large)


def test_a_file_of_a_later_format_is_named() -> None:
    later = FILE.replace(b"rltools-checkpoint-2", b"rltools-checkpoint-1")
    sentence = "the file has format rltools-checkpoint-1, this host reads rltools-checkpoint-2: use"
    with pytest.raises(DamagedFileError, match=sentence):
        from_safetensors(later, "the file")


@pytest.mark.parametrize("flip", [0x01, 0x80])
def test_every_damaged_byte_of_the_image_is_found(flip: int) -> None:
    for place in [*range(64), *range(64, len(IMAGE), 53), len(IMAGE) - 1]:
        damaged = bytearray(IMAGE)
        damaged[place] ^= flip
        with pytest.raises(DamagedFileError, match="checkpoint from a board"):
            parse_image(bytes(damaged), "a board")


def image_with(place: int, value: bytes | int, before_payload: bytes = b"") -> bytes:
    """An image with another field in its header, whose checksums are right."""
    fields = list(IMAGE_HEADER.unpack_from(IMAGE))
    fields[place] = value
    checked = IMAGE_HEADER.pack(*fields)[:56]
    crc = struct.pack("<II", zlib.crc32(checked), 0)
    return checked + crc + before_payload + CHECKPOINT.payload


def test_image_of_another_format_or_header_size_is_named() -> None:
    """Of the latter four bytes more lie before the payload; its length and both checksums fit."""
    with pytest.raises(BoardMismatchError, match=r"has format 2 .*, this host reads format 1"):
        parse_image(image_with(1, 2), "a board")
    with pytest.raises(BoardMismatchError, match=r"header of 68 bytes, this host reads .* with 64"):
        parse_image(image_with(2, 68, bytes(4)), "a board")


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        (0, b"RLTP", "the checkpoint from a board does not begin as one"),
        (4, STATE_BYTES - 1, "does not match its SHA-256"),
        (4, STATE_BYTES + 1, "does not match its SHA-256"),
        (6, 1, "the header of the checkpoint from a board is damaged"),
        (7, bytes(32), "does not match its SHA-256"),
    ],
)
def test_fields_of_the_image_are_checked(place: int, value: bytes | int, sentence: str) -> None:
    with pytest.raises(DamagedFileError, match=sentence):
        parse_image(image_with(place, value), "a board")


@given(st.integers(0, len(FILE) - 1))
def test_cut_files_are_found(length: int) -> None:
    reason = "it is cut off" if length < 8 + HEADER_BYTES else "does not match its SHA-256"
    with pytest.raises(DamagedFileError, match=reason):
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
    path.write_bytes(to_safetensors(CHECKPOINT, TENSORS))
    with pytest.raises(
        BoardMismatchError,
        match=r'is of experiment "fake-td3", not of "other-sac": resume the run with ',
    ):
        load_checkpoint(path, fake_experiment("other-sac"))


def test_state_of_another_size_is_not_saved(tmp_path: Path) -> None:
    wrong = Checkpoint("fake-td3", FINGERPRINT, 1, CHECKPOINT.payload + b"x")
    with pytest.raises(BoardMismatchError, match=f"has {STATE_BYTES + 1} bytes.*flash"):
        (tmp_path / "checkpoint.safetensors").write_bytes(to_safetensors(wrong, TENSORS))
    assert list(tmp_path.iterdir()) == []


# -- checkpoints of a faulty writer ----------------------------------------------------------------


def refusal(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(content)
    with pytest.raises(RltError) as caught:
        load_checkpoint(path, EXPERIMENT)
    return str(caught.value)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"learning_rate": 2.0}, "its learning_rate is 2.0, which is out of bounds"),
        ({"seed": 1.5}, "its seed is 1.5, which is out of bounds"),
        ({"steps": 2**32}, "its steps is 4294967296, which is out of bounds"),
        ({"seed": "1"}, "its header is not that of a checkpoint"),
    ],
)
def test_hyperparameters_that_a_board_does_not_have(
    values: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    """Bounds are those of the board's 32 bits."""
    content = with_metadata(FILE, hyperparameters=json.dumps(values))
    assert sentence in refusal(tmp_path, content)


def test_values_at_their_bounds_are_loaded(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    beta = 1 - 2.0**-24 + 2.0**-40  # a little too large, as which the board cannot hold it
    values = {"steps": 1, "seed": 2**32 - 1, "learning_rate": 1, "adam_beta": beta}
    path.write_bytes(with_metadata(FILE, hyperparameters=json.dumps(values)))
    assert load_checkpoint(path, EXPERIMENT).hyperparameters == values


def test_other_tensors_are_named(tmp_path: Path) -> None:
    """The fingerprint is the same, as where a hash collides."""
    other = [replace(TENSORS[0], shape=(16, 8)), *TENSORS[1:]]
    sentence = refusal(tmp_path, to_safetensors(CHECKPOINT, other))
    assert "has other tensors than experiment" in sentence
    assert sentence.endswith("check out revision abc")


def test_checkpoint_of_another_tree_says_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    before = {"gravity": 10, "mass": 1.0, "environment.behavior": 5}
    path.write_bytes(to_safetensors(replace(CHECKPOINT, learning=before), TENSORS))
    present = fake_experiment(fingerprint=7)
    now = {**before, "gravity": 9.81, "environment.behavior": 6}
    object.__setattr__(present, "document", {"learning": now})
    with pytest.raises(
        BoardMismatchError,
        match=r"fingerprint 1234abcd, .* now has 00000007 \(gravity was 10, is 9.81\): check out "
        "revision abc",
    ):
        load_checkpoint(path, present)
