"""Makes an image of a foreign policy, and compares it with the file's own formulas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
from rltools_host.policies.importing.layers import fold, trimmed
from rltools_host.policies.importing.network import (
    ForeignPolicy,
    Normalize,
    Stage,
    Starts,
    is_recurrent,
    run,
    run_in_single,
)
from rltools_host.policies.importing.pickles import Array
from rltools_host.policies.importing.place import Place

SAMPLES = 1000
EPISODE_STEPS = 100  # of the samples, of a recurrent policy
LARGEST_DIFFERENCE = 1e-6  # of actions normalized to [-1, 1]; of logits by the largest, or by 1
ROUNDINGS = 4  # of single precision: sums in another order round otherwise
FORMULAS = "the file's formulas"
SAME, SCALED = "same", "scaled"  # what a file's actions are: in the place's units, or in [-1, 1]


@dataclass(frozen=True)
class Proof:
    """The largest difference of a number of actions, normalized to [-1, 1]; of a policy that
    chooses, of its outputs, by the largest of them where that is above 1."""

    what: str  # the image was compared with
    count: int
    difference: float
    rounding: float  # the largest difference that single precision makes of the file's formulas
    # Of a policy that chooses: in how many observations it chooses alike. In the others the two
    # outputs differ by no more than rounding.
    alike: int | None = None
    chosen_by: str = "the same"
    episodes: int | None = None  # of a recurrent policy: the observations are steps of these

    @property
    def limit(self) -> float:
        """Where rounding alone is more than 1e-6, the library's own actions are no nearer."""
        return max(LARGEST_DIFFERENCE, ROUNDINGS * self.rounding)

    @property
    def numbers(self) -> str:
        return "actions" if self.alike is None else "outputs"

    def line(self) -> str:
        apart = f"{self.numbers} at most {self.difference:.1e} from {self.what}"
        line = f"{self.count:,} observations"
        if self.episodes is not None:
            line += f" in {self.episodes} episode{'s' if self.episodes > 1 else ''}"
        line += f": {apart}"
        if self.alike is not None:
            line += f", {self.alike:,} choices {self.chosen_by}"
        if self.difference <= LARGEST_DIFFERENCE:
            return line
        return f"{line}, whose own rounding is up to {self.rounding:.1e}"


def normalized_stages(
    policy: ForeignPolicy, contract: Contract, actions: str | None
) -> list[Stage]:
    """The stages with an output that is an action normalized to the contract's ranges.

    UsageError, BoardMismatchError: the policy's actions are not the contract's.
    """
    require_shapes(policy, contract)
    stages = [*policy.stages, *to_normalized(policy, contract, actions)]
    return without_idle_end(stages, contract)


def without_idle_end(stages: Sequence[Stage], contract: Contract) -> list[Stage]:
    """What lies beyond -1 and 1 counts where the largest is chosen, and nowhere else."""
    return list(stages) if choices_of(contract.actions) else trimmed(stages)


def to_normalized(policy: ForeignPolicy, contract: Contract, actions: str | None) -> list[Stage]:
    """What takes the policy's output to [-1, 1]; a policy that chooses is left as it is."""
    if choices_of(contract.actions):
        if actions is not None:
            raise UsageError(f"--actions {actions}: the actions here are choices: leave it out")
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
    """What is assumed of a network that ends in tanh, where the ranges are others."""
    low, high = ranges_of(contract.actions, np.float64)
    if not policy.is_scaling_assumed or actions or bool((low == -1).all() and (high == 1).all()):
        return ()
    return (
        "its actions, from -1 to 1 behind a tanh, stand for the ranges here (the file does not "
        "say), state it by --actions scaled or --actions same",
    )


def unscaled(policy: ForeignPolicy) -> list[Stage]:
    """From actions in the file's own units to [-1, 1], where they are not that already."""
    if policy.is_normalized or policy.action_bounds is None:
        return []
    low, high = policy.action_bounds
    if not np.isfinite(high - low).all():
        raise UsageError("--actions scaled: the file's actions have no bounds to scale them by")
    half, middle = (high - low) / 2, (high + low) / 2
    return [Normalize(middle, 1 / half)]


def require_shapes(policy: ForeignPolicy, contract: Contract) -> None:
    here = tuple(len(channel.choices) for channel in contract.actions if channel.choices)
    if here and policy.is_normalized:
        raise BoardMismatchError(
            "the actions here are choices among names, and the file's policy gives numbers from -1 "
            "to 1"
        )
    if policy.choices and policy.choices != here:
        raise BoardMismatchError(
            f"the file's policy chooses from {counted(policy.choices)}, and here {chosen(here)}: "
            "name the contract or the environment that it was trained for"
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


def counted(choices: Sequence[int]) -> str:
    return " and ".join(map(str, choices))


def chosen(choices: Sequence[int]) -> str:
    return f"it is from {counted(choices)}" if choices else "actions are numbers"


def require_bounds(policy: ForeignPolicy, low: Array, high: Array) -> None:
    """That the actions' bounds in the file are those of the place."""
    if policy.action_bounds is None:
        return
    theirs = policy.action_bounds
    for index, ends in enumerate(zip(*theirs, low, high, strict=True)):
        if not np.allclose(ends[:2], ends[2:], rtol=1e-5, atol=1e-7):
            raise BoardMismatchError(
                f"action {index} is from {ends[0]:g} to {ends[1]:g} in the file, and from "
                f"{ends[2]:g} to {ends[3]:g} here: with --actions scaled its range is taken to "
                "this one, or name the place that it was trained for"
            )


def other_ranges(policy: ForeignPolicy, contract: Contract) -> list[str]:
    """Sentences on observations whose bounds in the file are others than here, and on the first
    whose name is."""
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
    place: Place,
    policy: ForeignPolicy,
    stem: str,
    sha256: str,
    steps_between: int = 1,
    seen: tuple[Float32Array, Starts | None] | None = None,
) -> PolicyImage:
    """The image that computes the stages. steps_between: those of the place in a step with which a
    hidden state moves on; seen: observations (n, o) of which its examples are some, and which of
    them begin an episode, else those of prove()."""
    contract = place.contract
    folded = fold(stages, ranges_of(contract.observations, np.float64))
    layers = [
        Layer(each.activation, single(each.weights), single(each.bias), hidden)
        for each in folded.layers
        for hidden in [each.hidden and (single(each.hidden[0]), single(each.hidden[1]))]
    ]
    origin = Origin(place.experiment(stem), place.environment, policy.step, policy.seed, sha256)
    rows, second = example_rows(*(seen or sampled_steps(contract, SAMPLES, is_recurrent(stages))))
    network = Network(folded.normalizer, layers, steps_between)
    data = write_image(network, contract, origin, rows, second)
    return parse_policy(data, stem)


