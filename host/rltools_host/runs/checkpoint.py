"""Checkpoints: the board's /checkpoint.rltc (docs/protocol.md) and the host's .safetensors.

Both hold the state tensors' bytes one after another, so conversion is exact; safetensors
(https://huggingface.co/docs/safetensors) puts a JSON header before them. Written here, without the
safetensors package, so that a checksum covers every byte: one of the payload, one of the header. A
checkpoint of another fingerprint is refused with what has changed of all that decides how an
experiment learns; the fingerprint is the hash over these items.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypedDict

from msgspec import Meta, Struct

from rltools_host.build.description import ExperimentDescription, Parameter, StateTensor
from rltools_host.documents import LARGEST_U32, Digest, Line, shown, typed
from rltools_host.errors import BoardMismatchError, DamagedFileError, UsageError
from rltools_host.files import open_plain, parse_json
from rltools_host.runs.contents import Fingerprint, Hyperparameters

IMAGE_MAGIC = b"RLTC"
IMAGE_VERSION = 1
IMAGE_HEADER = struct.Struct(
    "<4sHHIIII32sII"
)  # ... | sha256 of the payload | crc32 of the 56 bytes before | 0
IMAGE_CHECKED_BYTES = 56
DTYPE_BYTES = {"F32": 4, "F64": 8, "U32": 4, "U8": 1}
FORMAT = "rltools-checkpoint-2"  # of the .safetensors
OTHER_FORMAT = re.compile(r"rltools-checkpoint-(?!2\b)[1-9][0-9]{0,8}")
HEADER_HASH = "header_sha256"
HEADER_HASH_ZEROS = "0" * 64  # stand for the hash while it is computed
MAXIMUM_HEADER_BYTES = 10_000_000


@dataclass(frozen=True)
class Checkpoint:
    """A training state at rest, with all that resuming needs."""

    experiment: str
    fingerprint: int
    step: int
    payload: bytes
    hyperparameters: Mapping[str, float | int] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    learning: Mapping[str, Any] = field(default_factory=dict)  # what the fingerprint is made of

    @property
    def state_sha256(self) -> str:
        return hashlib.sha256(self.payload).hexdigest()


@dataclass(frozen=True)
class CheckpointImage:
    """The content of a board's /checkpoint.rltc."""

    fingerprint: int
    step: int
    payload: bytes


def parse_image(data: bytes, origin: str) -> CheckpointImage:
    """Read and verify a board's checkpoint; `origin` names it in errors."""
    if len(data) < IMAGE_HEADER.size or not data.startswith(IMAGE_MAGIC):
        raise DamagedFileError(
            f"the checkpoint from {origin} does not begin as one: fetch it again"
        )
    (_, version, header_bytes, fingerprint, payload_bytes, step, reserved, digest, crc, end) = (
        IMAGE_HEADER.unpack_from(data)
    )
    if zlib.crc32(data[:IMAGE_CHECKED_BYTES]) != crc or reserved or end:
        raise DamagedFileError(
            f"the header of the checkpoint from {origin} is damaged: fetch it again"
        )
    if (version, header_bytes) != (IMAGE_VERSION, IMAGE_HEADER.size):
        raise BoardMismatchError(
            f"the checkpoint from {origin} has format {version} with a header of {header_bytes} "
            f"bytes, this host reads format {IMAGE_VERSION} with {IMAGE_HEADER.size}: "
            "use the host tools of that firmware"
        )
    payload = data[header_bytes:]
    if len(payload) != payload_bytes or hashlib.sha256(payload).digest() != digest:
        raise DamagedFileError(
            f"the checkpoint from {origin} does not match its SHA-256: fetch it again"
        )
    return CheckpointImage(fingerprint, step, payload)


def build_image(fingerprint: int, step: int, payload: bytes) -> bytes:
    """Return the bytes of a /checkpoint.rltc."""
    digest = hashlib.sha256(payload).digest()
    fields = (
        IMAGE_MAGIC,
        IMAGE_VERSION,
        IMAGE_HEADER.size,
        fingerprint,
        len(payload),
        step,
        0,
        digest,
    )
    crc = zlib.crc32(IMAGE_HEADER.pack(*fields, 0, 0)[:IMAGE_CHECKED_BYTES])
    return IMAGE_HEADER.pack(*fields, crc, 0) + payload


