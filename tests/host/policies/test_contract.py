"""What two contracts differ in, what a board's file must be, and what names ask for."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from rltools_host.build.description import Channel
from rltools_host.errors import DamagedFileError
from rltools_host.policies.contract import (
    Contract,
    ObservationSum,
    PastAction,
    channel_record,
    masks_of,
    output_dim,
    parse_contract,
    past_action,
    with_choices,
)

X, V = Channel("x", "m", -1.0, 1.0), Channel("v", "m/s", -2.0, 2.0)
FORCE, GEAR = Channel("force", "N", -5.0, 5.0), Channel("gear", "low|high", 0.0, 1.0)


def board_file(records: list[Channel], names: list[str], counts: tuple[int, int]) -> bytes:
    packed = b"".join(map(channel_record, records))
    choices = b"".join(struct.pack("24s", name.encode()) for name in names)
    return packed + choices + struct.pack("<IHH", 20_000, *counts)


def test_a_boards_file() -> None:
    content = board_file([X, V, FORCE, GEAR], ["low", "high"], (2, 2))
    contract = Contract((X, V), (FORCE, GEAR), 20_000)
    assert parse_contract(content, "b") == contract
    assert (output_dim(contract.actions), output_dim((FORCE,))) == (3, 1)
    assert parse_contract(board_file([], [], (0, 0)), "b") == Contract((), (), 20_000)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        board_file([X, V, FORCE], [], (2, 2)),
        board_file([X, V, GEAR], ["low"], (2, 1)),
        b"\0" + board_file([X, V, FORCE], [], (2, 1)),
    ],
)
def test_a_boards_file_that_contradicts_itself(content: bytes) -> None:
    with pytest.raises(DamagedFileError) as refused:
        parse_contract(content, "the board")
    assert str(refused.value) == ("the contract of the board contradicts itself: flash it again")


@pytest.mark.parametrize(("maximum", "expected"), [(1.0, "a|b"), (256.0, "choice")])
def test_an_action_takes_the_names_that_its_range_says(maximum: float, expected: str) -> None:
    names = struct.pack("24s24s", b"a", b"b")
    (found,) = with_choices([Channel("n", "choice", 0.0, maximum)], names)
    assert found.unit == expected
    assert with_choices([FORCE], names) == (FORCE,)
    first, second = with_choices([Channel("n", "choice", 0.0, 1.0)] * 2, names)
    assert (first.unit, second.unit) == ("a|b", "choice"), "there are no names left"


@pytest.mark.parametrize(
    ("name", "minimum", "maximum", "expected"),
    [
        ("force_t-1", -1.0, 1.0, PastAction(1, 1)),
        *((name, -1.0, 1.0, None) for name in ("force_t-0", "force_t-01", "x_t-1")),
        ("force_t-1", -1.0, 2.0, None),
    ],
)
def test_names_of_past_actions(
    name: str, minimum: float, maximum: float, expected: PastAction | None
) -> None:
    assert past_action(Channel(name, "1", minimum, maximum), (GEAR, FORCE)) == expected
    assert past_action(Channel(name, "N", minimum, maximum), (GEAR, FORCE)) is None


@pytest.mark.parametrize(
    ("name", "unit", "minimum", "maximum", "is_sum"),
    [
        ("x_sum", "m s", -3.0, 4.0, True),
        ("x_sum", "m s", 0.5, 4.0, False),
        ("x_sum", "m", -3.0, 4.0, False),
    ],
)
def test_names_of_sums(name: str, unit: str, minimum: float, maximum: float, is_sum: bool) -> None:
    last = Channel(name, unit, minimum, maximum)
    asked = Contract((V, X, last), (FORCE,), 20_000)
    expected = (ObservationSum(1, minimum, maximum, 20_000),) if is_sum else ()
    assert asked.added_inputs() == expected
    assert asked.without_added_inputs().observations == ((V, X) if is_sum else (V, X, last))


def test_the_first_observation_is_one() -> None:
    past = Channel("force_t-1", "1", -1.0, 1.0)
    older = replace(past, name="force_t-2")
    assert Contract((past,), (FORCE,), 1).added_inputs() == ()
    assert Contract((past, X), (FORCE,), 1).added_inputs() == ()
    behind = Contract((X, past, older), (FORCE,), 1).added_inputs()
    assert behind == (PastAction(0, 1), PastAction(0, 2))


def test_masks_are_the_first_observations_of_their_names() -> None:
    masks = [Channel(name, "1", 0.0, 1.0) for name in ("x", "gear:high", "gear:low", "gear:high")]
    assert masks_of(masks, (FORCE, GEAR)) == [None, 2, 1]
