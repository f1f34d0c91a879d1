"""Contenders of `rlt bench ppo` and `rlt bench environments`: their turns, and what they answer."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rltools_host.bench import harness
from rltools_host.bench.harness import Contender

IMPORTS = """
import os, sys, time
import numpy as np
from turns import TrainingTurns, Turns
"""
ECHO = """
turns = Turns()
print("a library says something")
turns.say({"version": "1"})
while True:
    words = turns.order()
    print("and more", flush=True)
    if words[0] == "die":
        sys.exit("out of luck")
    if words[0] == "sleep":
        time.sleep(60)
    if words[0] == "text":
        turns._answers.write("no JSON\\n")
        turns._answers.flush()
        continue
    time.sleep(float(words[0]))
    turns.say({"said": words, "pid": os.getpid()})
"""
# Two environments: an episode of 0 ends in every step with the number of the step, one of 1 never.
TRAINING = """
turns = TrainingTurns(2)
turns.say({})
step = 0
while True:
    turns.begin_iteration()
    for _ in range(30):
        step += 1
        turns.add_step(np.array([step, 7.0]), np.array([True, False]))
"""


class Made:
    """Contenders of a test, ended with it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.all: list[Contender] = []

    def __call__(self, script: str, limit_s: float = 60.0) -> Contender:
        path = self.directory / f"{len(self.all)}.py"
        path.write_text(IMPORTS + script)
        variables = {"PYTHONPATH": str(harness.PEERS_DIRECTORY)}
        command = [sys.executable, str(path)]
        contender = Contender("it", command, variables, path.with_suffix(".log"), limit_s)
        self.all.append(contender)
        return contender


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Made]:
    made = Made(tmp_path)
    yield made
    for contender in made.all:
        contender.end()


def state_of(pid: int) -> str:
    """T where it is stopped."""
    for _ in range(3000):  # a minute
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
        if state == "T":
            return state
        time.sleep(0.02)
    return state


def test_a_turn_is_timed_from_the_order_to_the_answer(make: Made) -> None:
    contender = make(ECHO)
    assert contender.introduction == {"version": "1"}
    short, long = contender.turn("0 a", 60), contender.turn("0.2 b", 60)
    assert (short["said"], long["said"]) == (["0", "a"], ["0.2", "b"])
    assert long["wall_s"] >= 0.2
    assert short["wall_s"] > 0
    assert "and more" in contender._log.read_text()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
def test_who_waits_is_stopped(make: Made) -> None:
    one, other = make(ECHO), make(ECHO)
    pids = [contender.turn("0", 60)["pid"] for contender in (one, other)]
    assert [state_of(pid) for pid in pids] == ["T", "T"]
    assert one.turn("0", 60)["pid"] == pids[0], "it does not go on"
    one.end()
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


@pytest.mark.parametrize(
    ("order", "limit_s", "reason"),
    [
        ("die", 60, "it: it ended with exit code 1: out of luck"),
        ("sleep", 0.3, "it did not answer in 0 s"),
        ("text", 60, "it answered something else than JSON"),
    ],
)
def test_who_fails_is_named(order: str, limit_s: float, reason: str, make: Made) -> None:
    contender = make(ECHO)
    with pytest.raises(harness.MeasurementError, match=reason):
        contender.turn(order, limit_s)


def test_who_does_not_begin_is_named(make: Made) -> None:
    with pytest.raises(harness.MeasurementError, match="No module named 'nowhere'"):
        make("import nowhere")
    with pytest.raises(harness.MeasurementError, match="did not answer"):
        make("time.sleep(60)", 0.3)


def test_training_turns_are_whole_iterations(make: Made) -> None:
    contender = make(TRAINING)
    first = contender.turn("61", 60)
    assert first["steps"] == 120, "60 of an iteration are not enough"
    assert first["episodes"] == 60
    assert [point["return_mean"] for point in first["iterations"]] == [None, None]
    second = contender.turn("120", 60)
    assert second["steps"] == 120
    assert [point["steps"] for point in second["iterations"]] == [180, 240]
    # the last hundred returns of 120 are 21 .. 120; the other environment's episode goes on
    assert second["iterations"][1]["return_mean"] == pytest.approx(70.5)
    seconds = [point["wall_s"] for point in second["iterations"]]
    assert 0 < seconds[0] < seconds[1] <= second["wall_s"]
    assert second["cpu_s"] > 0


def test_threads_of_libraries_are_those_that_are_asked_for() -> None:
    variables = harness.thread_variables(3)
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    assert {name: variables[name] for name in names} == dict.fromkeys(names, "3")
    assert variables["CUDA_VISIBLE_DEVICES"] == ""
