"""The report's section with the flights of gates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import structs

from policy_run import make_policy_run, section_html
from quadrotor_policies import controller
from rltools_host.drones.flight.gate import Gate, load_gate
from rltools_host.drones.flight.gate_result import GateResult, fly_gate
from rltools_host.drones.flight.simulator import Cause
from rltools_host.policies.image import PolicyImage, parse_policy
from rltools_host.report.sections.flights import MAX_PATHS, chosen, section


@pytest.fixture(scope="module")
def image() -> PolicyImage:
    return parse_policy(controller())


@pytest.fixture(scope="module")
def gate() -> Gate:
    hover = load_gate("hover")
    settings = {**hover.settings, "latency_ms": 0, "gust_m_s2": 0, "start_tilt": 30}
    easy = {**settings, "start_position": 0.2, "start_velocity": 0.1, "start_rate": 0}
    rule = {"seconds": 2.0, "last_seconds": 0.5, "radius_m": 0.25}
    return structs.replace(hover, name="e", title="<Easy>", settings=easy, episodes=40, **rule)


@pytest.fixture
def folder(tmp_path: Path, image: PolicyImage) -> Path:
    return make_policy_run(tmp_path / "run", image.data)


@pytest.fixture(scope="module")
def result(gate: Gate, image: PolicyImage) -> GateResult:
    return fly_gate(gate, image, "run")


def html_of(folder: Path, image: PolicyImage | None) -> str:
    return section_html(section, folder, image)


@pytest.mark.all
def test_rates_causes_and_pictures(folder: Path, image: PolicyImage, result: GateResult) -> None:
    assert not html_of(folder, image)
    assert not html_of(folder, None)
    assert 0 < result.all.successes < 40
    result.write(folder)
    html = html_of(folder, image)
    assert "<h3>&lt;Easy&gt;</h3>" in html
    assert f"<strong>{100 * result.all.rate:.1f} %</strong> of 40 flights" in html
    for share in result.by_table:
        assert f"<tr><th>{share.name}</th>" in html
    assert f"{Cause.TOO_FAR.text}</td>" in html
    # Each plot for wide and for narrow pages.
    for label in ("Rates of success by table", "Paths of flights in space", "Flights over time"):
        assert html.count(f'aria-label="{label}, gate e"') == 2


def test_the_flights_that_are_drawn(result: GateResult) -> None:
    outcomes = result.outcomes
    (median, slowest, failure, *others) = chosen(result)
    settling = sorted(outcomes["settling_tick"][outcomes["cause"] == Cause.SUCCESS])
    assert outcomes["settling_tick"][median[1]] == settling[(len(settling) - 1) // 2]
    assert outcomes["settling_tick"][slowest[1]] == settling[-1]
    counts = result.all.causes
    assert Cause(outcomes["cause"][failure[1]]).key == max(counts, key=lambda key: counts[key])
    episodes = [episode for _, episode in (median, slowest, failure, *others)]
    assert len(set(episodes)) == len(episodes) == MAX_PATHS
    assert {name for name, _ in others} == {""}


def test_a_damaged_result_is_a_sentence(
    folder: Path, image: PolicyImage, result: GateResult
) -> None:
    path = result.write(folder)
    path.write_text("[" * 10_000)
    html = html_of(folder, image)
    assert "gate-e.json is damaged (it is nested too deeply" in html
    assert "<svg" not in html


def test_flights_of_another_simulator_are_not_drawn(
    folder: Path, image: PolicyImage, result: GateResult
) -> None:
    path = result.write(folder)
    document = json.loads(path.read_text())
    flown = document["flights"]
    flown["settling_tick"] = [tick + 1 for tick in flown["settling_tick"]]
    path.write_text(json.dumps(document))
    html = html_of(folder, image)
    assert "This tree's simulator gives other flights" in html
    assert "Paths of flights" not in html
