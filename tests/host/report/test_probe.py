"""What the hidden state of a policy knows: the states themselves, and the linear probe."""

from __future__ import annotations

import numpy as np
import pytest

from policy_samples import sample_images
from rltools_host.drones.flight.gate import load_gate
from rltools_host.drones.flight.simulator import Rule, fly
from rltools_host.policies.acting import HiddenState
from rltools_host.policies.image import PolicyImage, parse_policy
from rltools_host.report.airframes import HIDDEN_TICKS, KNOWN, determined, probe

RULE = Rule(seconds=0.5, last_seconds=0.1, radius_m=1)


@pytest.fixture(scope="module")
def image() -> PolicyImage:
    return parse_policy(sample_images()["recurrent_quadrotor"])


def test_hidden_states_are_those_of_the_policys_flight(image: PolicyImage) -> None:
    settings = load_gate("any-airframe").kinds["any attitude"].settings
    hidden = np.zeros((40, 25, 16), np.float32)
    outcomes, samples = fly(image, RULE, settings, 5, count=40, traced=True, hidden=hidden)
    assert HIDDEN_TICKS == 10
    assert outcomes["ticks"].max() == 250
    for flight in (3, 35):
        own = HiddenState(image)
        for tick, sample in enumerate(samples[flight]):
            _, action = own.run(2000 * tick, sample["observation"][None])
            assert action[0].tobytes() == sample["action"].tobytes()
            if tick % 10 == 0:
                assert hidden[flight, tick // 10].tobytes() == own._kept.tobytes(), tick
    threads = np.zeros_like(hidden)
    fly(image, RULE, settings, 5, count=40, threads=3, hidden=threads)
    assert threads.tobytes() == hidden.tobytes()


def test_a_linear_probe_is_judged_by_rows_that_it_was_not_fitted_to() -> None:
    random = np.random.default_rng(0)
    states = random.normal(size=(400, 6)).astype(np.float32)
    values = states.astype(float) @ random.normal(size=6) + 3
    assert determined(states, values) > 0.9999
    noise = random.normal(size=400) * values.std()
    assert determined(states, values + noise) == pytest.approx(0.5, abs=0.1)
    assert -0.2 < determined(states, noise) < 0.1
    few = np.column_stack([states, np.zeros((400, 3), np.float32)])  # units that are always zero
    assert determined(few, values) > 0.9999
    assert np.isnan(determined(states[:20], values[:20]))
    assert np.isnan(determined(states[:0], values[:0]))


def test_an_untrained_network_knows_what_shows_in_the_motion_and_no_mass(
    image: PolicyImage,
) -> None:
    """A reservoir tells something of ratios; of the mass, which moves nothing, not a bit."""
    gate = load_gate("any-airframe").kinds["hover"]
    found = probe(gate, image, flights=300)
    assert list(found.found) == list(KNOWN)
    assert found.time_s[[0, 1, -1]] == pytest.approx([0, 0.02, 2.98])
    early = slice(5, 20)
    assert np.nanmean(found.found["torque to inertia"][early]) > 0.05
    assert np.nanmax(found.found["mass"][early]) < 0.1
