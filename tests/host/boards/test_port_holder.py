"""A UDP port that another program has."""

from __future__ import annotations

import socket

from rltools_host.boards.transport import UdpLink


def test_a_link_whose_own_port_is_taken_says_so() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("", 0))
        port = taken.getsockname()[1]
        link = UdpLink("udp:127.0.0.1:9", port)
        try:
            assert f"`ss -ulpn sport = :{port}`" in link.obstacle
        finally:
            link.close()
    link = UdpLink("udp:127.0.0.1:9", port)
    link.close()
    assert link.obstacle == ""
