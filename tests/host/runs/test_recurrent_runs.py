"""A run whose policy is recurrent has no policy image: what stands without, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltools_host import cli
from rltools_host.build import web_module
from rltools_host.build.experiments import is_recurrent
from rltools_host.commands.train import evaluation_lines
from rltools_host.errors import UsageError
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.contents import RECURRENT
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.saves import is_whole

STATE = "ab" * 32


def saved_run(path: Path, layers: tuple[str, ...]) -> RunFolder:
    """A finished run whose save has a checkpoint and no policy."""
    learning = {f"actor.layers[{i}]": kind for i, kind in enumerate(layers)}
    metadata = {"experiment": "pendulum-ppo-masked", "board": "host", "learning": learning}
    folder = RunFolder.create(path, {"format": 2, "state": "finished", **metadata})
    folder.commit(10, STATE, {"checkpoint.safetensors": b"x"}, {})
    folder.close()
    return RunFolder.open(path)


@pytest.mark.parametrize("which", ["last", "best"])
def test_no_policy_is_read_and_the_sentence_says_why(tmp_path: Path, which: str) -> None:
    folder = saved_run(tmp_path / "run", ("dense", "gru", "dense"))
    with pytest.raises(UsageError) as refused:
        read_run_policy(folder, which)
    assert str(refused.value) == f"the policy of run run is {RECURRENT}"
    assert "format 1" in RECURRENT


def test_such_a_save_is_whole_and_another_is_not(tmp_path: Path) -> None:
    recurrent = saved_run(tmp_path / "a", ("gru", "dense"))
    assert is_whole(recurrent.save_path, STATE, recurrent.content)
    recurrent.checkpoint_path.unlink()
    assert not is_whole(recurrent.save_path, STATE, recurrent.content)
    plain = saved_run(tmp_path / "b", ())
    assert not is_whole(plain.save_path, STATE, plain.content)


@pytest.mark.parametrize("words", [["evaluate"], ["export"], ["push", "--board", "host"]])
def test_commands_refuse_it_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    saved_run(tmp_path / "run", ("gru", "dense"))
    command, *options = words
    assert cli.run([command, str(tmp_path / "run"), *options]) != 0
    assert RECURRENT in capsys.readouterr().err


def test_neither_the_page_nor_the_end_of_a_training_offers_it(tmp_path: Path) -> None:
    assert is_recurrent("pendulum-ppo-masked")
    assert not is_recurrent("pendulum-ppo")
    with pytest.raises(UsageError, match=r"pendulum-ppo-masked is recurrent, .*hidden state"):
        web_module.require_web("pendulum-ppo-masked")
    document = {"experiment": "pendulum-ppo-masked", "environment": "MaskedPendulum"}
    assert evaluation_lines(document, tmp_path) == []
    document = {"experiment": "pendulum-ppo", "environment": "Pendulum-v1"}
    assert len(evaluation_lines(document, tmp_path)) == 1
