"""The examination of a Gymnasium task: random actions, and the same ones again from the same
seeds.

It runs where training plays, in a process of its own (process.py).
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import gymnasium
import numpy as np
from gymnasium.utils.passive_env_checker import (
    env_reset_passive_checker,
    env_step_passive_checker,
)

from rltools_host.build.catalog import REWARDS, algorithms
from rltools_host.build.description import LARGEST_FLOAT32, ranges_of
from rltools_host.checks import rules
from rltools_host.checks.findings import ADVICE, Examination, Finding, Learning, listed, number
from rltools_host.checks.memory import policy_sizes
from rltools_host.checks.rules import Array, Play, RandomActions, idle_actions
from rltools_host.checks.wrappers import wrapper_findings
from rltools_host.environments.channels import assumptions
from rltools_host.environments.environment_server import MAKE, RESET, STEP, PlayState
from rltools_host.environments.imports import made, make_first, one_line
from rltools_host.environments.player import (
    ActionSpace,
    close_environment,
    reward_of,
    step_context,
)
from rltools_host.environments.spaces import InterfaceFault, chain, nearest_allowed, with_mask
from rltools_host.environments.task import MakeEnvironment, TaskRequest, task_of
from rltools_host.runs.task import Task

Result = TypeVar("Result")
PLAY_S = 4.0  # of random actions, at most
MAX_STEPS = 20_000
TRACE_STEPS = 60
EFFECT_S = 3.0
SLOW_STEP_S = 5e-3
LATER_STEPS = 4  # after which a second environment begins
SEED = 7


# Of the checker's texts: how one begins and ends, and what rules here say in more detail.
WARN, END = "\x1b[33mWARN: ", "\x1b[0m"
OWN_RULES = ("is not within the observation space", "The reward ")
INTERFACE = "see https://gymnasium.farama.org/api/env for what reset and step take and return"


class StopExamination(Exception):
    """A fault after which nothing more is tried."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.what)
        self.finding = finding


