"""`rlt flash` and `rlt emulate`: bring firmware to a board, with PlatformIO, or to an emulator."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.boards.board_link import (
    TIME_LIMIT_S,
    Emulator,
    StorageFile,
    not_emulated,
    require_connected,
    wait_for_port,
)
from rltools_host.boards.policy_session import (
    DEFAULT_CONTRACT,
    PROGRAM,
    Firmware,
    load_remedy,
    require_kept,
)
from rltools_host.build import experiments, firmware
from rltools_host.build.boards import Board, list_boards, load_board
from rltools_host.build.cmake import TRAIN, require_program
from rltools_host.commands.options import Json, Program, leave, refuse
from rltools_host.errors import LinkLostError, PortError, UsageError
from rltools_host.lines import say
from rltools_host.tree import command_line


def next_line(board: Board, subject: str, program: str, *words: str) -> tuple[str, str]:
    """Return the next step for the user, as a word and as a command."""
    if program == TRAIN:
        return "train", command_line("train", subject, "--board", board.name, *words)
    return "push", command_line("push", "RUN", "--board", board.name, *words)


# -- flash -----------------------------------------------------------------------------------------


def flash(board_name: str, subject: str, json_output: bool = False, program: str = TRAIN) -> int:
    """Build the program for an experiment or contract, flash it, and wait for the board."""
    board = load_board(board_name)
    require_program(board, program)
    subject = experiments.whole_name(subject, experiments.subject_of(program))
    experiments.require_subject(experiments.subject_of(program), subject, board)
    if board.flasher != "platformio":
        flashable = [known.name for known in list_boards() if known.flasher]
        raise UsageError(
            f"{board.name} is not flashed: train there directly with --board {board.name}; "
            f"boards that are flashed: {', '.join(flashable)}"
        )
    require_connected(board)
    firmware.build_with_platformio(board, subject, program)
    print(f"Flashing {board.name}", file=sys.stderr)
    code, output = firmware.run_platformio(
        ["run", "-e", board.name, "-t", "upload"], subject, program, show=True
    )
    if code != 0:
        raise firmware.platformio_failure(board, f"flashing {board.name}", output)
    port = wait_for_port(board)
    if port is None:
        raise PortError(
            f"{board.name} was flashed, but its serial port did not appear: "
            "unplug it and plug it in again"
        )
    print(f"{board.title} on {port} is ready: {next_line(board, subject, program)[1]}")
    if json_output:
        document = {"board": board.name, "experiment": subject, "program": program, "port": port}
        print(json.dumps(document))
    return 0


FLASH_EXAMPLE = "flash teensy41 pendulum-td3"


def flash_command(
    board: Annotated[str, typer.Argument(metavar="BOARD", help="A name that `rlt doctor` lists.")],
    experiment: Annotated[
        str, typer.Argument(metavar="EXPERIMENT", help="The experiment, or for infer the contract.")
    ],
    program: Program = TRAIN,
    json_output: Json = False,
) -> None:
    leave(flash(board, experiment, json_output, program))


# -- emulate ---------------------------------------------------------------------------------------


def emulate(
    board_name: str,
    subject: str | None = None,
    time_limit_s: float = TIME_LIMIT_S,
    json_output: bool = False,
    program: str = TRAIN,
    storage: Path | None = None,
) -> int:
    """Start an emulated board, print its port, and wait until it or the user ends it."""
    board = load_board(board_name)
    if board.emulator is None:
        raise UsageError(not_emulated(board))
    if time_limit_s <= 0:
        raise UsageError(f"--time-limit {time_limit_s:g}: give a number of seconds above zero")
    subject = subject or ("pendulum-td3" if program == TRAIN else DEFAULT_CONTRACT)
    subject = experiments.whole_name(subject, experiments.subject_of(program))
    file = firmware.build_firmware(board, subject, program)
    if storage is not None and program == PROGRAM:
        StorageFile(board, storage).close()  # that it is one, or a new one
        require_kept(Firmware(board, file, load_remedy(board, subject)), storage)
    with Emulator(board, file, time_limit_s, storage, serves=True) as emulator:
        out = sys.stderr if json_output else sys.stdout
        say(out, f"{board.title}, with {subject}, is on {emulator.port}")
        word, command = next_line(board, subject, program, "--port", emulator.port)
        print(f"  {word} there:  {command}", file=out)
        if program != TRAIN and storage is not None:
            print(f"  confirmed policies stay in {storage}", file=out)
        print(f"  Ctrl-C ends it; so do {time_limit_s:g} s", file=out, flush=True)
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


EMULATE_EXAMPLE = "emulate qemu-cortex-m7 pendulum-td3"


def emulate_command(
    context: typer.Context,
    board: Annotated[str, typer.Argument(metavar="BOARD", help="A name that `rlt doctor` lists.")],
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
    if program == TRAIN:
        refuse(context, f"with --program {TRAIN}", "storage")
    leave(emulate(board, experiment, time_limit_s, json_output, program, storage))
