"""Pendulum-v1 against other libraries: what rows come to, and how they are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rltools_host.bench import training
from rltools_host.bench.training import LOOP, OURS, Bar
from rltools_host.errors import RltError, UsageError
from rltools_host.tree import PROJECT


def row(name: str, train_s: float, **fields: Any) -> dict[str, Any]:
    usual = {"version": "1", "setup_s": 2.0, "return_mean": -150.0, "cpu_s": None}
    return {"name": name, "train_s": train_s, **usual, **fields}


ROWS = [
    row(OURS, 2.0),
    row(LOOP, 1.5, return_mean=None, cpu_s=1.25),
    row("sbx", 12.0, setup_s=4.0),
    {"name": "skrl", "error": "first"},
    row(OURS, 4.0, return_mean=-120.0),
    row("sbx", 6.0, return_mean=-100.0),
    {"name": "skrl", "error": "second"},
    {"name": "sbx", "error": "third time"},
    row("else", 3.0),
]


def test_an_entry_for_each_the_fastest_first() -> None:
    entries = training.summary(ROWS)
    assert [entry["name"] for entry in entries] == [LOOP, OURS, "else", "sbx", "skrl"]
    assert entries[0] == {
        "name": LOOP,
        "title": "this repository, loop alone",
        "version": "1",
        "runs": 1,
        "setup_s": 2.0,
        "train_s": 1.5,
        "cpu_s": 1.25,
        "return_mean": None,
        "times_ours": 0.5,
    }
    sbx = entries[3]
    assert (sbx["runs"], sbx["setup_s"], sbx["train_s"], sbx["times_ours"]) == (2, 3.0, 9.0, 3.0)
    assert (sbx["return_mean"], sbx["cpu_s"], sbx["title"]) == (-125.0, None, "sbx")
    assert entries[4] == {"name": "skrl", "title": "skrl", "error": "first"}
    assert "times_ours" not in training.summary(ROWS[2:3])[0]


def test_what_a_person_reads() -> None:
    document = {
        "algorithm": "sac",
        "steps": 12_000,
        "repetitions": 2,
        "episodes": 100,
        "summary": training.summary(ROWS),
        "overhead": {"wall": 0.013, "host_cpu": 0.034},
        "machine": {"processor": "Z80", "cores": 3},
        "load_average": 0.5,
        "build": {
            "experiment": "pendulum-sac",
            "repetitions": 3,
            "from_nothing_s": 6.0,
            "unchanged_start_s": 0.25,
            "changed_header_start_s": 3.5,
            "header": "sac.h",
        },
    }
    heads, loop, ours, other, sbx, skrl, reason, *rest = training.lines(document)[2:]
    assert training.lines(document)[:2] == [
        "SAC on Pendulum-v1, 12,000 steps, median of 2, 100 evaluation episodes; one core of Z80 "
        "(3 cores, load average 0.5)",
        "",
    ]
    columns = ["library", "version", "training", "processor", "times ours", "return", "setup"]
    assert [word.strip() for word in heads.split("  ") if word] == columns
    assert loop.split()[-9:] == ["1", "1.50", "s", "1.25", "s", "0.5", "-", "2.0", "s"]
    assert ours.split()[-7:] == ["3.00", "s", "-", "1.0", "-135.0", "2.0", "s"]
    assert other.split() == ["else", "1", "3.00", "s", "-", "1.0", "-150.0", "2.0", "s"]
    assert sbx.split() == ["sbx", "1", "9.00", "s", "-", "3.0", "-125.0", "3.0", "s"]
    assert skrl.split() == ["skrl", *"------"]
    assert reason == "skrl: first"
    assert rest == [
        "",
        "Link, log and screen add 1.3 % to the loop's time; the host tools' processor time is "
        "3.4 % of the loop's.",
        "pendulum-sac on this machine, median of 3:",
        "  built from nothing in 6.00 s",
        "  training 0.25 s after `rlt train`, nothing changed",
        "  training 3.50 s after `rlt train`, with a change of sac.h",
    ]
    assert not any("Link" in line for line in training.lines({**document, "overhead": None}))
    assert training.bars(document)[1:] == [
        Bar("this repository, rlt train", 3.0, "3.00 s", True),
        Bar("else", 3.0, "3.00 s", False),
        Bar("sbx", 9.0, "9.00 s", False),
    ]
    assert training.bars(document)[0].is_ours


def test_who_fails_is_not_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[tuple[str, int]] = []

    def good(seed: int) -> dict[str, Any]:
        asked.append(("good", seed))
        return {"train_s": 1.0 + seed}

    def bad(seed: int) -> dict[str, Any]:
        asked.append(("bad", seed))
        raise UsageError("no luck")

    rows = training.take_turns({"bad": bad, "good": good}, 2)
    assert asked == [("bad", 0), ("good", 0), ("good", 1)]
    assert rows[0] == {"name": "bad", "error": "no luck"}
    assert [(each["name"], each["train_s"]) for each in rows[1:]] == [("good", 1.0), ("good", 2.0)]
    assert "core" in rows[1]
    said = capsys.readouterr().err.splitlines()
    assert said == ["bad, seed 0: no luck", "good, seed 0: 1.00 s", "good, seed 1: 2.00 s"]


def test_peers_as_they_are_typed(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "td3.py").touch()
    assert training.chosen_peers("td3", None, False, tmp_path) == ["a", "b"]
    assert training.chosen_peers("td3", None, True, tmp_path) == ["pytorch"]
    assert training.chosen_peers("td3", "b, a,b,", False, tmp_path) == ["b", "a"]
    assert training.chosen_peers("td3", "b", True, tmp_path) == ["b"]
    assert training.chosen_peers("sac", None, False, tmp_path) == []
    with pytest.raises(UsageError, match=r'^--peers: unknown peer "c": '):
        training.chosen_peers("td3", "a,c", False, tmp_path)
    assert training.result_path("td3", tmp_path) == tmp_path / "train-td3.json"
    assert training.result_path("sac") == PROJECT.benchmarks / "train-sac.json"


def test_the_usual_benchmark() -> None:
    usual = training.TrainingBenchmark()
    assert (usual.quick, usual.peers, usual.repetitions, usual.chart) == (False, None, None, None)
    assert (usual.steps, usual.episodes, usual.algorithm) == (10_000, 100, "td3")


def test_what_is_typed_wrong_is_refused_before_anything_is_built() -> None:
    for fields in ({"peers": "none"}, {"peers": "none", "repetitions": 1}, {"quick": True}):
        request = training.TrainingBenchmark(**{"peers": "none", **fields})  # type: ignore[arg-type]
        with pytest.raises(UsageError, match='--peers: unknown peer "none"'):
            training.run(request)
    with pytest.raises(RltError, match='unknown algorithm "td4"'):
        training.run(training.TrainingBenchmark(algorithm="td4"))
    for name in ("steps", "episodes", "repetitions"):
        with pytest.raises(UsageError, match=f"--{name} 0: at least 1 is needed"):
            training.run(training.TrainingBenchmark(**{name: 0}))  # type: ignore[arg-type]
