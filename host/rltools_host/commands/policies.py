"""`rlt policies`: which policies a board has, and which one acts."""

from __future__ import annotations

import json
from typing import Any

from rltools_host.clients.messages import PolicySlot, SlotUse
from rltools_host.clients.refusals import DROP_REASONS, name_of, text_of_number
from rltools_host.commands.options import BoardOption, ContractOption, Json, Port
from rltools_host.policies import crazyflie
from rltools_host.policies.board import (
    DEFAULT_CONTRACT,
    PolicyPlace,
    Storage,
    policy_session,
)
from rltools_host.policies.outcome import Standing, short
from rltools_host.ui.table import aligned

HEADER = ("slot", "use", "experiment", "environment", "seed", "step", "bytes", "SHA-256", "trial")


def use_of(slot: PolicySlot) -> str:
    return SlotUse.NAMES[slot.use] if slot.use < len(SlotUse.NAMES) else f"use {slot.use}"


def entry_of(slot: PolicySlot) -> dict[str, Any]:
    """What `--json` says of a slot; null where there is no image, or no trial."""
    has_image = slot.image_bytes > 0
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
        "trial_left_s": slot.trial_left_ms / 1000.0 if slot.trial_left_ms else None,
    }


def row_of(slot: PolicySlot) -> tuple[str, ...]:
    if not slot.image_bytes:
        return (str(slot.slot), use_of(slot), *("-",) * 7)
    left = f"{slot.trial_left_ms / 1000.0:.1f} s left" if slot.trial_left_ms else "-"
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


def lines(standing: Standing) -> list[str]:
    slots = standing.slots
    text = aligned([HEADER, *(row_of(slot) for slot in slots.slots)])
    if standing.has_built_in:
        text.append("without one of these, a compiled-in policy acts")
    if slots.last_drop:
        text.append(f"last policy dropped: {text_of_number(slots.last_drop, DROP_REASONS)}")
    return [*text, "the board is armed"] if standing.armed else text


def board_standing(place: PolicyPlace) -> Standing:
    with policy_session(place, Storage.COPY) as (session, identity):
        slots = session.policies.slots()
        counts = session.policies.executor()
    return Standing(slots, counts.armed, identity.experiment, identity.device)


def run(place: PolicyPlace, json_output: bool = False) -> dict[str, Any]:
    """Prints the slots; returns what `--json` prints."""
    standing = crazyflie.standing(place) if place.is_crazyflie else board_standing(place)
    slots = standing.slots
    document = {
        "board": place.board,
        "contract": standing.contract,
        "device": standing.device,
        "armed": standing.armed,
        "slot_bytes": slots.slot_bytes,
        "slots": [entry_of(slot) for slot in slots.slots],
        "last_drop": name_of(slots.last_drop, DROP_REASONS),
        "built_in": standing.has_built_in,
    }
    print("\n".join(lines(standing)))
    if json_output:
        print(json.dumps(document))
    return document


EXAMPLE = "policies --board host"


def command(
    board: BoardOption,
    port: Port = None,
    contract: ContractOption = None,
    json_output: Json = False,
) -> None:
    run(PolicyPlace(board, port, contract or DEFAULT_CONTRACT), json_output)
