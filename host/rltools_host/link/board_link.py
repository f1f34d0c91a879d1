"""The link to a board: a given port, a new process or emulator, or what is connected, and on which
ports."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from rltools_host.boards.description import Board
from rltools_host.boards.emulator import Emulator
from rltools_host.errors import LinkLostError, PortError
from rltools_host.link.transport import DEFAULT_BAUD, Link, ProcessLink, SerialLink, open_link

PORT_WAIT_S = 15.0


def usb_ids_present(devices: Path = Path("/sys/bus/usb/devices")) -> set[str] | None:
    """USB ids of all connected devices, also without a port; None where there is no list."""
    if not devices.is_dir():
        return None
    ids = set()
    for device in devices.iterdir():
        try:
            vendor = (device / "idVendor").read_text().strip()
            product = (device / "idProduct").read_text().strip()
        except OSError:
            continue
        ids.add(f"{vendor}:{product}".upper())
    return ids


def require_connected(board: Board) -> None:
    """Fails early without the board; in its bootloader a board has a USB id but no port."""
    if find_connected(board):
        return
    present = usb_ids_present()
    flashable = {*board.link.usb_ids, *board.bootloader_usb_ids}
    if present is None or present & flashable:
        return
    raise PortError(
        f"no {board.name} found on USB (ids {', '.join(sorted(flashable))}): "
        "plug it in with a cable that carries data, or press its program button"
    )


def wait_for_port(board: Board, timeout_s: float = PORT_WAIT_S) -> str | None:
    """The serial port on which a freshly flashed board comes up."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        ports = find_connected(board)
        if ports:
            return ports[0]
        time.sleep(0.2)
    return None


@dataclass(frozen=True)
class ConnectedPort:
    device: str
    usb_id: str
    serial_number: str | None


def connected_ports(board: Board) -> list[ConnectedPort]:
    """Serial ports whose USB id is one of the board's."""
    if not board.link.usb_ids:
        return []
    from serial.tools import list_ports

    ports = []
    for port in list_ports.comports():
        if port.vid is None or port.pid is None:
            continue
        usb_id = f"{port.vid:04X}:{port.pid:04X}"
        if usb_id in board.link.usb_ids:
            ports.append(ConnectedPort(port.device, usb_id, port.serial_number))
    return sorted(ports, key=lambda port: port.device)


def find_connected(board: Board) -> list[str]:
    """Names of the serial ports on which this board is connected, such as /dev/ttyACM0."""
    return [port.device for port in connected_ports(board)]


EMULATOR_LIMIT_S = 6 * 3600.0
STORAGE_VARIABLE = "RLT_POLICY_STORAGE"  # firmware/host/file_storage.h
THREADS_VARIABLE = "RLT_THREADS"  # firmware/host/thread_count.h
ENVIRONMENTS_VARIABLE = "RLT_ENVIRONMENT_SERVER"  # rl/environments/external/connection.h


def open_board_link(
    board: Board,
    port: str | None,
    program: Path | None,
    remedy: str,
    storage: Path | None = None,
    threads: int | None = None,
    environments: str | None = None,
) -> Link:
    """A link to the given port; else `program` is started, or the connected board taken.

    `remedy` says what to do where none is connected; `storage` is the file in which a board that is
    started here keeps its policies, in place of memory; `threads` is how many compute in a process,
    in place of its own choice; `environments` is the socket's name of who plays its episodes.
    """
    if port is not None:
        return open_link(port, board.link.baud or DEFAULT_BAUD)
    if program is not None and board.link.kind == "process":
        environment = {
            STORAGE_VARIABLE: str(storage or ""),
            THREADS_VARIABLE: str(threads or ""),
            ENVIRONMENTS_VARIABLE: environments or "",
        }
        return ProcessLink([str(program)], f"the program of board {board.name}", environment)
    if program is not None and board.emulator is not None:
        return EmulatedLink(Emulator(board, program, EMULATOR_LIMIT_S, storage), board.name)
    ports = find_connected(board)
    if not ports:
        raise PortError(f"no {board.name} is connected: {remedy}")
    if len(ports) > 1:
        raise PortError(
            f"several boards {board.name} are connected ({', '.join(ports)}): "
            "choose one with --port"
        )
    return open_link(ports[0], board.link.baud or DEFAULT_BAUD)


END_LIMIT_S = 5.0  # from its port's disappearance to the end of an emulator


class EmulatedLink(SerialLink):
    """The link to an emulated board, which ends with the link."""

    def __init__(self, emulator: Emulator, name: str) -> None:
        self.emulator = emulator
        description = f"{name} (emulated, {emulator.port})"
        try:
            super().__init__(emulator.port)
        except PortError as error:
            # QEMU names its port before it loads the program; where it cannot, the port is gone.
            self.description = description
            failure = self._lost(None) if emulator.has_ended(END_LIMIT_S) else error
            emulator.close()
            raise failure from None
        except BaseException:
            emulator.close()
            raise
        self.description = description

    def _close_descriptors(self) -> None:
        super()._close_descriptors()
        self.emulator.close()

    def _lost(self, _: OSError | None) -> LinkLostError:
        return LinkLostError(f"lost {self.description}: {self.emulator.ending()}")
