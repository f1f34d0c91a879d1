"""Where an imported policy is to act: the channels and rate of a contract, or of an environment.

What a foreign policy may see, or mean, otherwise than the place where it is to act: as words that a
user can give, and as stages in front of its network and behind it.

A correction of observations says what the policy is given in place of the observation; one of
actions what is done with its actions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rltools_host.build import experiments
from rltools_host.build.catalog import NAMESPACE, algorithms, list_environments
from rltools_host.build.description import LONGEST_NAME, Channel, channels
from rltools_host.environments.imports import (
    agree,
    install_what_it_needs,
    make_first,
    maker_of,
    whole_source,
)
from rltools_host.environments.library import load_library
from rltools_host.environments.player import flat_maker
from rltools_host.environments.spaces import action_kind
from rltools_host.environments.task import TaskRequest, is_task, task_of
from rltools_host.errors import DamagedFileError, UsageError, near_matches
from rltools_host.policies.contract import Contract, choices_of, contract_of
from rltools_host.policies.episodes import close_all
from rltools_host.policies.importing.network import (
    Clip,
    Dense,
    ForeignPolicy,
    Normalize,
    Recurrent,
    Stage,
    ends_of,
)
from rltools_host.policies.importing.pickles import Array, UnreadableError
from rltools_host.runs.task import MOST_LAYERS, PREFIX, WIDEST_LAYER, Task, short, slug

ANY_ENVIRONMENT = "any"  # of a policy that is made for a contract alone


@dataclass(frozen=True)
class Place:
    """A contract; the task that plays episodes there, where there is one; what builds call it, but
    for one that a file describes."""

    contract: Contract
    task: Task | None = None
    contract_name: str | None = None

    @property
    def environment(self) -> str:
        return ANY_ENVIRONMENT if self.task is None else self.task.environment

    @property
    def name(self) -> str:
        """For a sentence."""
        if self.task is not None:
            return self.task.environment
        if self.contract_name is None:
            return "the contract of its description"
        return f"the contract {self.contract_name}"

    def experiment(self, stem: str) -> str:
        """What the policy's experiment is called: a task's name, or `imported-` and the file's."""
        if self.task is not None:
            return self.task.experiment
        return short(f"imported-{slug(stem) or 'policy'}", LONGEST_NAME)

    def factory(self) -> Callable[[], Any]:
        """What makes environments to fly the policy in."""
        assert self.task is not None
        return flat_maker(self.task)


def place_of_contract(name: str) -> Place:
    """UsageError: there is no contract of this name."""
    stated = experiments.describe_contract(name)
    contract = Contract(
        channels(stated["observations"]), channels(stated["actions"]), stated["step_interval_us"]
    )
    contract = contract.with_safe_action(tuple(stated["safe_action"]))
    return Place(contract, contract_name=name)


def place_of_description(path: Path, policy: ForeignPolicy, rate_hz: float | None) -> Place:
    """Of the contract that the file states. UsageError: what it does not state."""
    stated = policy.stated
    assert stated is not None
    missing = stated.missing(rate_hz)
    if missing or rate_hz is None:
        raise UsageError(
            f"{path} does not state {'; '.join(missing)}: write that into it (docs/import.md), or "
            "name where the policy is to act, by one of --contract NAME and --environment NAME"
        )
    try:
        return Place(stated.contract(rate_hz).with_safe_action(()))
    except UnreadableError as error:
        raise DamagedFileError(f"{path} cannot be imported: {error}") from None


def place_of_environment(name: str, policy: ForeignPolicy) -> Place:
    """Of gym:ID, gym:FILE.py:NAME, or an environment of the core's by its name.

    The user names it: a file of Python's is imported.
    """
    source = task_source(name)
    agree(source)
    install_what_it_needs(source)
    environment = make_first(maker_of(source), source)
    try:
        return place_in(environment, source, policy)
    finally:
        close_all([environment])


def place_in(environment: Any, source: str, policy: ForeignPolicy) -> Place:
    known = algorithms().get(policy.algorithm)
    learns = known is not None and action_kind(environment.action_space) in known.actions
    algorithm = policy.algorithm if learns else "ppo"  # which learns all
    request = TaskRequest(
        source,
        algorithm=algorithm,
        hidden=hidden_widths(policy),
        channels=own_channels(source),
    )
    task = task_of(request, environment)
    return Place(contract_of(task), task)


def task_source(name: str) -> str:
    """gym:rlt/Quadrotor for Quadrotor or rlt/Quadrotor; other names are Gymnasium's."""
    if is_task(name):
        return whole_source(name)
    own = {environment.name for environment in list_environments()}
    return PREFIX + (NAMESPACE + name if name in own else name)


def hidden_widths(policy: ForeignPolicy) -> tuple[int, ...]:
    """As a task states them, which are few and not wide."""
    layers = [stage for stage in policy.stages if isinstance(stage, Dense | Recurrent)]
    inner = [min(ends_of(layer)[1], WIDEST_LAYER) for layer in layers[:-1]]
    return tuple(inner[:MOST_LAYERS]) or (1,)