def to_safetensors(checkpoint: Checkpoint, tensors: Sequence[StateTensor]) -> bytes:
    """Return the bytes of a safetensors file: header length, header, payload."""
    metadata = {
        "format": FORMAT,
        "experiment": checkpoint.experiment,
        "fingerprint": f"{checkpoint.fingerprint:08x}",
        "step": str(checkpoint.step),
        "state_sha256": checkpoint.state_sha256,
        "hyperparameters": json.dumps(dict(checkpoint.hyperparameters)),
        "versions": json.dumps(dict(checkpoint.versions)),
        "learning": json.dumps(dict(checkpoint.learning)),
        HEADER_HASH: HEADER_HASH_ZEROS,
    }
    if _payload_bytes(tensors) != len(checkpoint.payload):
        raise BoardMismatchError(
            f"the board's training state has {len(checkpoint.payload)} bytes, experiment "
            f'"{checkpoint.experiment}" has {_payload_bytes(tensors)}: flash the board again'
        )
    header = safetensors_header(metadata, _tensor_entries(tensors))
    digest = hashlib.sha256(header).hexdigest()
    return with_header(
        header.replace(HEADER_HASH_ZEROS.encode(), digest.encode(), 1), checkpoint.payload
    )


class TensorEntry(TypedDict):
    """The entry of a tensor in the header of a safetensors file."""

    dtype: str
    shape: list[int]
    data_offsets: list[int]


def safetensors_header(metadata: Mapping[str, str], entries: Mapping[str, TensorEntry]) -> bytes:
    document = {"__metadata__": metadata, **entries}
    header = json.dumps(document, separators=(",", ":")).encode()
    return header + b" " * (-len(header) % 8)  # safetensors aligns the payload


