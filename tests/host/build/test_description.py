"""What compiled code states of itself, as types."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rltools_host.build import description
from rltools_host.build.description import Channel, Metric, Parameter, Shape, StateTensor, ranges_of
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


def test_channels_have_ranges_of_32_bits() -> None:
    entries = [
        {"name": "angle", "unit": "rad", "minimum": -3.4028234663852886e38, "maximum": 0.1},
        {"name": "gear", "unit": "low|high", "minimum": 0, "maximum": 1},
    ]
    angle, gear = description.channels(entries)
    assert (angle.minimum, angle.maximum) == (-3.4028234663852886e38, 0.10000000149011612)
    assert str(angle) == '"angle" in rad from -3.40282347e+38 to 0.100000001'
    assert (angle.choices, gear.choices) == ((), ("low", "high"))
    assert str(gear) == '"gear", a choice of low, high'
    low, high = ranges_of([gear, Channel("x", "m", -2, 3)])
    assert (low.tolist(), high.tolist(), low.dtype) == ([0, -2], [1, 3], "float32")


def test_shapes() -> None:
    entry = {"kind": "rod", "look": "body", "numbers": "0, 1"}
    assert description.shapes([entry]) == (Shape("rod", "body", "0, 1"),)
