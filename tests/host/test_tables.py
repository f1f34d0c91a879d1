"""What a narrow terminal shows: nothing is cut, and no number, path or command is broken."""

from __future__ import annotations

import io
import os
import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from rltools_host.lines import (
    UNLIMITED,
    columns,
    folded,
    in_columns,
)
from terminal import on_terminal

PATH = "/home/somebody/a-project/runs/20261125-103000-pendulum-td3-on-qemu-cortex-m7"
COMMAND = "`./rlt train --resume runs/20261125-103000-pendulum-td3 --steps 20000`"
LINES = [
    "100 deterministic episodes of pendulum-td3 in Pendulum-v1 (the core's simulator, seed 0)",
    "  return   -1395.1 ± 91.8   worst -1538.9   median -1396.0   best -1023.6",
    f"paused at step 12,345 of 1,000,000, checkpoint saved in {PATH}; go on with {COMMAND}",
]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 140])
def test_lines_break_between_words(width: int) -> None:
    lines = in_columns(LINES, width)
    text = "\n".join(lines)
    assert " ".join(text.split()) == " ".join(" ".join(LINES).split())
    for whole in (PATH, COMMAND, "-1395.1 ± 91.8", "worst -1538.9", "12,345", "of 1,000,000"):
        assert any(whole in line for line in lines), whole
    longest = max(len(PATH) + 1, len(COMMAND)) + width // 3
    assert all(len(line) <= width or len(line) <= longest for line in lines)
    if width >= 40:
        whole_words = (PATH, COMMAND)
        assert all(len(line) <= width for line in lines if not any(w in line for w in whole_words))


def test_a_table_that_is_too_wide_is_a_paragraph_for_each_row() -> None:
    rows = [("name", "path", "steps"), ("first", PATH, "1,000,000")]
    assert folded(rows, 60) == ["first", f"  path {PATH}", "  steps 1,000,000"]
    assert len(folded(rows, 140)) == 2
    assert folded([("slot", "use"), ("0", "in trial")], 12) == ["slot 0", "  use in trial"]


ROWS = [("name", "x", "y"), ("first", "a" * 6, "-"), ("second", "b", "c"), ("bare", "-", "")]


@pytest.mark.parametrize(
    ("rows", "width", "expected"),
    [
        (ROWS[:3], 17, ["name    x       y", "first   aaaaaa  -", "second  b       c"]),
        (ROWS, 16, ["first", "  x aaaaaa", "second", "  x b   y c", "bare"]),
        (ROWS[::2], 11, ["second", "  x b   y c"]),
        (ROWS[::2], 10, ["second", "  x b", "  y c"]),
        (
            [("name", "", "z"), ("row", "-", "long entry"), ("7", "a path", "")],
            12,
            ["row", "  z long entry", "name 7", "  a path"],
        ),
        # Settings are a list, which may be broken; a path with commas is not.
        ([("name", "x"), ("row", "a=1, b=22")], 9, ["row", "  x a=1,", "   b=22"]),
        ([("name", "x"), ("row", "a/1, b/22")], 9, ["row", "  x a/1, b/22"]),
        # Of eight spaces in a line on it is a sentence, and broken.
        ([("name", "x"), ("row", "aa bb cc dd ee")], 12, ["row", "  x aa bb cc dd ee"]),
        (
            [("name", "x"), ("row", "aa bb cc dd ee ff")],
            12,
            ["row", "  x aa bb cc", "    dd ee ff"],
        ),
    ],
)
def test_paragraphs_of_a_table(
    rows: list[tuple[str, ...]], width: int, expected: list[str]
) -> None:
    assert folded(rows, width) == expected


@pytest.mark.parametrize(
    ("line", "width", "expected"),
    [
        ("ab cd", 5, ["ab cd"]),
        ("ab cd", 4, ["ab", " cd"]),  # a third of the width at most
        ("  ab cd ef", 9, ["  ab cd", "   ef"]),
        ("  ab cd ef gh ij", 13, ["  ab cd ef gh", "    ij"]),  # two more than the line has
        ("     long words here", 18, ["     long words", "     here"]),
        ("a   long words here", 18, ["a   long words", "    here"]),
    ],
)
def test_what_follows_is_indented(line: str, width: int, expected: list[str]) -> None:
    assert in_columns([line], width) == expected


def test_width_of_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal: Any = SimpleNamespace(isatty=lambda: True, fileno=lambda: 3)
    sizes = {3: os.terminal_size((73, 9))}
    monkeypatch.setattr(os, "get_terminal_size", sizes.__getitem__)
    assert columns(terminal) == 73
    sizes[3] = os.terminal_size((0, 0))
    assert columns(terminal) == UNLIMITED, "a terminal that does not know its size"
    terminal.fileno = lambda: io.StringIO().fileno()
    assert columns(terminal) == UNLIMITED
    assert columns(io.StringIO()) == UNLIMITED
    closed = io.StringIO()
    closed.close()
    assert columns(closed) == UNLIMITED


@pytest.mark.parametrize(
    "words", [["doctor"], ["study"], ["policies", "--board", "hots"], ["bords"]]
)
def test_a_command_on_a_terminal_of_60_columns(words: list[str]) -> None:
    _, lines = on_terminal([sys.executable, "-m", "rltools_host", *words], 60)
    assert lines
    for line in lines:
        whole = re.fullmatch(r"\s*\S*\s?\S+", line) or "`" in line
        assert len(line) <= 60 or whole or "apt-get" in line, line
