"""What `rlt bench ppo` tells of its turns: tables, charts and the way to a return."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rltools_host.bench import ppo, ppo_result
from rltools_host.bench.contenders import OURS, ROLLOUT, TRAIN
from rltools_host.bench.training import Bar
from rltools_host.tree import PROJECT

WHERE = {
    "machine": {"processor": "Z80", "cores": 3},
    "load_average": 0.5,
    "threads": 2,
    "date": "today",
}


def entry(name: str, steps_s: float, **fields: Any) -> dict[str, Any]:
    usual = {"version": 1, "simulator": "MuJoCo", "cpu_us_a_step": None, "of_rollout": None}
    learns = {"learns": name != ROLLOUT, "ours_times": 2.0, "title": ppo_result.TITLES[name]}
    return {"name": name, "steps_s": steps_s, **usual, **learns, **fields}


FAILED = {"name": "rl_games", "title": "rl_games", "error": "no luck"}
SUMMARY = [
    entry(OURS, 12345.6, of_rollout=0.756, settings="64 x 64", cpu_us_a_step=41.6, ours_times=1),
    entry("pytorch", 6000.0, ours_times=2.058),
    entry(ROLLOUT, 16329.0, of_rollout=1.0, ours_times=None),
    FAILED,
]


def test_lines_of_turns() -> None:
    document = {**WHERE, "rounds": 7, "turn_steps": 20480, "summary": SUMMARY}
    head, _, heads, *rows, empty, fastest, simulates = ppo_result.lines(document)
    assert head.startswith(
        "PPO on Ant-v4, 2 threads each: steps of the whole loop, median of 7 turns of 20,480 steps;"
    )
    assert head.endswith("; Z80 (3 cores, load average at the start 0.5)")
    found = [[word.strip() for word in row.split("  ") if word] for row in (heads, *rows)]
    assert found == [
        [
            *("library", "version", "simulator", "settings", "steps/s", "of mujoco.rollout"),
            *("our loop is", "processor time a step"),
        ],
        [
            *("this repository, loop alone", "1", "MuJoCo", "64 x 64", "12,346", "76 %"),
            *("1.00 x", "42 us"),
        ],
        ["PyTorch, single file", "1", "MuJoCo", "6,000", "-", "2.06 x", "-"],
        ["mujoco.rollout alone", "1", "MuJoCo", "16,329", "100 %", "- x", "-"],
        ["rl_games", *"-------"],
        ["rl_games: no luck"],
    ]
    assert (empty, fastest) == ("", "Against the fastest library, PyTorch, single file: 2.06 x.")
    assert simulates == "Against mujoco.rollout, which only simulates: 76 %."
    alone = ppo_result.lines({**document, "summary": [entry(OURS, 1.0)]})
    assert alone[-1] == ""
    assert ppo_result.bars(document) == [
        Bar("this repository, loop alone", 12345.6, "12,346", True),
        Bar("PyTorch, single file", 6000.0, "6,000", False),
        Bar("mujoco.rollout alone", 16329.0, "16,329", False),
    ]


def test_the_best_peer_is_the_fastest_that_learns() -> None:
    others = [entry("stable_baselines3", 7000.0), entry(TRAIN, 9000.0)]
    best = ppo_result.best_peer([*SUMMARY, *others])
    assert best is not None
    assert best["name"] == "stable_baselines3"
    assert ppo_result.ratio_of_turns({1: 2.0}, {2: 1.0}) is None


CURVE = [
    {"return_mean": None, "steps": 10, "train_s": 1.0},
    {"return_mean": 2500.0, "steps": 20_000, "train_s": 1234.4},
    {"return_mean": 2100.0, "steps": 30_000, "train_s": 2000.0},
]


def test_time_to_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {name: {"version": "1", "settings": "own"} for name in (OURS, "pytorch", "rl_games")}
    rows = [
        {"name": OURS, "curve": CURVE, "train_s": 2000.0},
        {"name": "pytorch", "curve": CURVE[:1], "train_s": 1.0},
        {"name": "rl_games", "curve": CURVE, "train_s": 9.0},
        {"name": TRAIN, "curve": [], "train_s": 0.0},
    ]
    wanted = (2000.0, 4000.0)
    entries = ppo_result.returns_summary(rows, said, {"rl_games": "no luck"}, wanted)
    ours, other, failed = entries
    there = {"return": 2000.0, "train_s": 1234.4, "steps": 20_000}
    assert ours == {
        "name": OURS,
        "title": "this repository, loop alone",
        "version": "1",
        "settings": "own",
        "reached": [there, None],
        "best_return": 2500.0,
        "train_s": 2000.0,
        "steps": 30_000,
    }
    assert (other["reached"], other["best_return"]) == ([None, None], None)
    assert failed == FAILED
    document = {**WHERE, "returns": wanted, "seed": 3, "steps": 3_000_000, "summary": entries}
    head, _, heads, *table = ppo_result.returns_lines(document)
    assert "for the task, seed 3, 3,000,000 steps at most: " in head
    found = [[word.strip() for word in row.split("  ") if word] for row in (heads, *table)]
    assert found == [
        ["library", "settings", "to 2,000", "to 4,000", "best mean", "in all"],
        [
            *("this repository, loop alone", "own", "1,234 s, 20,000 steps", "not reached"),
            *("2,500", "2,000 s, 30,000 steps"),
        ],
        ["PyTorch, single file", "own", *2 * ["not reached"], "-", "1 s, 10 steps"],
        ["rl_games", *"-----"],
        ["rl_games: no luck"],
    ]
    drawn: list[Any] = []
    monkeypatch.setattr(ppo_result, "draw_bars", lambda *words: drawn.append(words))
    slow = {**ours, "name": "slow", "title": "slow", "reached": [{**there, "train_s": 1300.0}]}
    assert ppo_result.draw_returns({**document, "summary": [slow, *entries]}, Path("x"))
    ((bars, title, unit, path),) = drawn
    assert bars == [
        Bar("this repository, loop alone", 1234.4, "1,234 s", True),
        Bar("slow", 1300.0, "1,300 s", False),
    ]
    assert title == (
        "PPO on Ant-v4, 2 threads each: to a mean training return of 2,000, Z80, today"
    )
    assert (unit, path) == ("seconds", Path("x"))
    assert not ppo_result.draw_returns({**document, "summary": [other, failed]}, Path("x"))
    assert not ppo_result.draw_chart({**document, "summary": [FAILED]}, Path("x"))
    assert len(drawn) == 1
    assert ppo_result.draw_chart({**document, "summary": SUMMARY}, Path("y"))
    assert drawn[1][1:] == (
        "PPO on Ant-v4, 2 threads each, Z80, today",
        "steps a second",
        Path("y"),
    )


class Scripted:
    """A contender whose turn gives these answers."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.name, self.answers, self.orders = "it", list(answers), list[str]()
        self.introduction: dict[str, Any] = {}

    def turn(self, order: str, limit_s: float) -> dict[str, Any]:
        assert limit_s == 1800.0
        self.orders.append(order)
        return self.answers.pop(0)

    def end(self) -> None: ...


