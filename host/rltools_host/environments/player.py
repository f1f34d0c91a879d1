"""The player of Python environments, which counts what goes wrong: for the program that trains, and
for evaluations, with flat observations and actions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rltools_host.build.description import LARGEST_FLOAT32, ranges_of
from rltools_host.environments.environment_server import (
    CLOSE,
    MAKE,
    RESET,
    STEP,
    Faults,
    PlayState,
)
from rltools_host.environments.imports import (
    install_what_it_needs,
    made,
    make_first,
    maker_of,
    one_line,
    require_agreement,
)
from rltools_host.environments.spaces import (
    EnvironmentFault,
    InterfaceFault,
    mask_of,
    with_mask,
)
from rltools_host.environments.task import Info, MakeEnvironment
from rltools_host.errors import BoardMismatchError, UsageError
from rltools_host.lines import aside
from rltools_host.runs.task import Task

Float32Array = NDArray[np.float32]
DONE, LOST, OVER = range(3)  # what a reset or a step answers
# An environment that fails this often without a good step between, or in this share of its steps,
# is given up.
MAX_IN_A_ROW = 20
MANY, LARGEST_SHARE = 100, 0.1
MAX_NUMBERS = 8  # of an observation, in a sentence
# From here on slots are those of evaluations (rl/environments/external/task.h).
EVALUATION_SLOT = 0x80000000


class ActionSpace:
    """The conversion of policies' actions into an environment's space: its shape, type and bounds.

    Whole numbers are the nearest ones, of two the even one: 0.5 is 0, and 1.5 is 2. The number of a
    choice is counted from the first number of a Discrete or a MultiDiscrete.
    """

    def __init__(self, space: Any) -> None:
        self._shape, self._dtype = space.shape, space.dtype
        self._first: Any = None  # of the numbers that are chosen from
        if not hasattr(space, "low"):
            self._first = space.start if space.shape else int(space.start)
            return
        self._is_whole = space.dtype.kind in "iub"
        self._bounds: tuple[Any, Any] | None = (space.low, space.high)
        if self._is_whole:
            low, high = space.low.astype(np.float64), space.high.astype(np.float64)
            if space.dtype.itemsize == 8:  # the nearest double may lie outside the type
                high = np.minimum(high, np.nextafter(float(np.iinfo(space.dtype).max), 0.0))
            self._bounds = low, high
        elif space.dtype == np.float32:  # policies' actions are within it
            self._bounds = None

    def taken(self, action: Float32Array) -> Any:
        """Return the action for step(), a copy that the environment may keep."""
        if self._first is not None and not self._shape:
            return round(action.item()) + self._first
        shaped = action.reshape(self._shape)
        if self._first is not None:
            return np.rint(shaped).astype(self._dtype) + self._first
        if self._bounds is None:
            return shaped.copy()
        low, high = self._bounds
        if self._is_whole:
            whole = np.rint(shaped.astype(np.float64))
            return np.minimum(np.maximum(whole, low), high).astype(self._dtype)
        return np.minimum(np.maximum(shaped.astype(self._dtype), low), high)


class Player:
    """Environments by their slots, made when they are first needed.

    An observation beyond its range, at which a board takes the safe action, is clipped to it. In an
    evaluation the safe action is taken then, as on a board.
    """

    def __init__(
        self,
        make: MakeEnvironment,
        task: Task,
        state: PlayState | None = None,
        evaluates: bool = False,
    ) -> None:
        """Play in slots of training, or, if it `evaluates`, in slots of evaluations alone.

        `state` shows others how playing goes.
        """
        self._make = make
        self._first_evaluation = 0 if evaluates else EVALUATION_SLOT
        self._state = state or PlayState()
        self._environments: dict[int, Any] = {}
        self._task = task
        self._shape = task.observation_shape
        self._channels = task.observations
        self._low, self._high = ranges_of(task.own_observations)
        # What the observation that came last is: at least the low end, at most the high one.
        self._is_inside = bytearray(2 * self._low.size)
        self._is_above, self._is_below = np.frombuffer(self._is_inside, bool).reshape(2, -1)
        self._no_observation = np.zeros(len(task.observations), np.float32)
        self._safe_action = np.array(task.safe_values, np.float32)
        self._beyond: set[int] = set()  # slots whose last observation was beyond its range
        self._steps = 0
        self._training_steps = 0  # of the steps: those of no evaluation
        self._in_a_row = 0
        self._seen: dict[int, Float32Array] = {}  # what each slot observed last
        self._actions: ActionSpace

    @property
    def faults(self) -> Faults:
        return self._state.faults()

    def prepare(self, count: int, first: Any) -> None:
        """Make the environments of a run, of which the first one is given, and begin an episode of
        that."""
        self.take(first)
        for slot in range(1, count):
            self._environments[slot] = self._made()
        self._state.call(RESET)
        seen, info = parts_of(first.reset(seed=0), "reset")
        self._state.answered()
        self._checked(seen, "reset", 0)
        mask_of(info, self._task, "reset")

    def take(self, first: Any) -> None:
        """Put the environment into the first slot, and read its action space."""
        self._actions = ActionSpace(first.action_space)
        self._environments[0] = first

    def reset(self, slot: int, seed: int) -> tuple[int, Float32Array]:
        """Return the first observation; if reset fails, that of an environment that is made
        again."""
        for _ in range(2):
            try:
                environment = self._environments.get(slot)
                if environment is None:
                    environment = self._environments[slot] = self._made()
                self._state.call(RESET)
                observation, info = parts_of(environment.reset(seed=seed), "reset")
                seen = self._checked(observation, "reset", slot)
                seen = with_mask(seen, info, self._task, "reset")
                self._seen[slot] = seen
                return DONE, seen
            except InterfaceFault as fault:  # no chance: the next one is the same
                self._state.give_up(str(fault))
                return OVER, self._no_observation
            except EnvironmentFault as fault:
                self._count(str(fault))
            except Exception as error:
                self._count(f"reset raised {one_line(error)}")
            finally:
                self._state.answered()
            self._close(slot)
        self._give_up("the environment cannot be reset")
        return OVER, self._no_observation

    def step(self, slot: int, action: Float32Array) -> tuple[int, float, bool, bool, Float32Array]:
        self._steps += 1
        if slot < self._first_evaluation:
            self._training_steps += 1
        elif slot in self._beyond:
            action = self._safe_action
        try:
            environment = self._environments[slot]
            given = self._actions.taken(action)
            self._state.call(STEP)
            parts = parts_of(environment.step(given), "step")
            observation, reward, terminated, truncated, info = parts
            seen = self._checked(observation, "step", slot)
            reward = checked_reward(reward)
            flags = flag_of(terminated, "terminated"), flag_of(truncated, "truncated")
            seen = with_mask(seen, info, self._task, "step", ends=any(flags))
        except InterfaceFault as fault:
            self._state.give_up(f"{fault}, {self._context(slot, action)}")
            return OVER, 0.0, False, False, self._no_observation
        except EnvironmentFault as fault:
            return self._lost(f"{fault}, {self._context(slot, action)}")
        except Exception as error:
            return self._lost(f"step raised {one_line(error)}, {self._context(slot, action)}")
        finally:
            self._state.answered()
        self._in_a_row = 0
        self._seen[slot] = seen
        return DONE, reward, *flags, seen

    def refuse(self, sentence: str) -> None:
        """Stop playing, for this reason."""
        self._state.give_up(sentence)

    def close(self) -> None:
        for slot in list(self._environments):
            self._close(slot)

    def _made(self) -> Any:
        self._state.call(MAKE)
        environment = made(self._make)
        self._state.answered()
        return environment

    def _checked(self, observation: Any, where: str, slot: int) -> Float32Array:
        """Return the observation flat, of the space's shape, finite, and clipped to its range.

        An observation beyond its range, on which a board would not act, is counted.
        """
        seen = np.array(observation, np.float32)
        if seen.shape != self._shape:
            raise EnvironmentFault(
                f"{where} returned an observation of shape {seen.shape}, and its space has "
                f"{self._shape}"
            )
        seen = seen.reshape(-1)
        np.greater_equal(seen, self._low, self._is_above)
        np.less_equal(seen, self._high, self._is_below)
        if 0 not in self._is_inside:
            self._beyond.discard(slot)
        else:
            if not np.isfinite(seen).all():
                raise EnvironmentFault(f"{where} returned an observation that is not finite")
            index = int(np.argmin(self._is_above & self._is_below))
            channel = self._channels[index]
            self._state.count_outside(
                f"{channel.name} was {seen[index]:g}, and its range is {channel.minimum:g} to "
                f"{channel.maximum:g}; at step {self._training_steps:,} of this session"
            )
            self._beyond.add(slot)
            np.clip(seen, self._low, self._high, seen)
        return seen

    def _context(self, slot: int, action: Float32Array) -> str:
        return step_context(self._seen.get(slot, self._no_observation), action)

    def _lost(self, sentence: str) -> tuple[int, float, bool, bool, Float32Array]:
        self._count(sentence)
        count = self.faults.count
        if self._in_a_row >= MAX_IN_A_ROW:
            self._give_up(f"the environment failed {self._in_a_row} times in a row")
        elif count >= MANY and count > LARGEST_SHARE * self._steps:
            self._give_up(f"the environment failed in {count} of {self._steps} steps")
        return OVER if self.faults.given_up else LOST, 0.0, False, False, self._no_observation

    def _count(self, sentence: str) -> None:
        self._in_a_row += 1
        self._state.count_fault(sentence)

    def _give_up(self, sentence: str) -> None:
        self._state.give_up(f"{sentence}; first: {self.faults.first}")

    def _close(self, slot: int) -> None:
        if (environment := self._environments.pop(slot, None)) is not None:
            close_environment(environment, self._state)


def close_environment(environment: Any, state: PlayState) -> None:
    """Close an environment. A failure loses nothing but may leave resources held, which is reported
    at the end."""
    state.call(CLOSE)
    try:
        environment.close()
    except Exception as error:
        state.not_closed = f"close raised {one_line(error)}"
    finally:
        state.answered()


def step_context(seen: Float32Array, action: Float32Array) -> str:
    """Return the last observation and the action, for a sentence."""
    return f"at observation ({numbers(seen)}) by action ({numbers(action)})"


def numbers(values: Float32Array) -> str:
    pieces = [f"{float(value):.4g}" for value in values[:MAX_NUMBERS]]
    return ", ".join(pieces) + (", …" if len(values) > MAX_NUMBERS else "")


RESULTS = {
    "reset": ("observation", "info"),
    "step": ("observation", "reward", "terminated", "truncated", "info"),
}


def parts_of(result: Any, where: str) -> tuple[Any, ...]:
    """Return what a reset or a step returned, if it has as many parts as Gymnasium's."""
    names = RESULTS[where]
    if isinstance(result, tuple) and len(result) == len(names):
        return result
    found = f"{len(result)} values" if isinstance(result, tuple) else f"a {type(result).__name__}"
    raise InterfaceFault(
        f"{where} returned {found}, as Gym had it before 0.26, and Gymnasium asks for "
        f"({', '.join(names)})"
    )


