"""The page's push of a policy, in node: what gives other bits on the board is never confirmed."""

from __future__ import annotations

import json

from policy_samples import examples_here, sample_images
from programs import in_node
from rltools_host.boards.messages import mavlink_crc32
from rltools_host.policies.image import parse_policy
from rltools_host.tree import TREE

SCRIPT = TREE.root / "tests/host/web/push_in_node.mjs"
PAGE = TREE.file("host/rltools_host/web/page")


def test_only_a_policy_with_this_machines_bits_is_confirmed() -> None:
    image = parse_policy(sample_images()["pendulum"])
    examples = examples_here(image)
    first, crc32 = examples[0], mavlink_crc32(image.data)
    others = [
        {"action": [first["action"][0] ^ 0x80000000]},  # the other sign, also of a zero
        {"layers": [first["layers"][0] ^ 1, *first["layers"][1:]]},
        {"layers": [*first["layers"][:-1], first["layers"][-1] ^ 1]},
        {"layers": first["layers"][:-1]},
        {"layers": []},
    ]
    given = {
        "image": image.data.hex(),
        "sha256": image.sha256,
        "fingerprint": image.contract.checksum,
        "examples": examples,
        "answers": [{}, {"denies": True}, *others],
        "arrived": [(image.sha256, crc32), ("0" * 64, crc32), (image.sha256, crc32 ^ 1)],
    }
    found = json.loads(in_node(SCRIPT, PAGE, given=given))
    whole, *changed = found["uploaded"]
    assert whole == ""
    assert all("holds other bytes than it was sent" in text for text in changed)
    good, denied, *bad = found["pushed"]
    assert good == ["upload", "try", "confirm"]
    assert denied[:4] == [*good, "roll back"]
    assert "was not verified" in denied[5]
    assert len(bad) == len(others)
    for done in bad:
        assert done[:3] == ["upload", "try", "roll back"]
        assert "other bits than this machine" in done[3]
        assert "was not verified" in done[4]
