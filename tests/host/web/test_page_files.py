"""The page's client of a board's files, in node: what arrives with another byte is refused."""

from __future__ import annotations

import json
import random

from programs import in_node
from rltools_host.boards.messages import mavlink_crc32
from rltools_host.tree import TREE

SCRIPT = TREE.root / "tests/host/web/files_in_node.mjs"
PAGE = TREE.file("host/rltools_host/web/page")
CONTENT = random.Random(1).randbytes(1000)


def test_a_file_that_arrives_with_another_byte_is_refused() -> None:
    changed = [0, 238, 239, 500, 999]
    given = {"content": CONTENT.hex(), "crc32": mavlink_crc32(CONTENT), "changed": changed}
    answer = json.loads(in_node(SCRIPT, PAGE, given=given))
    whole, *others = answer["found"]
    assert whole == CONTENT.hex()
    stated = f"the board states {mavlink_crc32(CONTENT):x}: fetch it again"
    assert len(others) == len(changed)
    assert all(other.endswith(stated) for other in others)
    assert answer["written"] == CONTENT.hex()
