"""The other end of a Crazyflie's link: CRTP over UDP, in front of the app as a library.

Ports, channels and commands are those of Bitcraze's documentation of CRTP, version 10.
"""

from __future__ import annotations

import ctypes
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

MAX_TURNS = 50  # at once, where this machine was busy
PARAMETER_TYPES = {1: 0x08, 2: 0x09}  # by bytes: of unsigned integers
LOG_TYPES = {1: 1, 2: 2, 4: 3}
FORMATS = {1: "<B", 2: "<H", 4: "<I"}
# Ports of CRTP.
PARAM, SETPOINT, MEM, LOG, PLATFORM, LINK = 2, 3, 4, 5, 13, 15


Change = Callable[[int, int, bytes], bytes | None]


class NamedValue(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("bytes", ctypes.c_uint),
    )


class Variable:
    """A parameter or a logged value."""

    def __init__(self, group: str, name: str, size: int, address: int | None) -> None:
        self.group, self.name, self.size = group, name, size
        self._own = ctypes.create_string_buffer(size)
        self._address = address or ctypes.addressof(self._own)

    @property
    def content(self) -> bytes:
        return ctypes.string_at(self._address, self.size)

    @content.setter
    def content(self, value: bytes) -> None:
        ctypes.memmove(self._address, value, self.size)

    @property
    def number(self) -> int:
        return int(struct.unpack(FORMATS[self.size], self.content)[0])

    def entry(self, types: dict[int, int]) -> bytes:
        return bytes([types[self.size]]) + f"{self.group}\0{self.name}\0".encode()


class FakeCrazyflie(threading.Thread):
    """Runs until `stop`; `uri` is where. Each needs a library file of its own, for its state."""

    def __init__(self, library: Path) -> None:
        super().__init__(daemon=True)
        self._app = ctypes.CDLL(str(library))
        self._app.flight_boot()
        self.supervisor = Variable("supervisor", "info", 2, None)
        self.log = [*self._table("logs_rlt"), self.supervisor]
        self.parameters = self._table("params_rlt")
        self.setpoints: list[bytes] = []
        # May change what comes and what goes, by port and channel; None: it is lost.
        self.hears: Change = lambda _port, _channel, data: data
        self.says: Change = lambda _port, _channel, data: data
        self.runs = True
        self._blocks: dict[int, list[Variable]] = {}
        self._running: set[int] = set()
        self._client: tuple[str, int] | None = None
        self._ends = threading.Event()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.uri = f"udp://127.0.0.1:{self._socket.getsockname()[1]}"

    def _table(self, symbol: str) -> list[Variable]:
        values = (NamedValue * 64).in_dll(self._app, symbol)
        found = []
        for value in values:
            if not value.name:
                break
            # Floats are left out: nothing here reads them.
            name = value.name.decode()
            if name not in ("m1", "m2", "m3", "m4"):
                found.append(Variable("rlt", name, value.bytes, value.address))
        return found

    def parameter(self, name: str) -> Variable:
        return next(each for each in self.parameters if each.name == name)

    def logged(self, name: str) -> int:
        return next(each for each in self.log if each.name == name).number

    def stop(self) -> None:
        self._ends.set()
        self.join(10)
        self._socket.close()

    # -- the radio ---------------------------------------------------------------------------------

    def run(self) -> None:
        turned = sampled = time.monotonic()
        while not self._ends.is_set():
            readable, _, _ = select.select([self._socket], [], [], 0.001)
            if readable:
                packet, self._client = self._socket.recvfrom(64)
                self._take(packet)
            now = time.monotonic()
            turns = int((now - turned) * 1000)
            turned += turns / 1000
            for _ in range(min(turns, MAX_TURNS)):
                self._app.flight_hover()
            if now - sampled > 0.01:
                sampled = now
                self._sample()

    def _send(self, port: int, channel: int, data: bytes) -> None:
        said = self.says(port, channel, data)
        if self._client and self.runs and said is not None:
            self._socket.sendto(bytes([port << 4 | 0x0C | channel]) + said, self._client)

    def _take(self, packet: bytes) -> None:
        port, channel = packet[0] >> 4, packet[0] & 3
        data = self.hears(port, channel, packet[1:])
        if not self.runs or packet == b"\xff" or data is None:
            return
        if port == SETPOINT:
            self.setpoints.append(data)
        elif port == LINK:
            self._send(port, channel, b"Bitcraze Crazyflie\0" if channel == 1 else data)
        elif port == PLATFORM and channel == 1:
            self._send(port, channel, bytes([data[0], 10]))
        elif port in (LOG, PARAM) and channel == 0:
            self._tell_table(port, data)
        elif port == PARAM:
            self._take_parameter(channel, data)
        elif port == LOG:
            self._take_log(data)
        elif port == MEM:
            self._take_memory(channel, data)

    def _tell_table(self, port: int, data: bytes) -> None:
        table, types = (self.log, LOG_TYPES) if port == LOG else (self.parameters, PARAMETER_TYPES)
        if data[0] == 3:
            checksum = (port << 8) + len(table)
            answer = struct.pack("<BHIBB", 3, len(table), checksum, 16, 128)
        else:
            (ident,) = struct.unpack("<H", data[1:3])
            answer = data[:3] + table[ident].entry(types)
        self._send(port, 0, answer)

    def _take_parameter(self, channel: int, data: bytes) -> None:
        (ident,) = struct.unpack("<H", data[:2])
        parameter = self.parameters[ident]
        if channel == 2:
            parameter.content = data[2:]
        self._send(PARAM, channel, data[:2] + b"\0" * (channel == 1) + parameter.content)

    def _take_log(self, data: bytes) -> None:
        command = data[0]
        block = data[1] if len(data) > 1 else 0
        if command == 5:
            self._blocks.clear()
            self._running.clear()
        elif command == 6:
            idents = [struct.unpack_from("<H", data, at)[0] for at in range(3, len(data), 3)]
            self._blocks[block] = [self.log[ident] for ident in idents]
        elif command == 7:
            idents = [struct.unpack_from("<H", data, at)[0] for at in range(3, len(data), 3)]
            self._blocks[block] += [self.log[ident] for ident in idents]
        elif command == 3:
            self._running.add(block)
        self._send(LOG, 1, bytes([command, block, 0]))

    def _sample(self) -> None:
        for block in self._running:
            content = b"".join(variable.content for variable in self._blocks[block])
            self._send(LOG, 2, bytes([block, 0, 0, 0]) + content)

    def _take_memory(self, channel: int, data: bytes) -> None:
        if channel == 0 and data[0] == 1:
            self._send(MEM, 0, bytes([1, 1]))
        elif channel == 0:
            size = self._app.flight_memory_bytes()
            self._send(MEM, 0, struct.pack("<BBBI8x", 2, 0, 0x18, size))
        elif channel == 1:
            _, address, count = struct.unpack("<BIB", data)
            content = ctypes.create_string_buffer(count)
            is_read = ctypes.c_bool(self._app.flight_read(address, content, count) & 0xFF)
            status = bytes([0 if is_read else 5])
            self._send(MEM, 1, data[:5] + status + (content.raw if is_read else b""))
        elif channel == 2:
            _, address = struct.unpack_from("<BI", data)
            content = data[5:]
            is_taken = self._app.flight_write(address, content, len(content)) & 0xFF
            self._send(MEM, 2, data[:5] + bytes([0 if is_taken else 5]))
