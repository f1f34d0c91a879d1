"""Flights of an imported policy, and the search for its likely fault where it does badly: of many
things that the policy may mean otherwise, the one with which it does well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rltools_host.build.catalog import NAMESPACE
from rltools_host.build.description import ranges_of
from rltools_host.environments.compiled import CompiledVectorEnv
from rltools_host.environments.player import flat_maker
from rltools_host.policies.contract import choices_of
from rltools_host.policies.episodes import close_all
from rltools_host.policies.image import PolicyImage
from rltools_host.policies.importing.corrections import Correction, blocks_of, known_corrections
from rltools_host.policies.importing.target import Target
from rltools_host.runs.task import PREFIX

Float32Array = NDArray[np.float32]
Act = Callable[[Float32Array], Float32Array]  # actions (n, a) in the environment's units
SCREENED, FLOWN = 16, 64  # episodes of each hypothesis, and of the finalists
OTHER_SEED = 1000
MAX_STEPS = 500  # of an episode
MAX_STEPS_OF_PYTHON = 400_000  # of all episodes of an environment in Python
FINALISTS = 3
HOLDS = (2, 5, 10)  # steps for which an action is held
ERRORS = 5.0  # minimum difference in standard errors
SHARE = 0.2  # minimum cost of a fault, relative to the gain over no action
GOAL_SHARE = 0.5  # of the way from no action to a solved task, which a restored policy has gone


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A fault that the policy may have: a correction that can be given, or something to fix
    elsewhere."""

    meaning: str
    remedy: str  # a clause: what to do
    make: Callable[[], Act]
    correction: Correction | None = None
    is_rate: bool = False  # all of these help in part where one is right


@dataclass(frozen=True)
class Finding:
    """Returns of the policy unchanged and of no action, and the fault that was found."""

    returns: NDArray[np.float64]
    idle: float
    tried: int
    fault: Hypothesis | None = None
    restored: float = 0.0
    is_bad: bool = False  # no better than with no action
    has_normalizer: bool = True

    def lines(self, environment: str) -> list[str]:
        mean, std = self.returns.mean(), self.returns.std()
        first = (
            f"in {environment}: return {mean:.1f} ± {std:.1f} over {len(self.returns)} episodes, "
            f"{self.idle:.1f} with no action"
        )
        if self.fault is None and self.is_bad and self.tried:
            return [first, f"that is not better than no action, and {self.reason()}"]
        if self.fault is None:
            return [first]
        return [
            first,
            f"likely fault, of {self.tried} that were tried: {self.fault.meaning}",
            f"  with that, the return is {self.restored:.1f}: {self.fault.remedy}",
        ]

    def reason(self) -> str:
        """Return why a policy may do badly that nothing restores."""
        tried = f"none of {self.tried} likely faults is the reason"
        if self.has_normalizer:
            return tried
        return (
            f"{tried}; the file has no normalizer: if the policy was trained with one, that is "
            "missing"
        )


