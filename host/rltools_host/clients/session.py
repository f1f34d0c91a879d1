"""A session with a board: its services over one connection; docs/protocol.md."""

from __future__ import annotations

from rltools_host.clients.file_transfer import FileClient
from rltools_host.clients.messages import Identity
from rltools_host.clients.node import NodeClient
from rltools_host.clients.parameters import ParameterClient
from rltools_host.clients.policies import PolicyClient
from rltools_host.clients.training import TrainingClient
from rltools_host.link.connection import Address, Connection
from rltools_host.link.framing import Dialect
from rltools_host.link.transport import Link

CONNECT_TIMEOUT_S = 10.0


class BoardSession:
    """The clients of a board's services. Closing the session closes the link."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.description = connection.description
        self.node = NodeClient(connection)
        self.parameters = ParameterClient(connection)
        self.files = FileClient(connection)
        self.policies = PolicyClient(connection, self.files)
        self.training = TrainingClient(connection, self.node, self.files)

    @classmethod
    def connect(
        cls,
        link: Link,
        dialect: Dialect,
        target: Address | None = None,
        timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> tuple[BoardSession, Identity]:
        """A session with the board `target`, or with the one that answers, and its identity."""
        connection = Connection(link, dialect, target)
        identity = NodeClient(connection).find(timeout_s)
        return cls(connection), identity

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> BoardSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
