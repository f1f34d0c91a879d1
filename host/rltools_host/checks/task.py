"""Examines a task of Gymnasium's: makes its environment, steps it by random actions, and again from
the same seeds. It runs where training plays, in a process of its own (process.py).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from rltools_host.build.catalog import algorithms
from rltools_host.build.description import LARGEST_FLOAT32, ranges_of
from rltools_host.checks import findings, rules
from rltools_host.checks.findings import (
    ADVICE,
    Examination,
    Finding,
    Learning,
    listed,
    number,
    policy_sizes,
)
from rltools_host.checks.rules import Array, Play, RandomActions, idle_actions
from rltools_host.environments.environment_server import MAKE, RESET, STEP, PlayState
from rltools_host.environments.imports import make_first, one_line
from rltools_host.environments.player import ActionSpace, close_environment, place
from rltools_host.environments.spaces import (
    MaskFault,
    nearest_allowed,
    with_mask,
)
from rltools_host.environments.task import MakeEnvironment, TaskRequest, task_of
from rltools_host.runs.task import Task

Result = TypeVar("Result")
PLAY_S = 4.0  # of random actions, at most
MOST_STEPS = 20_000
TRACE_STEPS = 60
EFFECT_S = 3.0
SLOW_STEP_S = 5e-3
LATER_STEPS = 4  # after which a second environment begins
SEED = 7
STEP_VALUES, RESET_VALUES = 5, 2


class Broken(Exception):
    """A fault after which nothing more is tried."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.what)
        self.finding = finding


