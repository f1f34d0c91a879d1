"""The picture of what a policy's hidden state knows."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from drawn import check_drawn, drawn
from policy_samples import sample_images
from quadrotor_policies import controller
from rltools_host.drones.flight.gate import load_gate
from rltools_host.drones.flight.gate_result import GateResult, fly_gate
from rltools_host.policies.image import parse_policy
from rltools_host.report import airframes
from rltools_host.report.airframes import KNOWN, Probe


def test_what_the_hidden_state_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    times = np.linspace(0, 3, 4)
    known = {name: np.linspace(0, place / 4, 4) for place, name in enumerate(KNOWN)}
    monkeypatch.setattr(airframes, "probe", lambda *_: Probe(times, known))
    gate = structs.replace(load_gate("any-airframe"), episodes=1)
    recurrent = parse_policy(sample_images()["recurrent_quadrotor"])
    result: GateResult = fly_gate(gate, recurrent, "run")
    with drawn(monkeypatch) as found:
        html = airframes.knowledge(result, recurrent)
    check_drawn(found)
    assert {label.split(",")[0] for label in found} == {"What the hidden state knows"}
    assert "a policy cannot see its mass" in html
    # Nothing of a policy without a hidden state, and of a gate that draws no airframe.
    assert not airframes.knowledge(result, parse_policy(controller()))
    hover = structs.replace(load_gate("hover"), episodes=1)
    assert not airframes.knowledge(fly_gate(hover, recurrent, "run"), recurrent)
