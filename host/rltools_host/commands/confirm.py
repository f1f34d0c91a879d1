"""`rlt confirm`: keeps the policy that a push has left in trial."""

from __future__ import annotations

import json

from rltools_host.commands.options import BoardOption, ContractOption, Json, Port
from rltools_host.policies.board import DEFAULT_CONTRACT, PolicyPlace
from rltools_host.policies.outcome import Outcome, short
from rltools_host.policies.push import confirm


def run(place: PolicyPlace, json_output: bool = False) -> Outcome:
    outcome = confirm(place)
    print(f"confirmed: {short(outcome.active_sha256 or '')} is active in slot {outcome.slot}")
    if json_output:
        print(json.dumps(outcome.document()))
    return outcome


EXAMPLE = "confirm --board qemu-cortex-m7 --port /dev/pts/3"


def command(
    board: BoardOption,
    port: Port = None,
    contract: ContractOption = None,
    json_output: Json = False,
) -> None:
    run(PolicyPlace(board, port, contract or DEFAULT_CONTRACT), json_output)
