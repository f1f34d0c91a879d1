"""The link to a plan's board: a given port, a new process or emulator, or what is connected."""

from __future__ import annotations

from rltools_host.boards import discovery
from rltools_host.errors import PortError
from rltools_host.hints import command_line
from rltools_host.link.transport import DEFAULT_BAUD, Link, ProcessLink, open_link
from rltools_host.training.plan import DEFAULT_BOARD, Plan

EMULATOR_LIMIT_S = 6 * 3600.0


def open_board(plan: Plan) -> Link:
    """A link to the given port, a new process or emulator, or the board that is connected."""
    board, program = plan.board, plan.program
    if plan.port is not None:
        return open_link(plan.port, board.link.baud or DEFAULT_BAUD)
    if program is not None and board.link.kind == "process":
        return ProcessLink([str(program)], f"the program of board {board.name}")
    if program is not None and board.emulator is not None:
        from rltools_host.boards.emulator import Emulator
        from rltools_host.link.emulated import EmulatedLink

        return EmulatedLink(Emulator(board, program, EMULATOR_LIMIT_S), board.name)
    ports = discovery.find_connected(board)
    if not ports:
        flash = command_line("flash", board.name, plan.description.name)
        raise PortError(
            f"no {board.name} is connected: plug it in and `{flash}`, or train on an emulated "
            f"board with --board {DEFAULT_BOARD}"
        )
    if len(ports) > 1:
        raise PortError(
            f"several boards {board.name} are connected ({', '.join(ports)}): "
            "choose one with --port"
        )
    return open_link(ports[0], board.link.baud or DEFAULT_BAUD)
