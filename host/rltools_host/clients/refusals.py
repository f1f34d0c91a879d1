"""Why a board refuses or drops a policy: the numbers of RLT_POLICY_SLOT, by name and in words.

The names are those of PolicyReason in policy/format.h (docs/policy_image.md has the same table),
and of SlotError and DropReason in policy/slots.h, in their order; those of an executor's status
are from ExecutorStatus in policy/executor.h.
"""

from __future__ import annotations

from collections.abc import Mapping

# What the check of an image found.
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
}
# What the slots do not do.
SLOT_ERRORS: Mapping[str, str] = {
    "none": "nothing",
    "too_large": "the image exceeds a slot",
    "in_trial": "a trial is under way",
    "not_in_order": "bytes of the image are missing",
    "not_staged": "there is no image to try",
    "no_trial": "there is no trial to confirm",
    "no_previous": "there is nothing to roll back to",
    "incomplete": "there are no bytes of an image",
    "storage_failed": "its storage failed: its disk is full, or its flash is worn",
}
# Why a candidate was dropped.
DROP_REASONS: Mapping[str, str] = {
    "none": "no policy has been dropped",
    "deadline": "it was not confirmed in time",
    "reset": "the board was reset during the trial",
    "fault": "its output was not finite",
    "refused": "it did not pass the check when the board started",
    "rolled_back": "it was rolled back",
    "replaced": "another image took its slot",
}
# What a call of the executor did.
EXECUTOR_STATUSES: Mapping[str, str] = {
    "acted": "the policy acts",
    "held": "the last action is held",
    "no_policy": "there is no policy",
    "observation_missing": "there is no observation",
    "observation_stale": "the observation is too old",
    "observation_out_of_order": "the observation is out of order",
    "observation_frozen": "the observation does not change",
    "observation_not_finite": "the observation is not finite",
    "observation_out_of_range": "the observation is out of range",
    "output_not_finite": "the network's output is not finite",
    "recovering": "recovering from a fault",
    "given_up": "given up after too many faults",
}


def name_of(number: int, table: Mapping[str, str]) -> str:
    names = tuple(table)
    return names[number] if number < len(names) else f"number {number}"


def text_of_number(number: int, table: Mapping[str, str]) -> str:
    return table.get(name_of(number, table), f"number {number}")


def refusal(error: int, reason: int) -> str:
    """Name and words of what a board found wrong with the last image; empty where nothing."""
    for number, table in ((error, SLOT_ERRORS), (reason, POLICY_REASONS)):
        if number:
            return f"{name_of(number, table)}: {text_of_number(number, table)}"
    return ""
