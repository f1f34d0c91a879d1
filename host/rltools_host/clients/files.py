"""The files of a board: what a FileTransfer carries over a connection."""

from __future__ import annotations

from rltools_host.clients.file_packet import Progress
from rltools_host.clients.file_transfer import REPLY_TIMEOUT_S, FileTransfer
from rltools_host.link.connection import EVERYONE, Connection, MessageQueue
from rltools_host.link.framing import payload_of

CHECKPOINT_PATH = "/checkpoint.rltc"
POLICY_PATH = "/policy.rltp"
CANDIDATE_PATH = "/candidate.rltp"
CONTRACT_PATH = "/contract.bin"
SAMPLES_PATH = "/samples.u32"
NETWORK_AND_TARGET_BYTES = 3  # of a FILE_TRANSFER_PROTOCOL message, before its payload


class FileClient:
    """Fetches and writes whole files."""

    def __init__(self, connection: Connection, reply_timeout_s: float = REPLY_TIMEOUT_S) -> None:
        self._connection = connection
        self._transfer = FileTransfer(self, reply_timeout_s, connection.clock)
        self._queue: MessageQueue
        self.description = connection.description

    def download(self, path: str, progress: Progress | None = None) -> bytes:
        """Fetches a file of the board."""
        with self._connection.open_queue("FILE_TRANSFER_PROTOCOL") as self._queue:
            return self._transfer.download(path, progress)

    def upload(self, path: str, content: bytes, progress: Progress | None = None) -> None:
        """Writes a file of the board."""
        with self._connection.open_queue("FILE_TRANSFER_PROTOCOL") as self._queue:
            self._transfer.upload(path, content, progress)

    def crc32(self, path: str) -> int:
        """MAVLink's CRC-32 of a file of the board."""
        with self._connection.open_queue("FILE_TRANSFER_PROTOCOL") as self._queue:
            return self._transfer.crc32(path)

    # -- the channel of the transfer ---------------------------------------------------------------

    def send(self, payload: bytes) -> None:
        dialect = self._connection.dialect
        target = self._connection.target or EVERYONE
        self._connection.send(dialect.MAVLink_file_transfer_protocol_message(0, *target, payload))

    def receive(self, timeout_s: float) -> bytes | None:
        message = self._queue.wait(timeout_s)
        return None if message is None else payload_of(message)[NETWORK_AND_TARGET_BYTES:]
