"""Three plants in Python whose observations have the units of their sensors: two tanks, a stock and
an oven with dead time.

rlt train gym:examples/gymnasium_task/plants.py:TwoTanks --algorithm sac --steps 10000
rlt evaluate latest --against examples/gymnasium_task/plants.py:hold_level

docs/gymnasium_tasks.md, "It does not learn", has what they show, and docs/results.md the figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

Seen = tuple[Any, dict[str, Any]]
Stepped = tuple[Any, float, bool, bool, dict[str, Any]]


def number(name: str, unit: str, minimum: float, maximum: float) -> dict[str, Any]:
    """Return a channel of the table (docs/gymnasium_tasks.md)."""
    return {"name": name, "unit": unit, "minimum": minimum, "maximum": maximum}


def table(
    step_s: float, seen: list[dict[str, Any]], name: str, unit: str, safe: float
) -> dict[str, Any]:
    """Return the table of channels of a plant with one action."""
    action = {"name": name, "unit": unit, "safe": safe}
    return {"step_interval_us": round(step_s * 1e6), "observations": seen, "actions": [action]}


class Plant(gymnasium.Env[Any, Any]):
    """A plant with an action from 0 to `most`; its episodes end after `steps`."""

    steps: int
    most: float
    channels: Mapping[str, Any]

    def __init__(self) -> None:
        self.metadata = {"channels": self.channels}
        low, high = (
            np.array([channel[end] for channel in self.channels["observations"]], np.float32)
            for end in ("minimum", "maximum")
        )
        self.observation_space = gymnasium.spaces.Box(low, high)
        self.action_space = gymnasium.spaces.Box(0.0, self.most, (1,))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Seen:
        super().reset(seed=seed, options=options)
        self.step_count = 0
        self.begin()
        return self.observation(), {}

    def step(self, action: Any) -> Stepped:
        reward = self.advance(float(action[0]))
        self.step_count += 1
        return self.observation(), reward, False, self.step_count >= self.steps, {}

    def observation(self) -> Any:
        row = np.array(self.seen(), np.float32)
        return row.clip(self.observation_space.low, self.observation_space.high)  # type: ignore[attr-defined]

    def begin(self) -> None:
        raise NotImplementedError

    def advance(self, action: float) -> float:
        """Take a step and return the reward."""
        raise NotImplementedError

    def seen(self) -> list[float]:
        raise NotImplementedError


# ---- Two tanks -----------------------------------------------------------------------------------

TANK_STEP_S = 5.0
HIGHEST_MM = 1000.0
LARGEST_FLOW_ML_S = 200.0
TANK_MM2 = 30_000.0  # of water
OUTLET = 4.0  # ml/s for each root of a mm


class TwoTanks(Plant):
    """A pump fills the first tank, whose outlet fills the second one, whose level is to be held.
    The reward is minus the error in parts of 250 mm."""

    steps = 240
    most = LARGEST_FLOW_ML_S
    channels = table(
        TANK_STEP_S,
        [
            number("level_1", "mm", 0, HIGHEST_MM),
            number("level_2", "mm", 0, HIGHEST_MM),
            number("target", "mm", 0, HIGHEST_MM),
            number("flow", "ml/s", 0, LARGEST_FLOW_ML_S),
        ],
        *("pump", "ml/s", 0),
    )

    def begin(self) -> None:
        self.levels = self.np_random.uniform(50.0, 800.0, 2)
        self.target = self.np_random.uniform(100.0, 700.0)
        self.flow = 0.0

    def advance(self, action: float) -> float:
        if self.step_count == self.steps // 2:
            self.target = self.np_random.uniform(100.0, 700.0)
        self.flow += 0.5 * (action - self.flow)  # the pump gets faster
        for _ in range(5):
            between, out = (OUTLET * math.sqrt(level) for level in self.levels)
            second_s = TANK_STEP_S / 5 * 1e3 / TANK_MM2
            self.levels += second_s * np.array([self.flow - between, between - out])
            self.levels = self.levels.clip(0.0, HIGHEST_MM)
        return -abs(self.levels[1] - self.target) / 250.0

    def seen(self) -> list[float]:
        return [*self.levels, self.target, self.flow]


def hold_level(observation: Any) -> list[float]:
    """Return the flow that holds the second tank at its target, and more of it for the error."""
    level_1, level_2, target, _ = map(float, observation)
    held = OUTLET * math.sqrt(target)
    more = 2.0 * (target - level_2) + 0.5 * (target - level_1)
    return [min(max(held + more, 0.0), LARGEST_FLOW_ML_S)]


# ---- A stock -------------------------------------------------------------------------------------

LEAD_DAYS = 3
MAX_ORDERED = 250.0
MAX_STORED = 1000.0
DAY_S = 600.0  # docs/gymnasium_tasks.md: no policy's step is longer


class Stock(Plant):
    """A stock. Orders arrive three days later. Goods that lie there cost, and missing ones cost
    nine times as much; the reward is minus these costs in hundreds."""

    steps = 100
    most = MAX_ORDERED
    channels = table(
        DAY_S,
        [
            number("stock", "1", 0, MAX_STORED),
            *(number(f"arrives_in_{day}", "1", 0, MAX_ORDERED) for day in range(1, LEAD_DAYS + 1)),
            number("demand", "1", 0, 1000),
            number("season", "rad", 0, 7),
        ],
        *("order", "1", 100),
    )

    def begin(self) -> None:
        self.stock, self.demand = self.np_random.uniform(0.0, 600.0), 100.0
        self.coming = [100.0] * LEAD_DAYS
        self.phase = self.np_random.uniform(0.0, 2.0 * math.pi)

    def advance(self, action: float) -> float:
        arrived, *rest = self.coming
        self.coming = [*rest, action]
        mean = 100.0 + 60.0 * math.sin(self.season())
        self.demand = float(self.np_random.poisson(mean))
        left = self.stock + arrived - self.demand
        self.stock = min(max(left, 0.0), MAX_STORED)
        return -(self.stock + 9.0 * max(-left, 0.0)) / 100.0

    def season(self) -> float:
        return (self.phase + 2.0 * math.pi * self.step_count / 28.0) % (2.0 * math.pi)

    def seen(self) -> list[float]:
        return [self.stock, *self.coming, self.demand, self.season()]


def fill_up(observation: Any) -> list[float]:
    """Return the order that fills stock and orders up to four days of the largest mean demand."""
    stock, *coming = map(float, observation[: 1 + LEAD_DAYS])
    return [min(max(500.0 - stock - sum(coming), 0.0), MAX_ORDERED)]


# ---- An oven with dead time ----------------------------------------------------------------------

OVEN_STEP_S = 2.0
DEAD_STEPS = 5
LARGEST_W = 2000.0
HOTTEST_C = 400.0


class BlindOven(Plant):
    """The heater's power reaches the sensor ten seconds late. The reward is minus the error in
    parts of 50 K."""

    steps = 150
    most = LARGEST_W
    seen_of_oven = (
        number("temperature", "C", 0, HOTTEST_C),
        number("slope", "K/s", -10, 10),
        number("target", "C", 0, HOTTEST_C),
    )
    channels = table(OVEN_STEP_S, [*seen_of_oven], "heater", "W", 0)

    def begin(self) -> None:
        self.temperature = self.np_random.uniform(20.0, 250.0)
        self.target = self.np_random.uniform(60.0, 250.0)
        self.slope = 0.0
        self.powers = [0.0] * DEAD_STEPS  # on their way, the oldest first

    def advance(self, action: float) -> float:
        power, *rest = self.powers
        self.powers = [*rest, action]
        self.slope = (power - 5.0 * (self.temperature - 20.0)) / 500.0  # W/K, and J/K
        self.temperature += OVEN_STEP_S * self.slope
        return -abs(self.temperature - self.target) / 50.0

    def seen(self) -> list[float]:
        return [self.temperature, self.slope, self.target]


class Oven(BlindOven):
    """The same, whose policy also observes the powers that are on their way: its own past actions,
    by the names for which a board supplies them (docs/policy_image.md, "Past actions")."""

    past = tuple(number(f"heater_t-{ago}", "1", -1, 1) for ago in range(1, DEAD_STEPS + 1))
    channels = table(OVEN_STEP_S, [*BlindOven.seen_of_oven, *past], "heater", "W", 0)

    def begin(self) -> None:
        super().begin()
        self.past_actions = [0.0] * DEAD_STEPS  # as on a board, 0 until there are actions

    def advance(self, action: float) -> float:
        scaled = 2.0 * action / LARGEST_W - 1.0  # the middle of the range is 0
        self.past_actions = [scaled, *self.past_actions[:-1]]
        return super().advance(action)

    def seen(self) -> list[float]:
        return [*super().seen(), *self.past_actions]


def hold_temperature(observation: Any) -> list[float]:
    """Return the power that holds the target, and more of it for the error, less its slope."""
    temperature, slope, target = map(float, observation[:3])
    power = 5.0 * (target - 20.0) + 15.0 * (target - temperature) - 100.0 * slope
    return [min(max(power, 0.0), LARGEST_W)]
