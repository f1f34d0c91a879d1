"""The link to a board: a given port, a new process or emulator, or what is connected."""

from __future__ import annotations

from pathlib import Path

from rltools_host.boards import discovery
from rltools_host.boards.description import Board
from rltools_host.errors import PortError
from rltools_host.link.transport import DEFAULT_BAUD, Link, ProcessLink, open_link

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
        from rltools_host.boards.emulator import Emulator
        from rltools_host.link.emulated import EmulatedLink

        return EmulatedLink(Emulator(board, program, EMULATOR_LIMIT_S, storage), board.name)
    ports = discovery.find_connected(board)
    if not ports:
        raise PortError(f"no {board.name} is connected: {remedy}")
    if len(ports) > 1:
        raise PortError(
            f"several boards {board.name} are connected ({', '.join(ports)}): "
            "choose one with --port"
        )
    return open_link(ports[0], board.link.baud or DEFAULT_BAUD)