def with_header(header: bytes, payload: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + payload


class HeaderMetadata(Struct, frozen=True):
    """The metadata of a safetensors header; the last three fields are JSON."""

    experiment: Line
    fingerprint: Fingerprint
    step: Annotated[str, Meta(pattern=r"^[0-9]{1,10}\Z")]
    state_sha256: Digest
    header_sha256: Digest
    hyperparameters: str
    versions: str
    learning: str


def from_safetensors(data: bytes, path: Path | str) -> tuple[Checkpoint, dict[str, TensorEntry]]:
    """Read and verify a file; return the checkpoint and the tensor entries of its header."""
    checkpoint, entries, state_sha256 = of_header(*split_file(data, path), path)
    require_state(checkpoint, state_sha256, path)
    return checkpoint, entries


def require_state(checkpoint: Checkpoint, state_sha256: str, path: Path | str) -> None:
    if checkpoint.state_sha256 != state_sha256:
        raise damaged(path, "its training state does not match its SHA-256")


def of_header(
    header: bytes, payload: bytes, path: Path | str
) -> tuple[Checkpoint, dict[str, TensorEntry], str]:
    """Verify a header; return the checkpoint, the tensor entries, and what the payload's SHA-256
    must be."""
    try:
        require_format(header, path)
        entries, metadata = parse_header(header)
        checkpoint = Checkpoint(
            experiment=metadata.experiment,
            fingerprint=int(metadata.fingerprint, 16),
            step=int(metadata.step),
            payload=payload,
            hyperparameters=typed(parse_json(metadata.hyperparameters), Hyperparameters),
            versions=typed(parse_json(metadata.versions), dict[Line, Line]),
            learning=typed(parse_json(metadata.learning), dict[Line, Any]),
        )
    except ValueError:
        raise damaged(path, "its header is not that of a checkpoint") from None
    plain = header.replace(metadata.header_sha256.encode(), HEADER_HASH_ZEROS.encode(), 1)
    if hashlib.sha256(plain).hexdigest() != metadata.header_sha256:
        raise damaged(path, "its header does not match its SHA-256")
    return checkpoint, entries, metadata.state_sha256


def split_file(data: bytes, path: Path | str) -> tuple[bytes, bytes]:
    """Split a file into header and payload."""
    header_bytes = int.from_bytes(data[:8], "little")
    if len(data) < 8 or not 0 < header_bytes <= min(len(data) - 8, MAXIMUM_HEADER_BYTES):
        raise damaged(path, "it is cut off")
    return data[8 : 8 + header_bytes], data[8 + header_bytes :]


def parse_header(header: bytes) -> tuple[dict[str, TensorEntry], HeaderMetadata]:
    """Return the tensor entries and the metadata of a header, not compared with known ones yet;
    ValueError if it is no checkpoint's header."""
    entries: dict[str, TensorEntry] = typed(parse_json(header), dict[str, object])
    metadata: HeaderMetadata = typed(entries.pop("__metadata__", None), HeaderMetadata)
    return entries, metadata


def require_format(header: bytes, path: Path | str) -> None:
    """Raise DamagedFileError where it is of another format, ValueError where it is no header."""
    document: dict[str, object] = typed(parse_json(header), dict[str, object])
    about = document.get("__metadata__")
    found = str(about.get("format")) if isinstance(about, dict) else ""
    if OTHER_FORMAT.fullmatch(found):
        raise DamagedFileError(
            f"{path} has format {found}, this host reads {FORMAT}: use the host tools that wrote it"
        )


def load_checkpoint(
    path: Path, experiment: ExperimentDescription, within: Path | None = None
) -> Checkpoint:
    """Load checkpoint.safetensors, and verify it and that it is of this experiment.

    within: the folder of the run that it belongs to.
    """
    payload_bytes = _payload_bytes(experiment.tensors)
    try:
        with open_plain(path, within) as file:
            # Never more than a checkpoint of this experiment has.
            head = file.read(8)
            head += file.read(min(int.from_bytes(head, "little"), MAXIMUM_HEADER_BYTES))
            payload = file.read(payload_bytes + 1)
    except FileNotFoundError:
        raise UsageError(
            f"{path.parent} holds no {path.name}: that run saved none, start a new one"
        ) from None
    except OSError as error:
        raise DamagedFileError(
            f"cannot read {path}: {error.strerror or error}; restore it or start a new run"
        ) from None
    header, _ = split_file(head, path)
    checkpoint, entries, state_sha256 = of_header(header, payload, path)
    if len(payload) <= payload_bytes:
        require_state(checkpoint, state_sha256, path)
    require_experiment(checkpoint, entries, experiment, path)
    return checkpoint


def require_experiment(
    checkpoint: Checkpoint,
    entries: Mapping[str, TensorEntry],
    experiment: ExperimentDescription,
    path: Path,
) -> None:
    """Raise BoardMismatchError or DamagedFileError unless a checkpoint fits the experiment as it is
    now."""
    if checkpoint.experiment != experiment.name:
        raise BoardMismatchError(
            f'{path} is of experiment "{checkpoint.experiment}", not of "{experiment.name}": '
            "resume the run with its own experiment"
        )
    if checkpoint.fingerprint != experiment.fingerprint:
        what = learning_difference(checkpoint.learning, experiment.learning)
        raise BoardMismatchError(
            f'{path} has fingerprint {checkpoint.fingerprint:08x}, experiment "{experiment.name}" '
            f"now has {experiment.fingerprint:08x}{f' ({what})' if what else ''}: "
            f"check out {sources_of(checkpoint)}"
        )
    if entries != _tensor_entries(experiment.tensors):
        raise BoardMismatchError(
            f'{path} has other tensors than experiment "{experiment.name}" now has: '
            f"check out {sources_of(checkpoint)}"
        )
    if len(checkpoint.payload) != _payload_bytes(experiment.tensors):
        raise damaged(path, "the sizes of its tensors do not add up to its length")
    require_values(path, checkpoint.hyperparameters, experiment, sources_of(checkpoint))


def sources_of(checkpoint: Checkpoint) -> str:
    revision = checkpoint.versions.get("git_revision")
    return f"revision {revision}" if revision else "the sources it was made with"


def require_values(
    path: Path, values: Mapping[str, Any], experiment: ExperimentDescription, sources: str = ""
) -> None:
    """Raise DamagedFileError unless these are the experiment's hyperparameters, within their
    bounds."""
    known = {entry.name: entry for entry in experiment.hyperparameters}
    for name, value in values.items():
        if name not in known:
            raise BoardMismatchError(
                f'{path} has a hyperparameter {name}, which experiment "{experiment.name}" does '
                f"not have now: check out {sources or 'the sources it was made with'}"
            )
        if not is_within_bounds(known[name], value):
            raise damaged(path, f"its {name} is {value}, which is out of bounds")


def is_within_bounds(entry: Parameter, value: float | int) -> bool:
    """Return True if the value is within its bounds, as the board holds it, in 32 bits."""
    if entry.is_whole:
        return isinstance(value, int) and entry.minimum <= value <= entry.maximum
    try:
        (held,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        return False
    return bool(entry.minimum <= held <= entry.maximum)


def damaged(path: Path | str, reason: str) -> DamagedFileError:
    return DamagedFileError(f"{path} is damaged: {reason}; restore it or start a new run")


def _tensor_bytes(tensor: StateTensor) -> int:
    return math.prod(tensor.shape) * DTYPE_BYTES[tensor.dtype.upper()]


def require_size(name: str, tensors: Sequence[StateTensor]) -> None:
    """Raise UsageError if the state has more bytes than a checkpoint's 32 bits can count."""
    if (found := _payload_bytes(tensors)) > LARGEST_U32 - IMAGE_HEADER.size:
        raise UsageError(
            f"{name} has a training state of {found:,} bytes, and a checkpoint takes "
            f"{LARGEST_U32 - IMAGE_HEADER.size:,}: take a smaller buffer_size"
        )


def _payload_bytes(tensors: Sequence[StateTensor]) -> int:
    return sum(map(_tensor_bytes, tensors))


def _tensor_entries(tensors: Sequence[StateTensor]) -> dict[str, TensorEntry]:
    entries: dict[str, TensorEntry] = {}
    begin = 0
    for tensor in tensors:
        end = begin + _tensor_bytes(tensor)
        entries[tensor.name] = {
            "dtype": tensor.dtype.upper(),
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
        begin = end
    return entries


MAX_NAMED = 3
# Items that are hashes over much: they are named where no other item says what has changed.
HASHES = {
    "environment.behavior": "the environment's step has changed",
    "state_layout": "the layout of the training state has changed",
}
CONSTANTS = "environment."


def learning_difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return `environment.gravity_m_s2 was 10, is 9.81`; empty if nothing is known or differs."""
    if not before or not now:
        return ""
    clauses, hashes = [], []
    for name in dict.fromkeys([*before, *now]):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if name in HASHES:
            hashes.append(HASHES[name])
        elif name not in now:
            clauses.append(f"{name} was {plain(old)}, is gone")
        elif name not in before:
            clauses.append(f"{name} is new, {plain(new)}")
        else:
            clauses.append(f"{name} was {different(old, new)}")
    clauses = clauses or hashes
    if len(clauses) > MAX_NAMED:
        clauses[MAX_NAMED:] = [f"and {len(clauses) - MAX_NAMED} more"]
    return "; ".join(clauses)


def different(old: Any, new: Any) -> str:
    """Return `10, is 9.81`, with as many digits as it takes to tell them apart."""
    short = plain(old), plain(new)
    return (
        f"{shown(old)}, is {shown(new)}" if short[0] == short[1] else f"{short[0]}, is {short[1]}"
    )


def plain(value: Any) -> str:
    """Return a value as a person writes it: a float of 32 bits with its digits, text without
    quotes."""
    if isinstance(value, float):
        return f"{value:.7g}"
    return value if isinstance(value, str) and value.isprintable() else shown(value)
