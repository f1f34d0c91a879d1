"""`rlt import`: an ordinary run comes of it, or one sentence that says what does not fit."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

from foreign_files import FOLDER, needs_onnx
from rltools_host.commands import cli
from rltools_host.environments.headers import headers_of
from rltools_host.errors import RltError
from rltools_host.policies.image import parse_policy, read_run_policy
from rltools_host.policies.image_writing import sampled
from rltools_host.policies.importing.network import run as run_stages
from rltools_host.policies.importing.proof import normalized_stages
from rltools_host.policies.importing.reading import read_foreign
from rltools_host.policies.importing.state_dicts import Given
from rltools_host.policies.importing.target import target_of_contract
from rltools_host.runs.folder import RunFolder

SAC = str(FOLDER / "sb3_sac.zip")
PPO = str(FOLDER / "sb3_ppo_vec_normalize.zip")
CELL = str(FOLDER / "safetensors_gru_cell.safetensors")


def imported(folder: Path, *words: str) -> Path:
    path = folder / "run"
    assert cli.run(["import", *words, "--out", str(path)]) == 0
    return path


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.run([*words]) != 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "error: " in line]
    return line.removeprefix("error: ")


@pytest.mark.all
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
    printed = capsys.readouterr()
    assert len(json.loads(printed.out)["returns"]) == 2
    assert "fingerprint" not in printed.err
    assert "was made of a file, and has no evaluations of a training" in refusal(
        capsys, "runs", "compare", str(run), str(run)
    )
    assert cli.run(["export", str(run), "--to", "c", "--output", str(tmp_path / "p.h")]) == 0
    assert cli.run(["report", str(run)]) == 0
    page = (run / "report.html").read_text()
    assert "Imported from Stable-Baselines3 SAC" in page
    assert "training state" not in page
    capsys.readouterr()
    assert "was imported" in refusal(capsys, "train", "--resume", str(run))


def test_what_nobody_states_of_a_place_is_said_and_can_be_stated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (SAC, "--environment", "gym:Pendulum-v1", "--no-fly")
    image = read_run_policy(imported(tmp_path / "assumed", *words))
    said = " ".join(capsys.readouterr().err.split())
    assert "assumed: a step takes 50,000 us, the environment's dt; state it by --step-i" in said
    assert "the action is action_0 0, the middle of its range; state it by --safe-action" in said
    assert image.stated.assumed == parse_policy(image.data).stated.assumed == 24
    stated = ("--safe-action", "action_0=-1.5", "--step-interval-us", "20000")
    run = imported(tmp_path / "stated", *words, *stated)
    assert not any(option in capsys.readouterr().err for option in stated[::2])
    image = read_run_policy(run)
    assert (image.step_interval_us, parse_policy(image.data).stated.assumed) == (20_000, 0)
    task = RunFolder.open(run).content.gymnasium
    assert task is not None
    assert "kSafeAction[kActionDim] = {-1.5f};" in headers_of(task).contract_text
    header = tmp_path / "p.h"
    assert cli.run(["export", str(run), "--to", "c", "--output", str(header)]) == 0
    assert "_ACTION_DIM] = {-1.5f};" in header.read_text()
    assert "assumed" not in capsys.readouterr().err
    again = ("--out", str(tmp_path / "x"))
    wrong = refusal(capsys, "import", *words, *again, "--safe-action", "2.5")
    assert "the safe action of action_0: 2.5 lies outside of its range, -2 to 2" in wrong
    words = ("import", SAC, "--contract", "pendulum", *again)
    wrong = refusal(capsys, *words, "--step-interval-us", "20000")
    assert "--step-interval-us 20000: the contract pendulum states 50,000 us" in wrong


def test_an_environment_has_the_names_and_ranges_of_channels(tmp_path: Path) -> None:
    names = ("cosine", "sine", "rate")
    table = {"observations": [{"name": name, "unit": "1"} for name in names]}
    file = tmp_path / "channels.json"
    file.write_text(json.dumps(table))
    words = (SAC, "--environment", "gym:Pendulum-v1", "--no-fly", "--channels", str(file))
    run = imported(tmp_path, *words)
    assert tuple(each.name for each in read_run_policy(run).observations) == names


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
    # The image's examples are some of them, with the library's actions.
    examples = read_run_policy(tmp_path / "good").examples
    places = [int(np.flatnonzero((observations == x.observation).all(1))[0]) for x in examples]
    assert places == np.linspace(0, 999, 8).astype(int).tolist()
    given = np.array([example.action for example in examples])
    assert np.abs(given - actions[places]).max() <= 2e-6  # of a range of 4
    np.savez(recorded, observations=observations, actions=actions + np.float32(1e-5))
    assert "gives other actions than those recorded" in refusal(capsys, *words)
    np.savez(recorded, observations=observations)
    assert "actions must be (count, 1), and it has no such array" in refusal(capsys, *words)


SAID = ("--activation", "relu", "--output-activation", "tanh")


@pytest.mark.all
def test_a_recurrent_policy_is_flown_played_and_pushed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = imported(tmp_path, CELL, *SAID, "--environment", "gym:Pendulum-v1")
    printed = capsys.readouterr().out
    assert printed.startswith("PyTorch, 3-12-GRU10-1, for Pendulum-v1\n")
    proof = r"1,000 observations in 10 episodes: actions at most \S+e-\d\d from the file's formulas"
    assert re.search(proof, printed)
    flown = re.search(r"in Pendulum-v1: return (\S+) ± \S+ over 64 episodes", printed)
    assert flown is not None
    assert cli.run(["evaluate", str(run), "--episodes", "64", "--seed", "1000", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)  # of the same episodes, each with its own state
    assert document["return_mean"] == pytest.approx(float(flown[1]), abs=0.06)
    other = ["import", CELL, *SAID, "--contract", "pendulum", "--out", str(tmp_path / "other")]
    assert cli.run([*other, "--rate", "5"]) == 0
    recurrence = read_run_policy(tmp_path / "other").recurrence
    assert recurrence is not None
    assert recurrence.trained_interval_us == 200_000  # four times the pendulum's
    assert cli.run(["push", str(tmp_path / "other"), "--board", "host"]) == 0
    assert "16 examples give this machine's bits" in capsys.readouterr().out


def test_recorded_steps_are_compared_in_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    observations = sampled(target_of_contract("pendulum").contract, 1000)
    actions = np.load(FOLDER / "safetensors_gru_cell.npy")
    recorded = tmp_path / "recorded.npz"
    words = ["import", CELL, *SAID, "--contract", "pendulum", "--recorded", str(recorded)]
    starts = np.arange(1000) % 100 == 0
    np.savez(recorded, observations=observations, actions=actions, episode_starts=starts)
    assert cli.run([*words, "--out", str(tmp_path / "good")]) == 0
    assert "1,000 observations in 10 episodes: actions at most" in capsys.readouterr().out
    np.savez(recorded, observations=observations[:100], actions=actions[:100])
    assert cli.run([*words, "--out", str(tmp_path / "one")]) == 0
    assert "100 observations in 1 episode: actions at most" in capsys.readouterr().out
    for name, last in (("good", 900), ("one", 0)):  # the first steps of two episodes
        examples = read_run_policy(tmp_path / name).examples
        places = [*range(10), *range(last, last + 6)]
        assert [example.begins for example in examples] == [i in (0, 10) for i in range(16)]
        assert (np.array([x.observation for x in examples]) == observations[places]).all()
        given = np.array([example.action for example in examples])
        assert np.abs(given - actions[places]).max() <= 2e-6
    np.savez(recorded, observations=observations, actions=actions)
    assert "gives other actions than those recorded" in refusal(capsys, *words)
    np.savez(recorded, observations=observations, actions=actions, episode_starts=~starts)
    assert "episode_starts must be 1 where an episode begins" in refusal(capsys, *words)


STATED = FOLDER / "leapp_stated.yaml"


@needs_onnx
def test_a_description_has_a_contract(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = imported(tmp_path, str(STATED))
    printed = capsys.readouterr()
    assert printed.out.startswith("LEAPP, 13-12-8-4, normalizer, for the contract of its descript")
    assert re.fullmatch(r"assumed: where something is wrong the action is [^\n]*\n", printed.err)
    assert printed.out.endswith("--to c\n")
    contract = read_run_policy(run).contract
    assert contract.step_interval_us == 10_000
    channels = [*contract.observations, *contract.actions]
    assert [each.name for each in channels[:4]] == [*(f"position_{i}" for i in "xyz"), "velocity_x"]
    assert [str(channels[i]) for i in (6, 7, 12, 16)] == [
        '"attitude_w" in 1 from 0 to 1',
        '"attitude_x" in 1 from -1 to 1',
        '"rate_z" in rad/s from -35 to 35',
        '"action_d" in 1 from 0 to 1',
    ]
    assert cli.run(["export", str(run), "--to", "c", "--output", str(tmp_path / "p.h")]) == 0
    assert cli.run(["report", str(run)]) == 0


@needs_onnx
def test_what_a_description_does_not_state_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "leapp_stated.onnx").write_bytes(STATED.with_suffix(".onnx").read_bytes())
    file = tmp_path / "policy.yaml"

    def said(before: str, behind: str, *words: str) -> str:
        text, count = re.subn(before, behind, STATED.read_text())
        assert count
        file.write_text(text)
        return refusal(capsys, "import", str(file), *words).removeprefix(f"{file} ")

    asked = ": write that into it (docs/import.md), or name where the policy is to act, by one of "
    assert said(" +units: m/s\n", "").startswith(f"does not state units of velocity{asked}")
    rate = "  configs:\n +frequency: .*\n"
    assert said(rate, "").startswith(f"does not state frequency (or --rate HZ){asked}")
    assert "its position_x is from 5 to 5, not a range" in said("m: -5.0", "m: 5.0")
    assert "2 elements that are called position_x" in said(r"\[x, y, z\]", "[x, x, z]")
    file.write_text(re.sub(rate, "", re.sub(" +element_names.*\n", "", STATED.read_text())))
    assert cli.run(["import", str(file), "--rate", "50", "--out", str(tmp_path / "run")]) == 0
    assert "without names are numbered from 0: those of position," in capsys.readouterr().err
    assert read_run_policy(tmp_path / "run").contract.step_interval_us == 20_000


FILES = {"SAC": SAC, "PPO": PPO, "FOLDER": FOLDER}
REFUSALS = {
    "{SAC}": "name where the policy is to act",
    "{SAC} --contract quadrotor": "has 3 observations, and there are 13 here",
    "{PPO} --contract quadrotor": "was trained with a VecNormalize",
    "{FOLDER}/pytorch_gelu.pt --contract pendulum": "name it with --activation",
    "{SAC} --contract pendulum --rate 50": "is for 50 Hz, and the contract pendulum is asked at",
    "{SAC} --contract pendulum --out {FOLDER}": "is not empty: choose another folder",
}


@pytest.mark.parametrize("words", REFUSALS)
def test_what_does_not_fit_is_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    named = [word.format_map(FILES) for word in words.split()]  # a path may have spaces
    assert REFUSALS[words] in refusal(capsys, "import", *named)


def test_other_bounds_of_actions_are_refused() -> None:
    """Unless they are said to stand for the ranges here."""
    path = FOLDER / "sb3_td3.zip"
    policy = read_foreign(path, path.read_bytes(), Given())
    target = target_of_contract("quadrotor")
    other = dataclasses.replace(policy, action_bounds=(-np.ones(4), np.ones(4)))
    with pytest.raises(RltError, match="action 0 is from -1 to 1 in the file, and from 0 to 1"):
        normalized_stages(other, target.contract, None)
    assert normalized_stages(other, target.contract, "scaled") == [*policy.stages]
    in_units = dataclasses.replace(other, is_normalized=False)
    scaled = normalized_stages(in_units, target.contract, "scaled")
    assert scaled == [*policy.stages]
    wide = dataclasses.replace(in_units, action_bounds=(-2 * np.ones(4), 2 * np.ones(4)))
    last = normalized_stages(wide, target.contract, "scaled")[-1]
    assert run_stages([last], np.array([[-2.0, -1.0, 0.0, 2.0]])).tolist() == [[-1, -0.5, 0, 1]]
