"""Requests of `rlt hil`: which policy is measured, and that an armed board is left alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from policy_samples import sample_images
from rltools_host.boards import hil
from rltools_host.boards.hil import HilRequest
from rltools_host.boards.policy_session import PolicyTarget
from rltools_host.errors import BoardMismatchError, RefusedError
from rltools_host.policies.image import parse_policy

made: Any = SimpleNamespace


def session(active: object, trial: object, data: bytes = b"") -> Any:
    return made(
        description="x",
        policies=made(slots=lambda: made(active=active, trial=trial)),
        files=made(download=lambda _: data),
    )


def test_the_policy_that_a_board_has() -> None:
    data = sample_images()["pendulum"]
    own = parse_policy(data)
    identity = made(fingerprint=own.contract.checksum)
    assert hil.acting_policy(session(1, None, data), identity).sha256 == own.sha256
    with pytest.raises(BoardMismatchError, match="the policy of the board on x is not made for"):
        hil.acting_policy(session(1, None, data), made(fingerprint=identity.fingerprint ^ 1))
    with pytest.raises(RefusedError, match="x tries another policy: confirm or drop it first"):
        hil.acting_policy(session(1, 2), identity)
    with pytest.raises(RefusedError, match="x has no policy: push one, or name a --run"):
        hil.acting_policy(session(None, None), identity)


def test_an_armed_board_is_left_alone() -> None:
    board = made(policies=made(is_armed=lambda: True), description="x")
    request: Any = HilRequest(PolicyTarget("host"), "mine")
    with pytest.raises(RefusedError, match="x is armed: disarm it first"):
        hil.check_session(request, made(), board, made(), lambda *_: None)
