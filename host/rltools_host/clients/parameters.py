"""Hyperparameters as MAVLink parameters: https://mavlink.io/en/services/parameter.html."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from rltools_host.build.description import Parameter
from rltools_host.clients.messages import text_of
from rltools_host.errors import VerificationError
from rltools_host.link.connection import EVERYONE, Connection, Exchange
from rltools_host.link.framing import Message, payload_of

REFUSALS = 2  # answers with another value before a value counts as refused
REFUSAL_TEXT = "hyperparameter refused"  # how a board's reason begins; it precedes the answer


def value_bits(type_name: str, value: float | int) -> int:
    """The four bytes of a hyperparameter, as a number."""
    if type_name.upper() == "U32":
        return int(value)
    return int.from_bytes(struct.pack("<f", value), "little")


class ParameterClient:
    """Sets the hyperparameters of a board."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def set(self, table: Mapping[str, Parameter], values: Mapping[str, float | int]) -> None:
        """Sets hyperparameters and checks that the board took each of them, bit by bit."""
        for name, value in values.items():
            self._set(name, table[name].type.upper(), value)

    def _set(self, name: str, kind: str, value: float | int) -> None:
        """Sets one until the board states the value's bits.

        PARAM_VALUE does not say whose request it answers: another program may have asked for the
        old value. So another value is a refusal only when it comes again after a repeated request.
        """
        bits = value_bits(kind, value)
        stated: list[int] = []  # since the last request
        refusals = 0
        with Exchange(self._connection, "PARAM_VALUE") as exchange:

            def verdict_of(message: Message) -> bool | None:
                answer = bits_of(message, name)
                if answer is None:
                    return None
                stated.append(answer)
                if answer == bits:
                    return True
                return False if exchange.error_text.startswith(REFUSAL_TEXT) else None

            for _ in exchange.attempts(lambda: self._send(name, kind, bits)):
                if exchange.wait(verdict_of):
                    return
                refusals += bool(stated)
                if refusals == REFUSALS:
                    raise VerificationError(
                        f"the board on {self._connection.description} refuses {name}={value:g}: "
                        f"choose another value with --set{exchange.because()}"
                    )
                stated.clear()
            raise exchange.unanswered(f"hyperparameter {name}")

    def _send(self, name: str, kind: str, bits: int) -> None:
        dialect = self._connection.dialect
        types = {"U32": dialect.MAV_PARAM_TYPE_UINT32, "F32": dialect.MAV_PARAM_TYPE_REAL32}
        target = self._connection.target or EVERYONE
        payload = struct.pack("<IBB16sB", bits, *target, name.encode(), types[kind])
        self._connection.send_payload(dialect.MAVLINK_MSG_ID_PARAM_SET, payload)


def bits_of(message: Message, name: str) -> int | None:
    """The bits of the named parameter, from the payload: a Python float would change some."""
    if text_of(message.param_id) != name:
        return None
    return int.from_bytes(payload_of(message)[:4].ljust(4, b"\0"), "little")
