"""Whole numbers as people type them; names that a shell completes; progress on a terminal."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
import typer
from typer.main import get_command

from rltools_host import lines
from rltools_host.commands import options
from rltools_host.errors import UsageError


def option_of(kind: Any, **bounds: int) -> Any:
    """A command's option, as typer makes it."""
    app = typer.Typer()

    @app.command()
    def command(value: Any) -> None:
        del value

    command.__annotations__["value"] = Annotated[kind, typer.Option(**bounds)]
    (option,) = (each for each in get_command(app).params if each.name == "value")
    return option


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("1_000", 1000),
        ("1e5", 100_000),
        ("1E+2", 100),
        (" 2.5e6 ", 2_500_000),
        ("1.25e2", 125),
        ("1e19", 10**19),
        ("1e1", None),
        ("1e20", None),
        ("1.125e3", None),
        ("1e-5", None),
        ("2.5", None),
    ],
)
def test_whole_numbers_may_have_an_exponent(text: str, number: int | None) -> None:
    option, other = option_of(int), option_of(int)
    options.take_whole_numbers(option)
    if number is None:
        with pytest.raises(typer.BadParameter):
            option.type.convert(text, option, None)
    else:
        assert option.type.convert(text, option, None) == number
    assert other.type.convert("3", other, None) == 3  # that of others stays as it is
    with pytest.raises(typer.BadParameter):
        other.type.convert("1e5", other, None)


def test_bounds_stay_and_texts_are_left_alone() -> None:
    option = option_of(int, min=1, max=1000)
    options.take_whole_numbers(option)
    assert option.type.convert("1e3", option, None) == 1000
    with pytest.raises(typer.BadParameter):
        option.type.convert("1e4", option, None)
    text = option_of(str)
    before = text.type
    options.take_whole_numbers(text)
    assert text.type is before


def test_names_that_begin_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert options.beginning("ab", ["abc", "xab", "ab", "a"]) == ["abc", "ab"]
    assert options.beginning("", ["b", "a"]) == ["b", "a"]
    assert options.boards("teensy") == ["teensy41"]
    assert options.experiments("pendulum-td3") == ["pendulum-td3"]
    monkeypatch.setattr("rltools_host.runs.names.run_names", lambda _: ["old", "new"])
    assert options.runs("") == ["latest", "new", "old"]
    assert options.runs("o") == ["old"]


class Terminal(io.StringIO):
    is_one = True

    def isatty(self) -> bool:
        return self.is_one


def test_progress_is_of_terminals_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    line = options.ProgressLine("host")
    line.clear()
    assert stream.getvalue() == ""
    line.show("inputs compared", 1000, 2000)
    assert stream.getvalue() == "\r\x1b[Khost: 1,000 of 2,000 inputs compared"
    line.say("done")
    line.clear()
    assert stream.getvalue().count("\r\x1b[K") == 2
    assert capsys.readouterr().out == "done\n"
    options.ProgressLine().sent(1, 1234)
    assert stream.getvalue().endswith("\r\x1b[K\r\x1b[Ksent 1 of 1,234 bytes")
    stream.is_one = False
    before = stream.getvalue()
    options.ProgressLine().sent(2, 3)
    assert stream.getvalue() == before


def test_what_a_progress_says_breaks_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lines, "columns", lambda _: 60)
    text = "active already in slot 0, 8 examples give this machine's bits, in every layer"
    options.ProgressLine().say(text)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 2
    assert max(map(len, shown)) <= 60
    assert " ".join(" ".join(shown).split()) == text


def test_what_has_no_effect_is_named_as_it_is_typed() -> None:
    made: Any = SimpleNamespace
    assert options.name_of(made(name="x", opts=["-o", "--output"])) == "--output"
    assert options.name_of(made(name="x", opts=["name"], metavar="[NAME]")) == "NAME"
    given = {"a": "COMMANDLINE", "b": "DEFAULT", "c": "COMMANDLINE", "d": None}
    context = made(
        command=made(params=[made(name=name, opts=[f"--{name}"]) for name in given]),
        get_parameter_source=lambda name: given[name] and made(name=given[name]),
    )
    one, other = options.mode("in one", "a", "c"), options.mode("in the other", "a")
    third = options.mode("elsewhere", "c")
    options.require(context, (one, other, third), one)
    with pytest.raises(UsageError) as caught:
        options.require(context, (one, other, third), other)
    assert str(caught.value) == (
        "--c has no effect in the other: leave it out, it goes in one or elsewhere"
    )
