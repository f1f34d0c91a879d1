"""`rlt emulate`: starts an emulated board, prints its port."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from rltools_host.boards.description import load_board
from rltools_host.boards.emulator import TIME_LIMIT_S, Emulator, not_emulated
from rltools_host.build import firmware
from rltools_host.commands.options import Json, leave
from rltools_host.errors import LinkLostError, UsageError
from rltools_host.hints import command_line


def run(
    board_name: str,
    experiment: str,
    time_limit_s: float = TIME_LIMIT_S,
    json_output: bool = False,
) -> int:
    """`rlt emulate`: starts a board, prints its port and waits until it or the user ends it."""
    board = load_board(board_name)
    if board.emulator is None:
        raise UsageError(not_emulated(board))
    if time_limit_s <= 0:
        raise UsageError(f"--time-limit {time_limit_s:g}: give a number of seconds above zero")
    program = firmware.build_firmware(board, experiment)
    with Emulator(board, program, time_limit_s) as emulator:
        out = sys.stderr if json_output else sys.stdout
        print(f"{board.title}, with {experiment}, is on {emulator.port}", file=out)
        command = command_line("train", experiment, "--board", board.name, "--port", emulator.port)
        print(
            f"  train there:  {command}\n  Ctrl-C ends it; so do {time_limit_s:g} s",
            file=out,
            flush=True,
        )
        if json_output:
            document = {
                "board": board.name,
                "experiment": experiment,
                "port": emulator.port,
                "process_id": emulator.process_id,
            }
            print(json.dumps(document), flush=True)
        try:
            emulator.wait()
        except KeyboardInterrupt:
            return 0
        raise LinkLostError(f"{board.name} on {emulator.port} ended: {emulator.ending()}")


EXAMPLE = "rlt emulate qemu-cortex-m7 pendulum-td3"


def command(
    board: Annotated[str, typer.Argument(metavar="BOARD", help="See `rlt boards`.")],
    experiment: Annotated[
        str, typer.Argument(metavar="[EXPERIMENT]", help="What it trains.")
    ] = "pendulum-td3",
    time_limit_s: Annotated[
        float, typer.Option("--time-limit", metavar="SECONDS", help="Then it ends.")
    ] = TIME_LIMIT_S,
    json_output: Json = False,
) -> None:
    leave(run(board, experiment, time_limit_s, json_output))
