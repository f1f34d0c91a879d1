"""Flights of the library: the bits of the core in one thread or many; when one is a success."""

from __future__ import annotations

import math
import subprocess
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from quadrotor_policies import controller, image_of
from rltools_host.build import cmake
from rltools_host.build.boards import load_board
from rltools_host.build.description import Channel
from rltools_host.drones.flight.simulator import (
    Cause,
    Flight,
    Rule,
    flight_library,
    fly,
)
from rltools_host.policies.acting import History
from rltools_host.policies.image import parse_policy

PROGRAM = "quadrotor_flight"  # tests/lib/rl/environments/quadrotor
WORST: dict[str, float] = {
    "airframe": 8,
    "latency_ms": 20,
    "noise": 1,
    "gust_m_s2": 1,
    "start_tilt": 180,
    "loss": 0.1,
}
SHORT = Rule(seconds=0.5, last_seconds=0.1, radius_m=0.2)


def same_bits(first: Any, second: Any) -> bool:
    return np.asarray(first).tobytes() == np.asarray(second).tobytes()


@pytest.mark.parametrize("episode", [0, 7])
def test_a_flight_is_the_cores(episode: int) -> None:
    program = cmake.build_targets(load_board("host"), [PROGRAM]) / PROGRAM
    seed, ticks = 2**32 - 5, 300
    text = subprocess.run(
        [str(program), str(seed), str(episode), str(ticks)],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout.splitlines()
    flight = Flight(seed, episode, WORST)
    assert f"{flight.read()['table']} {flight.read()['latency']}" == text[-1]
    for tick, line in enumerate(text[:-1]):
        expected = np.array([float.fromhex(word) for word in line.split()], np.float32)
        assert flight.read()["tick"] == tick
        observation = flight.observe()
        assert same_bits(observation, flight.observe())
        lift = 0.625 if observation[5] < 0 else 0.25
        flight.step([lift + 0.125, lift, lift, lift])
        reading = flight.read()
        fields = ("position_m", "attitude", "rotor_speed", "gust_m_s2")
        reached = np.concatenate([observation, *(reading[field] for field in fields)])
        assert same_bits(reached, expected)


def test_a_policys_flight_is_the_one_stepped_by_hand() -> None:
    image = parse_policy(controller())
    for episode in (3, 4):
        outcomes, traces = fly(image, SHORT, WORST, 5, first_episode=episode, traced=True)
        flight = Flight(5, episode, WORST)
        (trace,) = traces
        assert len(trace) == outcomes["ticks"][0] > 50
        for sample in trace:
            assert same_bits(flight.read(), sample["reading"])
            observation = flight.observe()
            assert same_bits(observation, sample["observation"])
            action = image.evaluate(observation)
            assert same_bits(action, sample["action"])
            flight.step(action)


def test_a_policy_sees_its_own_last_actions_and_sums() -> None:
    """What the executor keeps for it, and a host that does the same has the same bits."""
    contract = flight_library().contract
    names = [f"{action.name}_t-{ticks}" for ticks in (1, 3) for action in contract.actions]
    past = tuple(Channel(name, "1", -1.0, 1.0) for name in names)
    sums = tuple(
        Channel(f"{each.name}_sum", f"{each.unit} s", -0.01, 0.02)
        for each in contract.observations[3:6]
    )
    wider = replace(contract, observations=(*contract.observations, *past, *sums))
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((24, 4)).astype(np.float32) * np.float32(0.2)
    image = parse_policy(image_of([("tanh", weights, np.zeros(4, np.float32))], wider))
    _, (trace,) = fly(image, SHORT, WORST, 5, traced=True)
    history = History(image.added_inputs, 4)
    acted = trace[trace["status"] == 0]
    assert len(acted) > 50
    for sample in acted:
        outputs = image.output(history.inputs(sample["observation"]))
        assert same_bits(image.evaluate(history.inputs(sample["observation"]))[0], sample["action"])
        history.add(outputs, acted_on=sample["observation"])


def test_neither_threads_nor_company_change_a_flight() -> None:
    image, settings = parse_policy(controller()), {**WORST, "rotor_loss": 0.2, "change_s": 0.2}
    together, traces = fly(image, SHORT, settings, 1, count=70, threads=1, traced=True)
    for threads in (2, 3):
        shared, _ = fly(image, SHORT, settings, 1, count=70, threads=threads)
        assert same_bits(together, shared)
    alone = [fly(image, SHORT, settings, 1, first_episode=i, traced=True) for i in (0, 33, 69)]
    for (outcome, (trace,)), i in zip(alone, (0, 33, 69), strict=True):
        assert same_bits(outcome[0], together[i])
        assert same_bits(trace, traces[i])
    assert len({trace.tobytes() for trace in traces}) == 70


def test_flights_write_nothing_behind_their_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of as many as lanes, fewer and more: none is begun behind the last."""
    behind: list[np.ndarray] = []

    def zeros(shape: Any, dtype: Any) -> np.ndarray:
        count, *others = (shape,) if isinstance(shape, int) else shape
        whole = (count + 2, *others)
        memory = bytearray(math.prod(whole) * np.dtype(dtype).itemsize)
        array = np.frombuffer(memory, dtype).reshape(whole)
        behind.append(array[count:])
        return array[:count]

    monkeypatch.setattr(np, "zeros", zeros)
    image = parse_policy(controller())
    for count in (1, 31, 32, 33):
        outcomes, _ = fly(image, SHORT, WORST, 1, count=count, traced=True)
        assert (outcomes["ticks"] > 0).all()
    assert len(behind) >= 3 * 4
    assert not any(array.tobytes().strip(b"\0") for array in behind)


def test_a_step_says_which_limit_it_broke() -> None:
    def broken(thrusts: list[float], **settings: float) -> tuple[Cause, float]:
        flight = Flight(0, 0, {"start_share": 0, **settings})
        for tick in range(1, 5000):
            if (cause := flight.step(thrusts)) is not None:
                return cause, 0.002 * tick
        raise AssertionError("no limit was broken")

    # Free fall, once the rotors have stopped: about sqrt(2 h / g), v / g, and a roll.
    cause, seconds = broken([0, 0, 0, 0], limit_position=2, limit_velocity=20)
    assert cause == Cause.POSITION_LIMIT
    assert 0.64 < seconds < 0.95
    cause, seconds = broken([0, 0, 0, 0], limit_position=5, limit_velocity=3)
    assert cause == Cause.VELOCITY_LIMIT
    assert 0.3 < seconds < 0.55
    cause, _ = broken([0.4, 0.4, 0.6, 0.6], limit_position=5, limit_velocity=20, limit_rate=10)
    assert cause == Cause.RATE_LIMIT


def test_a_faulty_output_ends_the_flight() -> None:
    # Weights that are finite, and whose sums are not, but for the example's zeros.
    weights = np.full((13, 4), 3e38, np.float32)
    weights[6:] = 0
    image = parse_policy(image_of([("identity", weights, np.zeros(4, np.float32))]))
    outcomes, _ = fly(image, SHORT, {"start_share": 1, "noise": 1}, 0, count=20)
    assert set(outcomes["cause"]) == {Cause.EXECUTOR_FAULT}
    assert min(outcomes["ticks"]) == 1
    (status,) = {flight_library().statuses[number] for number in outcomes["status"]}
    assert status == "the network's output is not finite"


def test_a_rule_in_ticks() -> None:
    assert Rule(10, 1, 0.2).in_ticks(0.002) == (5000, 500, 500)
    assert Rule(12, 6, 0.3, 0.95).in_ticks(0.002) == (6000, 3000, 2850)
    # 95 % of 10 is 9.5, and nothing less will do; 0.07 of 100 is 7, whatever the rounding says.
    assert Rule(1, 0.02, 0.3, 0.95).in_ticks(0.002) == (500, 10, 10)
    assert Rule(1, 0.2, 0.3, 0.07).in_ticks(0.002) == (500, 100, 7)
