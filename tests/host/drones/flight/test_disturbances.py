"""The link between simulator and board, and faults on purpose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rltools_host.drones.flight.disturbances import (
    FAULTS,
    OFF_US,
    START_US,
    TICK_US,
    Disturbances,
    DisturbedLink,
    Fault,
    newest_arrived,
    parse_fault,
    uniform,
)
from rltools_host.errors import UsageError


def arrived(ticks: int = 12, **fields: object) -> list[int]:
    return list(newest_arrived(replace(Disturbances(), **fields), ticks))  # type: ignore[arg-type]


def test_without_disturbances_each_tick_has_its_own_observation() -> None:
    assert arrived() == list(range(12))
    link = DisturbedLink(Disturbances(), 3)
    assert [link.at(tick).taken_us - START_US for tick in range(3)] == [0, TICK_US, 2 * TICK_US]
    values = np.arange(13, dtype=np.float32)
    assert link.spoil(0, values) is values


@pytest.mark.parametrize(("latency_ms", "ticks"), [(2.0, 1), (3.0, 2), (4.0, 2), (4.1, 3)])
def test_latency_in_whole_ticks(latency_ms: float, ticks: int) -> None:
    """From the first tick on: the drone was there before the flight, and was observed."""
    assert arrived(latency_ms=latency_ms) == [tick - ticks for tick in range(12)]


def test_jitter_delays_by_no_more_and_drops_what_was_overtaken() -> None:
    found = arrived(400, latency_ms=2.0, jitter_ms=6.0, seed=3)
    behind = [tick - taken for tick, taken in enumerate(found)]
    assert set(behind) == {1, 2, 3, 4}
    assert found == sorted(found)
    assert arrived(400, latency_ms=2.0, jitter_ms=6.0, seed=3) == found
    assert arrived(400, latency_ms=2.0, jitter_ms=6.0, seed=4) != found


def test_losses_have_their_share() -> None:
    found = arrived(4000, loss=0.25, seed=1)
    lost = sum(taken != tick for tick, taken in enumerate(found))
    assert 900 < lost < 1100
    assert arrived(50, loss=1.0) == [-1] * 50  # the last one before the flight


def test_a_cut_loses_what_arrives_meanwhile() -> None:
    found = arrived(faults=(Fault("cut", 4, 8),))
    assert found == [0, 1, 2, 3, 3, 3, 3, 3, 8, 9, 10, 11]
    late = arrived(faults=(Fault("cut", 4, 8),), latency_ms=2.0)
    assert late == [-1, 0, 1, 2, 2, 2, 2, 2, 7, 8, 9, 10]
    assert arrived(faults=(Fault("cut", 4),))[-1] == 3


def test_what_a_fault_does_to_an_observation() -> None:
    values = np.ones(13, np.float32)
    for what in FAULTS:
        link = DisturbedLink(Disturbances(faults=(Fault(what, 2, 4),)), 8)
        for tick in range(8):
            now_us = START_US + tick * TICK_US
            taken_us, spoilt = link.at(tick).taken_us, link.spoil(tick, values)
            holds = tick in (2, 3)
            off = {"stale": -OFF_US, "future": OFF_US}.get(what, 0) if holds else 0
            if what != "cut":
                assert taken_us == now_us + off
            assert np.isnan(spoilt).any() == (holds and what == "nan")
            assert bool(np.nanmax(spoilt) > 1) == (holds and what == "range")
    assert values.max() == 1  # it is the link's copy that is spoilt


def test_faults_as_they_are_typed() -> None:
    assert parse_fault("nan@2") == Fault("nan", 1000)
    assert parse_fault("cut@0.5..0.75") == Fault("cut", 250, 375)
    assert parse_fault("trial@1.") == Fault("trial", 500)


def test_a_wrong_fault_and_a_wrong_number_are_named() -> None:
    for text in ("nan", "nan@2..1", "trial@1..2"):
        with pytest.raises(UsageError, match=f"--fault {text}: "):
            parse_fault(text)
    with pytest.raises(UsageError, match="--jitter nan"):
        Disturbances(jitter_ms=float("nan")).check()


def test_the_stream_of_numbers() -> None:
    """Those of Philox, so that a flight is the same with every NumPy."""
    assert uniform(0, 3).tolist() == [
        0.011546754286331562,
        0.24154919656271812,
        0.11142585551493822,
    ]