def own_channels(source: str) -> dict[str, Any]:
    """The names, units and rate of an environment of the core's, which Gymnasium's spaces lack."""
    name = source.removeprefix(PREFIX)
    if not name.startswith(NAMESPACE):
        return {}
    library = load_library(name)

    def table(of: tuple[Channel, ...], *, has_range: bool) -> list[dict[str, Any]]:
        keys = ("name", "unit", "minimum", "maximum") if has_range else ("name", "unit")
        return [{key: msgspec.to_builtins(getattr(channel, key)) for key in keys} for channel in of]

    actions = table(library.actions, has_range=False)
    safe: list[float | None] = [*library.safe_action] or [None] * len(actions)
    return {
        "observations": table(library.observations, has_range=True),
        "actions": [{**entry, "safe": value} for entry, value in zip(actions, safe, strict=True)],
        "step_interval_us": library.step_interval_us,
    }


DEGREES = 180 / math.pi
ACTIONS = "actions"
ORDER = "order"
MOST_BLOCKS, MOST_ACTIONS = 5, 4  # of which all orders are tried
PART = re.compile(r"_(?:[wxyz]|\d+)$")  # of a channel's name, behind that of its block
AXES = ("xzy", "yxz", "yzx", "zxy", "zyx")
FRAMES = {"frd": (1, -1, -1)}  # x forward, y right, z down, for forward, left, up
SCALES = (0.5, 2.0)


@dataclass(frozen=True, eq=False)
class Correction:
    """given[i] = scale[i] * value[place[i]] + offset[i]; of observations, or of actions."""

    word: str
    meaning: str  # a clause: "its attitude is x, y, z, w"
    of_actions: bool
    place: NDArray[np.intp]
    scale: Array
    offset: Array

    @property
    def limits(self) -> tuple[float, float]:
        """At which actions are cut off before they are taken otherwise: at their range, which is
        another one where there is an offset, and then ends where the corrected actions do."""
        return (-math.inf, math.inf) if self.offset.any() else (-1.0, 1.0)

    def apply(self, values: Array) -> Array:
        return values[..., self.place] * self.scale + self.offset


def blocks_of(channels: Sequence[Channel]) -> dict[str, list[int]]:
    """Channels that belong together by their names: velocity_x, velocity_y, velocity_z."""
    blocks: dict[str, list[int]] = {}
    last = ""
    for index, channel in enumerate(channels):
        stem = PART.sub("", channel.name)
        name = stem if stem == last or stem not in blocks else channel.name
        blocks.setdefault(name, []).append(index)
        last = stem
    return blocks


def changed(
    width: int,
    word: str,
    meaning: str,
    places: Sequence[tuple[int, int]] = (),
    scales: Sequence[tuple[int, float]] = (),
    *,
    of_actions: bool = False,
    offset: float = 0.0,
) -> Correction:
    """All stay as they are but these."""
    place, scale = np.arange(width), np.ones(width)
    for index, from_index in places:
        place[index] = from_index
    for index, factor in scales:
        scale[index] = factor
    return Correction(word, meaning, of_actions, place, scale, np.full(width, offset))


def known_corrections(contract: Contract) -> Iterator[Correction]:
    """Those that are tried, each by itself."""
    channels = contract.observations
    width = len(channels)
    blocks = blocks_of(channels)
    yield from orders(blocks, width)
    for name, block in blocks.items():
        yield from of_block(name, block, channels)
    vectors = [block for block in blocks.values() if len(block) == 3]
    if len(vectors) > 1:
        for frame, signs in FRAMES.items():
            turned = [*vectors, *(block[1:] for block in blocks.values() if len(block) == 4)]
            scales = [(i, sign) for block in turned for i, sign in zip(block, signs, strict=True)]
            meaning = "its frame is x forward, y right, z down"
            yield changed(width, f"{frame}", meaning, scales=scales)
    if not choices_of(contract.actions):
        yield from of_actions(len(contract.actions))


def orders(blocks: dict[str, list[int]], width: int) -> Iterator[Correction]:
    """The blocks, one behind the other, in any other order."""
    if not 2 <= len(blocks) <= MOST_BLOCKS:
        return
    for order in list(permutations(blocks))[1:]:
        given = [index for name in order for index in blocks[name]]
        word = f"{ORDER}:{','.join(order)}"
        meaning = f"its observations come in the order {', '.join(order)}"
        yield changed(width, word, meaning, list(enumerate(given)))


