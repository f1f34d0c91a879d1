"""Cells of tutorials: each ends where its command or program fails, or does not fail as it says."""

from __future__ import annotations

import pytest

from rlt import notebook

PROGRAM = '#include <cstdio>\nint main() { std::puts("hello"); return RESULT; }\n'


def test_commands(capfd: pytest.CaptureFixture[str]) -> None:
    assert "host" in str(notebook.run_rlt("doctor --json"))
    assert not capfd.readouterr().out.rstrip().endswith("}")  # it is the cell's value instead
    notebook.run_rlt('--fails "did you mean" train pendulum-td4 --board host')
    with pytest.raises(notebook.CellError, match="rlt trian ended with exit code 2"):
        notebook.run_rlt("trian")
    for line in ('--fails "other" train pendulum-td4 --board host', '--fails "Usage" runs --help'):
        with pytest.raises(notebook.CellError, match="should have failed"):
            notebook.run_rlt(line)


def test_programs(capfd: pytest.CaptureFixture[str]) -> None:
    notebook.run_cpp("-DRESULT=0", PROGRAM)
    assert capfd.readouterr().out == "hello\n"
    notebook.run_cpp('--fails "RESULT"', PROGRAM)
    with pytest.raises(notebook.CellError, match="the program ended with exit code 3"):
        notebook.run_cpp("-DRESULT=3", PROGRAM)
    with pytest.raises(notebook.CellError, match="the compiler ended"):
        notebook.run_cpp("", PROGRAM)
