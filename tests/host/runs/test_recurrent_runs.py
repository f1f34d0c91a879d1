"""Runs of recurrent policies that earlier tools trained: they have a checkpoint and no policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltools_host.errors import UnknownNameError
from rltools_host.policies.image import read_run_policy
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


def test_the_sentence_says_how_it_comes_by_one(tmp_path: Path) -> None:
    folder = saved_run(tmp_path / "run", ("dense", "gru", "dense"))
    with pytest.raises(UnknownNameError, match=r"run run has no policy yet: resume it"):
        read_run_policy(folder)


def test_such_a_save_is_whole_and_another_is_not(tmp_path: Path) -> None:
    recurrent = saved_run(tmp_path / "a", ("gru", "dense"))
    assert is_whole(recurrent.save_path, STATE, recurrent.content)
    (recurrent.save_path / "policy.rltp").write_bytes(b"of another state")
    assert not is_whole(recurrent.save_path, STATE, recurrent.content)
    (recurrent.save_path / "policy.rltp").unlink()
    recurrent.checkpoint_path.unlink()
    assert not is_whole(recurrent.save_path, STATE, recurrent.content)
    plain = saved_run(tmp_path / "b", ())
    assert not is_whole(plain.save_path, STATE, plain.content)
