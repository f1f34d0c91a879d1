"""Gates: what is published, flights that succeed and fail for each cause, results on disk."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from quadrotor_policies import HOVER_FRACTION_L2F, POSITION_GAIN, constant_policy, controller
from rltools_host.drones.flight.gate import Gate, load_gate
from rltools_host.drones.flight.gate_result import columns, fly_gate, read_result
from rltools_host.drones.flight.simulator import Cause, ExecutorLimits, Flight, Rule
from rltools_host.errors import DamagedFileError, UsageError
from rltools_host.policies.image import PolicyImage, parse_policy
from rltools_host.tree import TREE

CALM = {"airframe": 1, "start_share": 1, "limit_position": 5, "limit_velocity": 10}
NEAR = {**CALM, "start_position": 0.5, "start_velocity": 0.5, "start_tilt": 30}
RULE = Rule(seconds=6, last_seconds=1, radius_m=0.2)


def gate_of(settings: dict[str, float], rule: Rule = RULE, episodes: int = 40) -> Gate:
    return Gate(
        name="own", title="Own", episodes=episodes, seed=7, settings=settings, **asdict(rule)
    )


@pytest.fixture(scope="module")
def pilot() -> PolicyImage:
    return parse_policy(controller())


# -- what is published -------------------------------------------------------------------------


def test_the_gate_for_hover_is_the_published_one() -> None:
    gate = load_gate("hover")
    # All of the Crazyflies' tables, all latencies, and starts all over the envelope.
    flights = [Flight(gate.seed, episode, gate.settings) for episode in range(gate.episodes)]
    starts = np.array([flight.read() for flight in flights])
    assert set(starts["table"]) == {1, 2, 3, 4, 5}
    assert set(starts["latency"]) == set(range(11))
    assert 0.99 < np.abs(starts["position_m"]).max() <= 1
    assert (1 - 2 * (starts["attitude"][:, 1:3] ** 2).sum(axis=1) < -0.9).any()  # upside down
    assert len({start["position_m"].tobytes() for start in starts}) == 1000


# -- a steady wind -----------------------------------------------------------------------------


def test_the_gate_in_a_steady_wind_is_hover_with_a_wind() -> None:
    gate, hover = load_gate("steady-wind"), load_gate("hover")
    assert gate.settings == {**hover.settings, "wind_m_s2": 4}
    assert (gate.seed, gate.episodes) == (hover.seed, hover.episodes)
    assert (gate.rule.radius_m, gate.rule.share, gate.rule.last_seconds) == (0.2, 1, 2)
    calm = gate_of({**gate.settings, "gust_m_s2": 0})
    winds = [Flight(gate.seed, episode, calm.settings).read() for episode in range(200)]
    of_hover = [Flight(gate.seed, episode, hover.settings).read() for episode in range(200)]
    for name in ("position_m", "attitude", "rotor_speed", "latency", "table"):  # the same starts
        assert np.array_equal([wind[name] for wind in winds], [each[name] for each in of_hover])
    blown = np.array([wind["gust_m_s2"] for wind in winds])
    strengths = np.linalg.norm(blown, axis=1)
    assert (blown[:, 2] == 0).all()
    assert strengths.min() < 0.1
    assert 3.9 < strengths.max() <= 4
    assert len({(x > 0, y > 0) for x, y, _ in blown}) == 4


STEADY = {"airframe": 1, "start_share": 0, "wind_m_s2": 1.5, "limit_position": 5}


def test_a_controller_without_a_sum_stands_off_by_the_tilt_that_the_wind_asks_for(
    pilot: PolicyImage,
) -> None:
    """Level with the wind: tan(tilt) = wind / g, and the tilt is the gain times the offset."""
    gate = gate_of(STEADY, Rule(seconds=12, last_seconds=1, radius_m=1), episodes=1)
    _, trace = gate.trace(pilot, 0)
    wind = np.linalg.norm(trace[0]["reading"]["gust_m_s2"])
    assert wind > 0.3
    offset = np.linalg.norm(trace[-1]["reading"]["position_m"][:2])
    assert offset == pytest.approx(np.arctan(wind / 9.81) / POSITION_GAIN, rel=0.05)


def test_one_with_a_sum_holds_its_place(pilot: PolicyImage) -> None:
    gate = gate_of(STEADY, Rule(seconds=20, last_seconds=2, radius_m=0.05), episodes=40)
    summing = parse_policy(controller(sum_gain=0.1))
    assert fly_gate(gate, summing, "").all.rate == 1
    assert fly_gate(gate, pilot, "").all.rate < 0.3
    together = gate.fly(summing)
    alone = structs.replace(gate, episodes=1).fly(summing)
    assert together[:1].tobytes() == alone.tobytes()
    outcome, trace = gate.trace(summing, 17)  # a lane of its own, and the same bits
    assert outcome.tobytes() == together[17].tobytes()
    assert trace["reading"]["tick"].tolist() == list(range(10000))


def test_a_flight_from_a_box_is_flown_again_from_its_own_start(pilot: PolicyImage) -> None:
    gate = structs.replace(load_gate("entry"), episodes=3, seconds=1.0)
    flown = gate.fly(pilot)
    again = [gate.trace(pilot, number)[0].tobytes() for number in range(3)]
    assert again == [outcome.tobytes() for outcome in flown]
    assert len(set(again)) == 3


# -- any airframe ------------------------------------------------------------------------------


def test_the_airframes_of_any_airframe_are_those_of_the_distribution() -> None:
    """Drawn by the gate's seed, in the streams of evaluations: a training with that seed draws
    others (test_foundation_quadrotor.py). Each part has the same."""
    gate = load_gate("any-airframe")
    parts = gate.kinds
    tilts = {name: part.settings["start_tilt"] for name, part in parts.items()}
    assert tilts == {**dict.fromkeys(parts, 90), "any attitude": 180}
    assert {parts[name].settings["start_share"] for name in ("hover", "any attitude")} == {1}
    assert parts["payload drops"].settings["payload"] == 0.2
    assert parts["weak rotor"].settings["rotor_loss"] == 0.2
    assert gate.flights == 1000 * len(parts) == 9000
    assert gate.seed == load_gate("hover").seed
    found = parts["hover"].airframes()
    for name, low, high in (("mass_kg", 0.02, 5), ("lift", 1.5, 5)):
        values = found[name].astype(float)
        assert low <= values.min() < 1.1 * low
        assert 0.98 * high < values.max() <= high * (1 + 1e-6)
    # Of x to y at most 1.4, about the drawn number.
    turns = np.sqrt(found["turn_x"].astype(float) * found["turn_y"])
    assert 39.9 < turns.min() < 45
    assert 1100 < turns.max() < 1201
    assert 0.3 < np.log(found["mass_kg"] / 0.02).mean() / np.log(5 / 0.02) < 0.7
    assert len(np.unique(found["mass_kg"])) == 1000
    greatest = 4 * found["thrust"].astype(float).sum(axis=1)
    assert greatest / (found["mass_kg"] * 9.81) == pytest.approx(found["lift"], rel=1e-5)
    for name, part in parts.items():
        table = Flight(part.seed, 3, part.settings).read()["table"]
        assert (table > 0) == (name == "tables"), name
        if name != "tables":
            assert part.airframes().tobytes() == found.tobytes(), name
    latencies = {int(Flight(gate.seed, i, gate.settings).read()["latency"]) for i in range(200)}
    assert latencies == set(range(11))


def test_a_payload_drops_and_a_rotor_becomes_weaker() -> None:
    """By the acceleration of a drone that stands level with the thrust of hover."""
    calm = {"airframe": 0, "start_share": 0, "latency_ms": 0, "change_s": 0.1}
    calm |= {"lag_up_s": 0, "lag_down_s": 0}

    def after(changes: dict[str, float], episode: int = 0) -> tuple[Any, Any]:
        flight = Flight(7, episode, {**calm, **changes})
        before = np.zeros(1, flight.library.records["Airframe"])
        now = before.copy()
        for tick in range(60):
            flight.step([HOVER_FRACTION_L2F] * 4)
            if tick == 49:
                flight.read_airframe(before)
                assert np.abs(flight.read()["velocity_m_s"]).max() < 1e-4
        flight.read_airframe(now)
        assert now["mass_kg"] / before["mass_kg"] == pytest.approx(
            1 - changes.get("payload", 0), rel=1e-6
        )
        assert before["lift"] / now["lift"] == pytest.approx(
            1 - changes.get("payload", 0), rel=1e-6
        )
        return flight.read()["velocity_m_s"], flight.read()["angular_velocity_rad_s"]

    still, _ = after({})
    assert np.abs(still).max() < 1e-4
    speed, rate = after({"payload": 0.2})  # thrust / (0.8 m) - g, for 10 ticks
    assert speed[2] == pytest.approx(0.25 * 9.81 * 0.02, rel=2e-3)
    assert np.abs(rate).max() == 0
    directions = set()
    for episode in range(12):
        # A fifth of a quarter of the thrust, for 10 ticks.
        speed, rate = after({"rotor_loss": 0.2}, episode)
        assert speed[2] == pytest.approx(-0.2 / 4 * 9.81 * 0.02, rel=0.02)
        directions.add((bool(rate[0] > 0), bool(rate[1] > 0)))
    assert len(directions) == 4  # each of the rotors


def test_every_airframe_of_the_part_weak_rotor_can_hover() -> None:
    """Only equal thrusts of four rotors turn an X frame about no axis. Each then carries a quarter
    of the weight, which must be less than the greatest thrust of the weak one. The airframe with
    the least thrust is flown so, in still air: the weak rotor's command is a quarter higher."""
    part = load_gate("any-airframe").kinds["weak rotor"]
    left = 1 - part.settings["rotor_loss"]
    most = left * part.airframes()["lift"]
    assert most.min() == pytest.approx(1.2025, abs=1e-4)  # times the weight
    episode = int(most.argmin())
    calm = {**part.settings, "gust_m_s2": 0, "latency_ms": 0, "change_s": 0}
    hover = left / most[episode]

    def hovers(weak: int | None) -> bool:
        flight = Flight(part.seed, episode, calm)
        thrusts = [hover / left if i == weak else hover for i in range(4)]
        if any(flight.step(thrusts) is not None for _ in range(500)):  # in a second
            return False
        read = flight.read()
        return bool(np.abs([*read["velocity_m_s"], *read["angular_velocity_rad_s"]]).max() < 0.02)

    assert sum(hovers(weak) for weak in range(4)) == 1  # the one that was drawn
    assert not hovers(None)


