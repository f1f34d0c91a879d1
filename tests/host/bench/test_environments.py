"""`rlt bench environments`: what is compared is the same work; nothing asserts a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rltools_host import cli
from rltools_host.bench import environments, harness
from rltools_host.bench.environments import ENVPOOL, GYMNASIUM, OURS, OURS_THREADS
from rltools_host.bench.harness import Contender


def run_tiny(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tasks: str, threads: int = 1
) -> dict[str, Any]:
    """Without EnvPool, which is not installed by tests."""
    monkeypatch.setattr(environments, "TURN_S", 0.001)
    monkeypatch.setattr(environments, "STEPS_OF_EACH", 2)
    return environments.run(tasks, threads, 2, tmp_path, with_envpool=False)


@pytest.mark.all
def test_pendulum_is_compared_by_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    document = run_tiny(tmp_path, monkeypatch, "Pendulum-v1", threads=2)
    assert document["errors"] == {}
    found = [(row["count"], row["turn"], row["name"]) for row in document["rows"]]
    expected = [
        (count, turn, name)
        for count in (1, 64, 1024)
        for turn in (1, 2)
        for name in (OURS, GYMNASIUM, OURS_THREADS)
        if not (count == 1 and name == OURS_THREADS)
    ]
    assert found == expected
    for row in document["rows"]:
        assert row["steps"] % row["count"] == 0
    for entry in document["summary"]:
        mine = [row for row in document["rows"] if row["count"] == entry["count"]]
        rates = {
            name: [row["steps"] / row["wall_s"] for row in mine if row["name"] == name]
            for name in entry["steps_s"]
        }
        assert entry["steps_s"] == pytest.approx({name: sum(rates[name]) / 2 for name in rates})
        ratios = [ours / theirs for ours, theirs in zip(rates[OURS], rates[GYMNASIUM], strict=True)]
        assert entry["ratios"][f"{OURS}/{GYMNASIUM}"] == pytest.approx(sum(ratios) / 2)
    assert document["loops"] == {}
    out = capsys.readouterr().out
    assert "Gymnasium 1." in out
    assert json.loads((tmp_path / "environments.json").read_text())["rounds"] == 2


def test_program_steps_what_it_is_told(tmp_path: Path) -> None:
    """Every episode of Pendulum has 200 steps; the numbers are the same on both devices."""
    answers = []
    for board, variables in (("host", {}), ("host-threads", {"RLT_THREADS": "2"})):
        program = str(harness.build_program("environment_steps", board))
        contender = Contender("it", [program], variables, tmp_path / "log", 60)
        try:
            assert contender.introduction["device"] == board
            first = contender.turn("Pendulum-v1 64 12799", 60)
            second = contender.turn("Pendulum-v1 64 12800", 60)
            other = contender.turn("Pendulum-v1 1 199", 60)
            with pytest.raises(harness.MeasurementError, match="no order: Pendulum-v1 7 1"):
                contender.turn("Pendulum-v1 7 1", 60)
        finally:
            contender.end()
        assert (first["steps"], first["episodes"]) == (12800, 64)
        assert (second["steps"], second["episodes"]) == (12800, 128)
        assert (other["steps"], other["episodes"]) == (199, 0)
        assert first["sum"] < 0, "costs"
        answers.append((first["sum"], second["sum"], other["sum"]))
    assert answers[0] == answers[1]
    assert len(set(answers[0])) == 3


@pytest.mark.all
def test_ants_are_compared_with_mujoco_s_own_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    loop = {"environment_steps_s": 9, "loop_steps_s": 10, "ratio": 0.9, "same_positions": True}
    ran: list[tuple[object, ...]] = []

    def ran_program(*words: object) -> tuple[dict[str, Any], None]:
        ran.append(words)
        return {"Ant-v4": loop, "Hopper-v4": loop}, None

    monkeypatch.setattr(harness, "run_program", ran_program)
    document = run_tiny(tmp_path, monkeypatch, "Ant-v4")
    assert ran == [("mujoco_steps", 2)]
    assert document["errors"] == {}
    assert document["loops"] == {"Ant-v4": loop}
    steps = {(row["count"], row["name"]): row["steps"] for row in document["rows"]}
    assert steps == {(1, OURS): 40, (1, GYMNASIUM): 40, (64, OURS): 128, (64, GYMNASIUM): 128}


def test_other_positions_are_no_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = {"Ant-v4": {"same_positions": False}}
    monkeypatch.setattr(harness, "run_program", lambda *_: (raw, None))
    monkeypatch.setattr(environments.tools, "ensure_group", lambda _: None)
    failures: dict[str, str] = {}
    assert environments.own_loops(["Ant-v4"], 1, failures) == {}
    assert failures == {"MuJoCo's own loop": "Ant-v4 comes to other positions"}


def test_turns_have_whole_steps_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "TURN_S", 0.3)
    monkeypatch.setattr(environments, "STEPS_OF_EACH", 50)
    assert environments.steps_of_turn(64, None) == 3200
    assert environments.steps_of_turn(1, None) == 1000
    assert environments.steps_of_turn(64, 1e-5) == 30000 // 64 * 64
    assert environments.steps_of_turn(64, 1.0) == 3200


def test_ratios_are_those_of_neighbours() -> None:
    seconds = {OURS: [1.0, 2.0, 1.0], GYMNASIUM: [4.0, 8.0, 5.0]}
    rows = [
        {"task": "A", "count": 1, "name": name, "turn": turn, "steps": 8, "wall_s": wall_s}
        for name, values in seconds.items()
        for turn, wall_s in enumerate(values)
    ]
    (entry,) = environments.summary(rows)
    assert entry["steps_s"] == {OURS: 8.0, GYMNASIUM: 1.6}
    assert entry["ratios"] == {f"{OURS}/{GYMNASIUM}": 4.0}
    assert f"{OURS}/{ENVPOOL}" not in entry["ratios"]


def test_what_a_person_reads() -> None:
    both = {f"{OURS}/{GYMNASIUM}": 12.345}
    rates = {OURS: 1234567.8, GYMNASIUM: 100_000.0}
    document = {
        "threads": 3,
        "rounds": 5,
        "summary": [
            {"task": "Pendulum-v1", "count": 1024, "steps_s": rates, "ratios": both},
            {"task": "Quadrotor", "count": 1, "steps_s": {OURS: 10.0}, "ratios": {}},
        ],
        "loops": {"Ant-v4": {"environment_steps_s": 12345, "ratio": 0.9876}},
        "versions": {OURS: "9", GYMNASIUM: "1.2", ENVPOOL: "EnvPool 0.8"},
        "errors": {ENVPOOL: "no luck", "MuJoCo's own loop": "no MuJoCo"},
        "machine": {"processor": "Z80", "cores": 3},
        "load_average": 0.5,
    }
    head, _, *table, first, second, empty, loop = environments.lines(document)
    assert head.endswith(
        "median of 5 turns; Gymnasium 1.2, EnvPool 0.8; Z80 (3 cores, load average 0.5)"
    )
    assert [[word.strip() for word in line.split("  ") if word] for line in table] == [
        ["task", "environments", "this repository", "Gymnasium", "to Gymnasium"],
        ["Pendulum-v1", "1,024", "1,234,568", "100,000", "12.35 x"],
        ["Quadrotor", "1", "10", "-", "-"],
    ]
    assert (first, second, empty) == ("EnvPool: no luck", "MuJoCo's own loop: no MuJoCo", "")
    assert loop == ("Ant-v4: 12,345 steps a second of a core's time, 98.8 % of MuJoCo's own loop")


def test_unknown_task_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["bench", "environments", "--tasks", "Ant-v5"]) == 3
    assert "did you mean Ant-v4?" in capsys.readouterr().err


@pytest.mark.all
def test_what_only_the_core_has_is_measured_without_peers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = run_tiny(tmp_path, monkeypatch, "Quadrotor,Quadrotor-history,Quadrotor-dynamics")
    assert document["errors"] == {}
    assert {row["name"] for row in document["rows"]} == {OURS}
    measured = [(entry["task"], entry["count"]) for entry in document["summary"]]
    assert measured == [
        *(("Quadrotor", count) for count in (1, 64, 1024)),
        ("Quadrotor-history", 1024),
        ("Quadrotor-dynamics", 1024),
    ]
    assert all(row["steps"] % row["count"] == 0 for row in document["rows"])