class Simulator:
    """Episodes of a target, many at once, with the same starts for the same seed."""

    def __init__(self, target: Target) -> None:
        assert target.task is not None
        self.target = target
        self.episode_steps = min(target.task.episode_steps, MAX_STEPS)
        name = target.task.source.removeprefix(PREFIX)
        self.compiled = name.removeprefix(NAMESPACE) if name.startswith(NAMESPACE) else None
        self.steps_left = MAX_STEPS_OF_PYTHON

    def fly(self, act: Act, episodes: int, seed: int) -> NDArray[np.float64] | None:
        """Return the episodes' returns (episodes,), or None where the steps for environments in
        Python are used up."""
        if self.compiled is not None:
            return self._fly_compiled(act, episodes, seed)
        if self.steps_left < episodes * self.episode_steps:
            return None
        return self._fly_one_by_one(act, episodes, seed)

    def _fly_compiled(self, act: Act, episodes: int, seed: int) -> NDArray[np.float64]:
        environment = CompiledVectorEnv(str(self.compiled), episodes)
        observations, _ = environment.reset(seed=seed)
        returns, alive = np.zeros(episodes), np.ones(episodes, bool)
        for _ in range(self.episode_steps):
            observations, rewards, terminated, truncated, _ = environment.step(act(observations))
            returns += np.where(alive, rewards, 0.0)
            alive &= ~(terminated | truncated)
            if not alive.any():
                break
        return returns

    def _fly_one_by_one(self, act: Act, episodes: int, seed: int) -> NDArray[np.float64]:
        assert self.target.task is not None
        make = flat_maker(self.target.task)
        environments: list[Any] = []
        try:
            for _ in range(episodes):
                environments.append(make())
            observations = np.array(
                [each.reset(seed=seed + i)[0] for i, each in enumerate(environments)], np.float32
            )
            returns, running = np.zeros(episodes), list(range(episodes))
            for _ in range(self.episode_steps):
                self.steps_left -= len(running)
                actions = act(observations)
                for i in list(running):
                    seen, reward, terminated, truncated, _ = environments[i].step(actions[i])
                    observations[i] = seen
                    returns[i] += float(reward)
                    if terminated or truncated:
                        running.remove(i)
                if not running:
                    break
            return returns
        finally:
            close_all(environments)


