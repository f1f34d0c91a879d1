"""Checks that a board computes this machine's bits, layer by layer, and that its executor keeps the
times and limits of docs/executor.md."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from rltools_host.boards.hil_inputs import Inputs, make_inputs, make_not_finite
from rltools_host.boards.messages import EXECUTOR_STATUSES, Action, Progress, name_of
from rltools_host.boards.policies import PolicyClient, Tick
from rltools_host.build.description import ranges_of
from rltools_host.documents import Count
from rltools_host.policies.acting import WRAP, HiddenState, History, history_values, normalized
from rltools_host.policies.contract import AddedInput, PastAction
from rltools_host.policies.image import Float32Array, PolicyImage

ACTED, HELD = "acted", "held"
MAX_LAYERS = 16  # whose checksums an RLT_ACTION carries


class Difference(NamedTuple):
    """A difference between an answer and what is expected."""

    what: str
    how: str

    def of(self, question: str) -> str:
        """Return for example "layer 2 of 3 differs: input #17 gives ..."."""
        return f"{self.what}: {question} {self.how}"


@dataclass(frozen=True)
class Expected:
    """The expected answer. `layers` is None if their bits are not specified, or not asked for."""

    status: str  # of EXECUTOR_STATUSES
    action: Float32Array
    layers: tuple[int, ...] | None = None

    @property
    def action_bits(self) -> tuple[int, ...]:
        return tuple(map(int, self.action.view(np.uint32)))

    def difference(self, answer: Action) -> Difference | None:
        """Return the first difference of the answer; None if it has none."""
        count = len(self.layers or ())
        for layer, (theirs, ours) in enumerate(zip(answer.layers, self.layers or (), strict=False)):
            if theirs != ours:
                what = f"layer {layer + 1} of {count} differs"
                return Difference(what, f"gives the checksum {theirs:08x}, here {ours:08x}")
        status = name_of(answer.status, EXECUTOR_STATUSES)
        if status != self.status:
            return Difference("the status differs", f"ends in {status}, here in {self.status}")
        if self.layers is not None and len(answer.layers) != min(count, MAX_LAYERS):
            how = f"runs through {len(answer.layers)}, here {count}"
            return Difference("the number of layers differs", how)
        if answer.action_bits != self.action_bits:
            how = f"gives {words_of(answer.action_bits)}, here {words_of(self.action_bits)}"
            return Difference("the action differs", how)
        return None


def safe_action(image: PolicyImage, answer: Action) -> Float32Array:
    """Return the board's answer to an observation that is not finite, as its contract may state it
    (policy/contract.h).

    If the answer is no action, return that of the image's own contract.
    """
    not_finite = np.full(len(image.observations), np.nan, np.float32)
    stated = np.array(answer.action_bits, np.uint32).view(np.float32)
    is_one = len(stated) == len(image.actions) and all(
        channel.minimum <= value <= channel.maximum
        for channel, value in zip(image.actions, stated, strict=True)
    )
    return stated if is_one else image.evaluate(not_finite)


def forward(
    image: PolicyImage, observations: Float32Array, safe: Float32Array | None = None
) -> list[Expected]:
    """Return what this machine computes; `safe` is the action if the policy gives none.

    The bits of a NaN are the processor's own. One in a layer is in all layers after it, so that if
    the network's output is finite every bit of every layer is specified.
    """
    outputs, actions = image.runner.run(observations)
    expected = []
    for observation, output, action in zip(observations, outputs, actions, strict=True):
        instead = action if safe is None else safe
        if not np.isfinite(observation).all():
            expected.append(Expected("observation_not_finite", instead))
        elif not np.isfinite(output).all():
            expected.append(Expected("output_not_finite", instead))
        else:
            layers = image.runner.layer_checksums(observation)
            expected.append(Expected(ACTED, action, layers))
    return expected


def largest_difference(expected: Sequence[Expected], answers: Sequence[Action]) -> float:
    """Return the largest difference of an action; infinite if one of the board's is not finite."""
    ours = np.array([value.action for value in expected], np.float64)
    if any(len(answer.action_bits) != ours.shape[1] for answer in answers):
        return math.inf
    bits = np.array([answer.action_bits for answer in answers], np.uint32)
    difference = np.abs(bits.view(np.float32).astype(np.float64) - ours)
    return float(np.where(np.isfinite(difference), difference, np.inf).max(initial=0.0))


