"""A board's program or an emulated one, on standard input and output: `board_on_pipes.py BOARD
PROGRAM`."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from rltools_host.boards.board_link import EmulatedLink, Emulator
from rltools_host.boards.transport import ProcessLink, SocketLink
from rltools_host.build.boards import load_board


def open_link(name: str, program: Path) -> SocketLink:
    board = load_board(name)
    if board.emulator is not None:
        return EmulatedLink(Emulator(board, program, 60.0), name)
    return ProcessLink([str(program)], name)


def main() -> None:
    link = open_link(sys.argv[1], Path(sys.argv[2]))
    connection = link._socket
    connection.settimeout(None)

    def pass_on() -> None:
        while data := os.read(0, 65536):
            connection.sendall(data)
        os._exit(0)

    threading.Thread(target=pass_on, daemon=True).start()
    while data := connection.recv(65536):
        sys.stdout.buffer.write(data)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
