"""What the page knows of the wire format: the dialect's messages and constants, and the words for
what a board refuses. Made of the generated Python module, so that both are of the same XML."""

from __future__ import annotations

from typing import Any

from rltools_host.build.protocol import load_dialect
from rltools_host.clients.messages import DROP_REASONS, POLICY_REASONS, SLOT_ERRORS, SlotUse, State
from rltools_host.clients.node import PROTOCOL_VERSION

FILE = "dialect.json"
ENUMS = ("MAV_CMD", "MAV_RESULT", "MAV_PARAM_TYPE", "RLT_OBSERVE")


def dialect_document() -> dict[str, Any]:
    """Messages by name: number, CRC_EXTRA, the payload's layout as Python's struct has it, and the
    names of its fields in that order."""
    dialect = load_dialect()
    return {
        "version": PROTOCOL_VERSION,
        "messages": {
            kind.msgname: [
                number,
                kind.crc_extra,
                kind.unpacker.format.removeprefix("<"),
                " ".join(kind.ordered_fieldnames),
            ]
            for number, kind in sorted(dialect.mavlink_map.items())
        },
        "constants": {
            entry.name: value
            for enum in ENUMS
            for value, entry in dialect.enums[enum].items()
            if not entry.name.endswith("ENUM_END")
        },
        "states": State.NAMES,
        "slot_uses": SlotUse.NAMES,
        "policy_reasons": list(POLICY_REASONS.items()),
        "slot_errors": list(SLOT_ERRORS.items()),
        "drop_reasons": list(DROP_REASONS.values()),
    }
