"""`rlt hil` with the board that is a process here."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policy_run import make_policy_run
from rltools_host.boards import hil, parity
from rltools_host.boards import policy_session as policy_board
from rltools_host.boards.hil_inputs import make_inputs
from rltools_host.boards.parity import sha256_of
from rltools_host.boards.policy_session import PolicyTarget
from rltools_host.boards.push import PushRequest, push
from rltools_host.commands import cli
from rltools_host.errors import RefusedError
from rltools_host.policies.image import read_run_policy
from rltools_host.tree import TREE

pytestmark = pytest.mark.usefixtures("storage")

SMALL = ["--inputs", "30", "--samples", "50"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_policy_run(tmp_path / "run")


def last_json(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return document


def test_the_whole_way(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["hil", "--board", "host", "--run", str(run), *SMALL, "--json"]
    assert cli.run([*words, "--out", str(tmp_path / "out.json"), "--layers"]) == 0
    output = capsys.readouterr().out.splitlines()
    document = json.loads(output[-1])
    assert list(document) == [
        *("board", "experiment", "implementation", "contract", "network", "policy_sha256"),
        *("samples", "max_abs_diff", "time_us", "tick", "overhead"),
        *("flash_bytes", "ram_bytes", "stack_bytes", "outputs_sha256", "parity"),
    ]
    text = (TREE.root / "docs" / "hardware_in_loop.md").read_text()
    for key in (*document, *document["parity"], *document["time_us"]["histogram"], "results"):
        assert f"`{key}`" in text
    assert " ".join(key for key in document["time_us"] if key != "histogram") in text
    image = read_run_policy(run)
    assert document["policy_sha256"] == image.sha256
    assert (document["board"], document["implementation"]) == ("host", "Host")
    assert (document["samples"], document["max_abs_diff"]) == (50, 0.0)
    assert document["parity"]["inputs"] == 30
    assert document["parity"]["mismatches"] == 0
    actions = image.evaluate(make_inputs(image.observations, 30).values)
    assert document["outputs_sha256"] == sha256_of(actions.view(np.uint32))
    statistics = document["time_us"]
    assert sum(statistics["histogram"]["counts"]) == 50
    assert statistics["min"] <= statistics["median"] <= statistics["p99"] <= statistics["max"]
    for path in (run / "hil-host.json", tmp_path / "out.json"):
        assert json.loads(path.read_text()) == document
    assert any(line.split()[:2] == ["#0", "3"] for line in output)
    assert any("39 of 39 inputs" in line for line in output)
    assert not any("instructions" in line for line in output[:-1])


def test_a_board_that_was_started_for_it_keeps_its_own_policies(run: Path, storage: Path) -> None:
    assert cli.run(["hil", "--board", "host", "--run", str(run), *SMALL]) == 0
    assert not storage.exists()


def test_other_bits_fail_with_one_sentence(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As if this machine were right and the board wrong."""
    real = parity.forward

    def forward(*arguments: Any) -> Any:
        expected = real(*arguments)
        layers = expected[4].layers
        assert layers is not None
        expected[4] = dataclasses.replace(expected[4], layers=(layers[0], 0, *layers[2:]))
        return expected

    monkeypatch.setattr(parity, "forward", forward)
    code = cli.run(["hil", "--board", "host", "--run", str(run), *SMALL, "--json"])
    assert code == RefusedError.exit_code
    captured = capsys.readouterr()
    error = captured.err.splitlines()[-1]
    assert error.startswith(
        "error: host computes other bits than this machine: layer 2 of 3 differs"
    )
    assert "input #4 (within its range)" in error
    document = json.loads(captured.out.splitlines()[-1])
    assert document["error"] in error
    assert document["parity"]["mismatches"] == 1
    assert document["time_us"] is None
    assert document["samples"] == 0
    kept = json.loads((run / "hil-host.json").read_text())
    assert kept["parity"]["first_mismatch"] in error


# -- what a board has already ----------------------------------------------------------------------


def with_policy(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The board keeps a policy, and what is started here counts as one that goes on."""
    push(PushRequest(str(run), PolicyTarget("host")), lambda _: None)
    monkeypatch.setattr(hil, "run_meant", lambda run, *_: run)
    real = policy_board.policy_session
    monkeypatch.setattr(hil, "policy_session", lambda place, *_: real(place))


def test_without_a_run_the_policy_of_the_board_counts(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_policy(run, monkeypatch)
    capsys.readouterr()
    assert cli.run(["hil", "--board", "host", *SMALL, "--json"]) == 0
    assert last_json(capsys)["policy_sha256"] == read_run_policy(run).sha256
    assert not (run / "hil-host.json").exists()
