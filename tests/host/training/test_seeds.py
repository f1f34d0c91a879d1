"""Seeds as they are typed."""

from __future__ import annotations

import pytest

from rltools_host.errors import UsageError
from rltools_host.training.group_plan import parse_seeds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", (0,)),
        ("0-3", (0, 1, 2, 3)),
        ("0,3,5-7", (0, 3, 5, 6, 7)),
        ("4294967295", (4294967295,)),
    ],
)
def test_seeds(text: str, expected: tuple[int, ...]) -> None:
    assert parse_seeds(text) == expected


@pytest.mark.parametrize("text", ["", "a", "5-3", "1,0-2", "4294967296", "0-16384"])
def test_what_are_no_seeds(text: str) -> None:
    with pytest.raises(UsageError):
        parse_seeds(text)
