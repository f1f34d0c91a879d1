"""What outcomes of episodes come to, in figures and in words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from rltools_host.build.description import Channel
from rltools_host.policies.episodes import EpisodeEnd
from rltools_host.policies.evaluation import Evaluation, one_decimal
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


def test_document() -> None:
    assert made((-1.0, 10, True), (-4.0, 20, False)).document() == {
        "run": "r",
        "experiment": "walk-td3",
        "environment": "W",
        "simulator": "gymnasium 1",
        "seed": 5,
        "episodes": 2,
        "return_mean": -2.5,
        "return_std": 1.5,
        "returns": [-1.0, -4.0],
        "length_mean": 15.0,
        "lengths": [10, 20],
        "terminated": [True, False],
        "worst": [
            {
                "seed": 6,
                "return": -4.0,
                "steps": 20,
                "terminated": False,
                "start": {"x": 1.0, "y": 1.0},
            },
            {
                "seed": 5,
                "return": -1.0,
                "steps": 10,
                "terminated": True,
                "start": {"x": 0.0, "y": 1.0},
            },
        ],
        "success_rate": None,
        "success_return": None,
    }


def test_lines_of_gymnasiums_episodes() -> None:
    assert made(*FOUR).lines() == [
        "4 deterministic episodes of walk-td3 in W (gymnasium 1, seeds 5 to 8)",
        "  return   -2.5 ± 1.1   worst -4.0   median -2.5   best -1.0",
        "  length   1,010 steps   shortest 10   longest 2,000   1 of 4 terminated",
        "  worst    -4.0 in 1,000 steps, terminated: seed 6, from x 1 m",
        "           -3.0 in 1,030 steps: seed 8, from x 3 m",
        "           -2.0 in 2,000 steps: seed 7, from x 2 m",
    ]


def test_lines_of_the_cores_episodes() -> None:
    few = made((-1.0, 1000, False), (-3.0, 1000, True), simulator="core", seed=7)
    assert few.lines() == [
        "2 deterministic episodes of walk-td3 in W (core, seed 7)",
        "  return   -2.0 ± 1.0   worst -3.0   median -2.0   best -1.0",
        "  length   1,000 steps   1 of 2 terminated",
    ]
    assert made(*FOUR, simulator="core").worst_lines()[0].endswith(": episode 1, from x 1 m")
    assert made(*FOUR[:3]).worst_lines() == [], "all would be told"


def test_solved_from_the_threshold_on() -> None:
    solved = Evaluation("r", IMAGE, "core", 0, made(*FOUR).outcomes, -2.0)
    assert solved.success_rate == 0.5
    assert solved.lines()[3] == (
        "  success  50 %   episodes with a return of at least -2, which counts as solved"
    )


def test_what_is_unusual_comes_in_the_order_of_the_channels() -> None:
    names = ("a", "b", "c", "d", "e", "f")
    image = cast(
        PolicyImage, SimpleNamespace(observations=[Channel(name, "1", -9, 9) for name in names])
    )
    # The mean of each is 0. The last episode's distances, in deviations: a 0, b, c, d and e 1 or
    # more, and f does not vary.
    starts = np.array(
        [[2, -1, -1, -4, -1, 3], [-2, -1, -1, 0, -3, 3], [0, 2, 2, 4, 4, 3]], np.float32
    )
    outcomes = tuple(EpisodeEnd(0.0, 1, False, start) for start in starts)
    found = Evaluation("r", image, "core", 0, outcomes, None)
    start = dict(zip(names, map(float, starts[2]), strict=True))
    assert found.unusual(start) == ["b 2", "c 2", "d 4", "e 4"]
    alike = Evaluation("r", image, "core", 0, outcomes[:1] * 4, None)
    assert alike.worst_lines()[0].endswith(": episode 0, from where all begin")


@pytest.mark.parametrize(
    ("value", "text"), [(-149.06, "-149.1"), (-0.04, "0.0"), (0.25, "0.2"), (2, "2.0")]
)
def test_one_decimal(value: float, text: str) -> None:
    assert one_decimal(value) == text
