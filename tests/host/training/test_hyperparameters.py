"""Values as they are typed: each bound on both sides, and the sentence beyond it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fake_experiment import fake_experiment
from rltools_host.build.description import Parameter
from rltools_host.errors import UsageError
from rltools_host.training.hyperparameters import (
    LARGEST,
    as_float32,
    default_values,
    given_numbers,
    load_set_file,
    parse_value,
    plain_number,
    setting_texts,
    shortest,
)

WHOLE = Parameter("count", "U32", 2, 1, 2.0**32 - 1, "steps", "How many.")
NUMBER = Parameter("rate", "F32", 0.5, 0, 1 - 2.0**-24, "", "How fast.")
BELOW_ONE = 1 - 2.0**-24  # the largest float of 32 bits below 1


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


@pytest.mark.parametrize("text", ["0", "-1", "4294967296", "1.5", "", "a", "nan", "inf", "1e999"])
def test_whole_numbers_out_of_bounds(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_value(WHOLE, text)
    assert str(refused.value) == (
        f"count={text} is out of bounds: choose a whole number from 1 to 4294967295 steps "
        "(How many)"
    )


@pytest.mark.parametrize("text", ["-0.1", "1", "1e39", "a", "nan", "-inf"])
def test_numbers_out_of_bounds(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_value(NUMBER, text)
    assert str(refused.value) == (
        f"rate={text} is out of bounds: choose a number from 0 to 0.99999994 (How fast)"
    )


def test_a_number_that_is_0_in_a_float() -> None:
    with pytest.raises(UsageError) as refused:
        parse_value(NUMBER, "1e-60")
    assert str(refused.value) == (
        "rate=1e-60 is 0 in a float of 32 bits: give 0, or at least 1e-45"
    )


def test_bounds_as_they_are_typed() -> None:
    assert plain_number(WHOLE, 2.0**32 - 1) == "4294967295"
    assert plain_number(NUMBER, BELOW_ONE) == "0.99999994"
    assert plain_number(NUMBER, 0.1) == "0.1"
    assert plain_number(WHOLE, 1.5) == "1.5"
    assert [shortest(as_float32(value)) for value in (0.1, 3.0, 16777217.0)] == [0.1, 3, 16777216]
    assert shortest(3.4028234663852886e38) == 3.4028235e38
    defaults = default_values(fake_experiment())
    assert (defaults["steps"], defaults["learning_rate"]) == (1000, 0.001)
    assert isinstance(defaults["steps"], int)


def test_settings_as_they_are_typed() -> None:
    assert setting_texts([" a = 1", "b=", "c==2"], {"d": "4"}) == {
        "d": "4",
        "a": "1",
        "b": "",
        "c": "=2",
    }
    for settings, sentence in (
        (["a"], '--set "a" has no value: write --set name=value'),
        (["a=1", "a=2"], "a is given twice: give it once"),
        (["d=1"], "d is given twice: give it once"),
    ):
        with pytest.raises(UsageError) as refused:
            setting_texts(settings, {"d": "4"})
        assert str(refused.value) == sentence
    assert given_numbers(["a=1e3", "b=-2"]) == {"a": 1000.0, "b": -2.0}
    for text, said in (("x", "x"), ("", "nothing"), ("inf", "inf"), ("nan", "nan")):
        with pytest.raises(UsageError) as refused:
            given_numbers([f"a={text}"])
        assert str(refused.value) == f"--set a={text}: {said} is not a number"


def test_the_largest_file(tmp_path: Path) -> None:
    path = tmp_path / "values.json"
    path.write_text('{"a": 1, "b": 0.5}'.ljust(LARGEST))
    assert load_set_file(path).texts == {"a": "1", "b": "0.5"}
