"""What a narrow terminal shows: nothing is cut, and no number, path or command is broken."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from rltools_host.ui.table import folded, in_columns, wrapped

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


def test_what_follows_stands_beneath_what_is_beside_the_label() -> None:
    assert in_columns(LINES[1:2], 60) == [
        "  return   -1395.1 ± 91.8   worst -1538.9   median -1396.0",
        "           best -1023.6",
    ]
    assert wrapped("a sentence of words", 12, "- ", "  ") == ["- a sentence", "  of words"]
    assert in_columns(["short", ""], 60) == ["short", ""]


def test_a_table_that_is_too_wide_is_a_paragraph_for_each_row() -> None:
    rows = [("name", "path", "steps"), ("first", PATH, "1,000,000")]
    assert folded(rows, 60) == ["first", f"  path {PATH}", "  steps 1,000,000"]
    assert len(folded(rows, 140)) == 2
    assert folded([("slot", "use"), ("0", "in trial")], 12) == ["slot 0", "  use in trial"]


@pytest.mark.parametrize(
    "words", [["boards"], ["doctor"], ["study"], ["policies", "--board", "hots"], ["bords"]]
)
def test_a_command_on_a_terminal_of_60_columns(words: list[str]) -> None:
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("4H", 40, 60, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-m", "rltools_host", *words], stdin=its, stdout=its, stderr=its
    ):
        os.close(its)
        output = b""
        try:
            while piece := os.read(ours, 65536):
                output += piece
        except OSError:  # it has closed its end
            pass
    os.close(ours)
    lines = output.decode().splitlines()
    assert lines
    for line in lines:
        whole = re.fullmatch(r"\s*\S*\s?\S+", line) or "`" in line
        assert len(line) <= 60 or whole or "apt-get" in line, line


def test_help_on_a_narrow_terminal_breaks_no_name() -> None:
    environment = {**os.environ, "COLUMNS": "60"}
    command = [sys.executable, "-m", "rltools_host", "train", "--help"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    lines = result.stdout.splitlines()
    assert all(len(line) <= 60 or "Example: " in line for line in lines)
    for name in ("qemu-cortex-m7", "host-threads", "rlt boards`", "socket://HOST:PORT"):
        assert any(name in line for line in lines), name
    assert "\u2011" not in result.stdout
    assert "\xa0" not in result.stdout
