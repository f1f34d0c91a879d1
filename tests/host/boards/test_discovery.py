"""The devices and ports of connected boards."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from serial.tools import list_ports

from rltools_host.boards import board_link
from rltools_host.boards.board_link import (
    ConnectedPort,
    connected_ports,
    open_board_link,
    require_connected,
)
from rltools_host.build.boards import load_board
from rltools_host.errors import PortError

HOST = load_board("host")
BOARD = replace(
    HOST,
    name="toy",
    link=replace(HOST.link, kind="serial", usb_ids=("00AB:0012", "00AB:0013")),
    bootloader_usb_ids=("00AB:0001",),
)


def connect(monkeypatch: pytest.MonkeyPatch, *ports: tuple[str, int | None, int | None]) -> None:
    found = [
        SimpleNamespace(device=device, vid=vid, pid=pid, serial_number="7")
        for device, vid, pid in ports
    ]
    monkeypatch.setattr(list_ports, "comports", lambda: found)


def test_ports_of_a_board_are_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [("c", None, 0x12), ("d", 0xAB, None), ("e", 0xAB, 0x1), ("f", 0x12, 0xAB)]
    connect(monkeypatch, ("b", 0xAB, 0x13), *others, ("a", 0xAB, 0x12))
    assert connected_ports(BOARD) == [ConnectedPort("a", "7"), ConnectedPort("b", "7")]
    assert connected_ports(HOST) == []
    with pytest.raises(PortError, match=r"toy are connected \(a, b\): choose one with"):
        open_board_link(BOARD, None, None, "plug it in")


@pytest.mark.parametrize("present", [None, {"00AB:0001"}, {"00AB:0013", "0000:0000"}])
def test_a_board_in_its_bootloader_is_connected(
    monkeypatch: pytest.MonkeyPatch, present: set[str] | None
) -> None:
    connect(monkeypatch)
    monkeypatch.setattr(board_link, "usb_ids_present", lambda: present)
    require_connected(BOARD)
