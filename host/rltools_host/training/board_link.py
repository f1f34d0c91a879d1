"""The link to a plan's board: a given port, a new process or emulator, or what is connected."""

from __future__ import annotations

from rltools_host.hints import command_line
from rltools_host.link.board_link import open_board_link
from rltools_host.link.transport import Link
from rltools_host.training.plan import DEFAULT_BOARD, Plan


def open_board(plan: Plan) -> Link:
    """A link to the given port, a new process or emulator, or the board that is connected."""
    flash = command_line("flash", plan.board.name, plan.description.name)
    remedy = f"plug it in and `{flash}`, or train on an emulated board with --board {DEFAULT_BOARD}"
    socket = plan.server.address if plan.server is not None else None
    return open_board_link(
        plan.board, plan.port, plan.program, remedy, threads=plan.threads, environments=socket
    )
