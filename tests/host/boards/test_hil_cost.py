"""The cost of a policy: samples from a board, also over a link that loses some."""

from __future__ import annotations

import numpy as np
import pytest

from policy_samples import sample_images
from rltools_host.boards.hil_result import Distribution, measure_cost
from rltools_host.boards.policies import MAX_SAMPLES, Measured
from rltools_host.build.cmake import load_dialect
from rltools_host.errors import RefusedError
from rltools_host.policies.image import parse_policy
from scripted_infer import ScriptedInfer


@pytest.fixture
def board() -> ScriptedInfer:
    return ScriptedInfer(load_dialect(), parse_policy(sample_images()["pendulum"]))


def distribution(*samples: int) -> Distribution:
    return Distribution(np.array(samples, np.int64))


# -- samples from a board --------------------------------------------------------------------------


def test_what_measuring_takes_is_subtracted(board: ScriptedInfer) -> None:
    progress: list[tuple[int, int]] = []
    cost = measure_cost(board.client, 3000, lambda *done: progress.append(done))
    batches = [MAX_SAMPLES, MAX_SAMPLES, 3000 - 2 * MAX_SAMPLES]
    assert board.measured == [
        (Measured.NOTHING, MAX_SAMPLES),
        *((Measured.FORWARD, count) for count in batches),
        *((Measured.TICK, count) for count in batches),
    ]
    assert cost.overhead == 11
    assert len(cost.forward.samples) == len(cost.tick.samples) == 3000
    assert (cost.forward.quantile(500), cost.tick.quantile(500)) == (100, 200)
    assert (cost.forward.samples.min(), cost.forward.samples.max()) == (99, 101)
    done = [1024, 2048, 3072, 4024, 5048, 6072, 7024]
    assert progress == [(each, 7024) for each in done]


@pytest.mark.parametrize("lost", ["COMMAND_ACK", "RLT_MEASUREMENT"])
def test_what_gets_lost_is_asked_for_again(board: ScriptedInfer, lost: str) -> None:
    board.lost[lost] = 1
    samples = board.client.measure(Measured.FORWARD, 5)
    assert samples == tuple(board.sample(Measured.FORWARD, index) for index in range(5))


def test_a_measurement_that_began_anew_is_waited_for(board: ScriptedInfer) -> None:
    """An acknowledgement is late: the command is repeated, and the first run's end is no end."""
    board.lost["COMMAND_ACK"] = 1
    board.file_is_missing_for = 1
    assert len(board.client.measure(Measured.FORWARD, 5)) == 5
    assert board.measured == [(Measured.FORWARD, 5)] * 2


def test_a_policy_that_is_dropped_meanwhile(board: ScriptedInfer) -> None:
    board.most_samples = 3
    with pytest.raises(RefusedError, match="to the end: its policy was dropped"):
        board.client.measure(Measured.TICK, 5)


# -- what they come to -----------------------------------------------------------------------------


def test_statistics_are_samples() -> None:
    found = distribution(*range(1, 1001)).statistics()
    quantiles = (found.median, found.p99, found.p999)
    assert (found.min, *quantiles, found.max) == (1, 500, 990, 999, 1000)
    assert found.mean == 500.5
    assert distribution(1, 1, 2).statistics().mean == 1.333
    assert distribution(3, 1, 2).quantile(500) == 2
