"""A link that loses frames, or that another program uses at the same time."""

from __future__ import annotations

import random
from typing import Any

from rltools_host.boards.connection import Address
from rltools_host.boards.framing import FrameEncoder
from rltools_host.boards.transport import Link

OTHER_HOST = Address(254, 1)


class DisturbedLink(Link):
    """What `inner` carries, but for a part `loss` of it in either direction."""

    def __init__(self, inner: Link, loss: float = 0.0, seed: int = 0) -> None:
        self.inner = inner
        self.description = inner.description
        self._loss = loss
        self._chance = random.Random(seed)

    def read(self, timeout_s: float) -> bytes:
        data = self.inner.read(timeout_s)
        return b"" if self._chance.random() < self._loss else data

    def write(self, data: bytes) -> None:
        if self._chance.random() >= self._loss:
            self.inner.write(data)

    def close(self) -> None:
        self.inner.close()


class SharedLink(DisturbedLink):
    """Another program asks for parameters, the identity, the files and the slots meanwhile."""

    def __init__(self, inner: Link, dialect: Any) -> None:
        super().__init__(inner)
        self._dialect = dialect
        self._encoder = FrameEncoder(dialect, *OTHER_HOST)
        self.asked = 0

    def write(self, data: bytes) -> None:
        dialect = self._dialect
        slots = float(dialect.MAVLINK_MSG_ID_RLT_POLICY_SLOT)
        asks = dialect.MAV_CMD_REQUEST_MESSAGE
        confirms = dialect.MAV_CMD_RLT_CONFIRM
        listing = bytes((self.asked & 0xFF, 1, 9, 3, 1, 0, 0, 0, 0, 0, 0, 0)) + b"/"
        payload = listing.ljust(251, b"\0")
        for message in (
            dialect.MAVLink_param_request_list_message(1, 191),
            dialect.MAVLink_param_set_message(1, 191, b"learning_rate", 1.0, 9),
            dialect.MAVLink_command_long_message(1, 191, asks, 0, slots, *(0.0,) * 6),
            dialect.MAVLink_command_long_message(1, 191, confirms, 0, *(0.0,) * 7),
            dialect.MAVLink_file_transfer_protocol_message(0, 1, 191, payload),
        ):
            self.inner.write(self._encoder.encode(message))
            self.asked += 1
        self.inner.write(data)
