"""The replay's page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

import numpy as np
import pytest

from quadrotor_policies import controller
from rltools_host.drones.flight.disturbances import Disturbances, DisturbedLink, Fault
from rltools_host.drones.flight.loop import HostPilot, Trace, fly
from rltools_host.drones.flight.result import LoopResult
from rltools_host.drones.flight.simulator import Flight, Rule
from rltools_host.drones.flight.view import (
    FRAME_FLOATS,
    page,
)
from rltools_host.policies.image import parse_policy

NAN = Disturbances(faults=(Fault("nan", 200, 220), Fault("cut", 300)))


def result_of(ticks: int = 350, disturbances: Disturbances = NAN) -> LoopResult:
    image = parse_policy(controller())
    settings = {"start_share": 0.0}
    result = LoopResult(
        "host", "runs/x", image.experiment, image.sha256, Rule(1.0, 0.5, 0.2), 0, 3, disturbances
    )
    result.table = "crazyflie-l2f"
    for name in ("trace", "host_trace"):
        link = DisturbedLink(disturbances, ticks)
        trace = fly(Flight(0, 3, settings), HostPilot(image, False), link, ticks)
        setattr(result, name, trace)
    return result


def data_of(text: str) -> dict[str, Any]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert match is not None
    found: dict[str, Any] = json.loads(match[1])
    return found


@pytest.fixture(scope="module")
def result() -> LoopResult:
    return result_of()


def test_the_page_has_each_tick(result: LoopResult) -> None:
    text = page(result)
    data = data_of(text)
    frames = np.frombuffer(base64.b64decode(data["frames"]), "<f4").reshape(-1, FRAME_FLOATS)
    assert result.trace is not None
    ticks = result.trace.ticks
    assert len(frames) == result.trace.count == 350
    assert (frames[:, :3] == ticks["reading"]["position_m"]).all()
    assert (frames[:, 3:7] == ticks["reading"]["attitude"]).all()
    assert (frames[:, 10:14] == ticks["action"]).all()
    safe = frames[:, 19] > 0
    assert np.flatnonzero(safe).tolist() == [*range(200, 220), *range(302, 350)]
    assert frames[301, 18] == 4.0  # ms: the last that came is as old as may be
    assert data["faults"][0] == {"from": 0.4, "to": 0.44, "text": "an observation was not a number"}
    assert data["faults"][1]["to"] == 0.7
    assert [event["safe"] for event in data["events"]] == [False, True, False, True]


def test_the_page_loads_nothing_and_misreads_nothing(result: LoopResult) -> None:
    result.policy_name = "<b>&</script>"
    text = page(result)
    result.policy_name = "by-hand"
    assert "&lt;b&gt;&amp;&lt;/script&gt; over host" in text
    assert "<b>&</script>" not in text
    assert "[[" not in text.split("<script>")[0].replace("[[1", "")
    assert not re.search(r"(src|href)=|https?:|url\(|import ", text)
    assert "default-src 'none'" in text


def test_the_hash_of_a_flight(result: LoopResult) -> None:
    """As docs/flight.md has it: state and thrusts of each tick, then the last state."""
    trace = result.trace
    assert trace is not None
    expected = hashlib.sha256()
    for record, state in zip(trace.ticks, trace.states, strict=False):
        assert record["reading"].tobytes() == state.tobytes()
        expected.update(state.tobytes())
        expected.update(record["action"].tobytes())
    assert len(trace.states) == trace.count + 1
    expected.update(trace.states[-1].tobytes())
    assert trace.sha256() == expected.hexdigest()


def test_two_flights_differ_at_their_first_difference() -> None:
    one, other = result_of(60, Disturbances()).trace, result_of(60, Disturbances()).trace
    assert isinstance(one, Trace)
    assert isinstance(other, Trace)
    assert one.first_difference(other) is None
    assert one.sha256() == other.sha256()
    other._ticks["action"][40, 3] = np.nextafter(other._ticks["action"][40, 3], 1)
    assert one.first_difference(other) == 40
    assert one.sha256() != other.sha256()
    other._states["attitude"][12, 1] = -other._states["attitude"][12, 1] + 1e-9
    assert one.first_difference(other) == 12
    shorter = result_of(50, Disturbances()).trace
    assert shorter is not None
    assert one.first_difference(shorter) == shorter.first_difference(one) == 50
    shorter.planned = 60  # it was broken off
    assert one.first_difference(shorter) is None
