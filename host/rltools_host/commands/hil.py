"""`rlt hil`: a policy on a board, compared with this machine bit by bit, and measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rltools_host.boards.description import ALL_EMULATED
from rltools_host.commands.options import (
    BoardOption,
    ContractOption,
    Json,
    Port,
    ProgressLine,
    Which,
)
from rltools_host.documents import typed
from rltools_host.errors import RltError, UsageError
from rltools_host.files import write_atomically
from rltools_host.hil import board as hil
from rltools_host.hil.board import DEFAULT_INPUTS, HilRequest
from rltools_host.hil.result import Found, HilResult, histogram_lines, lines
from rltools_host.lines import columns, folded
from rltools_host.policies.board import place_of_run
from rltools_host.runs.names import LAST


def check_one(request: HilRequest, layers: bool) -> tuple[dict[str, Any], RltError | None]:
    """What is found of a board, and the error that it comes to."""
    name = request.place.board
    line = ProgressLine(name)
    try:
        result = hil.check_board(request, line.show)
    finally:
        line.clear()
    hil.keep(result.document(), request.run)
    if layers:
        show_layers(result)
    try:
        hil.require_parity(result)
    except RltError as error:
        return result.document(), error
    return result.document(), None


def show_layers(result: HilResult) -> None:
    print(f"{result.board}: checksums of the layers' outputs")
    print("\n".join(folded(result.parity.layer_rows(), columns(sys.stdout))))


def check_each(
    requests: list[HilRequest], layers: bool
) -> tuple[list[dict[str, Any]], RltError | None]:
    """One board after another; what keeps one of them from it does not keep the others."""
    documents: list[dict[str, Any]] = []
    failure: RltError | None = None
    for request in requests:
        name = request.place.board
        if needs := hil.missing_tools(request.place.described_board()):
            documents.append({"board": name, "skipped": needs})
            continue
        try:
            document, error = check_one(request, layers)
        except RltError as problem:
            document, error = {"board": name, "error": str(problem)}, problem
        documents.append(document)
        failure = failure or error
    return documents, failure


def run(
    request: HilRequest, layers: bool = False, json_output: bool = False, out: Path | None = None
) -> dict[str, Any]:
    """Prints what is found; returns what `--json` prints."""
    requests = hil.boards_of(request)
    if request.place.board == ALL_EMULATED:
        documents, failure = check_each(requests, layers)
        whole: dict[str, Any] = {"results": documents}
    else:
        whole, failure = check_one(requests[0], layers)
        documents = [whole]
    print("\n".join(lines(documents, columns(sys.stdout))))
    if sys.stdout.isatty():
        found: list[Found] = [typed(each, Found) for each in documents if "parity" in each]
        print("\n".join(line for each in found for line in histogram_lines(each)))
    if out is not None:
        write_atomically(out, (json.dumps(whole, indent=1) + "\n").encode())
    if failure is not None:
        failure.details = whole
        raise failure
    if json_output:
        print(json.dumps(whole))
    return whole


EXAMPLE = "hil --board all-emulated"


def command(
    board: BoardOption,
    run_name: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="RUN",
            help="Push this run first. [default: the policy on the board, or the latest run]",
        ),
    ] = None,
    port: Port = None,
    samples: Annotated[
        int | None,
        typer.Option(
            "--samples", metavar="N", help="Samples of the cost. [default: 100000; emulated 2000]"
        ),
    ] = None,
    inputs: Annotated[
        int, typer.Option("--inputs", metavar="N", help="Observations to compare.")
    ] = DEFAULT_INPUTS,
    layers: Annotated[
        bool, typer.Option("--layers", help="Print the layers' checksums, the board's and ours.")
    ] = False,
    contract: ContractOption = None,
    which: Which = LAST,
    json_output: Json = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="PATH", help="File for the JSON object.")
    ] = None,
) -> None:
    """The board is one of `rlt boards`, or all-emulated: every emulated board, and host.

    Actions and layers must have this machine's bits, and the executor the statuses of
    docs/executor.md. Emulated boards count instructions, which are not time.
    """
    hil.check_request(board, port, samples, inputs)
    meant = hil.run_meant(run_name, board, port)
    if meant is None and which != LAST:
        raise UsageError("--which is of a run's policies, and the board's own is meant: give --run")
    place = place_of_run(meant, board, port, contract)
    run(HilRequest(place, meant, samples, inputs, which), layers, json_output, out)
