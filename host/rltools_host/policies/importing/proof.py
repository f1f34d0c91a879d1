"""Images of foreign policies, and their comparison with the file's own formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rltools_host.build.description import ranges_of
from rltools_host.documents import shown
from rltools_host.errors import BoardMismatchError, RefusedError, UsageError
from rltools_host.policies.contract import (
    LEAST_ALLOWED,
    Contract,
    Layer,
    choices_of,
    masks_of,
    output_dim,
)
from rltools_host.policies.image import Float32Array, PolicyImage, parse_policy
from rltools_host.policies.image_writing import (
    EXAMPLES,
    RECURRENT_EXAMPLES,
    SECOND_SEQUENCE,
    Network,
    Origin,
    sampled,
    write_image,
)
from rltools_host.policies.importing.layers import first_outputs, fold, trimmed
from rltools_host.policies.importing.network import (
    ForeignPolicy,
    Normalize,
    Stage,
    Starts,
    is_recurrent,
    numbers_of,
    run,
    run_in,
)
from rltools_host.policies.importing.pickles import Array
from rltools_host.policies.importing.target import Target

SAMPLES = 1000
EPISODE_STEPS = 100  # of a recurrent policy's samples
LARGEST_DIFFERENCE = 1e-6  # of normalized actions; of logits relative to max(1, largest)
ROUNDINGS = 4  # of single precision: sums in another order round otherwise
DEAD = 1e-4  # of a channel's range, and of its unit: a deviation of one that has not changed
MAX_NAMED = 4
FORMULAS = "the file's formulas"
SAME, SCALED = "same", "scaled"  # a file's actions: in the contract's units, or in [-1, 1]


@dataclass(frozen=True)
class Proof:
    """The largest difference of a number of actions, normalized to [-1, 1].

    Of a policy with discrete actions it is that of its outputs, relative to the largest of them
    where that is above 1.
    """

    what: str  # the source that the image was compared with
    count: int
    difference: float
    rounding: float  # the largest error of the file's formulas in single precision
    # Of discrete actions: in how many observations all choices are the same. In the others the two
    # outputs differ by no more than rounding.
    same_choices: int | None = None
    chosen_by: str = "the same"
    episodes: int | None = None  # None: the observations are no steps of episodes

    @property
    def limit(self) -> float:
        """Return the largest difference that is accepted: 1e-6, or more where rounding alone is
        more."""
        return max(LARGEST_DIFFERENCE, ROUNDINGS * self.rounding)

    @property
    def numbers(self) -> str:
        return "actions" if self.same_choices is None else "outputs"

    def line(self) -> str:
        apart = f"{self.numbers} at most {self.difference:.1e} from {self.what}"
        line = f"{self.count:,} observations"
        if self.episodes is not None:
            line += f" in {self.episodes} episode{'s' if self.episodes > 1 else ''}"
        line += f": {apart}"
        if self.same_choices is not None:
            line += f", {self.same_choices:,} choices {self.chosen_by}"
        if self.difference <= LARGEST_DIFFERENCE:
            return line
        return f"{line}, whose own rounding is up to {self.rounding:.1e}"


def normalized_stages(
    policy: ForeignPolicy, contract: Contract, actions: str | None
) -> list[Stage]:
    """Return the stages with an output that is an action normalized to the contract's ranges.

    Raise UsageError or BoardMismatchError where the policy's actions are not the contract's.
    """
    require_shapes(policy, contract)
    stages = [*policy.stages, *to_normalized(policy, contract, actions)]
    return without_idle_end(stages, contract)


def without_idle_end(stages: Sequence[Stage], contract: Contract) -> list[Stage]:
    """Return the stages without an end that has no effect.

    Values beyond -1 and 1 count only for discrete actions.
    """
    return list(stages) if choices_of(contract.actions) else trimmed(stages)


def to_normalized(policy: ForeignPolicy, contract: Contract, actions: str | None) -> list[Stage]:
    """Return the stages that take the policy's output to [-1, 1]; none for discrete actions."""
    if choices_of(contract.actions):
        if actions is not None:
            raise UsageError(f"--actions {actions}: the actions here are discrete: leave it out")
        return []
    low, high = ranges_of(contract.actions, np.float64)
    if policy.is_normalized and actions == SAME and not policy.is_scaling_assumed:
        raise UsageError(
            "--actions same: the file's actions are from -1 to 1, which stand for the ranges here: "
            "leave it out"
        )
    if (policy.is_normalized and actions != SAME) or actions == SCALED:
        if actions != SCALED:
            require_bounds(policy, low, high)
        return unscaled(policy)
    if (
        policy.is_normalized is None
        and actions is None
        and not (low == -1).all() * (high == 1).all()
    ):
        raise UsageError(
            "the file does not say what its actions are, and the ranges here are not all -1 to 1: "
            "say --actions same if they are in these units, or --actions scaled if they are from "
            "-1 to 1 and stand for these ranges"
        )
    require_bounds(policy, low, high)
    half, middle = (high - low) / 2, (high + low) / 2
    return [Normalize(middle, 1 / half)]


