"""Examines a compiled environment through its library: what it does in random actions, and whether
its State is all of it. Many copies are stepped at once, and the same ones again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rltools_host.build.catalog import OBSERVATIONS, REWARDS, by_struct_name
from rltools_host.checks import rules
from rltools_host.checks.findings import Examination, Finding, Learning, listed, number
from rltools_host.checks.memory import with_code
from rltools_host.checks.rules import Array, Play, RandomActions, idle_actions
from rltools_host.environments.environment_server import RESET, STEP, PlayState
from rltools_host.environments.library import SAME_STEP, Batch, Library

COUNT = 16  # environments at once: as many as training steps in lanes
PLAY_S = 1.5  # of random actions, at most
MAX_STEPS = 4000  # of each
RATE_COUNT, RATE_S = 256, 0.15
TRACE_STEPS = 60
EFFECT_STEPS = 40
MAX_ACTIONS = 64  # whose effect is tried
MAX_FIELDS = 8  # of a state, in a sentence
FILLS = (np.nan, 0.0)
LEFT_BEHIND = 3.0  # what is in a state before it is reset
SEED = 7


def examine(library: Library, given: Mapping[str, float], state: PlayState) -> Examination:
    """Examine an experiment's environment, with the learning that the experiment has.

    `given` are hyperparameters with other values than its own.
    """
    values = {entry["name"]: entry["default"] for entry in library.experiment["hyperparameters"]}
    values |= given
    algorithm = by_struct_name(library.experiment["algorithm"])
    normalized = algorithm.normalizes if algorithm else ()
    learning = Learning(
        gamma=values["gamma"],
        steps=int(values["steps"]),
        reward_scale=values.get("reward_scale", 1.0),
        is_normalized=bool(values.get("norm_obs", 0)) or OBSERVATIONS in normalized,
        can_scale="reward_scale" in values,
        scales_rewards=REWARDS in normalized,
    )
    names = {setting.name for setting in library.settings}
    settings = {name: value for name, value in given.items() if name in names}
    found = Examiner(library, learning, state, settings).run()
    figures, experiment = found.figures, library.experiment
    figures.environment = library.name
    figures.observations, figures.actions = len(library.observations), len(library.actions)
    figures.episode_steps, figures.step_s = library.episode_steps, library.step_s
    figures.hidden, figures.algorithm = experiment["hidden"], experiment["algorithm"]
    figures.bytes = with_code(experiment["algorithm"], experiment["bytes"])
    return found


class Examiner:
    """The examination of one library; `state` tells the waiting side which call is under way."""

    def __init__(
        self,
        library: Library,
        learning: Learning,
        state: PlayState,
        settings: Mapping[str, float] | None = None,
    ) -> None:
        self.library = library
        self.settings = settings
        self.learning = learning
        self.state = state
        self.found = Examination()
        self.trace_actions = self.actions_of(TRACE_STEPS, COUNT)
        self.names = [channel.name for channel in library.actions]

    def run(self) -> Examination:
        """Try everything; stop after a fault that makes the rest meaningless."""
        found = self.found
        observed = found.tried("every observation is written", self.unwritten())
        if observed and self.play():
            first = self.trace(self.trace_actions)
            again = self.trace(self.trace_actions)
            if found.tried("the same seed gives the same episodes", differing(first, again)):
                found.tried("State is all of it", self.hidden(first), self.influence(first))
                found.tried("reset() sets all of State", self.left_behind(first))
            every = "every action counts"
            if len(self.names) > MAX_ACTIONS:
                every = f"the first {MAX_ACTIONS} of {len(self.names)} actions count"
            found.tried(every, *self.effects())
            found.figures.steps_per_s = self.rate()
        return found

    # -- stepping ----------------------------------------------------------------------------------

    def batch(self, count: int = COUNT) -> Batch:
        """Return environments whose episodes are as long as in training, one after the other."""
        return Batch(
            self.library,
            count,
            episode_steps=self.library.episode_steps,
            autoreset=SAME_STEP,
            settings=self.settings,
        )

    def called(self, what: int, function: Callable[[], Any]) -> None:
        self.state.call(what)
        function()
        self.state.answered()

    def reset(self, batch: Batch, seed: int = SEED) -> None:
        self.called(RESET, lambda: batch.reset(seed))

    def actions_of(self, steps: int, count: int) -> Array:
        actions = RandomActions(self.library.actions, count, SEED)
        return np.stack([actions.next() for _ in range(steps)])

    def step(self, batch: Batch, actions: Array) -> Array:
        """Step, and return the values that must repeat: observations, rewards, termination."""
        batch.actions[...] = actions
        self.called(STEP, batch.step)
        return np.column_stack(
            [batch.observations, batch.privileged_observations, batch.final_observations,
             batch.rewards, batch.terminated]
        )  # fmt: skip

    def trace(self, actions: Array, prepare: Callable[[Batch], None] | None = None) -> Array:
        """Return (1 + steps, count, values) of episodes of one seed."""
        batch = self.batch(actions.shape[1])
        if prepare is not None:
            prepare(batch)
        self.reset(batch)
        zeros = np.zeros((len(batch.actions), 2), batch.rewards.dtype)
        begun = np.column_stack(
            [batch.observations, batch.privileged_observations, batch.final_observations, zeros]
        )
        return np.stack([begun, *(self.step(batch, each) for each in actions)])

    # -- what is tried -----------------------------------------------------------------------------

    def unwritten(self) -> Finding | None:
        """Find elements that observe() leaves as they were in the row."""
        seen = []
        batch = self.batch()
        self.reset(batch)
        for fill in FILLS:
            batch.observations[...] = batch.privileged_observations[...] = fill
            self.called(STEP, batch.observe)
            seen.append(np.column_stack([batch.observations, batch.privileged_observations]))
        left = np.isnan(seen[0]).all(0) & (seen[1] == 0.0).all(0)
        if not left.any():
            return None
        names = [channel.name for channel in self.library.observations]
        names += [f"privileged value {i}" for i in range(self.library.privileged_dim)]
        missing = listed([names[i] for i in np.flatnonzero(left)])
        return Finding(
            "unwritten-observation",
            f"observe() does not write {missing}",
            f"write every element of `observation`, or lower kObservationDim from {len(names)}",
        )

    def play(self) -> bool:
        """Play random actions, and return whether every number was finite."""
        batch = self.batch()
        actions = RandomActions(self.library.actions, COUNT, SEED)
        play = Play(self.library.observations, COUNT)
        self.reset(batch)
        if broken := self.not_finite(batch, None, None, play.steps):
            self.found.note(broken)
            return False
        play.see(batch.observations)
        is_still = bool((batch.observations == batch.observations[0]).all())
        limit = min(4 * (self.library.episode_steps or MAX_STEPS), MAX_STEPS)
        deadline = time.monotonic() + PLAY_S
        for _ in range(limit):
            before = batch.states.copy()
            given = actions.next()
            batch.actions[...] = given
            self.called(STEP, batch.step)
            if broken := self.not_finite(batch, before, given, play.steps):
                self.found.note(broken)
                return False
            ended = batch.terminated | batch.truncated
            play.see(np.where(ended[:, None], batch.final_observations, batch.observations))
            play.step(batch.rewards, batch.terminated, batch.truncated)
            if time.monotonic() > deadline:
                break
        self.judge(play, is_still)
        return True

    def judge(self, play: Play, is_still: bool) -> None:
        widen = "widen the range of the channel, or clamp what observe() writes"
        rules.judge(
            self.found,
            play,
            self.learning,
            ranges_kept=[rules.ranges(play, widen)],
            is_still=is_still,
            limit="return terminated = false, and set kEpisodeSteps = {steps}",
            steps=self.library.episode_steps,
            step_s=self.library.step_s,
        )
        play.write(self.found.figures)

    def not_finite(
        self, batch: Batch, before: Array | None, given: Array | None, steps: int
    ) -> Finding | None:
        """Find a number that is not finite, with the state and the action that led to it."""
        ended = batch.terminated | batch.truncated
        rows = np.column_stack([batch.observations, batch.privileged_observations])
        reached = np.where(ended[:, None], batch.final_observations, batch.observations)
        checked = np.column_stack([rows, reached, batch.rewards])
        wrong = ~np.isfinite(checked)
        if not wrong.any():
            return None
        row, column = (int(each[0]) for each in np.nonzero(wrong))
        names = [channel.name for channel in self.library.observations]
        private = [f"privileged value {i}" for i in range(self.library.privileged_dim)]
        name = [*names, *private, *names, "the reward"][column]
        where = "after reset()"
        if before is not None and given is not None:
            doing = ", ".join(
                f"{channel}={number(float(value))}"
                for channel, value in zip(self.names, given[row], strict=True)
            )
            where = f"after step {steps // COUNT + 1}, from {state_text(before[row])} by {doing}"
        return Finding(
            "finite",
            f"{name} was {checked[row, column]} {where}",
            "bound the state in step(), and divide and take roots of nothing that can be 0 or "
            "negative",
        )

    def hidden(self, first: Array) -> Finding | None:
        """Find a difference after resuming an episode from its State, as from a checkpoint."""
        half = TRACE_STEPS // 2
        batch, other = self.batch(), self.batch()
        self.reset(batch)
        for actions in self.trace_actions[:half]:
            self.step(batch, actions)
        for actions in self.trace_actions:  # elsewhere meanwhile
            self.step(other, actions)
        self.reset(other, SEED + 1)
        other.take_over(batch)
        rest = np.stack([self.step(other, actions) for actions in self.trace_actions[half:]])
        # A row of final observations stays as it was until an episode ends.
        width = first.shape[2] - 2
        ends = len(self.library.observations)
        kept = [*range(width - ends), width, width + 1]
        if same(rest[..., kept], first[half + 1 :, ..., kept]):
            return None
        return Finding(
            "hidden-state",
            "an episode that is resumed from its State differs from the same one without a pause",
            "list in State whatever step() and observe() remember, and leave out static and global "
            "variables: else a checkpoint does not resume to the same bits",
        )

    def influence(self, first: Array) -> Finding | None:
        """Find a difference between half of the environments alone and among all."""
        half = self.trace(self.trace_actions[:, : COUNT // 2])
        if same(half, first[:, : COUNT // 2]):
            return None
        return Finding(
            "influence",
            "environments that are stepped together influence each other",
            "keep in State all that step() writes, and leave out static and global variables",
        )

    def left_behind(self, first: Array) -> Finding | None:
        """Find what reset() leaves from the episode before."""

        def prepare(batch: Batch) -> None:
            for name in batch.states.dtype.names or ():
                batch.states[name] = LEFT_BEHIND

        if same(self.trace(self.trace_actions, prepare), first):
            return None
        clean, used = self.batch(), self.batch()
        prepare(used)
        for batch in (clean, used):
            self.reset(batch)
        names = [
            name
            for name in clean.states.dtype.names or ()
            if not same(clean.states[name], used.states[name])
        ]
        return Finding(
            "incomplete-reset",
            f"reset() leaves {listed(names) or 'a part of State'} as the last episode left it",
            "set every field of State in reset()",
        )

    def effects(self) -> list[Finding]:
        """Find actions without an effect: episodes are equal whatever value they are held at."""
        idle = []
        actions = self.trace_actions[:EFFECT_STEPS]
        for index, channel in enumerate(self.library.actions[:MAX_ACTIONS]):
            before: Array | None = None
            for value in rules.held_values(channel):
                given = actions.copy()
                given[..., index] = value
                found = self.trace(given)
                if before is not None and not same(before, found):
                    break
                before = found
            else:
                idle.append(channel.name)
        return idle_actions(idle, "use it in step(), or leave it out of the contract")

    def rate(self) -> float:
        """Return the steps a second of one core, of many environments."""
        batch = self.batch(RATE_COUNT)
        self.reset(batch)
        batch.actions[...] = RandomActions(self.library.actions, RATE_COUNT, SEED).next()
        given = batch.actions.copy()
        begun, steps = time.perf_counter(), 0
        while time.perf_counter() < begun + RATE_S:
            batch.actions[...] = given
            self.called(STEP, batch.step)
            steps += RATE_COUNT
        return steps / (time.perf_counter() - begun)


def same(one: Array, other: Array) -> bool:
    """Return whether arrays are equal to the bit; all NaN are equal."""
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))


def differing(first: Array, again: Array) -> Finding | None:
    if same(first, again):
        return None
    step = int(np.nonzero(~np.isclose(first, again, 0, 0, True).all((1, 2)))[0][0])
    return Finding(
        "deterministic",
        "the same seed and actions led to other episodes, from "
        f"{f'step {step}' if step else 'reset()'} on",
        "draw random numbers from the RandomStream alone, and write every variable before it is "
        "read",
    )


def state_text(state: Any) -> str:
    """Return a state as `angle=3.1, velocity=-8`."""
    pieces = []
    for name in state.dtype.names or ():
        values = np.atleast_1d(state[name])
        if values.dtype.names:
            continue
        numbers = [number(float(value)) for value in values.ravel()[:MAX_FIELDS]]
        text = numbers[0] if values.size == 1 else f"({', '.join(numbers)})"
        pieces.append(f"{name}={text}")
    return ", ".join(pieces[:MAX_FIELDS]) + (", …" if len(pieces) > MAX_FIELDS else "")
