"""Values as they are typed: each bound on both sides."""

from __future__ import annotations

import pytest

from rltools_host.build.description import Parameter
from rltools_host.errors import UsageError
from rltools_host.training.hyperparameters import (
    parse_value,
)

WHOLE = Parameter("count", "U32", 2, 1, 2.0**32 - 1, "steps", "How many.")
NUMBER = Parameter("rate", "F32", 0.5, 0, 1 - 2.0**-24, "", "How fast.")


@pytest.mark.parametrize(
    ("entry", "text", "value"),
    [
        (WHOLE, "1", 1),
        (WHOLE, "4294967295", 4294967295),
        (WHOLE, "+1_000", 1000),
        (WHOLE, "1e3", 1000),
        (WHOLE, " 7 ", 7),
        (NUMBER, "0", 0.0),
        (NUMBER, "0.99999994", 0.99999994),
        (NUMBER, "1e-45", 1e-45),
        (NUMBER, "-0.0", 0.0),
    ],
)
def test_values_within_the_bounds(entry: Parameter, text: str, value: float) -> None:
    found = parse_value(entry, text)
    assert (found, type(found)) == (value, int if entry is WHOLE else float)


def test_values_out_of_bounds() -> None:
    for text in ("0", "4294967296", "1.5", "", "nan", "1e999"):
        with pytest.raises(UsageError, match=f"count={text} is out of bounds: choose a whole num"):
            parse_value(WHOLE, text)
    for text in ("-0.1", "1", "1e39", "nan"):
        with pytest.raises(UsageError, match=f"rate={text} is out of bounds: choose a number from"):
            parse_value(NUMBER, text)
    with pytest.raises(UsageError, match="rate=1e-60 is 0 in a float of 32 bits"):
        parse_value(NUMBER, "1e-60")
