"""`rlt policies`: which policies a board has, and which one acts."""

from __future__ import annotations

import json
from typing import Any

from rltools_host.clients.messages import PolicySlot, SlotUse
from rltools_host.clients.policies import Slots
from rltools_host.clients.refusals import DROP_REASONS, name_of, text_of_number
from rltools_host.commands.options import BoardOption, ContractOption, Json, Port
from rltools_host.policies.board import DEFAULT_CONTRACT, PolicyPlace, policy_session
from rltools_host.policies.push import short
from rltools_host.ui.table import aligned

HEADER = ("slot", "use", "experiment", "environment", "seed", "step", "bytes", "SHA-256", "trial")


def use_of(slot: PolicySlot) -> str:
    return SlotUse.NAMES[slot.use] if slot.use < len(SlotUse.NAMES) else f"use {slot.use}"


def entry_of(slot: PolicySlot) -> dict[str, Any]:
    """What `--json` says of a slot; null where there is no image, or no trial."""
    has_image = slot.image_bytes > 0
    in_trial = slot.use == SlotUse.TRIAL
    return {
        "slot": slot.slot,
        "use": use_of(slot),
        "experiment": slot.experiment if has_image else None,
        "environment": slot.environment if has_image else None,
        "seed": slot.seed if has_image else None,
        "step": slot.step if has_image else None,
        "bytes": slot.image_bytes,
        "sha256": slot.sha256 or None,
        "state_sha256": slot.state_sha256 or None,
        "trial_left_s": slot.trial_left_ms / 1000.0 if in_trial else None,
    }


def row_of(slot: PolicySlot) -> tuple[str, ...]:
    if not slot.image_bytes:
        return (str(slot.slot), use_of(slot), *("-",) * 7)
    left = f"{slot.trial_left_ms / 1000.0:.1f} s left" if slot.use == SlotUse.TRIAL else "-"
    return (
        str(slot.slot),
        use_of(slot),
        slot.experiment,
        slot.environment,
        str(slot.seed),
        f"{slot.step:,}",
        f"{slot.image_bytes:,}",
        short(slot.sha256),
        left,
    )


def lines(slots: Slots, armed: bool) -> list[str]:
    text = aligned([HEADER, *(row_of(slot) for slot in slots.slots)])
    if slots.last_drop:
        text.append(f"last policy dropped: {text_of_number(slots.last_drop, DROP_REASONS)}")
    return [*text, "the board is armed"] if armed else text


def run(place: PolicyPlace, json_output: bool = False) -> dict[str, Any]:
    """Prints the slots; returns what `--json` prints."""
    with policy_session(place) as (session, identity):
        slots = session.policies.slots()
        counts = session.policies.executor()
    document = {
        "board": place.board,
        "contract": identity.experiment,
        "device": identity.device,
        "armed": counts.armed,
        "slot_bytes": slots.slot_bytes,
        "slots": [entry_of(slot) for slot in slots.slots],
        "last_drop": name_of(slots.last_drop, DROP_REASONS),
    }
    print("\n".join(lines(slots, counts.armed)))
    if json_output:
        print(json.dumps(document))
    return document


EXAMPLE = "rlt policies --board host"


def command(
    board: BoardOption,
    port: Port = None,
    contract: ContractOption = DEFAULT_CONTRACT,
    json_output: Json = False,
) -> None:
    run(PolicyPlace(board, port, contract), json_output)
