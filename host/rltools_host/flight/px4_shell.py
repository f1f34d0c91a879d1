"""PX4's shell over MAVLink (SERIAL_CONTROL), as far as one command of one module needs it."""

from __future__ import annotations

import re
from collections.abc import Callable

from rltools_host.errors import LinkLostError, RefusedError
from rltools_host.flight.px4_vehicle import Px4Vehicle
from rltools_host.link.framing import payload_of

MODULE = "rlt_policy"
DATA_BYTES = 70
DATA_PLACE = 9  # of the data in SERIAL_CONTROL, behind baud rate, timeout, device, flags, count
ANSWER_TIMEOUT_S = 3.0
ATTEMPTS = 3
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\x00]")  # colours, and what a terminal moves by
LINE = re.compile(rf"(INFO|WARN|ERROR)\s+\[{MODULE}\]\s*(.*)")
NOT_THERE = re.compile(r"(?i)command not found|Invalid command|unknown command|not running")


class Px4Shell:
    """Commands of the module, and the lines that it answers."""

    def __init__(self, vehicle: Px4Vehicle) -> None:
        self._vehicle = vehicle

    def ask(
        self,
        words: str,
        done: str,
        guard: Callable[[], None] = lambda: None,
        attempts: int = ATTEMPTS,
    ) -> list[tuple[str, str]]:
        """Level and text of the module's lines, up to one that has `done`, or is an error.

        What the shell is told, and what it says, may be lost: it is asked again. A command that
        must not be repeated has one attempt.
        """
        vehicle, last = self._vehicle, re.compile(done)
        with vehicle.connection.open_queue("SERIAL_CONTROL") as answers:
            for _ in range(attempts):
                self._send(f"{MODULE} {words}\n")
                text = ""
                deadline = vehicle.clock() + ANSWER_TIMEOUT_S
                while vehicle.clock() < deadline:
                    vehicle.pump()
                    guard()
                    while (message := answers.take()) is not None:
                        text += CONTROL.sub("", _data_of(message))
                    whole = text.rpartition("\n")[0]
                    if NOT_THERE.search(whole):
                        raise RefusedError(
                            f"the module {MODULE} of {vehicle.name} does not do `{words}`: build "
                            "PX4 with integrations/px4 of this revision, and start it"
                        )
                    lines = [match.groups() for match in LINE.finditer(whole)]
                    found = [(level, said.strip()) for level, said in lines]
                    if any(level == "ERROR" or last.search(said) for level, said in found):
                        return found
        raise LinkLostError(f"the shell of {vehicle.name} does not answer `{MODULE} {words}`")

    def close(self) -> None:
        """PX4 ends the shell when nobody wants its answers."""
        self._write(b"", 0)

    def _send(self, text: str) -> None:
        d = self._vehicle.dialect
        flags = d.SERIAL_CONTROL_FLAG_RESPOND | d.SERIAL_CONTROL_FLAG_EXCLUSIVE
        data = text.encode()
        for begin in range(0, len(data), DATA_BYTES):
            self._write(data[begin : begin + DATA_BYTES], flags)

    def _write(self, data: bytes, flags: int) -> None:
        d = self._vehicle.dialect
        padded = list(data.ljust(DATA_BYTES, b"\0"))
        shell = d.SERIAL_CONTROL_DEV_SHELL
        message = d.MAVLink_serial_control_message(shell, flags, 0, 0, len(data), padded)
        self._vehicle.connection.send(message)


def _data_of(message: object) -> str:
    payload = payload_of(message)
    count = payload[DATA_PLACE - 1] if len(payload) >= DATA_PLACE else 0
    return payload[DATA_PLACE : DATA_PLACE + min(count, DATA_BYTES)].decode(errors="replace")
