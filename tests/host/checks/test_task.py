"""Each mistake that a Gymnasium task can make is found, and nothing else is."""

from __future__ import annotations

import random
from typing import Any

import gymnasium
import numpy as np
import pytest

from gymnasium_points import Point
from rltools_host.checks.findings import FAULT, Examination, Finding
from rltools_host.checks.task import Examiner
from rltools_host.environments.environment_server import PlayState
from rltools_host.environments.task import TaskRequest

BOX = gymnasium.spaces.Box


class Faulty(Point):
    """A point whose observations are its place and its last push."""

    fault = ""
    drift = 0.0  # of all that are made

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = BOX(-2.5, 2.5, (2,))
        self.action_space = BOX(-1.0, 1.0, (1,))
        if self.fault == "no-range":
            self.observation_space = BOX(-np.inf, np.inf, (2,))
        if self.fault == "idle-action":
            self.action_space = BOX(-1.0, 1.0, (2,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        gymnasium.Env.reset(self, seed=seed, options=options)
        self.place, self.steps = self.np_random.uniform(-1.0, 1.0), 0
        if self.fault == "unseeded":
            self.place = random.uniform(-1.0, 1.0)
        if self.fault == "left-behind":
            self.steps_in_all += 1
            self.place += 1e-3 * self.steps_in_all
        if self.fault == "same-beginning":
            self.place = 0.5
        self.push = 0.0
        return self.seen() if self.fault == "bare-reset" else (self.seen(), {})  # type: ignore[return-value]

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.steps += 1
        self.push = float(action[0])
        if self.fault == "raises" and self.place > 0.9:
            raise ValueError("the rope broke")
        if self.fault == "nan" and self.steps > 3:
            self.place = np.nan
        if self.fault == "global" and self.steps == 1:
            Faulty.drift += 1e-3
            self.place += Faulty.drift
        self.place += (2.0 if self.fault == "range" else 0.05) * self.push
        terminated = self.fault == "time-limit" and self.steps >= 15
        reward: Any = -abs(self.place)
        if self.fault == "text-reward":
            reward = "good"
        if self.fault == "huge-reward":
            reward *= 1e40
        if self.fault == "four":
            return self.seen(), reward, terminated, {}  # type: ignore[return-value]
        if self.fault == "flags":
            terminated = 0  # type: ignore[assignment]
        return self.seen(), reward, terminated, self.steps >= 20, {}

    def seen(self) -> Any:
        seen = np.array([self.place, self.push], np.float32)
        return seen[:1] if self.fault == "shape" else seen


def examined(make: Any, **asked: Any) -> Examination:
    request = TaskRequest("gym:Faulty", make, name="Faulty", **asked)
    return Examiner(make, request, PlayState()).run()


def of_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> Examination:
    monkeypatch.setattr(Faulty, "fault", fault)
    monkeypatch.setattr(Faulty, "drift", 0.0)
    monkeypatch.setattr("rltools_host.checks.task.MAX_STEPS", 1000)
    return examined(Faulty)


def only(found: Examination) -> Finding:
    (finding,) = found.findings
    return finding


def test_a_good_task_has_no_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    found = of_fault("", monkeypatch)
    assert found.findings == []
    assert len(found.passed) == 10
    assert found.figures.episode_steps_mean == 20
    assert found.figures.terminated == 0
    assert found.figures.step_us > 0
    assert found.figures.wrappers == []


FAULTS = (
    ("unseeded", "deterministic", "in the same environment, from the first observation on"),
    ("left-behind", "deterministic", "in the same environment, from the first observation on"),
    ("global", "deterministic", "in the same environment, from step 1 on"),
    ("raises", "raises", "step raised ValueError: the rope broke at observation (0.9"),
    ("nan", "finite", "observation_0 was nan from step, at observation ("),
    ("text-reward", "finite", "the reward was 'good' at observation ("),
    ("huge-reward", "finite", "e+39 at observation ("),
    ("four", "interface", "old step API"),
    ("bare-reset", "interface", "`env.reset()` was not a tuple"),
    ("shape", "interface", "reset returned an observation of shape (1,), and its space has (2,)"),
    ("range", "range", "observation_0 left its range -2.5 to 2.5 in "),
    ("time-limit", "time-limit", "episodes terminated after 15 steps"),
    ("idle-action", "idle-action", "action_1 changes neither"),
)
ADVICE = (
    ("flags", "interface", "`terminated` signal to be a boolean"),
    ("same-beginning", "same-beginning", "every episode begins with the same observation"),
    ("no-range", "no-range", "observation_0 and observation_1 have no range"),
)


@pytest.mark.parametrize(("fault", "check", "what"), [*FAULTS, *ADVICE])
def test_a_mistake_is_found(
    monkeypatch: pytest.MonkeyPatch, fault: str, check: str, what: str
) -> None:
    finding = only(of_fault(fault, monkeypatch))
    assert finding.check == check
    assert what in finding.what
    assert finding.remedy
    assert (finding.level == FAULT) == ((fault, check, what) in FAULTS)


class Large(Faulty):
    """A point whose observations are in micrometers, and whose reward is in cents."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = BOX(-2.5e6, 2.5e6, (2,))

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        seen, reward, *rest = super().step(action)
        return seen, 1e4 * reward, *rest

    def seen(self) -> Any:
        return 1e6 * super().seen()


@pytest.mark.parametrize(
    ("algorithm", "found"),
    [("sac", {"reward-scale"}), ("ppo", {"reward-scale"}), ("xqc", set())],
)
def test_what_an_algorithm_normalizes_is_no_finding(
    monkeypatch: pytest.MonkeyPatch, algorithm: str, found: set[str]
) -> None:
    monkeypatch.setattr("rltools_host.checks.task.MAX_STEPS", 1000)
    checks = {finding.check for finding in examined(Large, algorithm=algorithm).findings}
    assert checks == found


class Shared(Faulty):
    """An environment that is right alone, and shares state or random numbers with others of its
    class."""

    shares = ""
    common: dict[str, float] = {}  # noqa: RUF012

    def reset(self, *, seed: int | None = None, **options: Any) -> tuple[Any, dict[str, Any]]:
        seen = super().reset(seed=seed, **options)
        np.random.seed(seed)
        self.common["place"] = self.place
        return seen

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        if self.shares == "state":
            self.place = self.common["place"]
        if self.shares == "generator":
            self.place += 1e-3 * np.random.uniform()
        result = super().step(action)
        self.common["place"] = self.place
        return result


@pytest.mark.parametrize("shares", ["", "state", "generator"])
def test_environments_that_share_what_they_have_are_found(
    shares: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second one that is run alone gives the first one's episodes."""
    monkeypatch.setattr(Faulty, "fault", "")
    monkeypatch.setattr(Shared, "shares", shares)
    monkeypatch.setattr("rltools_host.checks.task.MAX_STEPS", 200)
    found = examined(Shared)
    sentence = "environments do not depend on each other"
    assert (sentence in found.passed) == (shares == "")
    if shares:
        finding = only(found)
        assert (finding.check, finding.level) == ("deterministic", FAULT)
        assert "an environment that takes turns with another one, from step" in finding.what
        assert "NumPy's global random numbers" in finding.remedy


@pytest.mark.parametrize("actions", [BOX(-1.0, 1.0, (1,)), gymnasium.spaces.Discrete(3)])
def test_an_action_that_is_alike_at_both_ends_counts(
    actions: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Even(Faulty):
        """Its reward is alike at both ends of the range, or for the first and the last choice."""

        def __init__(self) -> None:
            super().__init__()
            self.action_space = actions

        def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
            even = float(np.ravel(action)[0]) - (0.0 if actions.shape else 1.0)
            seen, _, *rest = super().step(np.zeros(1))
            return (seen, -(even**2), *rest)

    monkeypatch.setattr(Faulty, "fault", "")
    monkeypatch.setattr("rltools_host.checks.task.MAX_STEPS", 200)
    found = examined(Even)
    assert "every action counts" in found.passed
    assert "idle-action" not in [each.check for each in found.findings]


def test_two_environments_that_share_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one that is made differs from the first."""
    monkeypatch.setattr(Faulty, "fault", "")
    monkeypatch.setattr("rltools_host.checks.task.MAX_STEPS", 200)
    made: list[Faulty] = []

    def make() -> Any:
        made.append(Faulty())
        ends = np.float32(-1.0), np.float32(1.0 if len(made) == 1 else 0.5)
        return gymnasium.wrappers.RescaleAction(made[-1], *ends)

    found = examined(make)
    finding = next(each for each in found.findings if each.check == "deterministic")
    assert "another environment of the same kind, from step 1 on" in finding.what


@pytest.mark.parametrize(
    ("wrap", "level", "what"),
    [
        (gymnasium.wrappers.NormalizeObservation, FAULT, "running mean and deviation are neither"),
        (gymnasium.wrappers.NormalizeReward, "advice", "rewards that change while it learns"),
        (
            lambda env: gymnasium.wrappers.TimeAwareObservation(
                gymnasium.wrappers.TimeLimit(env, 20)
            ),
            FAULT,
            "how long the episode has lasted",
        ),
        (gymnasium.wrappers.Autoreset, FAULT, "resets by itself"),
        (
            lambda env: gymnasium.wrappers.TransformObservation(
                env, np.tanh, env.observation_space
            ),
            "advice",
            "firmware would have to repeat it",
        ),
    ],
)
def test_a_wrapper_is_found(
    monkeypatch: pytest.MonkeyPatch, wrap: Any, level: str, what: str
) -> None:
    monkeypatch.setattr(Faulty, "fault", "")
    monkeypatch.setattr("rltools_host.checks.task.MAX_STEPS", 200)
    # Behind one that changes nothing.
    found = examined(lambda: gymnasium.wrappers.OrderEnforcing(wrap(Faulty())), episode_steps=20)
    finding = next(each for each in found.findings if each.check == "wrapper")
    assert what in finding.what
    assert finding.level == level
