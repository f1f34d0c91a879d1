"""Policies: the deployable image, its export and its evaluation."""

from __future__ import annotations

from collections.abc import Mapping

# Results of the check of an image.
POLICY_REASONS: Mapping[str, str] = {
    "accepted": "accepted",
    "misaligned": "the image does not lie on a four-byte boundary",
    "too_short": "too short to hold a header",
    "bad_magic": "not a policy image",
    "unknown_version": "written in another version of the format",
    "wrong_size": "not as long as its header says",
    "wrong_crc": "damaged, its checksum does not match",
    "malformed": "a table contradicts itself",
    "not_finite": "a number is not finite",
    "other_contract": "made for other observations, actions or rate",
    "too_large": "needs more memory than there is",
    "example_not_reproduced": "an example gives other bits here",
    "history_too_long": "asks for older actions than are kept",
    "state_not_kept": "has a hidden state, which is not kept here",
}
