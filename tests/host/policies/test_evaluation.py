"""Figures of an evaluation, by outcomes made by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from rltools_host.build.description import Channel
from rltools_host.policies.episodes import EpisodeEnd
from rltools_host.policies.evaluation import Evaluation
from rltools_host.policies.image import PolicyImage

CHANNELS = [Channel(name, unit, -9, 9) for name, unit in (("x", "m"), ("y", "1"))]
IMAGE = cast(
    PolicyImage, SimpleNamespace(experiment="walk-td3", environment="W", observations=CHANNELS)
)


def made(
    *outcomes: tuple[float, int, bool], simulator: str = "gymnasium 1", seed: int = 5
) -> Evaluation:
    found = tuple(
        EpisodeEnd(value, steps, ended, np.array([index, 1.0], np.float32))
        for index, (value, steps, ended) in enumerate(outcomes)
    )
    return Evaluation("r", IMAGE, simulator, seed, found, None)


FOUR = ((-1.0, 10, False), (-4.0, 1000, True), (-2.0, 2000, False), (-3.0, 1030, False))


def test_figures() -> None:
    """The deviation is that of the population, and the worst come first."""
    found = replace(made(*FOUR), success_return=-2.0)
    document = found.document()
    figures = [document[name] for name in ("return_mean", "return_std", "length_mean")]
    assert figures == [-2.5, pytest.approx(1.25**0.5), 1010.0]
    assert found.worst() == [1, 3, 2]
    assert found.worst_document(1) == {
        "seed": 6,
        "return": -4.0,
        "steps": 1000,
        "terminated": True,
        "start": {"x": 1.0, "y": 1.0},
    }
    assert "episode" in replace(found, simulator="core").worst_document(1)
    assert (found.success_rate, document["success_rate"]) == (0.5, 0.5)
    assert (found.is_solved, document["solved"]) == (found.mean >= -2.0,) * 2
    assert "1 of 4 terminated" in "".join(found.lines())
