"""What scripted boards have in common: a link in memory, files, and messages that get lost."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fake_files import FakeFileServer
from rltools_host.boards.connection import HOST, Connection
from rltools_host.boards.framing import payload_of
from scripted_link import BOARD, ScriptedLink


class ScriptedNode:
    """`connection` is the host's; `lost` says how many messages of a type get lost."""

    files: FakeFileServer

    def __init__(self, dialect: Any) -> None:
        self.link = ScriptedLink(dialect)
        self.link.answer = self._answer
        self.connection = Connection(self.link, dialect, BOARD, self.link.clock)
        self.lost: Counter[str] = Counter()
        self._dialect = dialect

    def _send(self, *messages: Any) -> None:
        for message in messages:
            name = message.get_type()
            if self.lost[name]:
                self.lost[name] -= 1
            else:
                self.link.put(message)

    def _acknowledge(self, command: int, is_done: bool) -> None:
        dialect = self._dialect
        result = dialect.MAV_RESULT_ACCEPTED if is_done else dialect.MAV_RESULT_DENIED
        self._send(dialect.MAVLink_command_ack_message(command, result, 0, 0, *HOST))

    def _answer(self, message: Any) -> None:
        kind = message.get_type()
        if kind == "FILE_TRANSFER_PROTOCOL":
            reply = self._dialect.MAVLink_file_transfer_protocol_message
            for payload in self.files.answer(payload_of(message)[3:].ljust(251, b"\0")):
                self._send(reply(0, *HOST, payload))
        elif kind == "RLT_OBSERVATION":
            self._observe(message)
        elif kind == "COMMAND_LONG":
            self._obey(message)

    def _observe(self, message: Any) -> None:
        raise NotImplementedError

    def _obey(self, message: Any) -> None:
        raise NotImplementedError