class Examiner:
    """Of the environments that `make` makes."""

    def __init__(self, make: MakeEnvironment, request: TaskRequest, state: PlayState) -> None:
        self.make = make
        self.state = state
        self.found = Examination()
        state.call(MAKE)
        self.environment = make_first(make, request.name or request.source)
        self.made = [self.environment]
        state.answered()
        state.call(RESET)
        try:
            self.task: Task = task_of(request, self.environment)
        except BaseException:
            self.close()
            raise
        state.answered()
        is_normalized = algorithms()[self.task.algorithm].has_rollouts
        self.learning = Learning(is_normalized=is_normalized, can_scale=is_normalized)
        self.box = self.environment.observation_space
        self.actions = ActionSpace(self.environment.action_space)
        self.names = [channel.name for channel in self.task.actions]

    def run(self) -> Examination:
        found = self.found
        found.tried(
            "no wrapper is lost elsewhere",
            *findings.findings(self.environment, self.task.episode_steps),
        )
        try:
            self.play()
            first = self.trace(self.environment)
            again = self.trace(self.environment)
            state = "reset(seed=…) hand on the seed, super().reset(seed=seed), draw from "
            remedy = f"have {state}self.np_random alone, and set all that an episode changes"
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
        except Broken as broken:
            found.note(broken.finding)
        task = self.task
        found.figures |= {
            "environment": task.environment,
            "observations": len(task.observations),
            "actions": len(task.actions),
            "algorithm": task.algorithm,
            "hidden": task.hidden,
            "bytes": policy_sizes(task),
            "episode_steps": task.episode_steps,
            "step_s": task.step_interval_us * 1e-6,
            "wrappers": [type(each).__name__ for each in findings.chain(self.environment)[:-1]],
        }
        return found

    def close(self) -> None:
        """All that was made."""
        while self.made:
            close_environment(self.made.pop(), self.state)

    # -- stepping ----------------------------------------------------------------------------------

    def called(self, what: int, function: Callable[[], Result], after: str) -> Result:
        self.state.call(what)
        try:
            return function()
        except Exception as error:
            name = {RESET: "reset", STEP: "step", MAKE: "its making"}[what]
            raise Broken(
                Finding(
                    "raises",
                    f"{name} raised {one_line(error)} {after}",
                    "mend it: training loses such a step, and ends when many fail",
                )
            ) from None
        finally:
            self.state.answered()

    def reset(self, environment: Any, seed: int) -> Array:
        given = self.called(RESET, lambda: environment.reset(seed=seed), f"with seed={seed}")
        if not isinstance(given, tuple) or len(given) != RESET_VALUES:
            raise Broken(
                Finding(
                    "interface",
                    f"reset returned {described(given)}",
                    "return (observation, info), as Gymnasium's reset does",
                )
            )
        seen = self.checked(given[0], "reset", f"with seed={seed}")
        return self.with_mask(seen, given[1], "reset", f"with seed={seed}")

    def with_mask(
        self, seen: Array, info: Any, where: str, after: str, *, ends: bool = False
    ) -> Array:
        try:
            return with_mask(seen, info, self.task, where, ends=ends)
        except MaskFault as fault:
            remedy = (
                "give one number for each choice, 1 where it is allowed, at each reset and step"
            )
            raise Broken(Finding("mask", f"{fault}, {after}", remedy)) from None

    def step(self, environment: Any, action: Array, seen: Array) -> tuple[Array, float, bool, bool]:
        if self.task.has_masks:
            action = nearest_allowed(action, seen[-self.task.mask_count :], self.task)
        after = place(seen, action)
        taken = self.actions.taken(action)
        given = self.called(STEP, lambda: environment.step(taken), after)
        if not isinstance(given, tuple) or len(given) != STEP_VALUES:
            raise Broken(
                Finding(
                    "interface",
                    f"step returned {described(given)}",
                    "return (observation, reward, terminated, truncated, info), as Gymnasium's "
                    "step does",
                )
            )
        observation, reward, terminated, truncated, info = given
        row = self.checked(observation, "step", after)
        try:
            value = float(reward)
        except (TypeError, ValueError):
            value = np.nan
        if not abs(value) <= LARGEST_FLOAT32:
            raise Broken(
                Finding(
                    "finite",
                    f"the reward was {one_word(reward)} {after}",
                    "give a number that is finite in 32 bits at each step",
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
            raise Broken(
                Finding(
                    "interface",
                    f"{where} gave an observation of shape {seen.shape}, and its space has "
                    f"{self.task.observation_shape}",
                    "give observations of the space's shape",
                )
            )
        row = seen.reshape(-1)
        if not np.isfinite(row).all():
            name = self.task.observations[int(np.argmin(np.isfinite(row)))].name
            raise Broken(
                Finding(
                    "finite",
                    f"{name} was {row[int(np.argmin(np.isfinite(row)))]} from {where}, {after}",
                    "bound what the simulation computes, and divide by nothing that can be 0",
                )
            )
        return row

    # -- what is tried -----------------------------------------------------------------------------

    def play(self) -> None:
        """Random actions; two kinds of them take turns, episode by episode."""
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
        while play.steps < MOST_STEPS and time.monotonic() < deadline:
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
        found.figures |= {**play.figures(), "step_us": step_s * 1e6, "reset_us": reset_s * 1e6}
        self.judge(play, beginnings, outside, step_s)

    def judge(self, play: Play, beginnings: list[Array], outside: Array, step_s: float) -> None:
        task, found = self.task, self.found
        remedy = "give its Box, or --channels, wider bounds"
        if outside.any():
            remedy = "give its Box the bounds that the observations have"
        rules.judge(
            found,
            play,
            self.learning,
            ranges_kept=[rules.ranges(play, remedy), self.without_range()],
            is_still=len(beginnings) > 1 and all(same(beginnings[0], each) for each in beginnings),
            limit="return terminated=False, truncated=True, or give --episode-steps {steps}",
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
        """Elements whose space has no bounds."""
        names = list(self.task.unbounded)
        if not names:
            return None
        return Finding(
            "no-range",
            f"{listed(names)} {'has' if len(names) == 1 else 'have'} no range, so that a board "
            "does not notice a broken sensor",
            "give its Box finite bounds, or a table to --channels, before a policy goes to a board",
            ADVICE,
        )

    def trace(
        self, environment: Any, index: int = 0, value: float | None = None, seed: int = SEED
    ) -> list[Array]:
        """Of one seed: observation, reward and flags of each step; `value` is what action `index`
        is held at."""
        return [*self.steps(environment, index, value, seed)]

    def steps(
        self, environment: Any, index: int = 0, value: float | None = None, seed: int = SEED
    ) -> Iterator[Array]:
        """The same, a row each time that it is asked for one."""
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
        """A second environment gives the first one's episodes alone; and both theirs while they
        take turns, the second one beginning some steps later with another seed."""
        made = self.called(MAKE, self.make, "a second time")
        self.made.append(made)
        where = "another environment of the same kind"
        if found := differing(first, self.trace(made), where, remedy):
            return found
        alone = [first, self.trace(made, seed=SEED + 1)]
        ours, theirs = self.steps(self.environment), self.steps(made, seed=SEED + 1)
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
        """Of each action whether an episode differs where it is held at other values; and how many
        were tried."""
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
        f"the same seed and actions gave another episode in {where}, from {when} on",
        f"{remedy}: a run is not repeated otherwise",
    )


def one_word(value: Any) -> str:
    """A number, or what kind of thing it is."""
    return str(value) if isinstance(value, int | float | np.number) else type(value).__name__


def described(value: Any) -> str:
    return f"{len(value)} values" if isinstance(value, tuple) else f"a {type(value).__name__}"