def assumed_scaling(
    policy: ForeignPolicy, contract: Contract, actions: str | None
) -> tuple[str, ...]:
    """Return what is assumed of a network that ends in tanh where the ranges are not -1 to 1."""
    low, high = ranges_of(contract.actions, np.float64)
    if not policy.is_scaling_assumed or actions or bool((low == -1).all() and (high == 1).all()):
        return ()
    return (
        "its actions, from -1 to 1 behind a tanh, stand for the ranges here (the file does not "
        "say), state it by --actions scaled or --actions same",
    )


def unscaled(policy: ForeignPolicy) -> list[Stage]:
    """Return the stages from actions in the file's units to [-1, 1], if they are not in that
    already."""
    if policy.is_normalized or policy.action_bounds is None:
        return []
    low, high = policy.action_bounds
    if not np.isfinite(high - low).all():
        raise UsageError("--actions scaled: the file's actions have no bounds to scale them by")
    half, middle = (high - low) / 2, (high + low) / 2
    return [Normalize(middle, 1 / half)]


def without_deviations(policy: ForeignPolicy, contract: Contract) -> ForeignPolicy:
    """Return the policy with the first half of its outputs, where there are twice as many as
    actions: a mean and, behind it, a deviation that depends on the observation."""
    count = len(contract.actions)
    is_double = policy.output_dim == 2 * count and not choices_of(contract.actions)
    if not policy.may_have_deviations or not is_double:
        return policy
    assumed = (
        f"its first {count} of {2 * count} outputs are the actions, and the others their deviations"
        " (there are twice as many outputs as actions), state it by --recorded FILE"
    )
    return replace(
        policy,
        stages=first_outputs(policy.stages, count),
        assumed=(*policy.assumed, assumed),
        reference=policy.reference and first_columns(policy.reference, count),
    )


def first_columns(
    reference: Callable[[Float32Array], Array], count: int
) -> Callable[[Float32Array], Array]:
    return lambda x: reference(x)[:, :count]


def losses(policy: ForeignPolicy, contract: Contract, proofs: Sequence[Proof]) -> list[str]:
    """Return notes on what the library does and the image does not, and on what of a policy is
    seldom meant."""
    found = []
    if dead := dead_channels(policy, contract):
        found.append(
            f"the normalizer has hardly seen {', '.join(dead)} change: its deviation is less than "
            "a ten thousandth of the range here, so that little of it drives the policy"
        )
    if policy.stated is not None and any(each.lacks_names for each in policy.stated.inputs):
        first = ", ".join(channel.name for channel in contract.observations[:MAX_NAMED])
        found.append(
            f"the file does not name its {len(contract.observations)} observations: their order is "
            f"taken to be {first} ... as here; a policy that is flown (--environment) shows it"
        )
    if policy.has_half_precision:
        found.append(
            "it computes in half precision, and the image in single precision: actions differ by "
            f"that rounding, here by {max(each.difference for each in proofs):.1e}"
        )
    has_masks = any(mask is not None for mask in masks_of(contract.observations, contract.actions))
    if policy.asks_for_masks and not has_masks:
        found.append(
            "it was trained with masks (MaskablePPO), and no observation here is one: it may choose"
            " what its task would forbid"
        )
    return found


def dead_channels(policy: ForeignPolicy, contract: Contract) -> list[str]:
    """Return the channels that did not change when the normalizer was made."""
    first = policy.stages[0]
    if not isinstance(first, Normalize):
        return []
    low, high = ranges_of(contract.observations, np.float64)
    is_dead = first.inverse_std * np.minimum(high - low, 1.0) > 1 / DEAD
    names = [channel.name for channel in contract.observations]
    found = [name for name, dead in zip(names, is_dead, strict=True) if dead]
    return found if len(found) < len(names) else []


def require_shapes(policy: ForeignPolicy, contract: Contract) -> None:
    here = tuple(len(channel.choices) for channel in contract.actions if channel.choices)
    if here and policy.is_normalized:
        raise BoardMismatchError(
            "the actions here are discrete, and the file's policy returns numbers from -1 to 1"
        )
    if policy.choices and policy.choices != here:
        raise BoardMismatchError(
            f"the file's policy has {counted(policy.choices)} choices, and here {chosen(here)}: "
            "name the contract or the environment that it was trained for"
            + (OTHER_ENDS if policy.library.startswith("CleanRL") and not here else "")
        )
    for kind, theirs, ours in (
        ("observations", policy.observation_dim, len(contract.observations)),
        ("outputs" if here else "actions", policy.output_dim, output_dim(contract.actions)),
    ):
        if theirs != ours:
            raise BoardMismatchError(
                f"the file's policy has {theirs} {kind}, and there are {ours} here: name the "
                "contract or the environment that it was trained for"
            )


