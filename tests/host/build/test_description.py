"""What compiled code states of itself, as types."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rltools_host.build import description
from rltools_host.build.description import Metric, Parameter, StateTensor
from rltools_host.errors import UsageError

PARAMETER = {
    "name": "gamma",
    "type": "F32",
    "default": 0.99,
    "minimum": 0,
    "maximum": 1,
    "unit": "",
    "description": "Discount.",
}
DOCUMENT = {
    "name": "cart-td3",
    "algorithm": "td3",
    "fingerprint": "77",
    "environments": 4.0,
    "environment": {"name": "Cart", "contract": "cart"},
    "hyperparameters": [PARAMETER, {**PARAMETER, "name": "seed", "type": "u32"}],
    "state": [{"name": "actor", "dtype": "F32", "shape": [8, 3], "offset": "96"}],
    "metrics": [{"name": "loss", "description": "Of the critic."}],
    "bytes": {"state": 192},
}


def test_description_of_an_experiment() -> None:
    found = description.experiment(DOCUMENT)
    assert (found.name, found.algorithm, found.fingerprint) == ("cart-td3", "td3", 77)
    assert (found.environments, found.bytes_of, found.contract) == (4, {"state": 192}, "cart")
    assert found.tensors == (StateTensor("actor", "F32", (8, 3), 96),)
    assert found.metrics == (Metric("loss", "Of the critic."),)
    gamma, seed = found.hyperparameters
    assert gamma == Parameter("gamma", "F32", 0.99, 0, 1, "", "Discount.")
    assert (gamma.is_whole, seed.is_whole) == (False, True)
    assert found.hyperparameter("seed") is seed
    with pytest.raises(UsageError, match="did you mean gamma"):
        found.hyperparameter("gama")
    assert found.learning == {}
    assert replace(found, document={"learning": {"tau": 1}}).learning == {"tau": 1}
    assert replace(found, document={"learning": [1]}).learning == {}
    assert replace(found, environment={}).contract is None
