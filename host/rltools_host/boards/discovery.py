"""Which boards are connected, and on which ports."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from rltools_host.boards.description import Board
from rltools_host.errors import PortError

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
