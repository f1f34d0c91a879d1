"""`rlt import`: an ordinary run comes of it, or one sentence that says what does not fit."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

from foreign_files import FOLDER
from rltools_host import cli
from rltools_host.errors import RltError
from rltools_host.foreign.network import run as run_stages
from rltools_host.foreign.place import place_of_contract
from rltools_host.foreign.proof import normalised_stages
from rltools_host.foreign.reading import read_foreign
from rltools_host.foreign.state_dicts import Given
from rltools_host.policies.image import read_run_policy
from rltools_host.policies.image_writing import sampled
from rltools_host.runs.folder import RunFolder

SAC = str(FOLDER / "sb3_sac.zip")
PPO = str(FOLDER / "sb3_ppo_vec_normalize.zip")
VEC_NORMALIZE = str(FOLDER / "sb3_ppo_vec_normalize.pkl")


def imported(folder: Path, *words: str) -> Path:
    path = folder / "run"
    assert cli.run(["import", *words, "--out", str(path)]) == 0
    return path


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.run([*words]) != 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "error: " in line]
    return line.removeprefix("error: ")


def test_a_policy_with_an_environment_is_played_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = imported(tmp_path, SAC, "--environment", "gym:Pendulum-v1", "--json")
    document = json.loads(capsys.readouterr().out)
    assert document["library"] == "Stable-Baselines3 SAC"
    assert document["proofs"][0]["difference"] <= 1e-6
    content = RunFolder.open(run).content
    assert content.state == "imported"
    assert content.imported is not None
    assert content.imported.file == "sb3_sac.zip"
    assert cli.run(["evaluate", str(run), "--episodes", "2", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["returns"]) == 2
    assert cli.run(["export", str(run), "--to", "c", "--output", str(tmp_path / "p.h")]) == 0
    assert cli.run(["report", str(run)]) == 0
    page = (run / "report.html").read_text()
    assert "Imported from Stable-Baselines3 SAC" in page
    assert "training state" not in page
    capsys.readouterr()
    assert "was imported" in refusal(capsys, "train", "--resume", str(run))


def test_a_policy_for_a_contract_goes_to_a_board(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = imported(tmp_path, SAC, "--contract", "pendulum")
    assert read_run_policy(run).contract.actions[0].unit == "N*m"
    assert cli.run(["push", str(run), "--board", "host"]) == 0
    assert "8 examples give this machine's bits" in capsys.readouterr().out
    assert cli.run(["report", str(run)]) == 0
    capsys.readouterr()
    assert "import it again with --environment" in refusal(capsys, "evaluate", str(run))


def test_recorded_actions_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = imported(tmp_path, SAC, "--contract", "pendulum")
    capsys.readouterr()
    observations = sampled(read_run_policy(run).contract, 1000)
    actions = np.load(FOLDER / "sb3_sac.npy")
    recorded = tmp_path / "recorded.npz"
    np.savez(recorded, observations=observations, actions=actions)
    words = ["import", SAC, "--contract", "pendulum", "--recorded", str(recorded)]
    assert cli.run([*words, "--out", str(tmp_path / "good")]) == 0
    assert "those recorded in" in capsys.readouterr().out
    np.savez(recorded, observations=observations, actions=actions + np.float32(1e-5))
    assert "gives other actions than those recorded" in refusal(capsys, *words)
    np.savez(recorded, observations=observations)
    assert "actions must be (count, 1), and it has no such array" in refusal(capsys, *words)


REFUSALS = {
    f"{SAC}": "name where the policy is to act",
    f"{SAC} --contract pendulum --environment gym:Pendulum-v1": "name where the policy is to act",
    f"{SAC} --contract nothing": 'unknown contract "nothing"',
    f"{SAC} --environment gym:Nothing-v0": "gymnasium has no environment",
    f"{SAC} --contract quadrotor": "has 3 observations, and there are 13 here",
    f"{SAC} --contract pendulum --activation relu": "says what its activations are",
    f"{SAC} --contract pendulum --actions no": "choose same or scaled",
    f"{SAC} --contract pendulum --normaliser {SAC}": "cannot be read as a normaliser",
    f"{SAC} --contract pendulum --normaliser {VEC_NORMALIZE}": "another number of observations",
    f"{PPO} --contract quadrotor": "was trained with a VecNormalize",
    f"{FOLDER}/pytorch_gelu.pt --contract pendulum": "name it with --activation",
    f"{FOLDER}/pytorch_gelu.pt --contract pendulum --activation gelu": "name it with --output-act",
    f"{FOLDER}/pytorch_gelu.pt --contract pendulum --activation glue": "did you mean gelu",
    f"{FOLDER}/cleanrl_ppo.cleanrl_model --contract pendulum": "say --actions same if they are",
    f"{FOLDER}/cleanrl_td3.cleanrl_model --environment HalfCheetah-v4x": "no environment",
    f"{SAC} --contract pendulum --no-fly": "has no effect with --contract",
    f"{SAC} --contract pendulum --rate 50": "is for 50 Hz, and the contract pendulum is asked at",
    f"{SAC} --contract pendulum --rate nan": "a rate is a number above 0",
    f"{SAC} --contract pendulum --correct sign": "known are actions:0.5",
    f"{SAC} --contract pendulum --out {FOLDER}": "is not empty: choose another folder",
    f"{FOLDER}/cleanrl_ppo.cleanrl_model --environment gym:CartPole-v1": "choices among names",
    "/nothing/here.zip --contract pendulum": "there is no file",
    "/tmp --contract pendulum": "cannot be read",
}


@pytest.mark.parametrize("words", REFUSALS, ids=lambda words: re.sub(r"\S*/", "", words))
def test_what_does_not_fit_is_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert REFUSALS[words] in refusal(capsys, "import", *words.split())


def test_other_bounds_of_actions_are_refused() -> None:
    """Unless they are said to stand for the ranges here."""
    path = FOLDER / "sb3_td3.zip"
    policy = read_foreign(path, path.read_bytes(), Given())
    place = place_of_contract("quadrotor")
    other = dataclasses.replace(policy, action_bounds=(-np.ones(4), np.ones(4)))
    with pytest.raises(RltError, match="action 0 is from -1 to 1 in the file, and from 0 to 1"):
        normalised_stages(other, place.contract, None)
    assert normalised_stages(other, place.contract, "scaled") == [*policy.stages]
    in_units = dataclasses.replace(other, is_normalised=False)
    scaled = normalised_stages(in_units, place.contract, "scaled")
    assert scaled == [*policy.stages]
    wide = dataclasses.replace(in_units, action_bounds=(-2 * np.ones(4), 2 * np.ones(4)))
    last = normalised_stages(wide, place.contract, "scaled")[-1]
    assert run_stages([last], np.array([[-2.0, -1.0, 0.0, 2.0]])).tolist() == [[-1, -0.5, 0, 1]]