def flag_of(value: Any, name: str) -> bool:
    """Return a flag of a step; an array of one element is one."""
    if np.size(value) == 1:
        return bool(value)
    raise InterfaceFault(f"step returned {np.size(value)} values as {name}: return one")


def reward_of(reward: Any) -> float:
    """Return a reward as a number; an array of one element is one."""
    try:
        return float(reward if np.ndim(reward) == 0 else np.asarray(reward).item())
    except (TypeError, ValueError):
        raise InterfaceFault(
            f"step returned the reward {reward!r:.60}, and a step has one number as its reward"
        ) from None


def checked_reward(reward: Any) -> float:
    """Return the reward as a float that 32 bits can hold, as it is learned."""
    number = reward_of(reward)
    if not math.isfinite(number):
        raise EnvironmentFault(f"step returned the reward {number}, which is not finite")
    if abs(number) > LARGEST_FLOAT32:
        raise EnvironmentFault(
            f"step returned the reward {number:g}, which exceeds 32-bit floats: scale it down"
        )
    return number


class FlatEnvironment:
    """An environment for evaluations, stepped as in training's: flat observations and actions,
    bounded episodes."""

    def __init__(self, make: MakeEnvironment, task: Task, state: PlayState) -> None:
        """Make the environment. `state` counts what goes wrong; the first fault is printed as a
        note."""
        environment = make_first(make, task.environment)
        shapes = (environment.observation_space.shape, environment.action_space.shape)
        if shapes != (task.observation_shape, task.action_shape):
            close_environment(environment, state)
            raise BoardMismatchError(
                f"{task.environment} has observations and actions of the shapes {shapes[0]} and "
                f"{shapes[1]} here, and the run {task.observation_shape} and {task.action_shape}"
            )
        self._task = task
        self._state = state
        self._player = Player(make, task, state, evaluates=True)
        self._player.take(environment)
        self._steps = 0

    def reset(self, *, seed: int) -> tuple[Float32Array, Info]:
        self._steps = 0
        before = self._player.faults
        what, seen = self._player.reset(0, seed)
        if what == OVER:
            raise UsageError(self._failed(self._player.faults.given_up))
        self._note(before)
        return seen, {}

    def step(self, action: Float32Array) -> tuple[Float32Array, float, bool, bool, Info]:
        self._steps += 1
        before = self._player.faults
        what, reward, terminated, truncated, seen = self._player.step(0, action)
        self._note(before)
        is_over = truncated or self._steps >= self._task.episode_steps
        return seen, reward, terminated, what != DONE or is_over, {}

    def close(self) -> None:
        before = self._state.not_closed
        self._player.close()
        if self._state.not_closed and not before:
            aside(f"note: {self._failed(self._state.not_closed)}")

    def _note(self, before: Faults) -> None:
        if not before.count and (first := self._player.faults.first):
            aside(f"note: {self._failed(first)}")

    def _failed(self, sentence: str) -> str:
        return f"{self._task.environment} failed in an evaluation: {sentence}"


def flat_maker(task: Task, make_env: MakeEnvironment | None = None) -> MakeEnvironment:
    """Return the function that makes environments to evaluate a run of this task in."""
    if make_env is None:
        if not task.is_named:
            raise UsageError(
                f"{task.environment} is an environment of a Python program: evaluate it there, "
                "with rlt.evaluate(run, make_env)"
            )
        require_agreement(task.source)
        install_what_it_needs(task.source)
        make_env = maker_of(task.source, task.episode_steps)
    make = make_env
    state = PlayState()
    return lambda: FlatEnvironment(make, task, state)
