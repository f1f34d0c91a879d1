"""The steps of a command, on a terminal and elsewhere."""

from __future__ import annotations

import io
import re

import pytest

from rltools_host import lines
from rltools_host.screen.terminal import LiveStepsScreen, Step, StepsScreen, make_steps_screen


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def steps() -> list[Step]:
    return [Step("fit", "the parameters"), Step("train", "a policy")]


def test_elsewhere_lines_say_what_is_done_and_what_came_of_it() -> None:
    stream = io.StringIO()
    screen = make_steps_screen("a to b: 9 s", steps(), stream)
    assert type(screen) is StepsScreen
    with screen.step("fit") as step:
        screen.progress(step, 0.5)
        screen.say(step, "half")
        step.text = "found"
    with pytest.raises(KeyboardInterrupt), screen.step("train"):
        raise KeyboardInterrupt
    screen.close()
    begin, rest = stream.getvalue().split("  half\n")
    assert begin == "a to b: 9 s\n  fit    the parameters\n  train  a policy\n"
    assert re.fullmatch(r"fit     0\.\d\d s  found\n", rest)
    assert [step.state for step in screen.steps.values()] == ["done", "failed"]


@pytest.mark.parametrize("width", [40, 200])
def test_a_terminal_shows_a_line_for_each_step(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(lines, "columns", lambda _: width)
    stream = Terminal()
    screen = make_steps_screen("a to b", steps(), stream)
    assert type(screen) is LiveStepsScreen
    with screen.step("fit") as step:
        step.text = "found " * 30
    with screen.step("train") as step:
        screen.progress(step, 0.25)
        screen.say(step, "sent\nmore")
    screen.close()
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert "━" in shown
    assert " 25 %" in shown
    assert "more" not in shown
    last = shown[shown.rindex(" ✓ fit") :].rstrip().splitlines()
    assert " ".join(" ".join(last[:-1]).split()).endswith("found " * 29 + "found"), "nothing is cut"
    assert last[-1].startswith(" ✓ train")
    assert max(map(len, shown.replace("\r", "\n").splitlines())) < width
