"""`rlt emulate`: starts an emulated board, prints its port."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.boards.description import load_board
from rltools_host.boards.emulator import TIME_LIMIT_S, Emulator, not_emulated
from rltools_host.boards.storage import StorageFile
from rltools_host.build import firmware, subjects
from rltools_host.build.cmake import TRAIN
from rltools_host.commands.modes import mode, require
from rltools_host.commands.options import Json, Program, leave
from rltools_host.errors import LinkLostError, UsageError
from rltools_host.hints import command_line
from rltools_host.policies.board import (
    DEFAULT_CONTRACT,
    PROGRAM,
    Firmware,
    load_remedy,
    require_kept,
)


def run(
    board_name: str,
    subject: str | None = None,
    time_limit_s: float = TIME_LIMIT_S,
    json_output: bool = False,
    program: str = TRAIN,
    storage: Path | None = None,
) -> int:
    """`rlt emulate`: starts a board, prints its port and waits until it or the user ends it."""
    board = load_board(board_name)
    if board.emulator is None:
        raise UsageError(not_emulated(board))
    if time_limit_s <= 0:
        raise UsageError(f"--time-limit {time_limit_s:g}: give a number of seconds above zero")
    subject = subject or ("pendulum-td3" if program == TRAIN else DEFAULT_CONTRACT)
    subject = subjects.whole_name(subject, subjects.subject_of(program))
    file = firmware.build_firmware(board, subject, program)
    if storage is not None and program == PROGRAM:
        StorageFile(board, storage).close()  # that it is one, or a new one
        require_kept(Firmware(board, file, load_remedy(board, subject)), storage)
    with Emulator(board, file, time_limit_s, storage) as emulator:
        out = sys.stderr if json_output else sys.stdout
        print(f"{board.title}, with {subject}, is on {emulator.port}", file=out)
        name, port = board.name, emulator.port
        command = command_line("train", subject, "--board", name, "--port", port)
        use = f"train there:  {command}"
        if program != TRAIN:
            command = command_line("push", "RUN", "--board", name, "--port", port)
            use = f"push there:  {command}"
            if storage is not None:
                use += f"\n  confirmed policies stay in {storage}"
        print(
            f"  {use}\n  Ctrl-C ends it; so do {time_limit_s:g} s",
            file=out,
            flush=True,
        )
        if json_output:
            document = {
                "board": board.name,
                "experiment": subject,
                "program": program,
                "port": emulator.port,
                "process_id": emulator.process_id,
            }
            print(json.dumps(document), flush=True)
        try:
            emulator.wait()
        except KeyboardInterrupt:
            return 0
        raise LinkLostError(f"{board.name} on {emulator.port} ended: {emulator.ending()}")


EXAMPLE = "emulate qemu-cortex-m7 pendulum-td3"
COMMON = ("board", "experiment", "time_limit_s", "program", "json_output")
TRAINING = mode(f"with --program {TRAIN}", *COMMON)
POLICIES = mode(f"with --program {PROGRAM}", *COMMON, "storage")
MODES = (TRAINING, POLICIES)


def command(
    context: typer.Context,
    board: Annotated[str, typer.Argument(metavar="BOARD", help="A name that `rlt boards` lists.")],
    experiment: Annotated[
        str | None,
        typer.Argument(
            metavar="[EXPERIMENT]", help="The experiment to train (pendulum-td3), or the contract."
        ),
    ] = None,
    time_limit_s: Annotated[
        float,
        typer.Option("--time-limit", metavar="SECONDS", help="End the board after this time."),
    ] = TIME_LIMIT_S,
    program: Program = TRAIN,
    storage: Annotated[
        Path | None,
        typer.Option(
            "--storage", metavar="FILE", help="The flash for policies; created if missing."
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    require(context, MODES, TRAINING if program == TRAIN else POLICIES)
    leave(run(board, experiment, time_limit_s, json_output, program, storage))
