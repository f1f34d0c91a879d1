"""Hardware in the loop: a policy on a board, compared with this machine and measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from rltools_host.boards.file_transfer import POLICY_PATH
from rltools_host.boards.hil_result import (
    INSTRUCTIONS,
    TIME,
    Costs,
    Found,
    HilResult,
    measure_cost,
)
from rltools_host.boards.messages import Identity
from rltools_host.boards.parity import check_parity
from rltools_host.boards.policy_session import PROGRAM, PolicyTarget, Storage, policy_session
from rltools_host.boards.push import Push, PushRequest, PushResult
from rltools_host.boards.session import BoardSession
from rltools_host.build import cmake, firmware, tools
from rltools_host.build.boards import (
    ALL_EMULATED,
    Board,
    board_names,
    emulated_boards,
    load_board,
)
from rltools_host.build.firmware import Footprint, footprint
from rltools_host.errors import BoardMismatchError, RefusedError, UsageError
from rltools_host.files import write_atomically
from rltools_host.policies.image import PolicyImage, parse_foreign_policy, read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import HIL, LATEST, result_file

DEFAULT_INPUTS = 1000
SAMPLES, EMULATED_SAMPLES = 100_000, 2000  # of a real board; of an emulated one or a process
Show = Callable[[str, int, int], None]  # what is done, how much of it, of how much


@dataclass(frozen=True)
class HilRequest:
    target: PolicyTarget
    run: str | None = None  # None: what acts on the board
    samples: int | None = None
    inputs: int = DEFAULT_INPUTS


def check_request(board: str, port: str | None, samples: int | None, inputs: int) -> None:
    """Raise UsageError for a request that no board can carry out."""
    if inputs < 1:
        raise UsageError(f"--inputs {inputs}: at least one input is needed")
    if samples is not None and samples < 1:
        raise UsageError(f"--samples {samples}: at least one sample is needed")
    if board == ALL_EMULATED and port is not None:
        raise UsageError(f"--port belongs to one board: give its --board, not {ALL_EMULATED}")


def boards_of(request: HilRequest) -> list[HilRequest]:
    """Return a request for each board that is meant."""
    if request.target.board != ALL_EMULATED:
        return [request]
    emulated = [board.name for board in emulated_boards() if PROGRAM in cmake.programs_of(board)]
    return [
        replace(request, target=replace(request.target, board=name)) for name in ("host", *emulated)
    ]


def run_meant(run: str | None, board: str, port: str | None) -> str | None:
    """Return the run whose policy is meant; None: the policy that the board has."""
    is_started = port is None and (
        board == ALL_EMULATED or (board in board_names() and not load_board(board).is_flashed)
    )
    return run or (LATEST if is_started else None)


def missing_tools(board: Board) -> str:
    """Describe the tools without which the board cannot be started here; empty if there are all."""
    missing = tools.missing_names(cmake.required_tools(board, to_run=True))
    return f"needs {', '.join(missing)}" if missing else ""


def check_board(request: HilRequest, show: Show) -> HilResult:
    """Bring the policy to the board, and check it there."""
    image = read_run_policy(request.run) if request.run else None
    with policy_session(request.target, Storage.MEMORY) as (session, identity):
        if image is None:
            image = acting_policy(session, identity)
        else:
            image.verify()
            push_policy(request, image, session, identity, show)
        return check_session(request, image, session, identity, show)


def push_policy(
    request: HilRequest, image: PolicyImage, session: BoardSession, identity: Identity, show: Show
) -> None:
    push = PushRequest(image.origin, request.target)
    Push(push, image, session, identity, PushResult(request.target.board)).carry_out(
        lambda _: None, lambda done, whole: show("bytes sent", done, whole)
    )


def check_session(
    request: HilRequest, image: PolicyImage, session: BoardSession, identity: Identity, show: Show
) -> HilResult:
    """Compare the board, on which the image acts, with this machine, and measure it.

    A board that computes other bits is not measured, and neither is one without a counter.
    """
    target = request.target
    board = target.described_board()
    policies = session.policies
    if policies.is_armed():
        raise RefusedError(f"the board on {session.description} is armed: disarm it first")
    asked = image.added_inputs_at(identity.fingerprint) or ()
    parity = check_parity(
        policies, image, asked, request.inputs, lambda *done: show("inputs compared", *done)
    )
    samples = request.samples or (SAMPLES if board.is_flashed else EMULATED_SAMPLES)
    cost = None
    if parity.holds and identity.has_counter:
        cost = measure_cost(policies, samples, lambda *done: show("samples taken", *done))
    unit = INSTRUCTIONS if identity.counts_instructions else TIME
    forward, tick = (
        {unit: each.statistics() if each else None}
        for each in ((cost.forward, cost.tick) if cost else (None, None))
    )
    size = footprint_of(board, target)
    found = Found(
        board=board.name,
        experiment=image.experiment,
        implementation=identity.device,
        contract=identity.experiment,
        network=image.shape,
        policy_sha256=image.sha256,
        samples=samples if cost else 0,
        max_abs_diff=parity.max_abs_diff,
        **forward,
        tick=Costs(**tick),
        overhead=cost.overhead if cost else None,
        flash_bytes=size.flash_bytes if size else None,
        ram_bytes=size.ram_bytes if size else None,
        stack_bytes=session.node.stack_use()["stack_peak"] or None,
        outputs_sha256=parity.outputs_sha256,
        parity=parity.agreement(),
    )
    return HilResult(found, parity)


def footprint_of(board: Board, target: PolicyTarget) -> Footprint | None:
    """Return the size of the program that was started; None for one that was flashed before, or
    without a link map."""
    if not target.ends_with_command(board):
        return None
    return footprint(board, firmware.program_path(board, target.contract, PROGRAM))


def acting_policy(session: BoardSession, identity: Identity) -> PolicyImage:
    """Return the policy that the board has, which this machine can run as well."""
    name = session.description
    slots = session.policies.slots()
    if slots.trial is not None:
        raise RefusedError(f"the board on {name} tries another policy: confirm or drop it first")
    if slots.active is None:
        raise RefusedError(f"the board on {name} has no policy: push one, or name a --run")
    data = session.files.download(POLICY_PATH)
    image = parse_foreign_policy(data, f"the policy of the board on {name}")
    image.verify()
    if image.added_inputs_at(identity.fingerprint) is None:
        raise BoardMismatchError(f"{image.origin} is not made for its contract: push another one")
    return image


def require_parity(result: HilResult) -> None:
    """Raise RefusedError, with the result as its details, unless every bit was this
    machine's."""
    if result.parity.holds:
        return
    error = RefusedError(
        f"{result.found.board} computes other bits than this machine: {result.parity.first}; "
        f"{result.parity.mismatches:,} inputs and {result.parity.ticks.failed:,} calls of the "
        "executor differ in all"
    )
    error.details = msgspec.to_builtins(result.found)
    raise error


def keep(result: HilResult, run: str | None) -> None:
    """Write the result into the run's folder, for the report."""
    if run is not None:
        path = RunFolder.open(run).path / result_file(HIL, result.found.board)
        write_atomically(
            path, (json.dumps(msgspec.to_builtins(result.found), indent=1) + "\n").encode()
        )
