"""`rlt push`: a run's policy onto a board, tried and verified before it stays."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from rltools_host.commands.options import BoardOption, ContractOption, Json, Port, RunArgument
from rltools_host.policies.board import place_of_run
from rltools_host.policies.outcome import Outcome
from rltools_host.policies.push import DEFAULT_TRIAL_S, PushRequest, push


class UploadLine:
    """Shows how far the upload is, on a terminal only."""

    def __init__(self) -> None:
        self._is_shown = False

    def progress(self, done: int, whole: int) -> None:
        if sys.stderr.isatty():
            self._is_shown = True
            text = f"\rsent {done:,} of {whole:,} bytes"
            print(text, end="", file=sys.stderr, flush=True)

    def say(self, line: str) -> None:
        self.clear()
        print(line, flush=True)

    def clear(self) -> None:
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._is_shown = False


def run(request: PushRequest, json_output: bool = False) -> Outcome:
    line = UploadLine()
    try:
        outcome = push(request, line.say, line.progress)
    finally:
        line.clear()
    place = request.place
    if outcome.activated and not place.keeps_policies(place.described_board()):
        print(
            f"note: {place.board} ends with this command, and its policies with it: start one with "
            "`rlt emulate` and give its --port",
            file=sys.stderr,
        )
    if json_output:
        print(json.dumps(outcome.document()))
    return outcome


EXAMPLE = "push latest --board host"


def command(
    run_name: RunArgument,
    board: BoardOption,
    port: Port = None,
    trial_s: Annotated[
        float | None,
        typer.Option(
            "--trial",
            metavar="SECONDS",
            help=f"The board drops it if this passes ({DEFAULT_TRIAL_S:g}).",
        ),
    ] = None,
    no_confirm: Annotated[
        bool, typer.Option("--no-confirm", help="Leave it in trial; see `rlt confirm`.")
    ] = False,
    contract: ContractOption = None,
    json_output: Json = False,
) -> None:
    """The board checks the policy before it acts and drops it unless it is confirmed in time."""
    place = place_of_run(run_name, board, port, contract)
    run(PushRequest(run_name, place, trial_s, not no_confirm), json_output)
