"""`rlt push`, `policies`, `confirm`, `rollback`: the policies of a board, or of a Crazyflie; `rlt
hil`: a policy on a board, compared with this machine bit by bit, and measured."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from types import ModuleType
from typing import Annotated, TypedDict

import msgspec
import typer

from rltools_host.boards import hil
from rltools_host.boards import push as boards
from rltools_host.boards.hil import DEFAULT_INPUTS, HilRequest
from rltools_host.boards.hil_result import Found, HilResult, Results, Unchecked, lines
from rltools_host.boards.messages import DROP_REASONS, PolicySlot, SlotUse, name_of, text_of_number
from rltools_host.boards.policy_session import DEFAULT_CONTRACT, PolicyTarget, target_of_run
from rltools_host.boards.push import (
    DEFAULT_TRIAL_S,
    BoardPolicies,
    PushRequest,
    PushResult,
    short,
)
from rltools_host.build.boards import ALL_EMULATED
from rltools_host.commands import options
from rltools_host.commands.options import (
    BoardOption,
    ContractOption,
    Json,
    Port,
    RunArgument,
    Which,
)
from rltools_host.drones.vehicles import crazyflie
from rltools_host.errors import RltError
from rltools_host.lines import UNLIMITED, ProgressLine, aside, columns, folded, in_columns
from rltools_host.policies.contract import ENTRY_AT_REST, entry_text
from rltools_host.policies.statements import (
    INTERVAL_IN,
    SAFE_IN,
    AssumedValues,
    assumed_values,
    assumptions,
)
from rltools_host.runs.names import LAST


def policies_of(target: PolicyTarget) -> ModuleType:
    """Return the module that pushes to the board, confirms, rolls back and lists its policies."""
    return crazyflie if target.is_crazyflie else boards


# -- push ------------------------------------------------------------------------------------------


def push(request: PushRequest, json_output: bool = False) -> None:
    line, target = ProgressLine(), request.target
    try:
        outcome: PushResult = policies_of(target).push(request, line.say, line.sent)
    finally:
        line.clear()
    if outcome.activated:
        note_its_end(target)
    print_json(outcome, json_output)


def note_its_end(target: PolicyTarget) -> None:
    """Print a note on a board that keeps no policy for the next command."""
    if not target.is_crazyflie and not target.keeps_policies(target.described_board()):
        aside(
            f"note: {target.board} ends with this command, and its policies with it: start one "
            "with `rlt emulate` and give its --port"
        )


def print_json(outcome: PushResult, json_output: bool) -> None:
    if json_output:
        print(json.dumps(asdict(outcome)))


Trial = Annotated[
    float | None,
    typer.Option(
        "--trial",
        metavar="SECONDS",
        help=f"Time after which the board drops an unconfirmed policy ({DEFAULT_TRIAL_S:g}).",
    ),
]
NoConfirm = Annotated[
    bool, typer.Option("--no-confirm", help="Leave the policy in trial; see `rlt confirm`.")
]
PUSH_EXAMPLE = "push latest --board host"


def push_command(
    run_name: RunArgument,
    board: BoardOption,
    port: Port = None,
    trial_s: Trial = None,
    no_confirm: NoConfirm = False,
    which: Which = LAST,
    json_output: Json = False,
) -> None:
    """Push a policy, which the board checks before it acts.

    If the policy fails, or is not confirmed in time, or the board resets, the previous policy is
    restored, even after a power cut.
    """
    target = target_of_run(run_name, board, port)
    push(PushRequest(run_name, target, trial_s, not no_confirm, which), json_output)


# -- confirm, rollback -----------------------------------------------------------------------------


def confirm(target: PolicyTarget, json_output: bool = False) -> None:
    outcome: PushResult = policies_of(target).confirm(target)
    print(f"confirmed: {short(outcome.active_sha256 or '')} is active in slot {outcome.slot}")
    print_json(outcome, json_output)


def roll_back(target: PolicyTarget, json_output: bool = False) -> None:
    outcome: PushResult = policies_of(target).roll_back(target)
    if outcome.active_sha256:
        print(f"rolled back: {short(outcome.active_sha256)} is active in slot {outcome.slot}")
    else:
        acts = "the compiled-in policy" if outcome.activated else "no policy"
        print(f"rolled back: {acts} is active")
    print_json(outcome, json_output)


CONFIRM_EXAMPLE = "confirm --board qemu-cortex-m7 --port socket://127.0.0.1:4000"
ROLLBACK_EXAMPLE = "rollback --board host"


def confirm_command(
    board: BoardOption,
    port: Port = None,
    contract: ContractOption = None,
    json_output: Json = False,
) -> None:
    confirm(PolicyTarget(board, port, contract or DEFAULT_CONTRACT), json_output)


def rollback_command(
    board: BoardOption,
    port: Port = None,
    contract: ContractOption = None,
    json_output: Json = False,
) -> None:
    roll_back(PolicyTarget(board, port, contract or DEFAULT_CONTRACT), json_output)


# -- policies --------------------------------------------------------------------------------------

HEADER = ("slot", "use", "experiment", "environment", "seed", "step", "bytes", "SHA-256", "trial")


def use_of(slot: PolicySlot) -> str:
    return SlotUse.NAMES[slot.use] if slot.use < len(SlotUse.NAMES) else f"use {slot.use}"


class SlotDocument(TypedDict):
    """A slot in the object of `--json`; null where there is no image, or no trial."""

    slot: int
    use: str
    experiment: str | None
    environment: str | None
    seed: int | None
    step: int | None
    bytes: int
    sha256: str | None
    state_sha256: str | None
    trial_left_s: float | None


class PoliciesDocument(TypedDict):
    """The object that `--json` prints."""

    board: str
    contract: str
    device: str
    armed: bool
    slot_bytes: int
    slots: list[SlotDocument]
    last_drop: str | None
    built_in: bool | None
    # Of the acting policy; null if there is none, or if it cannot be read.
    entry: dict[str, float] | None
    assumed: AssumedValues | None


def entry_of(slot: PolicySlot) -> SlotDocument:
    has_image = slot.image_bytes > 0
    return {
        "slot": slot.slot,
        "use": use_of(slot),
        "experiment": slot.experiment if has_image else None,
        "environment": slot.environment if has_image else None,
        "seed": slot.seed if has_image else None,
        "step": slot.step if has_image else None,
        "bytes": slot.image_bytes,
        "sha256": slot.sha256 or None,
        "state_sha256": slot.state_sha256 or None,
        "trial_left_s": slot.trial_left_ms / 1000.0 if slot.trial_left_ms else None,
    }


def row_of(slot: PolicySlot) -> tuple[str, ...]:
    if not slot.image_bytes:
        return (str(slot.slot), use_of(slot), *("-",) * 7)
    left = f"{slot.trial_left_ms / 1000.0:.1f} s left" if slot.trial_left_ms else "-"
    return (
        str(slot.slot),
        use_of(slot),
        slot.experiment,
        slot.environment,
        str(slot.seed),
        f"{slot.step:,}",
        f"{slot.image_bytes:,}",
        short(slot.sha256),
        left,
    )


def slot_lines(found: BoardPolicies, width: int = UNLIMITED) -> list[str]:
    slots = found.slots
    text = folded([HEADER, *(row_of(slot) for slot in slots.slots)], width)
    if found.has_built_in:
        text.append("without one of these, a compiled-in policy acts")
    text += in_columns(stated_lines(found), width)
    if slots.last_drop:
        text.append(f"last policy dropped: {text_of_number(slots.last_drop, DROP_REASONS)}")
    return [*text, "the board is armed"] if found.armed else text


def stated_lines(found: BoardPolicies) -> list[str]:
    """Return what the acting policy states, and what is assumed."""
    image = found.acting
    if image is None:
        return [f"the acting policy cannot be read here: {found.unread}"] if found.unread else []
    lines = [f"entry: {entry_text(image.entry)}"] if image.entry is not None else []
    if "entry" in assumed_values(image):
        lines.append(f"assumed: entry at rest only ({ENTRY_AT_REST})")
    return lines + assumptions(image, SAFE_IN if found.assumes_safe else None, INTERVAL_IN)


def list_policies(target: PolicyTarget, json_output: bool = False) -> PoliciesDocument:
    """Print the slots, and return what `--json` prints."""
    found: BoardPolicies = policies_of(target).policies_on(target, reads_acting=True)
    slots, acting = found.slots, found.acting
    document: PoliciesDocument = {
        "board": target.board,
        "contract": found.contract,
        "device": found.device,
        "armed": found.armed,
        "slot_bytes": slots.slot_bytes,
        "slots": [entry_of(slot) for slot in slots.slots],
        "last_drop": name_of(slots.last_drop, DROP_REASONS),
        "built_in": found.has_built_in,
        "entry": asdict(acting.entry) if acting is not None and acting.entry is not None else None,
        "assumed": assumed_values(acting, found.assumes_safe) if acting is not None else None,
    }
    print("\n".join(slot_lines(found, columns(sys.stdout))))
    if json_output:
        print(json.dumps(document))
    return document


LIST_EXAMPLE = "policies --board host"


def list_command(
    board: BoardOption,
    port: Port = None,
    contract: ContractOption = None,
    json_output: Json = False,
) -> None:
    list_policies(PolicyTarget(board, port, contract or DEFAULT_CONTRACT), json_output)


def check_one(request: HilRequest, layers: bool) -> tuple[Found, RltError | None]:
    """Check a board, and return the result and the error that it leads to."""
    line = ProgressLine(request.target.board)
    try:
        result = hil.check_board(request, line.show)
    finally:
        line.clear()
    hil.keep(result, request.run)
    if layers:
        show_layers(result)
    try:
        hil.require_parity(result)
    except RltError as error:
        return result.found, error
    return result.found, None


def show_layers(result: HilResult) -> None:
    print(f"{result.found.board}: checksums of the layers' outputs")
    print("\n".join(folded(result.parity.layer_rows(), columns(sys.stdout))))


def check_each(
    requests: list[HilRequest], layers: bool
) -> tuple[list[Found | Unchecked], RltError | None]:
    """Check one board after another. An error of one does not stop the others."""
    results: list[Found | Unchecked] = []
    failure: RltError | None = None
    for request in requests:
        name = request.target.board
        if needs := hil.missing_tools(request.target.described_board()):
            results.append(Unchecked(name, skipped=needs))
            continue
        try:
            result, error = check_one(request, layers)
            results.append(result)
        except RltError as problem:
            results.append(Unchecked(name, error=str(problem)))
            error = problem
        failure = failure or error
    return results, failure


def run_hil(request: HilRequest, layers: bool = False, json_output: bool = False) -> None:
    """Check the boards, and print the results."""
    requests = hil.boards_of(request)
    if request.target.board == ALL_EMULATED:
        results, failure = check_each(requests, layers)
        document = msgspec.to_builtins(Results(results))
    else:
        result, failure = check_one(requests[0], layers)
        results, document = [result], msgspec.to_builtins(result)
    print("\n".join(lines(results, columns(sys.stdout))))
    if failure is not None:
        failure.details = document
        raise failure
    if json_output:
        print(json.dumps(document))


HIL_EXAMPLE = "hil --board all-emulated"


def hil_command(
    board: BoardOption,
    run_name: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="RUN",
            help="Push this run first. [default: the policy on the board, or the latest run]",
            callback=options.run_named,
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
    json_output: Json = False,
) -> None:
    """Compare a board of `rlt doctor` with this machine, or with all-emulated every emulated board,
    and host.

    Actions and layers must have this machine's bits, and the executor the statuses of
    docs/executor.md. Emulated boards count instructions, which are not time.
    """
    hil.check_request(board, port, samples, inputs)
    meant = hil.run_meant(run_name, board, port)
    target = target_of_run(meant, board, port, contract)
    run_hil(HilRequest(target, meant, samples, inputs), layers, json_output)
