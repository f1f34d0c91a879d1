"""Names that a shell completes; progress on a terminal."""

from __future__ import annotations

import io
import sys

import pytest

from rltools_host import lines
from rltools_host.commands import options


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
    line = lines.ProgressLine("host")
    line.clear()
    assert stream.getvalue() == ""
    line.show("inputs compared", 1000, 2000)
    assert stream.getvalue() == "\r\x1b[Khost: 1,000 of 2,000 inputs compared"
    line.say("done")
    line.clear()
    assert stream.getvalue().count("\r\x1b[K") == 2
    assert capsys.readouterr().out == "done\n"
    lines.ProgressLine().sent(1, 1234)
    assert stream.getvalue().endswith("\r\x1b[K\r\x1b[Ksent 1 of 1,234 bytes")
    stream.is_one = False
    before = stream.getvalue()
    lines.ProgressLine().sent(2, 3)
    assert stream.getvalue() == before


def test_what_a_progress_says_breaks_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lines, "columns", lambda _: 60)
    text = "active already in slot 0, 8 examples give this machine's bits, in every layer"
    lines.ProgressLine().say(text)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 2
    assert max(map(len, shown)) <= 60
    assert " ".join(" ".join(shown).split()) == text
