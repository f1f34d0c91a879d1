"""Sessions with a board: its identity, its hyperparameters, and its services over one connection;
docs/protocol.md."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from rltools_host.boards.connection import EVERYONE, Address, Connection, Exchange, ask, sender_of
from rltools_host.boards.file_transfer import FileClient
from rltools_host.boards.framing import Dialect, Message, payload_of
from rltools_host.boards.messages import Identity, identity_of, text_of
from rltools_host.boards.policies import PolicyClient
from rltools_host.boards.training import TrainingClient
from rltools_host.boards.transport import Link
from rltools_host.build.description import Parameter
from rltools_host.errors import BoardMismatchError, LinkLostError, PortError, RefusedError, RltError
from rltools_host.tree import command_line

CONNECT_TIMEOUT_S = 10.0


# -- what every board is: it has an identity, a version, and a stack of some size ------------------

PROTOCOL_VERSION = 3
IDENTITY_TIMEOUT_S = 0.5  # of the first questions, which nobody may hear
HEARTBEAT_LIMIT_S = 3.0  # any node of MAVLink sends one a second
OTHER_LIMIT_S = 2.0  # that the expected board has when another one has answered


class NodeClient:
    """The client of what every board answers."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find(self, timeout_s: float) -> Identity:
        """Return the identity of the board that answers, which becomes the connection's target.

        If the connection has a target already, only that board is accepted.
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

        number = connection.dialect.MAVLINK_MSG_ID_RLT_IDENTITY
        deadline = connection.clock() + timeout_s
        target = expected or EVERYONE
        try:
            with Exchange(connection, "RLT_IDENTITY") as exchange:
                while (left_s := deadline - connection.clock()) > 0.0:
                    connection.request_message(number, target)
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
        """Return the board's identity, with its present state."""
        return ask(self._connection, "RLT_IDENTITY", identity_of, "its identity")

    def stack_use(self) -> dict[str, int]:
        """Return the bytes of the stack, "stack", and of its largest use, "stack_peak"; 0: not
        known."""
        values: dict[str, int] = {}

        def both_of(message: Message) -> dict[str, int] | None:
            values[text_of(message.name)] = message.value
            return values if {"stack", "stack_peak"} <= set(values) else None

        return ask(self._connection, "NAMED_VALUE_INT", both_of, "its use of the stack")

    def require(
        self, identity: Identity, experiment: str, fingerprint: int, board: str, remedy: str
    ) -> None:
        """Raise BoardMismatchError unless the board trains this experiment, from these sources."""
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
        """Raise BoardMismatchError unless it is this board, with this program of
        firmware/build.json."""
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


# -- hyperparameters as MAVLink parameters: https://mavlink.io/en/services/parameter.html ----------

REFUSALS = 2  # answers with another value before a value counts as refused
REFUSAL_TEXT = "hyperparameter refused"  # how a board's reason begins; it precedes the answer


def value_bits(type_name: str, value: float | int) -> int:
    """Return the four bytes of a hyperparameter, as a number."""
    if type_name.upper() == "U32":
        return int(value)
    return int.from_bytes(struct.pack("<f", value), "little")


class ParameterClient:
    """The client of a board's hyperparameters."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def set(self, table: Mapping[str, Parameter], values: Mapping[str, float | int]) -> None:
        """Set hyperparameters, and check that the board took each of them, bit by bit."""
        for name, value in values.items():
            self._set(name, table[name].type.upper(), value)

    def read(self, table: Mapping[str, Parameter]) -> dict[str, int]:
        """Return the bits of these hyperparameters, as the board states them."""
        stated: dict[str, int] = {}
        names = {parameter_id(name): name for name in table}

        def all_of(message: Message) -> dict[str, int] | None:
            if name := names.get(text_of(message.param_id)):
                stated[name] = stated_bits(message)
            return stated if len(stated) == len(table) else None

        dialect, target = self._connection.dialect, self._connection.target or EVERYONE
        with Exchange(self._connection, "PARAM_VALUE") as exchange:
            return exchange.ask(
                lambda: self._connection.send(dialect.MAVLink_param_request_list_message(*target)),
                all_of,
                "its hyperparameters",
            )

    def _set(self, name: str, kind: str, value: float | int) -> None:
        """Set one until the board states the value's bits.

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
                    raise RefusedError(
                        f"the board on {self._connection.description} refuses {name}={value:g}: "
                        f"choose another value with --set{exchange.because()}"
                    )
                stated.clear()
            raise exchange.unanswered(f"hyperparameter {name}")

    def _send(self, name: str, kind: str, bits: int) -> None:
        dialect = self._connection.dialect
        types = {"U32": dialect.MAV_PARAM_TYPE_UINT32, "F32": dialect.MAV_PARAM_TYPE_REAL32}
        target = self._connection.target or EVERYONE
        payload = struct.pack("<IBB16sB", bits, *target, parameter_id(name).encode(), types[kind])
        self._connection.send_payload(dialect.MAVLINK_MSG_ID_PARAM_SET, payload)


def parameter_id(name: str) -> str:
    """Return the first 16 characters of a name, which PARAM_SET and PARAM_VALUE carry."""
    return name[:16]


def bits_of(message: Message, name: str) -> int | None:
    """Return the bits of the named parameter; None if the message has another one."""
    return stated_bits(message) if text_of(message.param_id) == parameter_id(name) else None


def stated_bits(message: Message) -> int:
    """Return the bits of a PARAM_VALUE from the payload, as a Python float would change some."""
    return int.from_bytes(payload_of(message)[:4].ljust(4, b"\0"), "little")


# -- all of its services ---------------------------------------------------------------------------


class BoardSession:
    """The clients of a board's services. Closing the session closes the link."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.description = connection.description
        self.node = NodeClient(connection)
        self.parameters = ParameterClient(connection)
        self.files = FileClient(connection)
        self.policies = PolicyClient(connection, self.files)
        self.training = TrainingClient(connection, self.files)

    @classmethod
    def connect(
        cls,
        link: Link,
        dialect: Dialect,
        target: Address | None = None,
        timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> tuple[BoardSession, Identity]:
        """Open a session with the board `target`, or with the one that answers; return it with its
        identity."""
        connection = Connection(link, dialect, target)
        identity = NodeClient(connection).find(timeout_s)
        return cls(connection), identity

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> BoardSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