OUT_OF_RANGE = "observation_out_of_range"


@dataclass(frozen=True)
class Call:
    """A call of the executor, and its expected answer."""

    tick: Tick
    expected: Expected


@dataclass(frozen=True)
class Planned:
    """A call, and its expected status."""

    now_us: int
    taken_us: int
    observation: Float32Array
    status: str


@dataclass(frozen=True)
class Scenario:
    """Calls from a reset on."""

    name: str
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class TickOutcome:
    checked: int  # calls
    failed: int
    first: str  # what is wrong with the first that failed


class Scenarios:
    """The scenarios for a policy: each fault between two ticks on which the policy acts."""

    def __init__(self, image: PolicyImage, asked: Sequence[AddedInput], safe: Float32Array) -> None:
        self._image = image
        self._asked = asked
        self._interval = image.step_interval_us
        self._safe = safe
        self._observed = image.observations[: len(image.observations) - len(asked)]
        self._low, self._high = low, high = ranges_of(self._observed)
        # Three places within the range, so that observations differ from tick to tick.
        self._good = [(low + np.float32(share) * (high - low)) for share in (0.25, 0.5, 0.75)]

    def all(self) -> Iterator[Scenario]:
        interval = self._interval
        for index, channel in enumerate(self._observed):
            for end, toward in ((self._low, -np.inf), (self._high, np.inf)):
                beyond = np.nextafter(end[index], np.float32(toward), dtype=np.float32)
                if np.isfinite(beyond):
                    name = f'"{channel.name}" is {beyond:.9g}'
                    yield self._fault(name, OUT_OF_RANGE, self._with(index, beyond))
        at_ends = [self._low, self._high]
        yield self._scenario(
            "every element at an end of its range",
            [self._acting(tick * interval, end) for tick, end in enumerate(at_ends)],
        )
        not_finite = make_not_finite(self._observed)
        for kind, values in zip(not_finite.kinds, not_finite.values, strict=True):
            yield self._fault(kind, "observation_not_finite", values)
        yield from self._ages()
        yield self._held()
        if self._asked or self._image.recurrence is not None:
            yield self._remembered()

    # -- kinds of scenarios ------------------------------------------------------------------------

    def _ages(self) -> Iterator[Scenario]:
        interval = self._interval
        stale, order = "observation_stale", "observation_out_of_order"
        oldest, jitter = 2 * interval, interval // 4
        yield self._aged("an observation as old as may be", ACTED, 2 * interval - oldest)
        yield self._aged("an observation that is too old", stale, 2 * interval - oldest - 1)
        yield self._aged("an observation from the near future", ACTED, 2 * interval + jitter)
        yield self._aged("an observation from the future", order, 2 * interval + jitter + 1)
        start = WRAP - interval  # the clock wraps between the first tick and the second
        newest, older = self._acting(start, self._good[0]), start - 1
        late = Planned(start + interval, older, self._good[1], order)
        last = self._acting(start + 2 * interval, self._good[2])
        yield self._scenario("an observation before the last one", [newest, late, last])

    def _aged(self, name: str, status: str, taken_us: int) -> Scenario:
        """Return a scenario whose third tick has an observation of this time, newer than those
        before."""
        first = Planned(0, 0, self._good[0], ACTED)
        second = Planned(self._interval, 0, self._good[0], ACTED)
        third = Planned(2 * self._interval, taken_us, self._good[1], status)
        return self._scenario(name, [first, second, third])

    def _held(self) -> Scenario:
        """Return a scenario with a call before the next tick is due."""
        first = self._acting(0, self._good[0])
        early_us = self._interval - self._interval // 4 - 1
        early = Planned(early_us, early_us, self._good[1], HELD)
        return self._scenario("a call before its time", [first, early, self._after(1)])

    def _remembered(self) -> Scenario:
        """Return a scenario in which a policy asks for past actions and has a hidden state.

        The past actions are a safe one, the policy's own, and none yet. The hidden state moves on
        twice, and ends.
        """
        ages = [asked.ticks for asked in self._asked if isinstance(asked, PastAction)]
        recurrence = self._image.recurrence
        step = 1 if recurrence is None else recurrence.trained_interval_us // self._interval
        longest = max([step + 1, *ages] if recurrence is not None else ages, default=1)
        calls = []
        for tick in range(3 * longest + 3):
            now_us = tick * self._interval
            if longest < tick <= 2 * longest and tick % 2:
                calls.append(Planned(now_us, now_us, self._outside, OUT_OF_RANGE))
            else:
                calls.append(self._acting(now_us, self._good[tick % len(self._good)]))
        return self._scenario("what the policy remembers", calls)

    def _fault(self, name: str, status: str, observation: Float32Array) -> Scenario:
        interval = self._interval
        before = self._acting(0, self._good[0])
        fault = Planned(interval, interval, observation, status)
        return self._scenario(name, [before, fault, self._after(2)])

    # -- parts of them -----------------------------------------------------------------------------

    def _scenario(self, name: str, calls: list[Planned]) -> Scenario:
        history = History(self._asked, len(self._image.actions))
        state = HiddenState(self._image)
        action = self._safe
        expected = []
        for call in calls:
            if call.status == ACTED:
                inputs = history.inputs(call.observation)
                outputs, actions = state.run(call.now_us, inputs)
                given = history_values(outputs, actions, self._image.actions)
                history.add(given, acted_on=call.observation)
                action = actions[0]
            elif call.status != HELD:
                history.add(normalized(self._safe, self._image.actions))
                state.fail(call.status)
                action = self._safe
            values = tuple(call.observation.tolist())
            tick = Tick(call.now_us % WRAP, call.taken_us % WRAP, values)
            expected.append(Call(tick, Expected(call.status, action)))
        return Scenario(name, tuple(expected))

    def _acting(self, now_us: int, observation: Float32Array) -> Planned:
        return Planned(now_us, now_us, observation, ACTED)

    def _after(self, tick: int) -> Planned:
        return self._acting(tick * self._interval, self._good[2])

    def _with(self, index: int, value: np.float32) -> Float32Array:
        values: Float32Array = self._good[1].copy()
        values[index] = value
        return values

    @property
    def _outside(self) -> Float32Array:
        """Return an observation whose first channel is beyond its range."""
        return self._with(0, np.nextafter(self._high[0], np.float32(np.inf), dtype=np.float32))