def example_rows(observations: Float32Array, starts: Starts | None) -> tuple[Float32Array, int]:
    """Some of the observations, spread over all; of a recurrent policy the first steps of the first
    and of the last episode, and with which of the rows this one begins."""
    if starts is None:
        count = min(EXAMPLES, len(observations))
        return observations[np.linspace(0, len(observations) - 1, count).astype(int)], count
    episodes = np.split(observations, np.flatnonzero(starts)[1:])
    first = episodes[0][:SECOND_SEQUENCE]
    last = episodes[-1][: RECURRENT_EXAMPLES - SECOND_SEQUENCE]
    return np.concatenate([first, last]), len(first)


def single(values: Array) -> Float32Array:
    return values.astype(np.float32)


def prove(image: PolicyImage, stages: list[Stage]) -> Proof:
    """Compares the image, as boards run it, with the stages in double precision; refuses it where
    an action differs by more than 1e-6 of half its range."""
    in_time = image.recurrence is not None
    observations, starts = sampled_steps(image.contract, SAMPLES, in_time)
    expected = run(stages, observations.astype(float), starts)
    return compared(image, stages, observations, starts, expected, FORMULAS)


def sampled_steps(
    contract: Contract, count: int, in_time: bool
) -> tuple[Float32Array, Starts | None]:
    """Observations (count, o) and, of a recurrent policy, which of them begin an episode."""
    starts = np.arange(count) % EPISODE_STEPS == 0 if in_time else None
    return sampled(contract, count), starts


def compared(
    image: PolicyImage,
    stages: list[Stage],
    observations: Float32Array,
    starts: Starts | None,
    expected: Array,
    what: str,
) -> Proof:
    """With the outputs of `what`, (n, out)."""
    given, actions = computed(image, observations, starts)
    outputs = given.astype(float)
    exact = run(stages, observations.astype(float), starts)
    rounded = run_in_single(stages, observations, starts)
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
        checked(replace(proof, alike=0))
        theirs = choose(expected, observations, image.contract)
        return replace(proof, alike=alike(actions, expected, theirs, image.contract, proof, scale))
    return checked(proof)


def computed(
    image: PolicyImage, observations: Float32Array, starts: Starts | None
) -> tuple[Float32Array, Float32Array]:
    """The image's outputs and actions, (n, ...)."""
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
    """The number of the largest output of each action that the observation allows, (n, actions);
    of an action whose choices are all forbidden none is."""
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


def alike(
    actions: Float32Array,
    outputs: Array,
    theirs: NDArray[np.int64],
    contract: Contract,
    proof: Proof,
    scale: float,
) -> int:
    """In how many observations all choices of the image's actions are theirs, (n, actions).
    RefusedError where others are chosen and the outputs (n, out) of the two differ by more
    than rounding makes of both."""
    ours = actions.astype(np.int64)
    first = np.cumsum([0, *(len(action.choices) for action in contract.actions)][:-1])
    rows = np.arange(len(outputs))[:, None]
    gap = np.abs(outputs[rows, first + theirs] - outputs[rows, first + ours])
    others = (gap > 2 * proof.limit * scale).any(axis=1)
    if others.any():
        raise RefusedError(
            f"the image chooses otherwise than {by(proof)} in {others.sum()} of {len(outputs)} "
            "observations: it was not made a run"
        )
    return int((ours == theirs).all(axis=1).sum())


def by(proof: Proof) -> str:
    return proof.what if proof.chosen_by == Proof.chosen_by else proof.chosen_by


def prove_by_library(
    image: PolicyImage, policy: ForeignPolicy, contract: Contract, actions: str | None
) -> Proof:
    """Compares the image with what the library itself computes of the file."""
    assert policy.reference is not None
    observations = sampled(contract, SAMPLES)
    given = policy.reference(observations)
    expected = run(to_normalized(policy, contract, actions), given)
    stages = normalized_stages(policy, contract, actions)
    return compared(image, stages, observations, None, expected, "the library's own")


def checked(proof: Proof) -> Proof:
    """RefusedError where it is none."""
    if not proof.difference <= proof.limit:
        unit = "half their range" if proof.alike is None else "the largest"
        raise RefusedError(
            f"the image gives other {proof.numbers} than {proof.what}, by up to "
            f"{proof.difference:.1e} of {unit} and not {proof.limit:.0e}: it was not made a run"
        )
    return proof