def of_block(name: str, block: Sequence[int], channels: Sequence[Channel]) -> Iterator[Correction]:
    width = len(channels)
    parts = "".join(channels[index].name[-1] for index in block)
    yield changed(
        width,
        f"{name}:negated",
        f"its {name} has the other sign",
        scales=[(i, -1.0) for i in block],
    )
    if {channels[index].unit for index in block} <= {"rad", "rad/s"}:
        for word, factor in (("degrees", DEGREES), ("radians", 1 / DEGREES)):
            scales = [(index, factor) for index in block]
            yield changed(width, f"{name}:{word}", f"its {name} is in {word}", scales=scales)
    if len(block) > 1:
        for index in block:
            channel = channels[index].name
            meaning = f"its {channel} has the other sign"
            yield changed(width, f"{channel}:negated", meaning, scales=[(index, -1.0)])
    if parts == "xyz":
        for axes in AXES:
            given = [(block[i], block["xyz".index(axis)]) for i, axis in enumerate(axes)]
            yield changed(width, f"{name}:{axes}", f"its {name} comes in the order {axes}", given)
    if parts in ("wxyz", "xyzw"):
        other = "xyzw" if parts == "wxyz" else "wxyz"
        given = [(block[i], block[parts.index(axis)]) for i, axis in enumerate(other)]
        yield changed(width, f"{name}:{other}", f"its {name} comes in the order {other}", given)
        imaginary = [(block[i], -1.0) for i, axis in enumerate(parts) if axis != "w"]
        meaning = f"its {name} is the inverse rotation"
        yield changed(width, f"{name}:inverse", meaning, scales=imaginary)


def of_actions(width: int) -> Iterator[Correction]:
    """On actions normalized to [-1, 1]."""
    everything = range(width)
    yield changed(
        width,
        f"{ACTIONS}:negated",
        "its actions have the other sign",
        scales=[(index, -1.0) for index in everything],
        of_actions=True,
    )
    for factor in SCALES:
        yield changed(
            width,
            f"{ACTIONS}:{factor:g}",
            f"its actions are to be taken times {factor:g}",
            scales=[(index, factor) for index in everything],
            of_actions=True,
        )
    yield from ranges_of_actions(width)
    if 2 <= width <= MOST_ACTIONS:
        for order in list(permutations(everything))[1:]:
            word = f"{ACTIONS}:{','.join(map(str, order))}"
            meaning = f"its actions come in the order {', '.join(map(str, order))}"
            yield changed(width, word, meaning, list(enumerate(order)), of_actions=True)


def ranges_of_actions(width: int) -> Iterator[Correction]:
    """Where 0 to 1 was taken for -1 to 1, or the other way round."""
    for word, meaning, scale, offset in (
        ("unit", "its actions are from 0 to 1 where they are taken as from -1 to 1", 2.0, -1.0),
        ("symmetric", "its actions are from -1 to 1 where they are taken as from 0 to 1", 0.5, 0.5),
    ):
        scales = [(index, scale) for index in range(width)]
        yield changed(
            width, f"{ACTIONS}:{word}", meaning, scales=scales, of_actions=True, offset=offset
        )


def corrections_of(words: Sequence[str], contract: Contract) -> list[Correction]:
    """Those that a user names; UsageError for one that there is not."""
    known = {each.word: each for each in known_corrections(contract)} if words else {}
    for word in words:
        if word not in known:
            raise UsageError(f'--correct "{word}": {near_matches(word, known)}')
    return [known[word] for word in words]


# -- as stages -------------------------------------------------------------------------------------


def corrected(stages: Sequence[Stage], corrections: Sequence[Correction]) -> list[Stage]:
    """The stages, to actions in [-1, 1], with the corrections: the last named is next to the
    network."""
    result = list(stages)
    for each in reversed(corrections):
        if each.of_actions:
            width = each.place.size
            weights = np.zeros((width, width))
            weights[each.place, np.arange(width)] = each.scale
            low, high = (np.full(width, end) for end in each.limits)
            clips = [Clip(low, high)] if np.isfinite(low).all() else []
            result = [*result, *clips, Dense(weights, each.offset)]
        else:
            result = in_front(result, each)
    return result


def in_front(stages: list[Stage], each: Correction) -> list[Stage]:
    """Behind a normalizer, which takes the observations as they come, where there is one."""
    width = each.place.size
    weights = np.zeros((width, width))
    rest = list(stages)
    if not isinstance(rest[0], Normalize):
        weights[each.place, np.arange(width)] = each.scale
        return [Dense(weights, np.zeros(width)), *rest]
    first = rest.pop(0)
    assert isinstance(first, Normalize)
    mean, inverse_std = np.empty(width), np.empty(width)
    mean[each.place] = first.mean / each.scale
    inverse_std[each.place] = first.inverse_std * np.abs(each.scale)
    front: list[Stage] = [Normalize(mean, inverse_std)]
    sign = np.sign(each.scale)
    if isinstance(rest[0], Clip):
        clip = rest.pop(0)
        assert isinstance(clip, Clip)
        low, high = np.empty(width), np.empty(width)
        ends = np.sort([clip.low * sign, clip.high * sign], axis=0)
        low[each.place], high[each.place] = ends
        front.append(Clip(low, high))
    weights[each.place, np.arange(width)] = sign
    return [*front, Dense(weights, np.zeros(width)), *rest]