def check_ticks(
    client: PolicyClient,
    image: PolicyImage,
    asked: Sequence[AddedInput],
    safe: Float32Array,
) -> TickOutcome:
    """Run all scenarios on the board."""
    checked, failed, first = 0, 0, ""
    for scenario in Scenarios(image, asked, safe).all():
        answers = client.act_through([call.tick for call in scenario.calls])
        for number, (call, answer) in enumerate(zip(scenario.calls, answers, strict=True)):
            difference = call.expected.difference(answer)
            checked += 1
            failed += bool(difference)
            if difference and not first:
                first = difference.of(f"call {number + 1} of the executor ({scenario.name})")
    return TickOutcome(checked, failed, first)


SHOWN_INPUTS = 4  # in the table of layers


class Agreement(Struct, frozen=True):
    inputs: Count
    not_finite_inputs: Count
    mismatches: Count
    executor_calls: Count
    executor_mismatches: Count
    first_mismatch: str | None = None

    @property
    def holds(self) -> bool:
        return not (self.mismatches or self.executor_mismatches)

    def __str__(self) -> str:
        """Return for example "1,000 of 1,000 inputs, 65 of 65 calls"."""
        inputs, calls = self.inputs + self.not_finite_inputs, self.executor_calls
        return (
            f"{inputs - self.mismatches:,} of {inputs:,} inputs, "
            f"{calls - self.executor_mismatches:,} of {calls:,} calls"
        )


