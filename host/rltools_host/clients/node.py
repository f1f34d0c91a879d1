"""What every board is on the link: it has an identity, a version, and a stack of some size."""

from __future__ import annotations

from rltools_host.clients.messages import Identity, identity_of, text_of
from rltools_host.errors import BoardMismatchError, LinkLostError, PortError, RltError
from rltools_host.link.connection import EVERYONE, Address, Connection, Exchange, sender_of
from rltools_host.link.framing import Message
from rltools_host.tree import command_line

PROTOCOL_VERSION = 3
IDENTITY_TIMEOUT_S = 0.5  # of the first questions, which nobody may hear
HEARTBEAT_LIMIT_S = 3.0  # any node of MAVLink sends one a second
OTHER_LIMIT_S = 2.0  # that the expected board has when another one has answered


class NodeClient:
    """Asks a board for what every board can tell."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find(self, timeout_s: float) -> Identity:
        """The identity of the board that answers, which becomes the connection's target.

        Where the connection has a target already, no other board will do.
        """
        connection, expected = self._connection, self._connection.target
        connection.target = None  # everybody is heard
        others: list[tuple[Address, Identity]] = []

        def answer_of(message: Message) -> tuple[Address, Identity] | None:
            identity, sender = identity_of(message), sender_of(message)
            if identity is None:
                return None
            if expected in (None, sender):
                return sender, identity
            others.append((sender, identity))
            return None

        deadline = connection.clock() + timeout_s
        target = expected or EVERYONE
        try:
            with Exchange(connection, "RLT_IDENTITY") as exchange:
                while (left_s := deadline - connection.clock()) > 0.0:
                    connection.request_message(self._identity_id, target)
                    found = exchange.wait(answer_of, min(IDENTITY_TIMEOUT_S, left_s))
                    if found is not None:
                        expected, identity = found
                        self._check_version(identity)
                        return identity
                    target = EVERYONE
                    if others:
                        deadline = min(deadline, connection.clock() + OTHER_LIMIT_S)
        finally:
            connection.target = expected
        if others and expected is not None:
            raise self._another(expected, *others[0])
        raise self._no_answer(timeout_s)

    def identity(self) -> Identity:
        """The board's identity, with its present state."""
        with Exchange(self._connection, "RLT_IDENTITY") as exchange:
            return exchange.ask(
                lambda: self._connection.request_message(self._identity_id),
                identity_of,
                "its identity",
            )

    def stack_use(self) -> dict[str, int]:
        """Bytes: "stack", what there is, and "stack_peak", the most ever used; 0: not known."""
        values: dict[str, int] = {}

        def both_of(message: Message) -> dict[str, int] | None:
            values[text_of(message.name)] = message.value
            return values if {"stack", "stack_peak"} <= set(values) else None

        number = self._connection.dialect.MAVLINK_MSG_ID_NAMED_VALUE_INT
        with Exchange(self._connection, "NAMED_VALUE_INT") as exchange:
            return exchange.ask(
                lambda: self._connection.request_message(number), both_of, "its use of the stack"
            )

    def require(
        self, identity: Identity, experiment: str, fingerprint: int, board: str, remedy: str
    ) -> None:
        """BoardMismatchError unless the board trains this experiment, of these sources."""
        self.require_program(identity, board, "train", remedy)
        description = self._connection.description
        if identity.experiment != experiment:
            raise BoardMismatchError(
                f'the board on {description} runs experiment "{identity.experiment}", '
                f'not "{experiment}": {remedy}'
            )
        if identity.fingerprint != fingerprint:
            raise BoardMismatchError(
                f'the board on {description} runs another version of "{experiment}" '
                f"(fingerprint {identity.fingerprint:08x}, here {fingerprint:08x}): {remedy}"
            )

    def require_program(self, identity: Identity, board: str, program: str, remedy: str) -> None:
        """BoardMismatchError unless it is this board, with this program of firmware/build.json."""
        description = self._connection.description
        if identity.board != board:
            raise BoardMismatchError(
                f'the board on {description} is a "{identity.board}", not a "{board}": '
                f"give --board {identity.board} or another --port"
            )
        if identity.program != program:
            raise BoardMismatchError(
                f'the board on {description} runs the program "{identity.program}", '
                f'not "{program}": {remedy}'
            )

    @property
    def _identity_id(self) -> int:
        number: int = self._connection.dialect.MAVLINK_MSG_ID_RLT_IDENTITY
        return number

    def _check_version(self, identity: Identity) -> None:
        if identity.protocol_version != PROTOCOL_VERSION:
            raise BoardMismatchError(
                f"the board on {self._connection.description} speaks version "
                f"{identity.protocol_version} of the protocol, this host version "
                f"{PROTOCOL_VERSION}: flash it again with "
                f"`{command_line('flash', identity.board, identity.experiment)}`"
            )

    def _another(self, expected: Address, sender: Address, identity: Identity) -> RltError:
        return BoardMismatchError(
            f'the board on {self._connection.description} is a "{identity.board}" with system id '
            f"{sender.system} and component id {sender.component}, not {expected.system} and "
            f"{expected.component}: give its --board, or another --port"
        )

    def _no_answer(self, timeout_s: float) -> RltError:
        connection = self._connection
        help_of_flash = f"see `{command_line('flash', '--help')}`"
        if connection.decoder.messages_received:
            if connection.silence_s > HEARTBEAT_LIMIT_S:
                return LinkLostError(
                    f"the board on {connection.description} has stopped answering: its last "
                    f"message came {connection.silence_s:.0f} s ago, check the cable or reset the "
                    "board"
                )
            return BoardMismatchError(
                f"the device on {connection.description} speaks MAVLink but is not one of our "
                f"boards: flash it ({help_of_flash}), or give another --port"
            )
        if connection.bytes_received:
            return BoardMismatchError(
                f"the board on {connection.description} runs other firmware "
                f"({connection.bytes_received} bytes came, no MAVLink): flash it "
                f"({help_of_flash}), or give another --port"
            )
        return PortError(
            f"no board answers on {connection.description} within {timeout_s:g} s: check that it "
            f"is powered and flashed ({help_of_flash}), or give another --port"
        )
