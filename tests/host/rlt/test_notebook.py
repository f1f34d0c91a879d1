"""Cells of tutorials: each ends where its command fails, or does not fail as it says."""

from __future__ import annotations

import pytest

from rlt import notebook


def test_commands(capfd: pytest.CaptureFixture[str]) -> None:
    assert "runs" in str(notebook.run_rlt("runs --json"))
    assert not capfd.readouterr().out.rstrip().endswith("}")  # it is the cell's value instead
    notebook.run_rlt('--fails "did you mean" train pendulum-td4 --board host')
    with pytest.raises(notebook.CellError, match="should have failed"):
        notebook.run_rlt('--fails "Usage" runs --help')