def test_parts_are_gates_whose_flights_count_together(pilot: PolicyImage, tmp_path: Path) -> None:
    gate = structs.replace(load_gate("any-airframe"), episodes=3)
    result = fly_gate(gate, pilot, "run")
    assert len(result.outcomes) == 27
    for number, (name, part) in enumerate(gate.kinds.items()):
        alone = part.fly(pilot)
        assert alone.tobytes() == result.outcomes[3 * number : 3 * number + 3].tobytes()
        assert result.by_part[name].outcomes.tobytes() == alone.tobytes()
        outcome, trace = gate.trace(pilot, 3 * number + 1)
        assert outcome.tobytes() == alone[1].tobytes()
        assert len(trace) == outcome["ticks"]
    document = result.document()
    assert [part["part"] for part in document["parts"]] == list(gate.parts)
    successes = [part["success_rate"] * 3 for part in document["parts"]]
    assert sum(successes) == pytest.approx(27 * document["success_rate"])
    found = document["map"]
    assert np.sum(found["flights"]) == 24  # but for those of the tables
    drawn = document["tables"][0]
    assert (drawn["table"], drawn["episodes"]) == ("drawn", 24)
    assert np.sum(found["successes"]) == pytest.approx(24 * drawn["success_rate"])
    again = read_result(result.write(tmp_path))
    assert again.gate == gate
    assert {**again.document(), "run": "run"} == document


