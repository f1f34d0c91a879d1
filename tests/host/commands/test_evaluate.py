"""What `rlt evaluate` tells of a group's runs, by results made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rltools_host.commands import evaluate
from rltools_host.runs.group import RunName

made: Any = SimpleNamespace


def evaluation(returns: list[float], rate: float | None, experiment: str = "x") -> Any:
    return made(
        experiment=experiment,
        episodes=3,
        environment="Pendulum-v1",
        simulator="core",
        seed=7,
        success_rate=rate,
        returns=returns,
        mean=float(np.mean(returns)),
        std=float(np.std(returns)),
    )


@pytest.mark.parametrize(("other", "what"), [("x", "x"), ("y", "policy")])
def test_a_row_for_each_run(other: str, what: str) -> None:
    found = {
        RunName("", 0): evaluation([-9.0, 1.0, 2.0], None),
        RunName("a", 12): evaluation([5.0, 5.0, 5.0], 0.666, other),
    }
    head, *rows = evaluate.lines_of(found)
    assert head == (
        f"3 deterministic episodes of each run's {what} in Pendulum-v1 (core, from seed 7)"
    )
    assert [[word.strip() for word in row.split("  ") if word] for row in rows] == [
        ["run", "return", "median", "worst", "success"],
        ["s0", "-2.0 ± 5.0", "1.0", "-9.0", "-"],
        ["a/s12", "5.0 ± 0.0", "5.0", "5.0", "67 %"],
    ]


@pytest.mark.parametrize("parts", [{}, {"one": 1}])
def test_each_seeds_rate_through_a_gate_and_their_mean(parts: dict[str, int]) -> None:
    def result(successes: int, rate: float, settling: list[float]) -> Any:
        share = made(successes=successes, rate=rate, interval=(rate - 0.1, rate))
        return made(all=share, settling_s=np.array(settling), envelope=None)

    gate = made(
        flights=1000,
        name="hover",
        title="Hover",
        seed=5,
        parts=parts,
        rule=made(text="near"),
    )
    found = {
        RunName("", 0): result(3, 0.75, [3.0, 1.0, 2.0]),
        RunName("", 1): result(2, 0.5, [4.0, 1.0]),
        RunName("", 2): result(0, 0.2, []),
    }
    head, *rows, empty, last = evaluate.gate_lines(gate, found, 0.4834)
    assert head == "1,000 flights of each run's policy through the gate hover: Hover (seed 5)"
    settled = ["-"] * 3 if parts else ["2.00 s", "4.00 s", "-"]
    assert [[word.strip() for word in row.split("  ") if word] for row in rows] == [
        ["run", "success", "95 % interval", "settled, median"],
        ["s0", "75.0 %", "65.0 to 75.0", settled[0]],
        ["s1", "50.0 %", "40.0 to 50.0", settled[1]],
        ["s2", "20.0 %", "10.0 to 20.0", settled[2]],
    ]
    end = "in all parts together" if parts else "a success is near"
    assert (empty, last) == ("", f"  mean of 3 runs 48.3 %, worst 20.0 %; {end}")
