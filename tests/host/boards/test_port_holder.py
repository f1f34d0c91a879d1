"""The program that has a UDP port."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from rltools_host.boards.transport import UdpLink, holder_of


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, ""), (socket.AF_INET6, "::1")])
def test_the_program_that_has_it(family: socket.AddressFamily, host: str) -> None:
    with socket.socket(family, socket.SOCK_DGRAM) as taken:
        try:
            taken.bind((host, 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
        port = taken.getsockname()[1]
        name = Path("/proc/self/comm").read_text().strip()
        assert holder_of(port) == f"{name} (process {os.getpid()})"
    assert holder_of(port) is None


def test_a_kernel_that_does_not_tell(tmp_path: Path) -> None:
    assert holder_of(14550, tmp_path) is None
    (tmp_path / "net").mkdir()
    (tmp_path / "net/udp").write_text("sl  local_address\n\n short row\n")
    assert holder_of(14550, tmp_path) is None


def test_a_link_whose_own_port_is_taken_says_so() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("", 0))
        port = taken.getsockname()[1]
        link = UdpLink("udp:127.0.0.1:9", port)
        try:
            assert link.obstacle.startswith(f"port {port} of this machine, ")
            assert f"(process {os.getpid()})" in link.obstacle
        finally:
            link.close()
    link = UdpLink("udp:127.0.0.1:9", port)
    link.close()
    assert link.obstacle == ""
