"""`rlt rollback`: ends a trial, or returns to the policy before the active one."""

from __future__ import annotations

import json

from rltools_host.commands.options import BoardOption, ContractOption, Json, Port
from rltools_host.policies.board import DEFAULT_CONTRACT, PolicyPlace
from rltools_host.policies.outcome import Outcome, short
from rltools_host.policies.push import roll_back


def run(place: PolicyPlace, json_output: bool = False) -> Outcome:
    outcome = roll_back(place)
    if outcome.active_sha256:
        print(f"rolled back: {short(outcome.active_sha256)} is active in slot {outcome.slot}")
    else:
        acts = "the compiled-in policy" if outcome.activated else "no policy"
        print(f"rolled back: {acts} is active")
    if json_output:
        print(json.dumps(outcome.document()))
    return outcome


EXAMPLE = "rollback --board host"


def command(
    board: BoardOption,
    port: Port = None,
    contract: ContractOption = None,
    json_output: Json = False,
) -> None:
    run(PolicyPlace(board, port, contract or DEFAULT_CONTRACT), json_output)