class Search:
    """A search for what a policy may mean, in the simulator."""

    def __init__(self, image: PolicyImage, target: Target) -> None:
        self.image, self.target = image, target
        self.simulator = Simulator(target)
        low, high = ranges_of(target.contract.actions, np.float64)
        self.half, self.middle = (high - low) / 2, (high + low) / 2
        self.chooses = bool(choices_of(target.contract.actions))

    def action(self, output: Any) -> Float32Array:
        """Return actions in the environment's units."""
        action: Float32Array = (np.clip(output, -1, 1) * self.half + self.middle).astype("f4")
        return action

    def outputs(self) -> Act:
        """Return a function for episodes that begin with its first call: outputs (n, out), or of a
        policy with discrete actions these, (n, a)."""
        states: Float32Array | None = None

        def act(seen: Float32Array) -> Float32Array:
            nonlocal states
            if states is None:
                states = self.image.runner.begin(len(seen))
            outputs, actions = self.image.runner.run(seen, states)
            return actions if self.chooses else outputs

        return act

    def as_it_is(self) -> Act:
        outputs = self.outputs()
        return outputs if self.chooses else lambda seen: self.action(outputs(seen))

    def nothing(self, observations: Float32Array) -> Float32Array:
        """Return the middle of every range, or the first choice."""
        if self.chooses:
            return np.zeros((len(observations), len(self.half)), np.float32)
        return self.action(np.zeros((len(observations), len(self.half))))

    def corrected_by(self, each: Correction) -> Act:
        if each.of_actions:
            outputs = self.outputs()
            return lambda seen: self.action(each.apply(np.clip(outputs(seen), *each.limits)))
        policy = self.as_it_is()
        return lambda seen: policy(each.apply(seen.astype(float)).astype(np.float32))

    def hypotheses(self) -> Iterator[Hypothesis]:
        for each in known_corrections(self.target.contract):
            remedy = f"import it again with --correct {each.word}"
            yield Hypothesis(each.meaning, remedy, partial(self.corrected_by, each), each)
        for steps in HOLDS:
            yield Hypothesis(
                f"it is asked {steps} times as often as it was trained for",
                f"ask it at {1e6 / self.target.contract.step_interval_us / steps:g} Hz",
                partial(self.held, steps),
                is_rate=True,
            )
        yield from self.frames()

    def held(self, steps: int) -> Act:
        count, last = 0, np.zeros(0, np.float32)
        policy = self.as_it_is()

        def act(seen: Float32Array) -> Float32Array:
            nonlocal count, last
            if count % steps == 0 or len(last) != len(seen):
                last = policy(seen)
            count += 1
            return last

        return act

    def frames(self) -> Iterator[Hypothesis]:
        """Yield hypotheses that a vector is in the body's frame and not in the world's, or the
        reverse, where a quaternion gives the attitude."""
        channels = self.target.contract.observations
        blocks = blocks_of(channels)
        turns = {name: b for name, b in blocks.items() if len(b) == 4}
        for turn in turns.values():
            parts = "".join(channels[index].name[-1] for index in turn)
            if sorted(parts) != sorted("wxyz"):
                continue
            quaternion = [turn[parts.index(axis)] for axis in "wxyz"]
            for name, block in blocks.items():
                if len(block) != 3:
                    continue
                for inverse, frame in ((True, "body's"), (False, "world's")):
                    yield Hypothesis(
                        f"its {name} is in the {frame} frame",
                        f"pass it {name} in the {frame} frame",
                        partial(self.turned, quaternion, block, inverse),
                    )

    def turned(self, quaternion: list[int], block: list[int], inverse: bool) -> Act:
        policy = self.as_it_is()

        def act(seen: Float32Array) -> Float32Array:
            given = seen.copy()
            sign = -1.0 if inverse else 1.0
            w, axis = seen[:, quaternion[:1]], sign * seen[:, quaternion[1:]]
            vector = seen[:, block]
            twice = 2 * np.cross(axis, vector)
            given[:, block] = vector + w * twice + np.cross(axis, twice)
            return policy(given)

        return act

    def run(self) -> Finding:
        """Fly the policy unchanged and by each hypothesis, and return what restores it by far."""
        fly = self.simulator.fly
        idle = fly(self.nothing, SCREENED, 0)
        usual = fly(self.as_it_is(), FLOWN, OTHER_SEED)
        first = fly(self.as_it_is(), SCREENED, 0)
        if idle is None or usual is None or first is None:
            some = fly(self.as_it_is(), 4, 0)
            return Finding(np.zeros(1) if some is None else some, float("nan"), 0)
        screened: list[tuple[float, Hypothesis]] = []
        for each in self.hypotheses():
            found = fly(each.make(), SCREENED, 0)
            if found is not None:
                screened.append((float(found.mean()), each))
        screened.sort(key=lambda entry: -entry[0])
        best, restored = None, usual
        for _, each in screened[:FINALISTS]:
            found = fly(each.make(), FLOWN, OTHER_SEED)
            if found is not None and found.mean() > restored.mean():
                best, restored = each, found
        nothing = float(idle.mean())
        error = usual.std() / np.sqrt(len(usual))
        finding = Finding(
            usual,
            nothing,
            len(screened),
            is_bad=bool(usual.mean() <= nothing + error),
            has_normalizer=self.image.normalizer is not None,
        )
        if best is None:
            return finding
        others = [score for score, each in screened if not (best.is_rate and each.is_rate)]
        least = least_return(self.target, nothing)
        if restored.mean() < least or not is_fault(usual, restored, nothing, others):
            return finding
        return replace(finding, fault=best, restored=float(restored.mean()))


def least_return(target: Target, idle: float) -> float:
    """Return the return that a policy without its fault has at least, in the steps that are flown:
    half of the way from that of no action to that of a solved task, where the task states one.

    A policy that has hardly been trained may do far better by any of the faults, and not well.
    """
    assert target.task is not None
    if target.task.solved_return is None:
        return -np.inf
    flown = min(1.0, MAX_STEPS / target.task.episode_steps)
    return idle + GOAL_SHARE * (flown * target.task.solved_return - idle)


def is_fault(
    usual: NDArray[np.float64], restored: NDArray[np.float64], idle: float, scores: Any
) -> bool:
    """Return whether the gain is neither chance nor detail, and stands out of what was tried.

    Some hypothesis always makes a bad policy a little less bad.
    """
    gained = restored - usual
    error = gained.std() / np.sqrt(len(gained)) + 1e-12
    worth = restored.mean() - min(idle, float(usual.mean()))
    low, high = np.quantile(scores, (0.1, 0.9))
    stands_out = restored.mean() > max(high, idle) + (high - low) / 2
    return bool(gained.mean() > max(ERRORS * error, SHARE * worth) and stands_out)
