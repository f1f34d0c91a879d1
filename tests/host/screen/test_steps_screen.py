"""The steps of a command, on a terminal and elsewhere."""

from __future__ import annotations

import io
import re

import pytest

from rltools_host.screen.terminal import Step, StepsScreen


def steps() -> list[Step]:
    return [Step("fit", "the parameters"), Step("train", "a policy")]


def test_elsewhere_lines_say_what_is_done_and_what_came_of_it() -> None:
    stream = io.StringIO()
    screen = StepsScreen("a to b: 9 s", steps(), stream)
    with screen.step("fit") as step:
        screen.progress(step, 0.5)
        screen.say("half")
        step.text = "found"
    with pytest.raises(KeyboardInterrupt), screen.step("train"):
        raise KeyboardInterrupt
    begin, rest = stream.getvalue().split("  half\n")
    assert begin == "a to b: 9 s\n  fit    the parameters\n  train  a policy\n"
    assert re.fullmatch(r"fit     0\.\d\d s  found\n", rest)
    assert [step.state for step in screen.steps.values()] == ["done", "failed"]
