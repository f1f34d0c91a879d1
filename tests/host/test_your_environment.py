"""docs/your_environment.md, followed: its commands are typed, its changes are made."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from programs import in_project
from rltools_host.tree import MARKER, TREE

GUIDE = TREE.root / "docs" / "your_environment.md"
BLOCK = re.compile(r"^```(sh|diff)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def changed(diff: str, read: Callable[[str], str]) -> tuple[str, str]:
    """A file's name, and its text in which lines with - are replaced by those with + behind them;
    each group is in the file once."""
    name, _, lines = diff.partition("\n")
    name = name.removeprefix("--- ")
    text = read(name)
    groups = re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)+)", lines, re.MULTILINE)
    assert sum(len(old + new) for old, new in groups) == len(lines), lines
    for old, new in groups:
        before, after = (re.sub("^[-+]", "", part, flags=re.MULTILINE) for part in (old, new))
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return name, text


@pytest.mark.all
@pytest.mark.timeout(600)  # a minute of a processor
def test_the_guide_leads_to_a_policy_on_a_board(project_in_tree: Path) -> None:
    project = project_in_tree
    said = ""
    for kind, text in BLOCK.findall(GUIDE.read_text(encoding="utf-8")):
        if kind == "diff":
            name, text = changed(text, lambda name: (project / name).read_text())
            (project / name).write_text(text)
            continue
        for line in text.splitlines():
            launcher, *words = shlex.split(line, comments=True)
            assert launcher == "./rlt", line
            said += in_project(project, "-m", "rltools_host", *words).stdout
    returns = re.findall(r"finished 10,000 steps .* return (\S+) ±", said)
    assert float(returns[0]) < 0 < 190 < float(returns[1]), "the mass, and the ball on the beam"
    assert "confirmed: active" in said
    assert re.search(r"(\d,\d+) of \1 inputs", said), "the bits of the board"
    assert (project / "ball_on_beam_policy.h").is_file()
    in_project(project, "-m", "pytest", "-q", "-c", MARKER, "tests")


def test_the_guide_s_changes_are_few_lines_of_two_files() -> None:
    """In the daily tests, without compiling. The third file is the test of the other two."""
    from rltools_host.commands import new

    files = new.in_cpp("ball-on-beam", has_contract=True)
    for kind, text in BLOCK.findall(GUIDE.read_text(encoding="utf-8")):
        if kind == "diff":
            name, text = changed(text, files.__getitem__)
            files[name] = text
    assert sorted(files) == [
        "contracts/ball_on_beam.h",  # what a board gets and gives
        "experiments/ball_on_beam.h",  # the environment and what trains in it
        "tests/test_ball_on_beam.py",
    ]
    assert sum(len(text.splitlines()) for text in files.values()) <= 81
