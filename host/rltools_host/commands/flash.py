"""`rlt flash`: builds firmware and writes it to a board with the board's own tool, PlatformIO."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from rltools_host.boards.description import list_boards, load_board
from rltools_host.boards.discovery import require_connected, wait_for_port
from rltools_host.build import platformio, subjects
from rltools_host.build.cmake import TRAIN, require_program
from rltools_host.commands.options import Json, Program, leave
from rltools_host.errors import PortError, UsageError
from rltools_host.hints import command_line


def run(board_name: str, subject: str, json_output: bool = False, program: str = TRAIN) -> int:
    """Builds the program for an experiment or contract, flashes it, waits for the board."""
    board = load_board(board_name)
    require_program(board, program)
    subject = subjects.whole_name(subject, subjects.subject_of(program))
    subjects.require_subject(subjects.subject_of(program), subject, board)
    if board.flasher != "platformio":
        flashable = [known.name for known in list_boards() if known.flasher]
        raise UsageError(
            f"{board.name} is not flashed: train there directly with --board {board.name}; "
            f"boards that are flashed: {', '.join(flashable)}"
        )
    require_connected(board)
    platformio.build_with_platformio(board, subject, program)
    print(f"Flashing {board.name}", file=sys.stderr, flush=True)
    code, output = platformio.run_platformio(
        ["run", "-e", board.name, "-t", "upload"], subject, program, show=True
    )
    if code != 0:
        raise platformio.platformio_failure(board, f"flashing {board.name}", output)
    port = wait_for_port(board)
    if port is None:
        raise PortError(
            f"{board.name} was flashed, but its serial port did not appear: "
            "unplug it and plug it in again"
        )
    command = command_line("train", subject, "--board", board.name)
    if program != TRAIN:
        command = command_line("push", "RUN", "--board", board.name)
    print(f"{board.title} on {port} is ready: {command}")
    if json_output:
        document = {"board": board.name, "experiment": subject, "program": program, "port": port}
        print(json.dumps(document))
    return 0


EXAMPLE = "flash teensy41 pendulum-td3"


def command(
    board: Annotated[str, typer.Argument(metavar="BOARD", help="A name that `rlt boards` lists.")],
    experiment: Annotated[
        str, typer.Argument(metavar="EXPERIMENT", help="The experiment, or for infer the contract.")
    ],
    program: Program = TRAIN,
    json_output: Json = False,
) -> None:
    leave(run(board, experiment, json_output, program))
