"""Messages that a host must not take for a board's answer: of other nodes, or for other hosts."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from rltools_host.boards.connection import HOST, Address
from rltools_host.boards.file_requests import SESSION_OPERATIONS
from rltools_host.boards.framing import FrameEncoder
from rltools_host.boards.messages import DATA_BYTES, Packet

OTHER_HOST = Address(HOST.system, 230)  # such as another ground station
# What is wrong in the message of another node.
WRONG: dict[str, dict[str, Any]] = {
    "COMMAND_ACK": {"result": 2},
    "RLT_IDENTITY": {"state": 4, "fingerprint": 1, "board": b"another"},
    "RLT_PROGRESS": {"step": 4_000_000},
    "RLT_EVALUATION": {"step": 4_000_000, "return_mean": 1e6},
    "RLT_RESULT": {"step": 4_000_000, "state": 3, "state_sha256": list(range(32))},
    "STATUSTEXT": {"severity": 2, "text": b"training stopped: a weight is not finite"},
    "NAMED_VALUE_INT": {"value": 1},
}


class Strangers:
    """Makes the wrong messages that precede each of a board's."""

    def __init__(self, dialect: Any, board: Address) -> None:
        self._dialect = dialect
        self._others = [
            FrameEncoder(dialect, board.system + 1, board.component),
            FrameEncoder(dialect, board.system, board.component + 1),
        ]

    def frames_before(self, message: Any, own: FrameEncoder) -> Iterator[bytes]:
        """Frames of other nodes, and of the board itself for others."""
        if message.get_type() == "FILE_TRANSFER_PROTOCOL":
            yield from self._files(message, own)
            return
        wrong = changed(message, **WRONG.get(message.get_type(), {}))
        for other in self._others:
            yield other.encode(wrong)
        if message.get_type() == "COMMAND_ACK":
            for_other_host = {"target_system": OTHER_HOST.system}
            for_other_host["target_component"] = OTHER_HOST.component
            yield own.encode(changed(wrong, **for_other_host))
            yield own.encode(changed(wrong, command=message.command + 1))

    def parameter_frames(self, payload: bytes) -> Iterator[bytes]:
        """Before PARAM_VALUE, whose payload is laid out by hand."""
        number = self._dialect.MAVLINK_MSG_ID_PARAM_VALUE
        for other in self._others:
            yield other.encode_payload(number, bytes(4) + payload[4:])

    def _files(self, message: Any, own: FrameEncoder) -> Iterator[bytes]:
        raw = bytes(message.payload)
        packet = Packet.parse(raw)
        assert packet is not None
        wrong = Packet(**{**vars(packet), "data": b"\xee" * DATA_BYTES})
        for other in self._others:
            yield other.encode(self._file_message(HOST, wrong))
        yield own.encode(self._file_message(OTHER_HOST, wrong))
        for field, value in (
            ("sequence", (packet.sequence - 0x4000) & 0xFFFF),  # the answer to an early request
            ("session", packet.session ^ 1),
            ("request_opcode", packet.request_opcode ^ 1),
        ):
            # Opening is answered with a session number of the server's choice.
            if field != "session" or packet.request_opcode in SESSION_OPERATIONS:
                yield own.encode(self._file_message(HOST, Packet(**{**vars(wrong), field: value})))

    def _file_message(self, target: Address, packet: Packet) -> Any:
        return self._dialect.MAVLink_file_transfer_protocol_message(0, *target, packet.pack())


def changed(message: Any, **fields: Any) -> Any:
    """A copy with other values."""
    other = copy.copy(message)
    for name, value in fields.items():
        assert hasattr(other, name)
        setattr(other, name, value)
    return other
