"""Files that the page or an export saved, in the place of a run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from checkpoint_files import with_metadata
from quadrotor_policies import controller
from rltools_host.commands import cli, import_policy
from rltools_host.commands.options import run_named
from rltools_host.errors import DamagedFileError, RltError, UsageError
from rltools_host.policies.evaluation import EvaluationRequest, evaluated
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.saves import CRC32_PLACE, image_crc32
from rltools_host.training import file_runs
from training_calls import train_here

EXPERIMENT, STEPS = "pendulum-td3", 300
EXPERIMENT_AT = slice(80, 112)  # in a policy image


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    path = tmp_path_factory.mktemp("runs") / "trained"
    train_here(EXPERIMENT, "host", steps=STEPS, out=path, tensorboard=False)
    return RunFolder.open(path)


@pytest.fixture(autouse=True)
def build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder in the place of build/, whose runs of files are then this test's."""
    monkeypatch.setattr(file_runs, "PROJECT", SimpleNamespace(build=tmp_path / "build"))
    return tmp_path / "build"


@pytest.fixture
def saved(trained: RunFolder, tmp_path: Path) -> dict[str, Path]:
    """The two files, as a browser saves them."""
    files = {".safetensors": trained.checkpoint_path, ".rltp": trained.policy_path}
    return {
        suffix: Path(shutil.copy(path, tmp_path / f"saved{suffix}"))
        for suffix, path in files.items()
    }


@pytest.mark.parametrize("suffix", [".safetensors", ".rltp"])
def test_a_file_has_the_policy_and_the_episodes_of_its_run(
    suffix: str, saved: dict[str, Path], trained: RunFolder, build: Path
) -> None:
    found = run_named(str(saved[suffix]))
    assert found is not None
    folder = RunFolder.open(found)
    assert folder.path.parent == (build / "opened").resolve()
    assert folder.policy_path.read_bytes() == trained.policy_path.read_bytes()
    request = EvaluationRequest(episodes=3)
    assert evaluated(folder, request)[0].returns == evaluated(trained, request)[0].returns
    assert run_named(str(saved[suffix])) == found


def test_a_comparison_says_that_a_file_has_no_evaluations(
    saved: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for file in saved.values():
        assert cli.run(["runs", "compare", str(file)]) == UsageError.exit_code
        assert "was made of a file, and has no evaluations of a training" in capsys.readouterr().err


def test_training_continues_a_file_to_the_bits_of_one_run(
    saved: dict[str, Path], tmp_path: Path
) -> None:
    on, whole = tmp_path / "on", tmp_path / "whole"
    more = train_here(
        board="host", resume=str(saved[".safetensors"]), steps=500, out=on, tensorboard=False
    )
    assert more["run"] == str(on)
    once = train_here(EXPERIMENT, "host", steps=500, out=whole, tensorboard=False)
    assert more["state_sha256"] == once["state_sha256"]


def test_a_refused_resumption_leaves_no_run(saved: dict[str, Path], tmp_path: Path) -> None:
    for suffix, why in ((".safetensors", "has done its 300 steps"), (".rltp", "is a policy, from")):
        with pytest.raises(UsageError, match=why):
            train_here(resume=str(saved[suffix]), steps=200, out=tmp_path / "on")
        assert not (tmp_path / "on").exists()


@pytest.mark.all
def test_an_import_makes_a_run_that_stays(saved: dict[str, Path], tmp_path: Path) -> None:
    for suffix, goes_on in ((".safetensors", True), (".rltp", False)):
        assert file_runs.is_own(saved[suffix])
        folder = import_policy.import_own(saved[suffix], tmp_path / f"run{suffix}", True)
        again = RunFolder.open(folder.path)
        assert (again.content.step, again.content.experiment) == (STEPS, EXPERIMENT)
        assert again.checkpoint_path.is_file() is goes_on


@pytest.mark.all
def test_a_policy_of_an_unknown_experiment_has_the_contract_of_its_channels(
    tmp_path: Path,
) -> None:
    file = tmp_path / "hand.rltp"
    data = bytearray(controller())
    data[EXPERIMENT_AT] = b"by-hand".ljust(32, b"\0")
    data[CRC32_PLACE] = image_crc32(bytes(data)).to_bytes(4, "little")
    file.write_bytes(data)
    folder = RunFolder.open(file_runs.run_of_file(str(file)))
    assert folder.content.contract == "quadrotor"
    assert folder.content.imported is not None


def other_experiment(data: bytes) -> bytes:
    return with_metadata(data, experiment="gym-servo-sac")


@pytest.mark.parametrize(
    ("suffix", "change", "error", "why"),
    [
        (".safetensors", lambda data: data[:-1], DamagedFileError, "does not match its SHA-256"),
        (".rltp", lambda data: data[:-1], DamagedFileError, "its header says"),
        (".safetensors", other_experiment, UsageError, "a Gymnasium task, which it does not"),
        (".rltp", lambda _: b"PK\x03\x04", UsageError, "is neither .*import"),
    ],
)
def test_what_is_none_is_refused_and_named(
    suffix: str,
    change: Callable[[bytes], bytes],
    error: type[RltError],
    why: str,
    saved: dict[str, Path],
    build: Path,
) -> None:
    saved[suffix].write_bytes(change(saved[suffix].read_bytes()))
    with pytest.raises(error, match=f"{saved[suffix].name}.*{why}"):
        file_runs.run_of_file(str(saved[suffix]))
    assert not list(build.rglob("run.json"))