OTHER_ENDS = (
    ", or, if its outputs are actions and not choices, how they end, by --output-activation "
    "identity or tanh"
)


def counted(choices: Sequence[int]) -> str:
    return " and ".join(map(str, choices))


def chosen(choices: Sequence[int]) -> str:
    return f"there are {counted(choices)}" if choices else "actions are continuous"


def require_bounds(policy: ForeignPolicy, low: Array, high: Array) -> None:
    """Raise BoardMismatchError unless the file's bounds of actions are the contract's."""
    if policy.action_bounds is None:
        return
    theirs = policy.action_bounds
    for index, ends in enumerate(zip(*theirs, low, high, strict=True)):
        if not np.allclose(ends[:2], ends[2:], rtol=1e-5, atol=1e-7):
            raise BoardMismatchError(
                f"action {index} is from {ends[0]:g} to {ends[1]:g} in the file, and from "
                f"{ends[2]:g} to {ends[3]:g} here: take --actions scaled to scale its range, "
                "or name the contract or environment that it was trained for"
            )


def other_ranges(policy: ForeignPolicy, contract: Contract) -> list[str]:
    """Return notes on observations whose bounds in the file are not the contract's, and on the
    first whose name is not."""
    if policy.observation_bounds is None:
        return []
    ours = [channel.name for channel in contract.observations]
    theirs = policy.channel_names or ours
    found = [
        f"observation {index} is {shown(its)} in the file, and {shown(name)} here: is the order "
        "the same?"
        for index, (its, name) in enumerate(zip(theirs, ours, strict=True))
        if its != name
    ][:1]
    for channel, low, high in zip(contract.observations, *policy.observation_bounds, strict=True):
        here = (channel.minimum, channel.maximum)
        if np.isfinite([low, high]).all() and not np.allclose((low, high), here, rtol=1e-4):
            found.append(
                f"{channel.name} is from {low:g} to {high:g} in the file, and from {here[0]:g} to "
                f"{here[1]:g} {channel.unit} here: are the units the same?"
            )
    return found


def image_of(
    stages: list[Stage],
    target: Target,
    policy: ForeignPolicy,
    stem: str,
    sha256: str,
    steps_between: int = 1,
    seen: tuple[Float32Array, Starts | None] | None = None,
) -> PolicyImage:
    """Return the image that computes the stages.

    steps_between: how many ticks a step of training takes, with which a hidden state moves on.
    seen: observations (n, o), some of which become the examples, and which of them begin an
    episode; None: those of prove().
    """
    contract = target.contract
    folded = fold(stages, ranges_of(contract.observations, np.float64))
    layers = []
    for each, activation in folded.layers:
        weights, bias, *hidden = map(single, numbers_of(each))
        layers.append(Layer(activation, weights, bias, (hidden[0], hidden[1]) if hidden else None))
    origin = Origin(target.experiment(stem), target.environment, policy.step, policy.seed, sha256)
    rows, second = example_rows(*(seen or sampled_steps(contract, is_recurrent(stages))))
    network = Network(folded.normalizer, layers, steps_between)
    data = write_image(network, contract, origin, rows, second)
    return parse_policy(data, stem)


def example_rows(observations: Float32Array, starts: Starts | None) -> tuple[Float32Array, int]:
    """Return observations spread over all.

    Of a recurrent policy, return the first steps of the first and of the last episode, and the row
    with which the second begins.
    """
    if starts is None:
        count = min(EXAMPLES, len(observations))
        return observations[np.linspace(0, len(observations) - 1, count).astype(int)], count
    episodes = np.split(observations, np.flatnonzero(starts)[1:])
    first = episodes[0][:SECOND_SEQUENCE]
    last = episodes[-1][: RECURRENT_EXAMPLES - SECOND_SEQUENCE]
    return np.concatenate([first, last]), len(first)


def single(values: Array) -> Float32Array:
    return values.astype(np.float32)


def prove(
    image: PolicyImage, stages: list[Stage], precision: type[np.floating[Any]] = np.float32
) -> Proof:
    """Compare the image, as boards run it, with the stages in double precision.

    Raise RefusedError where an action differs by more than 1e-6 of half its range, or than
    rounding allows.
    """
    in_time = image.recurrence is not None
    observations, starts = sampled_steps(image.contract, in_time)
    expected = run(stages, observations.astype(float), starts)
    return compared(image, stages, observations, starts, expected, FORMULAS, precision)