class Examiner:
    """The examination of the environments that `make` makes."""

    def __init__(self, make: MakeEnvironment, request: TaskRequest, state: PlayState) -> None:
        self.make = make
        self.state = state
        self.found = Examination()
        state.call(MAKE)
        self.environment = make_first(make, request.name or request.source)
        self.environments = [self.environment]
        state.answered()
        state.call(RESET)
        try:
            self.task: Task = task_of(request, self.environment)
        except BaseException:
            self.close()
            raise
        state.answered()
        algorithm = algorithms()[self.task.algorithm]
        self.learning = Learning(
            is_normalized=algorithm.has_normalizer or self.task.normalizes,
            can_scale=algorithm.has_rollouts,
            scales_rewards=REWARDS in algorithm.normalizes,
        )
        self.box = self.environment.observation_space
        self.actions = ActionSpace(self.environment.action_space)
        self.names = [channel.name for channel in self.task.actions]

    def run(self) -> Examination:
        found = self.found
        found.tried(
            "no wrapper is lost elsewhere",
            *wrapper_findings(self.environment, self.task.episode_steps),
        )
        try:
            found.tried("it follows Gymnasium's interface", *self.interface())
            self.play()
            first = self.trace(self.environment)
            again = self.trace(self.environment)
            remedy = (
                "call super().reset(seed=seed) in reset, draw from self.np_random alone, and set "
                "all that an episode changes"
            )
            if found.tried(
                "the same seed gives the same episodes",
                differing(first, again, "the same environment", remedy),
            ):
                found.tried("environments do not depend on each other", self.another(first, remedy))
                idle, count = self.effects()
                every = "every action counts"
                if count < len(self.names):
                    every = f"the first {count} of {len(self.names)} actions count"
                found.tried(every, *idle)
        except StopExamination as stop:
            found.note(stop.finding)
        task, figures = self.task, found.figures
        figures.environment, figures.algorithm = task.environment, task.algorithm
        figures.observations, figures.actions = len(task.observations), len(task.actions)
        figures.hidden, figures.bytes = task.hidden, policy_sizes(task)
        figures.episode_steps, figures.step_s = task.episode_steps, task.step_interval_us * 1e-6
        figures.assumed = assumptions(task)
        figures.wrappers = [type(each).__name__ for each in chain(self.environment)[:-1]]
        return found

    def close(self) -> None:
        """Close all environments."""
        while self.environments:
            close_environment(self.environments.pop(), self.state)

    # -- stepping ----------------------------------------------------------------------------------

    def called(self, what: int, function: Callable[[], Result], after: str) -> Result:
        self.state.call(what)
        try:
            return function()
        except Exception as error:
            name = {RESET: "reset", STEP: "step", MAKE: "its constructor"}[what]
            raise StopExamination(
                Finding(
                    "raises",
                    f"{name} raised {one_line(error)} {after}",
                    "fix it: training loses such a step, and ends when many fail",
                )
            ) from None
        finally:
            self.state.answered()

    def reset(self, environment: Any, seed: int) -> Array:
        def call() -> tuple[Any, Any]:
            observation, info = environment.reset(seed=seed)
            return observation, info

        observation, info = self.called(RESET, call, f"with seed={seed}")
        seen = self.checked(observation, "reset", f"with seed={seed}")
        return self.with_mask(seen, info, "reset", f"with seed={seed}")

    def with_mask(
        self, seen: Array, info: Any, where: str, after: str, *, ends: bool = False
    ) -> Array:
        try:
            return with_mask(seen, info, self.task, where, ends=ends)
        except InterfaceFault as fault:
            remedy = (
                "return one number for each choice, 1 where it is allowed, from each reset and step"
            )
            raise StopExamination(Finding("mask", f"{fault}, {after}", remedy)) from None

    def step(self, environment: Any, action: Array, seen: Array) -> tuple[Array, float, bool, bool]:
        if self.task.has_masks:
            action = nearest_allowed(action, seen[-self.task.mask_count :], self.task)
        after = step_context(seen, action)
        taken = self.actions.taken(action)

        def call() -> tuple[Any, Any, Any, Any, Any]:
            observation, reward, terminated, truncated, info = environment.step(taken)
            return observation, reward, terminated, truncated, info

        observation, reward, terminated, truncated, info = self.called(STEP, call, after)
        row = self.checked(observation, "step", after)
        try:
            value = reward_of(reward)
        except InterfaceFault:
            value = np.nan
        if not abs(value) <= LARGEST_FLOAT32:
            raise StopExamination(
                Finding(
                    "finite",
                    f"the reward was {reward!r:.40} {after}",
                    "return a number that is finite in 32 bits from each step",
                )
            )
        is_over = bool(terminated) or bool(truncated)
        row = self.with_mask(row, info, "step", after, ends=is_over)
        return row, value, bool(terminated), bool(truncated)

    def checked(self, observation: Any, where: str, after: str) -> Array:
        try:
            seen = np.asarray(observation, np.float32)
        except (TypeError, ValueError):
            seen = np.zeros(0, np.float32)
        if seen.shape != self.task.observation_shape:
            raise StopExamination(
                Finding(
                    "interface",
                    f"{where} returned an observation of shape {seen.shape}, and its space has "
                    f"{self.task.observation_shape}",
                    "return observations of the space's shape",
                )
            )
        row = seen.reshape(-1)
        if not np.isfinite(row).all():
            name = self.task.observations[int(np.argmin(np.isfinite(row)))].name
            raise StopExamination(
                Finding(
                    "finite",
                    f"{name} was {row[int(np.argmin(np.isfinite(row)))]} from {where}, {after}",
                    "bound what the simulation computes, and divide by nothing that can be 0",
                )
            )
        return row

    # -- what is tried -----------------------------------------------------------------------------

    def interface(self) -> list[Finding]:
        """Return what Gymnasium's own checker says of a reset and of a step.

        Its checks of ranges, finite numbers and seeds are left to those here: they look at many
        steps and two environments, and name the channel and the step.
        """
        environment, after = self.environment, f"with seed={SEED}"
        found, (observation, info) = self.passive(
            RESET, lambda: env_reset_passive_checker(environment, seed=SEED), 2
        )
        action = RandomActions(self.task.actions, 1, SEED).next()[0]
        if self.task.has_masks:
            seen = self.checked(observation, "reset", after)
            seen = self.with_mask(seen, info, "reset", after)
            action = nearest_allowed(action, seen[-self.task.mask_count :], self.task)
        taken = self.actions.taken(action)
        further, _ = self.passive(STEP, lambda: env_step_passive_checker(environment, taken), 5)
        return found + further

    def passive(
        self, what: int, check: Callable[[], Any], values: int
    ) -> tuple[list[Finding], tuple[Any, ...]]:
        """Return the checker's warnings as advice, and the call's result; stop if that is no tuple
        of so many values."""
        refused: list[str] = []

        def call() -> Any:
            try:
                return check()
            except (AssertionError, gymnasium.error.Error) as error:
                refused.append(" ".join(str(error).split()))
                return None

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = self.called(what, call, "as Gymnasium's checker called it")
        texts = [str(each.message) for each in caught]
        texts = [text[len(WARN) : -len(END)].strip() for text in texts if text.startswith(WARN)]
        texts = [text for text in texts if not any(own in text for own in OWN_RULES)]
        if not isinstance(result, tuple) or len(result) != values:
            raise StopExamination(Finding("interface", (texts + refused)[0], INTERFACE))
        advice = [Finding("interface", text, INTERFACE, ADVICE) for text in dict.fromkeys(texts)]
        return advice, result

    def play(self) -> None:
        """Play random actions; two kinds of them alternate, episode by episode."""
        task, found = self.task, self.found
        actions = RandomActions(task.actions, 2, SEED)
        play = Play(task.observations, 1, task.mask_count)
        beginnings: list[Array] = []
        outside = np.zeros(len(task.observations), np.int64)
        masks = ranges_of(task.observations[len(task.own_observations) :])
        ends = zip((self.box.low, self.box.high), masks, strict=True)
        low, high = (np.concatenate([end.ravel().astype(np.float32), more]) for end, more in ends)
        spent = {RESET: 0.0, STEP: 0.0}
        deadline = time.monotonic() + PLAY_S
        while play.steps < MAX_STEPS and time.monotonic() < deadline:
            begun = time.perf_counter()
            seen = self.reset(self.environment, SEED + len(beginnings))
            spent[RESET] += time.perf_counter() - begun
            kind = len(beginnings) % 2
            beginnings.append(seen)
            play.see(seen[None])
            for count in range(1, task.episode_steps + 1):
                action = actions.next()[kind]
                begun = time.perf_counter()
                seen, reward, terminated, truncated = self.step(self.environment, action, seen)
                spent[STEP] += time.perf_counter() - begun
                outside += (seen < low) | (seen > high)
                play.see(seen[None])
                is_over = truncated or count == task.episode_steps
                play.step(np.array([reward]), np.array([terminated]), np.array([is_over]))
                if terminated or is_over or time.monotonic() > deadline:
                    break
        step_s, reset_s = spent[STEP] / play.steps, spent[RESET] / len(beginnings)
        play.write(found.figures)
        found.figures.step_us, found.figures.reset_us = step_s * 1e6, reset_s * 1e6
        self.judge(play, beginnings, outside, step_s)

    def judge(self, play: Play, beginnings: list[Array], outside: Array, step_s: float) -> None:
        task, found = self.task, self.found
        remedy = "widen the bounds of its Box, or of --channels"
        if outside.any():
            remedy = "set the bounds of its Box to those that the observations have"
        rules.judge(
            found,
            play,
            self.learning,
            ranges_kept=[rules.ranges(play, remedy), self.without_range()],
            is_still=len(beginnings) > 1 and all(same(beginnings[0], each) for each in beginnings),
            limit="return terminated=False, truncated=True, or --set episode_steps={steps}",
            steps=task.episode_steps,
            step_s=task.step_interval_us * 1e-6,
        )
        if step_s > SLOW_STEP_S:
            found.note(
                Finding(
                    "slow",
                    f"a step takes {number(step_s * 1e3)} ms, and 100,000 of them "
                    f"{number(1e5 * step_s / 60)} minutes",
                    "simulate with fewer substeps, draw nothing, or train several seeds at once",
                    ADVICE,
                )
            )

    def without_range(self) -> Finding | None:
        """Find elements whose space has no bounds."""
        names = list(self.task.unbounded)
        if not names:
            return None
        return Finding(
            "no-range",
            f"{listed(names)} {'has' if len(names) == 1 else 'have'} no range, so that a board "
            "does not notice a broken sensor",
            "set finite bounds in its Box, or by --channels, before a policy goes to a board",
            ADVICE,
        )

    def trace(
        self, environment: Any, index: int = 0, value: float | None = None, seed: int = SEED
    ) -> list[Array]:
        """Return observation, reward and flags of each step of one seed.

        Action `index` is held at `value`, if that is given.
        """
        return [*self.steps(environment, index, value, seed)]

    def steps(
        self, environment: Any, index: int = 0, value: float | None = None, seed: int = SEED
    ) -> Iterator[Array]:
        """Yield the rows of trace(), one each time."""
        actions = RandomActions(self.task.actions, 1, seed)
        seen = self.reset(environment, seed)
        yield seen.copy()
        for _ in range(TRACE_STEPS):
            action = actions.next()[0]
            if value is not None:
                action[index] = value
            seen, reward, terminated, truncated = self.step(environment, action, seen)
            yield np.append(seen.astype(np.float64), [reward, terminated, truncated])
            if terminated or truncated:
                break

    def another(self, first: list[Array], remedy: str) -> Finding | None:
        """Find a dependence between two environments.

        The second one must repeat the first one's episodes alone; and both their own while they
        alternate, the second one beginning some steps later with another seed.
        """
        other = self.called(MAKE, lambda: made(self.make), "a second time")
        self.environments.append(other)
        where = "another environment of the same kind"
        if found := differing(first, self.trace(other), where, remedy):
            return found
        alone = [first, self.trace(other, seed=SEED + 1)]
        ours, theirs = self.steps(self.environment), self.steps(other, seed=SEED + 1)
        rows: list[list[Array]] = [[], []]
        rows[0] += itertools.islice(ours, LATER_STEPS)
        for pair in itertools.zip_longest(ours, theirs):
            for each, row in zip(rows, pair, strict=True):
                each += [] if row is None else [row]
        where = "an environment that takes turns with another one"
        share = "share nothing between environments, no variable of a class or a module, and not "
        remedy = f"{share}NumPy's global random numbers; draw from self.np_random"
        for index in range(2):
            if found := differing(alone[index], rows[index], where, remedy):
                return found
        return None

    def effects(self) -> tuple[list[Finding], int]:
        """Find actions without an effect, and return how many were tried."""
        idle, tried = [], 0
        deadline = time.monotonic() + EFFECT_S
        for index, name in enumerate(self.names):
            values = rules.held_values(self.task.actions[index])
            traces = (self.trace(self.environment, index, value) for value in values)
            before = next(traces)
            if all(len(each) == len(before) and all(map(same, each, before)) for each in traces):
                idle.append(name)
            tried += 1
            if time.monotonic() > deadline:
                break
        return idle_actions(idle, "use it in step, or leave it out of the action space"), tried


def same(one: Array, other: Array) -> bool:
    return bool(np.array_equal(one, other))


def differing(first: list[Array], again: list[Array], where: str, remedy: str) -> Finding | None:
    steps = min(len(first), len(again))
    apart = next((i for i in range(steps) if not same(first[i], again[i])), None)
    if apart is None and len(first) == len(again):
        return None
    when = "the first observation" if apart == 0 else f"step {steps if apart is None else apart}"
    return Finding(
        "deterministic",
        f"the same seed and actions led to another episode in {where}, from {when} on",
        f"{remedy}: a run cannot be repeated otherwise",
    )
