"""Checkpoints as a faulty writer makes them: whatever they say, their hashes are right."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from rltools_host.runs.checkpoint import HEADER_HASH, HEADER_HASH_ZEROS


def split_header(file: bytes) -> tuple[dict[str, Any], bytes]:
    """The header as a document, and the payload."""
    size = 8 + int.from_bytes(file[:8], "little")
    return json.loads(file[8:size]), file[size:]


def with_header(header: dict[str, Any], payload: bytes) -> bytes:
    """A checkpoint whose header is as given, and has the right hash where it has one."""
    metadata = header.get("__metadata__")
    hashed = isinstance(metadata, dict) and isinstance(metadata.get(HEADER_HASH), str)
    if hashed:
        metadata[HEADER_HASH] = HEADER_HASH_ZEROS  # type: ignore[index]
    text = json.dumps(header).encode()
    if hashed:
        digest = hashlib.sha256(text).hexdigest().encode()
        text = text.replace(HEADER_HASH_ZEROS.encode(), digest, 1)
    return len(text).to_bytes(8, "little") + text + payload


def with_metadata(file: bytes, **metadata: str) -> bytes:
    """A checkpoint that says other things of itself."""
    header, payload = split_header(file)
    return with_header({**header, "__metadata__": {**header["__metadata__"], **metadata}}, payload)