def test_a_policy_that_is_no_image_flies_the_same_flights(pilot: PolicyImage) -> None:
    """The same actions from the caller's side, though the executor has no part in it."""
    gate = structs.replace(
        gate_of(NEAR, RULE, episodes=70), executor=ExecutorLimits(range_margin=9)
    )
    seen: list[list[int]] = []

    def act(tick: int, index: Any, observations: Any) -> Any:
        if tick == 0:
            seen.append(index.tolist())
        return np.stack([pilot.evaluate(row) for row in observations])

    few = structs.replace(gate, seconds=0.1, last_seconds=0.1)
    assert few.fly(act).tobytes() == few.fly(pilot).tobytes()
    assert seen == [list(range(32)), list(range(32, 64)), list(range(64, 70))]

    def fails(*_: Any) -> Any:
        raise UsageError("no thrusts today")

    with pytest.raises(UsageError, match="no thrusts today"):
        few.fly(fails)


# -- success, and each cause -------------------------------------------------------------------


def causes_of(gate: Gate, image: PolicyImage) -> set[Cause]:
    return {Cause(cause) for cause in gate.fly(image)["cause"]}


def test_policies_that_fail_for_each_cause(pilot: PolicyImage) -> None:
    # Constant thrusts: it drifts off; with none it falls. Other limits: test_simulator.py.
    drifts = parse_policy(constant_policy(*[HOVER_FRACTION_L2F] * 4))
    drifting = gate_of({**NEAR, "limit_velocity": 20})
    wide = structs.replace(drifting, executor=ExecutorLimits(range_margin=1))
    assert causes_of(wide, drifts) == {Cause.POSITION_LIMIT}
    falls = parse_policy(constant_policy(0, 0, 0, 0))
    # It falls out of the range of the contract, which the limits do not keep it from.
    result = fly_gate(gate_of({**NEAR, "limit_velocity": 20, "start_velocity": 10}), falls, "run")
    assert set(result.faults) == {"the observation is out of range"}
    assert result.faults["the observation is out of range"] == result.all.causes["executor_fault"]
    # A radius that nobody stays within.
    near = gate_of({**NEAR, "gust_m_s2": 2}, replace(RULE, radius_m=0.005))
    assert causes_of(near, pilot) == {Cause.TOO_FAR}


