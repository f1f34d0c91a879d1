"""`rlt evaluate --gate`: what it prints, keeps and refuses, for a run and for a group of runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policy_run import GROUP, make_policy_run
from quadrotor_policies import constant_policy, controller
from rltools_host.commands import cli
from rltools_host.errors import BoardMismatchError, RefusedError
from rltools_host.runs.contents import Session
from rltools_host.runs.folder import RunFolder
from run_folders import change, new_group

GATE = {
    "like": "hover",
    "title": "Easy",
    "episodes": 30,
    "seconds": 3,
    "last_seconds": 0.5,
    "radius_m": 0.25,
    "settings": {
        "latency_ms": 0,
        "gust_m_s2": 0,
        "noise": 0,
        "start_tilt": 20,
        "start_position": 0.1,
        "start_velocity": 0.1,
        "start_rate": 0,
    },
}


@pytest.fixture
def gate(tmp_path: Path) -> str:
    path = tmp_path / "easy.json"
    path.write_text(json.dumps(GATE))
    return str(path)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_policy_run(tmp_path / "run", controller())


def evaluate(capsys: Any, *words: str | Path) -> tuple[int, str, str]:
    code = cli.run(["evaluate", *map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_text_and_json(run: Path, gate: str, capsys: Any) -> None:
    code, text, errors = evaluate(capsys, run, "--gate", gate)
    assert (code, errors) == (0, "")
    assert text.startswith("30 flights of quadrotor-ppo through the gate easy")
    code, text, _ = evaluate(capsys, run, "--gate", gate, "--json")
    document = json.loads(text)
    keys = (
        "run environment episodes return_mean return_std returns success_rate gate interval causes"
    )
    assert set(keys.split()) <= document.keys()
    assert (document["run"], document["gate"], document["episodes"]) == (str(run), "easy", 30)
    assert len(document["returns"]) == 30
    assert 0 < document["success_rate"] < 1
    again = json.loads(evaluate(capsys, run, "--gate", gate, "--json")[1])
    assert again == document
    assert (run / "gate-easy.json").is_file()


def test_other_starts_are_not_kept(run: Path, gate: str, capsys: Any) -> None:
    code, text, errors = evaluate(
        capsys, run, "--gate", gate, "--episodes", "7", "--seed", "3", "--json"
    )
    document = json.loads(text)
    assert (code, document["episodes"], document["seed"]) == (0, 7, 3)
    sentence = "the gate easy is 30 flights of seed 4000000000: these are others, and are not kept"
    assert document["notes"] == [sentence]
    assert errors == f"note: {sentence}\n"
    assert not (run / "gate-easy.json").exists()


def test_least(run: Path, gate: str, capsys: Any) -> None:
    assert evaluate(capsys, run, "--gate", gate, "--least", "0.01")[0] == 0
    code, text, errors = evaluate(capsys, run, "--gate", gate, "--least", "1")
    assert code == RefusedError.exit_code
    assert "success" in text
    assert errors.startswith("error: ")
    assert "% of the flights through the gate easy succeed, and 100.0 % were to" in errors


def test_a_policy_of_another_contract(tmp_path: Path, capsys: Any) -> None:
    pendulum = make_policy_run(tmp_path / "pendulum")
    code, _, errors = evaluate(capsys, pendulum, "--gate", "hover")
    assert code == BoardMismatchError.exit_code
    assert "policy.rltp is not a quadrotor's policy: observation 0 is" in errors


def test_a_group(tmp_path: Path, gate: str, capsys: Any) -> None:
    asked = {**GROUP, "experiment": "quadrotor-ppo", "seeds": [0, 1, 2]}
    group = new_group(tmp_path / "g", asked)
    group.close()
    code, text, errors = evaluate(capsys, group.path)
    assert (code, text) == (2, "")
    assert "has a policy yet: train them first" in errors
    make_policy_run(group.path / "s0", controller())
    make_policy_run(group.path / "s1", constant_policy(0, 0, 0, 0))
    code, text, errors = evaluate(capsys, group.path, "--gate", gate)
    assert code == 0
    assert errors == "note: s2 has no policy yet, and does not pass\n"
    assert "0 of 3 runs pass, 0 %: 99 % or more succeed" in text
    code, text, _ = evaluate(capsys, group.path, "--gate", gate, "--json", "--least", "0.9")
    assert code == RefusedError.exit_code
    document = json.loads(text.splitlines()[0])
    rates = [each["success_rate"] for each in document["evaluations"]]
    assert [each["training_seed"] for each in document["evaluations"]] == [0, 1]
    assert rates[0] > rates[1] == 0 == document["success_rate_worst"]
    assert document["success_rate"] == sum(rates) / 3
    assert (document["failed"], document["passed"], document["least"]) == (1, 0, 0.9)
    assert (group.path / "s1" / "gate-easy.json").is_file()


def test_a_run_that_a_fault_stopped_counts_as_zero(tmp_path: Path, gate: str, capsys: Any) -> None:
    """Its policy is of a save before the fault."""
    group = new_group(tmp_path / "g", {**GROUP, "experiment": "quadrotor-ppo", "seeds": [0, 1]})
    group.close()
    for seed in (0, 1):
        make_policy_run(group.path / f"s{seed}", controller())
    least = ("--gate", gate, "--least", "0.01", "--json")
    code, text, _ = evaluate(capsys, group.path, *least)
    rate = json.loads(text)["success_rate"]
    assert code == 0
    stopped = RunFolder.open(group.path / "s1")
    fault = Session(fault="a loss is not finite")
    change(stopped, experiment="quadrotor-ppo", state="fault", step=7, sessions=[fault])
    code, text, errors = evaluate(capsys, group.path, *least)
    document = json.loads(text)
    assert errors == "note: s1 stopped at step 7: a loss is not finite, and does not pass\n"
    assert document["success_rate"] == rate / 2
    assert document["success_rate_worst"] == 0
    assert (document["failed"], document["passed"]) == (1, 1)


def test_how_many_of_a_groups_returns_pass(tmp_path: Path, capsys: Any) -> None:
    group = new_group(tmp_path / "g", {**GROUP, "seeds": [0, 1, 2]})
    group.close()
    for seed in (0, 1):
        make_policy_run(group.path / f"s{seed}")
    words = (group.path, "--episodes", "3")
    code, text, _ = evaluate(capsys, *words, "--least", "-3000")
    assert code == 0
    assert text.splitlines()[-1].strip() == (
        "2 of 3 runs pass, 67 %: a mean return of at least -3000"
    )
    code, text, errors = evaluate(capsys, *words, "--least", "0", "--json")
    summary = json.loads(text.splitlines()[0])["summary"][0]
    assert (summary["runs"], summary["failed"], summary["passed"]) == (2, 1, 0)
    assert code == RefusedError.exit_code
    assert "and 0 was the least" in errors