GOOD = {"steps": 100, "wall_s": 0.5, "cpu_s": None}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (GOOD, None),
        ({**GOOD, "steps": 99}, "it did 99 of 100 steps"),
        ({"steps": 100, "wall_s": 0.5}, "it did 100 of 100 steps"),
        ({"wall_s": 0.5}, "it gave no result"),
    ],
)
def test_a_turn_has_all_its_steps(
    answer: dict[str, Any], reason: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    failures: dict[str, str] = {}
    row = ppo.one_turn(Scripted(answer), 100, 4, failures)
    assert row == (None if reason else {"name": "it", "turn": 4, **GOOD})
    assert failures == ({"it": reason} if reason else {})
    said = reason or "200 steps a second"
    assert capsys.readouterr().err == f"it, turn 4: {said}\n"


def test_the_first_turn_warms_up() -> None:
    """With one iteration; the rows are those of the others."""
    warm = {"steps": 64 * 64, "wall_s": 1.0, "cpu_s": 1.0}
    one = Scripted(warm, {**GOOD, "iterations": []}, GOOD)
    rows = ppo.equal_turns({"it": one}, 100, 2, {})
    assert one.orders == ["4096", "100", "100"]
    assert rows == [{"name": "it", "turn": turn, **GOOD} for turn in (1, 2)]
    assert ppo.equal_turns({"it": Scripted()}, 100, 2, {"it": "no luck"}) == []


def test_results_of_the_two_kinds_lie_apart(tmp_path: Path) -> None:
    assert ppo.result_path(tmp_path) == tmp_path / "result.json"
    assert ppo.result_path(tmp_path, True) == tmp_path / "result-returns.json"
    assert ppo.result_path() == PROJECT.benchmarks / "ppo/result.json"
    usual = ppo.PpoBenchmark()
    assert (usual.threads, usual.rounds, usual.turn_steps) == (2, 7, 20480)
    assert (usual.peers, usual.to_return, usual.seed, usual.chart) == (None, False, 0, None)