def sampled_steps(contract: Contract, in_time: bool) -> tuple[Float32Array, Starts | None]:
    """Return observations (SAMPLES, o), and of a recurrent policy which of them begin an
    episode."""
    starts = np.arange(SAMPLES) % EPISODE_STEPS == 0 if in_time else None
    return sampled(contract, SAMPLES), starts


def compared(
    image: PolicyImage,
    stages: list[Stage],
    observations: Float32Array,
    starts: Starts | None,
    expected: Array,
    what: str,
    precision: type[np.floating[Any]] = np.float32,
) -> Proof:
    """Compare the image with expected outputs (n, out). what: the name of their source, for
    messages. precision: that of the library."""
    given, actions = computed(image, observations, starts)
    outputs = given.astype(float)
    exact = run(stages, observations.astype(float), starts)
    rounded = run_in(precision, stages, observations, starts)
    if not choices_of(image.actions):
        outputs, exact, rounded, expected = (
            np.clip(each, -1, 1) for each in (outputs, exact, rounded, expected)
        )
    scale = max(1.0, float(np.abs(expected).max()))
    difference = float(np.abs(outputs - expected).max()) / scale
    rounding = float(np.abs(rounded - exact).max()) / scale
    episodes = None if starts is None else int(starts.sum())
    proof = Proof(what, len(outputs), difference, rounding, episodes=episodes)
    if choices_of(image.actions):
        checked(replace(proof, same_choices=0))
        theirs = choose(expected, observations, image.contract)
        same = count_same_choices(actions, expected, theirs, image.contract, proof, scale)
        return replace(proof, same_choices=same)
    return checked(proof)


def computed(
    image: PolicyImage, observations: Float32Array, starts: Starts | None
) -> tuple[Float32Array, Float32Array]:
    """Return the image's outputs and actions, (n, ...)."""
    if starts is None:
        return image.runner.run(observations)
    outputs, actions = [], []
    state = image.runner.begin()
    for row, begins in zip(observations, starts, strict=True):
        state = image.runner.begin() if begins else state
        output, action = image.runner.run(row[None], state)
        outputs.append(output[0])
        actions.append(action[0])
    return np.array(outputs), np.array(actions)


def choose(
    outputs: Array, observations: NDArray[np.float32], contract: Contract
) -> NDArray[np.int64]:
    """Return the number of the largest unmasked output of each action, (n, actions).

    An action with all choices masked has no mask.
    """
    masks = masks_of(contract.observations, contract.actions)
    allowed = np.array(
        [[m is None or row[m] >= LEAST_ALLOWED for m in masks] for row in observations]
    )
    found, first = [], 0
    for action in contract.actions:
        part = slice(first, first := first + len(action.choices))
        may = allowed[:, part] | ~allowed[:, part].any(axis=1, keepdims=True)
        found.append(np.where(may, outputs[:, part], -np.inf).argmax(axis=1))
    return np.stack(found, axis=1)


def count_same_choices(
    actions: Float32Array,
    outputs: Array,
    theirs: NDArray[np.int64],
    contract: Contract,
    proof: Proof,
    scale: float,
) -> int:
    """Return in how many observations all choices of the image's actions are theirs, (n, actions).

    Raise RefusedError where they are not and the outputs (n, out) differ by more than rounding
    makes of both.
    """
    ours = actions.astype(np.int64)
    first = np.cumsum([0, *(len(action.choices) for action in contract.actions)][:-1])
    rows = np.arange(len(outputs))[:, None]
    gap = np.abs(outputs[rows, first + theirs] - outputs[rows, first + ours])
    others = (gap > 2 * proof.limit * scale).any(axis=1)
    if others.any():
        by = proof.what if proof.chosen_by == Proof.chosen_by else proof.chosen_by
        raise RefusedError(
            f"the image has other choices than {by} in {others.sum()} of {len(outputs)} "
            "observations: no run was made"
        )
    return int((ours == theirs).all(axis=1).sum())


def prove_by_library(
    image: PolicyImage, policy: ForeignPolicy, contract: Contract, actions: str | None
) -> Proof:
    """Compare the image with what the library itself computes from the file."""
    assert policy.reference is not None
    observations = sampled(contract, SAMPLES)
    given = policy.reference(observations)
    expected = run(to_normalized(policy, contract, actions), given)
    stages = normalized_stages(policy, contract, actions)
    return compared(
        image, stages, observations, None, expected, "the library's own", policy.precision
    )


def checked(proof: Proof) -> Proof:
    """Return the proof. Raise RefusedError where its difference is above its limit."""
    if not proof.difference <= proof.limit:
        unit = "half their range" if proof.same_choices is None else "the largest"
        raise RefusedError(
            f"the image gives other {proof.numbers} than {proof.what}, by up to "
            f"{proof.difference:.1e} of {unit} and not {proof.limit:.0e}: no run was made"
        )
    return proof