@dataclass(frozen=True)
class Parity:
    inputs: Inputs
    expected: Sequence[Expected]
    answers: Sequence[Action]
    not_finite: int  # further inputs, which have no action of their own
    mismatches: int  # among all of them
    first: str  # the first thing that differs; empty where nothing does
    ticks: TickOutcome

    @property
    def count(self) -> int:
        return len(self.answers)

    @property
    def holds(self) -> bool:
        return not self.first

    @property
    def max_abs_diff(self) -> float:
        return largest_difference(self.expected, self.answers)

    @property
    def outputs_sha256(self) -> str:
        """Return the hash of the board's actions, as floats, in the order of the inputs."""
        return sha256_of([answer.action_bits for answer in self.answers])

    def agreement(self) -> Agreement:
        return Agreement(
            inputs=self.count,
            not_finite_inputs=self.not_finite,
            mismatches=self.mismatches,
            executor_calls=self.ticks.checked,
            executor_mismatches=self.ticks.failed,
            first_mismatch=self.first or None,
        )

    def layer_rows(self) -> list[tuple[str, ...]]:
        """Return checksums of the layers of the first inputs that differ, or of the first
        inputs."""
        rows: list[tuple[str, ...]] = [("input", "layer", "board", "here", "")]
        pairs = list(enumerate(zip(self.expected, self.answers, strict=True)))
        differing = [pair for pair in pairs if pair[1][0].difference(pair[1][1])]
        for index, (expected, answer) in (differing or pairs)[:SHOWN_INPUTS]:
            for layer, (ours, theirs) in enumerate(
                zip(expected.layers or (), answer.layers, strict=False)
            ):
                same = "" if ours == theirs else "differs"
                rows.append((f"#{index}", str(layer + 1), f"{theirs:08x}", f"{ours:08x}", same))
        return rows


def check_parity(
    client: PolicyClient,
    image: PolicyImage,
    asked: Sequence[AddedInput],
    count: int,
    progress: Progress | None = None,
) -> Parity:
    """Send the inputs to the board, whose acting policy is the image, and compare.

    `asked` are the inputs that the board itself adds to the observation.
    """
    inputs = make_inputs(image.observations, count)
    further = make_not_finite(image.observations)
    values = np.concatenate([inputs.values, further.values])
    kinds = (*inputs.kinds, *further.kinds)
    answers = client.forward_all(values.tolist(), progress)
    safe = safe_action(image, answers[count])
    expected = forward(image, values, safe)
    ticks = check_ticks(client, image, asked, safe)
    mismatches, first = 0, ""
    for index, (ours, theirs) in enumerate(zip(expected, answers, strict=True)):
        if difference := ours.difference(theirs):
            mismatches += 1
            first = first or difference.of(f"input #{index} ({kinds[index]})")
    return Parity(
        inputs=inputs,
        expected=expected[:count],
        answers=answers[:count],
        not_finite=len(further.kinds),
        mismatches=mismatches,
        first=first or ticks.first,
        ticks=ticks,
    )


def sha256_of(rows: Sequence[Sequence[int]]) -> str:
    words = np.array([word for row in rows for word in row], "<u4")
    return hashlib.sha256(words.tobytes()).hexdigest()


def words_of(bits: Sequence[int]) -> str:
    return " ".join(f"{word:08x}" for word in bits)
