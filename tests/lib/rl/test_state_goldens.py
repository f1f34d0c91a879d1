"""A whole run on this machine ends with the tensors that tests/goldens/state_tensors.json names.

Networks, moments and the replay buffer are compared one by one, so that a state laid out in another
way still proves that training computes the same numbers."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from rltools_host.tree import TREE

GENERATOR = TREE.root / "tests" / "goldens" / "state_tensors.py"
specification = importlib.util.spec_from_file_location("state_tensors", GENERATOR)
assert specification
assert specification.loader
state_tensors = importlib.util.module_from_spec(specification)
specification.loader.exec_module(state_tensors)

LEARNT = ("actor", "critic", "log_", "temperature_optimizer", "replay/", "rollout/")


@pytest.mark.parametrize("experiment", state_tensors.EXPERIMENTS)
def test_run_ends_with_the_known_tensors(experiment: str, tmp_path: Path) -> None:
    goldens = json.loads(state_tensors.GOLDENS.read_text())[experiment]
    hashes = state_tensors.tensor_hashes(state_tensors.train(experiment, "host", tmp_path / "run"))
    learnt = [name for name in goldens if name.startswith(LEARNT)]
    assert len(learnt) >= len(goldens) - 20
    different = [name for name in learnt if hashes.get(name) != goldens[name]]
    assert different == []
    assert hashes == goldens
