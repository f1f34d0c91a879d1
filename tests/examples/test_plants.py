"""The example's plants: their controllers hold them, and an exported policy asks for its own past
actions."""

from __future__ import annotations

import runpy
from typing import Any

import numpy as np
import pytest

from rltools_host.environments.headers import headers_of
from rltools_host.environments.task import TaskRequest, task_of
from rltools_host.policies.contract import PastAction, past_action
from rltools_host.tree import TREE

PLANTS = runpy.run_path(str(TREE.root / "examples/gymnasium_task/plants.py"), run_name="example")


def returns(plant: Any, act: Any, episodes: int = 10) -> float:
    total = 0.0
    for seed in range(episodes):
        observation, _ = plant.reset(seed=seed)
        is_over = False
        while not is_over:
            action = np.array(act(observation), np.float32)
            observation, reward, _, is_over, _ = plant.step(action)
            assert plant.observation_space.contains(observation)
            total += reward / episodes
    return total


@pytest.mark.parametrize(
    ("plant", "controller"),
    [("TwoTanks", "hold_level"), ("Stock", "fill_up"), ("Oven", "hold_temperature")],
)
def test_a_controller_is_twice_as_good_as_nothing(plant: str, controller: str) -> None:
    made = PLANTS[plant]()
    random = np.random.default_rng(0)
    held = returns(made, PLANTS[controller])
    assert held > 0.5 * returns(made, lambda _: [0.0])
    assert held > 0.5 * returns(made, lambda _: [random.uniform(0.0, made.most)])


def test_a_power_reaches_the_sensor_after_the_dead_time() -> None:
    """Two ovens from the same state; in one the heater is on from the first step. What is on its
    way is what was done, scaled as a board scales it."""
    seen = []
    for power in (0.0, PLANTS["LARGEST_W"]):
        oven = PLANTS["Oven"]()
        oven.reset(seed=3)
        seen.append([oven.step(np.array([power], np.float32))[0] for _ in range(7)])
    cold, hot = np.array(seen)
    first = PLANTS["DEAD_STEPS"]
    assert (cold[:first, 0] == hot[:first, 0]).all()
    assert (cold[first:, 0] < hot[first:, 0]).all()
    assert (hot[1, 3:] == [1, 1, 0, 0, 0]).all()
    assert (cold[1, 3:] == [-1, -1, 0, 0, 0]).all()


def test_the_past_actions_are_those_that_a_board_supplies() -> None:
    task = task_of(TaskRequest("gym:Oven"), PLANTS["Oven"]())
    asked = [past_action(channel, task.actions) for channel in task.observations]
    ticks = range(1, PLANTS["DEAD_STEPS"] + 1)
    assert asked == [None, None, None, *(PastAction(0, ago) for ago in ticks)]
    assert task.step_interval_us == 2_000_000
    assert "kNormalized = true" in headers_of(task).experiment_text
