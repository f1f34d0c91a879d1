"""What `rlt hil` asks of a board, and refuses, before and after anything is compared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from policy_samples import sample_images
from rltools_host.boards.description import load_board
from rltools_host.errors import BoardMismatchError, RefusedError, UsageError, VerificationError
from rltools_host.hil import board as hil
from rltools_host.hil.board import HilRequest
from rltools_host.policies.board import PolicyPlace
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
    request = HilRequest(PolicyPlace("host"))
    assert (request.run, request.samples, request.inputs, request.which) == (
        *(None, None),
        *(1000, "last"),
    )


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
    ],
)
def test_whose_policy_is_meant(
    run: str | None, board: str, port: str | None, meant: str | None
) -> None:
    assert hil.run_meant(run, board, port) == meant


def test_emulated_boards_take_fewer_samples_than_real_ones() -> None:
    assert hil.default_samples(load_board("teensy41")) == 100_000
    assert hil.default_samples(load_board("host")) == 2000


def test_each_board_is_a_request() -> None:
    request = HilRequest(PolicyPlace("host"), "mine", 5, 6)
    assert hil.boards_of(request) == [request]
    each = hil.boards_of(HilRequest(PolicyPlace("all-emulated"), "mine", 5, 6))
    names = [one.place.board for one in each]
    assert names[0] == "host"
    assert "qemu-cortex-m7" in names
    assert "teensy41" not in names
    assert {(one.run, one.samples, one.inputs) for one in each} == {("mine", 5, 6)}


@pytest.mark.parametrize(("missing", "text"), [([], ""), (["a", "b"], "needs a, b")])
def test_what_is_missing(missing: list[str], text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hil.tools, "missing_names", lambda _: missing)
    assert hil.missing_tools(load_board("host")) == text


def test_a_board_of_others_has_no_footprint() -> None:
    place = PolicyPlace("host", "/dev/x")
    assert hil.footprint_of(load_board("host"), place) is None


def test_other_bits_are_an_error_with_all_that_was_found() -> None:
    hil.require_parity(made(parity=made(holds=True)))
    parity = made(holds=False, first="it differs", mismatches=1234, ticks=made(failed=5678))
    result = made(board="b", parity=parity, document=lambda: {"board": "b"})
    with pytest.raises(VerificationError) as caught:
        hil.require_parity(result)
    assert str(caught.value) == (
        "b computes other bits than this machine: it differs; "
        "1,234 inputs and 5,678 calls of the executor differ in all"
    )
    assert caught.value.details == {"board": "b"}


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
