"""Which contract a board is built for: that of the run, before anything is built."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from policy_run import make_policy_run
from rltools_host.build import experiments
from rltools_host.errors import DamagedFileError, UsageError
from rltools_host.policies.board import place_of_run


def run_with(path: Path, document: Mapping[str, Any]) -> str:
    make_policy_run(path)
    (path / "run.json").write_text(json.dumps(document))
    return str(path)


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The experiments that were described; quadrotor-ppo is of a contract, ant-ppo of none."""
    asked: list[str] = []

    class Description:
        def __init__(self, contract: str | None) -> None:
            self.contract = contract

    def describe(name: str) -> Description:
        asked.append(name)
        return Description("quadrotor" if name == "quadrotor-ppo" else None)

    monkeypatch.setattr(experiments, "describe", describe)
    return asked


def test_a_run_states_its_contract(tmp_path: Path, described: list[str]) -> None:
    run = run_with(tmp_path / "run", {"experiment": "quadrotor-ppo", "contract": "quadrotor"})
    assert place_of_run(run, "all-emulated", None, None).contract == "quadrotor"
    assert place_of_run(run, "host", None, "pendulum").contract == "pendulum", "who asks, gets it"
    assert described == []


def test_a_run_of_earlier_tools_has_that_of_its_experiment(
    tmp_path: Path, described: list[str]
) -> None:
    run = run_with(tmp_path / "run", {"experiment": "quadrotor-ppo"})
    assert place_of_run(run, "host", None, None).contract == "quadrotor"
    assert described == ["quadrotor-ppo"]


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"experiment": "ant-ppo"}, "of ant-ppo, whose environment has channels of its own"),
        ({"experiment": "ant-ppo", "contract": None}, "channels of its own, and boards are built"),
        (
            {"experiment": "beam-sac"},
            "beam-sac, which is not an experiment here: name the contract of its policies with "
            "--contract, acrobot, cart-pole, masked-pendulum, pendulum, quadrotor or racing-car",
        ),
    ],
)
@pytest.mark.usefixtures("described")
def test_no_board_can_be_built_for_it(
    document: Mapping[str, Any], says: str, tmp_path: Path
) -> None:
    run = run_with(tmp_path / "run", document)
    with pytest.raises(UsageError, match=says):
        place_of_run(run, "host", None, None)
    assert place_of_run(run, "teensy41", "/dev/ttyACM0", None).port, "what is there is not built"
    assert place_of_run(run, "crazyflie", None, None).is_crazyflie


def test_a_contract_that_is_no_name(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", {"experiment": "x", "contract": "../../x"})
    with pytest.raises(DamagedFileError, match="contract: Expected `str` matching regex"):
        place_of_run(run, "host", None, None)


def test_the_contract_of_each_experiment_here() -> None:
    assert experiments.describe("pendulum-td3").contract == "pendulum"