def test_the_figures_of_a_flight_are_those_of_its_ticks(pilot: PolicyImage) -> None:
    """Stepped by hand, and judged as docs/gate.md says it."""
    rule = Rule(seconds=3, last_seconds=1.5, radius_m=0.3, share=0.9)
    settings = {**NEAR, "gust_m_s2": 3, "noise": 1, "task": 2, "target_s": 4, "airframe": 8}
    wide = ExecutorLimits(range_margin=1)
    gate = structs.replace(gate_of(settings, rule, episodes=12), executor=wide)
    outcomes = gate.fly(pilot)
    for episode, outcome in enumerate(outcomes):
        flight = Flight(gate.seed, episode, settings)
        errors, broken = [], None
        while broken is None and len(errors) < 1500:
            broken = flight.step(pilot.evaluate(flight.observe()))
            reading = flight.read()
            error = reading["position_m"].astype(float) - reading["target_position_m"]
            errors.append(float(np.linalg.norm(error)))
        assert outcome["ticks"] == len(errors)
        outside = [tick for tick, error in enumerate(errors, start=1) if error > 0.3]
        assert outcome["settling_tick"] == max(outside, default=0)
        if broken is not None:
            assert outcome["cause"] == broken
            assert np.isnan(outcome["error_m"])
            continue
        last = np.array(errors[750:])
        assert outcome["error_m"] == pytest.approx(np.sort(last)[675 - 1], rel=1e-6)
        within = (last <= 0.3).mean() >= 0.9
        assert outcome["cause"] == (Cause.SUCCESS if within else Cause.TOO_FAR)
    assert len(set(outcomes["cause"])) > 1
    near = gate_of(settings, replace(rule, radius_m=100), episodes=12).fly(pilot)
    assert not near["settling_tick"].any()


# -- files -------------------------------------------------------------------------------------


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "my_drone.json"
    path.write_text(json.dumps({"like": "hover", "title": "Mine", "settings": {"airframe": 7}}))
    gate = load_gate(str(path))
    assert (gate.name, gate.title, gate.settings["airframe"]) == ("my-drone", "Mine", 7)
    assert gate.rule == load_gate("hover").rule


HOVER = json.loads((TREE.experiments / "gates" / "hover.json").read_text())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "line 1, column 2: "),
        ({**HOVER, "radius": 1}, "Object contains unknown field `radius`"),
        ({**HOVER, "settings": {"latency": 1}}, 'unknown setting of flights "latency"'),
        ({**HOVER, "parts": {"a\nb": {}}}, "key in parts: Expected `str` matching"),
        ({"like": "push"}, 'like is push, which is like "hover" itself: take that one'),
    ],
)
def test_a_file_that_is_no_gate(tmp_path: Path, content: Any, reason: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(DamagedFileError) as caught:
        load_gate(str(path))
    assert str(caught.value).startswith(f"{path} is not a gate: {reason}")


def test_no_such_gate() -> None:
    with pytest.raises(UsageError, match='unknown gate "huver": did you mean hover'):
        load_gate("huver")


def test_a_result_is_read_as_it_was_written(tmp_path: Path, pilot: PolicyImage) -> None:
    gate = gate_of({**NEAR, "gust_m_s2": 2, "limit_position": 1.5}, episodes=9)
    result = fly_gate(gate, pilot, str(tmp_path))
    assert set(np.isnan(result.outcomes["error_m"])) == {False, True}
    path = result.write(tmp_path)
    assert path == tmp_path / "gate-own.json"
    again = read_result(path)
    assert again.gate == gate
    assert again.outcomes.tobytes() == result.outcomes.tobytes()
    assert again.document() == result.document()
    assert [each.name for each in tmp_path.iterdir()] == ["gate-own.json"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"flights": {}}, "flights.cause is missing"),
        ({"cause": [7] * 9}, "flights.cause has 7, not 6 at most"),
    ],
)
def test_a_damaged_result(
    tmp_path: Path, pilot: PolicyImage, change: dict[str, Any], reason: str
) -> None:
    path = fly_gate(gate_of(NEAR, replace(RULE, seconds=1), 9), pilot, "").write(tmp_path)
    document = json.loads(path.read_text())
    for key, value in change.items():
        (document["flights"] if key in columns() else document)[key] = value
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - Unfit, a UsageError's text or JSON's
        read_result(path)
    assert reason in str(caught.value)
