"""`rlt flash`: builds firmware and writes it to a board with the board's own tool, PlatformIO."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from rltools_host.boards.description import list_boards, load_board
from rltools_host.boards.discovery import require_connected, wait_for_port
from rltools_host.build import experiments, platformio
from rltools_host.commands.options import Json, leave
from rltools_host.errors import PortError, UsageError
from rltools_host.hints import command_line


def run(board_name: str, experiment: str, json_output: bool = False) -> int:
    """Builds the experiment's firmware, flashes it and waits for the board to come back."""
    board = load_board(board_name)
    experiments.require_experiment(experiment, board)
    if board.flasher != "platformio":
        flashable = [known.name for known in list_boards() if known.flasher]
        raise UsageError(
            f"{board.name} is not flashed: train there directly with --board {board.name}; "
            f"boards that are flashed: {', '.join(flashable)}"
        )
    require_connected(board)
    platformio.build_with_platformio(board, experiment)
    print(f"Flashing {board.name}", file=sys.stderr, flush=True)
    code, output = platformio.run_platformio(
        ["run", "-e", board.name, "-t", "upload"], experiment, show=True
    )
    if code != 0:
        raise platformio.platformio_failure(board, f"flashing {board.name}", output)
    port = wait_for_port(board)
    if port is None:
        raise PortError(
            f"{board.name} was flashed, but its serial port did not appear: "
            "unplug it and plug it in again"
        )
    command = command_line("train", experiment, "--board", board.name)
    print(f"{board.title} on {port} is ready: {command}")
    if json_output:
        print(json.dumps({"board": board.name, "experiment": experiment, "port": port}))
    return 0


EXAMPLE = "rlt flash teensy41 pendulum-td3"


def command(
    board: Annotated[str, typer.Argument(metavar="BOARD", help="See `rlt boards`.")],
    experiment: Annotated[str, typer.Argument(metavar="EXPERIMENT")],
    json_output: Json = False,
) -> None:
    leave(run(board, experiment, json_output))
