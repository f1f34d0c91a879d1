"""Requests of `rlt hil`: which policy is meant, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from policy_samples import sample_images
from rltools_host.boards import hil
from rltools_host.boards.hil import HilRequest
from rltools_host.boards.policy_session import PolicyTarget
from rltools_host.errors import BoardMismatchError, RefusedError, UsageError
from rltools_host.policies.image import parse_policy

made: Any = SimpleNamespace


def test_bounds_of_a_request() -> None:
    hil.check_request("all-emulated", None, 1, 1)
    hil.check_request("host", "/dev/null", None, 1)
    for board, port, samples, inputs in (
        ("host", None, 0, 1),
        ("host", None, 1, 0),
        ("all-emulated", "/dev/null", 1, 1),
    ):
        with pytest.raises(UsageError):
            hil.check_request(board, port, samples, inputs)


@pytest.mark.parametrize(
    ("run", "board", "port", "meant"),
    [
        ("mine", "host", "/dev/x", "mine"),
        (None, "host", None, "latest"),
        (None, "qemu-cortex-m7", None, "latest"),
        (None, "all-emulated", None, "latest"),
        (None, "host", "/dev/x", None),
        (None, "teensy41", None, None),  # a real one goes on between commands
        (None, "no-board", None, None),
        (None, "crazyflie", None, None),
    ],
)
def test_whose_policy_is_meant(
    run: str | None, board: str, port: str | None, meant: str | None
) -> None:
    assert hil.run_meant(run, board, port) == meant


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
    board = made(policies=made(executor=lambda: made(armed=True)), description="x")
    request: Any = HilRequest(PolicyTarget("host"), "mine")
    with pytest.raises(RefusedError, match="x is armed: disarm it first"):
        hil.check_session(request, made(), board, made(), lambda *_: None)
