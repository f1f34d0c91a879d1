"""A whole run on this machine ends with the tensors that tests/goldens/state_tensors.json names.

Networks, moments and the replay buffer are compared one by one, so that a state laid out in another
way still proves that training computes the same numbers."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from rltools_host.runs.folder import RunFolder
from rltools_host.tree import TREE

GENERATOR = TREE.root / "tests" / "goldens" / "state_tensors.py"
specification = importlib.util.spec_from_file_location("state_tensors", GENERATOR)
assert specification
assert specification.loader
state_tensors = importlib.util.module_from_spec(specification)
specification.loader.exec_module(state_tensors)

STATES = {  # of seed 0, as `rlt train` prints them
    "pendulum-td3": "cb477b641fdc5db74abfdc2ec59bfb24e667cdc3f7451f199255d22773aea9dc",
    "pendulum-sac": "c010087a69b13a76d88ed70096b1951a607516144edb5eeb036b4274332628cd",
    "pendulum-ppo": "625457446708f89f9276bc61fb431368bad1413358ef29d9a5dacb602efd1d4a",
    "pendulum-xqc": "95f7829465e99e5d3083eb759de984ce50e46662ceb7f5bd7e15564eea549258",
}
LEARNED = ("actor", "critic", "log_", "temperature_optimizer", "replay/", "rollout/")


@pytest.mark.parametrize("experiment", state_tensors.EXPERIMENTS)
def test_run_ends_with_the_known_tensors(experiment: str, tmp_path: Path) -> None:
    goldens = json.loads(state_tensors.GOLDENS.read_text())[experiment]
    hashes = state_tensors.tensor_hashes(state_tensors.train(experiment, "host", tmp_path / "run"))
    learned = [name for name in goldens if name.startswith(LEARNED)]
    assert len(learned) >= len(goldens) - 20
    different = [name for name in learned if hashes.get(name) != goldens[name]]
    assert different == []
    assert hashes == goldens
    assert RunFolder.open(tmp_path / "run").content.state_sha256 == STATES[experiment]
