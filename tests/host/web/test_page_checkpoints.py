"""The page's checkpoints, in node: they are those of the host, and those of others are refused."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from typing import Any

from checkpoint_files import split_header, with_header, with_metadata
from fake_board import initial_state
from fake_experiment import FINGERPRINT, TENSORS
from programs import in_node
from rltools_host.runs.checkpoint import Checkpoint, build_image, from_safetensors, to_safetensors
from rltools_host.tree import TREE

SCRIPT = TREE.root / "tests/host/web/checkpoint_in_node.mjs"
PAGE = TREE.file("host/rltools_host/web/page")
VALUES = {"seed": 5, "learning_rate": 0.001}
CHECKPOINT = Checkpoint("fake-td3", FINGERPRINT, 1234, initial_state(5), VALUES, {})
FILE = to_safetensors(CHECKPOINT, TENSORS)
IMAGE = build_image(FINGERPRINT, 1234, CHECKPOINT.payload)
DESCRIPTION = {
    "name": "fake-td3",
    "fingerprint": FINGERPRINT,
    "state": [asdict(tensor) for tensor in TENSORS],
    "learning": {},
}


def in_page(*files: bytes) -> tuple[list[dict[str, Any]], bytes]:
    """Return what the page reads of the files, and what it writes of IMAGE."""
    given = {
        "description": DESCRIPTION,
        "files": [file.hex() for file in files],
        "image": IMAGE.hex(),
        "hyperparameters": VALUES,
    }
    answer = json.loads(in_node(SCRIPT, PAGE, given=given))
    return answer["read"], bytes.fromhex(answer["written"])


def with_entry(name: str, **changes: Any) -> bytes:
    header, payload = split_header(FILE)
    return with_header({**header, name: {**header[name], **changes}}, payload)


def test_a_checkpoint_goes_to_the_page_and_back() -> None:
    (of_host, of_board), written = in_page(FILE, IMAGE)
    assert of_host == {"image": IMAGE.hex(), "hyperparameters": VALUES}
    assert of_board == {"image": IMAGE.hex(), "hyperparameters": {}}
    back, _ = from_safetensors(written, "the page")
    assert (back.experiment, back.fingerprint, back.step) == ("fake-td3", FINGERPRINT, 1234)
    assert (back.payload, back.hyperparameters) == (CHECKPOINT.payload, VALUES)


def test_a_checkpoint_of_something_else_is_refused() -> None:
    header_bytes = 8 + int.from_bytes(FILE[:8], "little")
    others = [
        with_metadata(FILE, fingerprint=f"{FINGERPRINT ^ 1:08x}"),
        with_metadata(FILE, experiment="other-td3"),
        with_metadata(FILE, format="rltools-checkpoint-1"),
        with_entry("replay/flags", dtype="F32"),
        with_entry("replay/observation", shape=[3, 400]),
        with_entry("replay/observation", data_offsets=[516, 5316]),
        FILE[:-1],
        FILE + b"\0",
        FILE[:40],
        *(flipped(place) for place in random.Random(1).sample(range(8, header_bytes), 60)),
    ]
    read, _ = in_page(*others)
    assert all(each.get("refused", "").startswith("checkpoint refused: ") for each in read)


def flipped(place: int) -> bytes:
    """The file with a bit of its header flipped; the text stays ASCII."""
    return FILE[:place] + bytes([FILE[place] ^ 1]) + FILE[place + 1 :]
