"""Makes an image of a foreign policy, and compares it with the file's own formulas, or with what
the library itself recorded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rltools_host.build.ranges import ranges_of
from rltools_host.errors import BoardMismatchError, DamagedFileError, UsageError, VerificationError
from rltools_host.foreign.network import (
    ForeignPolicy,
    Normalise,
    Stage,
    fold,
    run,
    run_in_single,
    trimmed,
)
from rltools_host.foreign.pickles import Array
from rltools_host.foreign.place import Place
from rltools_host.foreign.reading import arrays_in_npz
from rltools_host.hints import near_path
from rltools_host.policies.contract import Contract
from rltools_host.policies.image import Layer, PolicyImage, parse_policy
from rltools_host.policies.image_writing import EXAMPLES, Network, Origin, sampled, write_image

SAMPLES = 1000
LARGEST_DIFFERENCE = 1e-6  # of actions normalised to [-1, 1]
ROUNDINGS = 4  # of single precision: sums in another order round otherwise
FORMULAS = "the file's formulas"
SAME, SCALED = "same", "scaled"  # what a file's actions are: in the place's units, or in [-1, 1]
RECORDED_ARRAYS = ("observations", "actions")


@dataclass(frozen=True)
class Proof:
    """The largest difference of a number of actions, normalised to [-1, 1]."""

    what: str  # the image was compared with
    count: int
    difference: float
    rounding: float  # the largest difference that single precision makes of the file's formulas

    @property
    def limit(self) -> float:
        """Where rounding alone is more than 1e-6, the library's own actions are no nearer."""
        return max(LARGEST_DIFFERENCE, ROUNDINGS * self.rounding)

    def line(self) -> str:
        line = (
            f"{self.count:,} observations: actions at most {self.difference:.1e} from {self.what}"
        )
        if self.difference <= LARGEST_DIFFERENCE:
            return line
        return f"{line}, whose own rounding is up to {self.rounding:.1e}"


def normalised_stages(
    policy: ForeignPolicy, contract: Contract, actions: str | None
) -> list[Stage]:
    """The stages with an output that is an action normalised to the contract's ranges.

    UsageError, BoardMismatchError: the policy's actions are not the contract's.
    """
    require_shapes(policy, contract)
    return trimmed([*policy.stages, *to_normalised(policy, contract, actions)])


def to_normalised(policy: ForeignPolicy, contract: Contract, actions: str | None) -> list[Stage]:
    """What takes the policy's output to [-1, 1]."""
    low, high = ranges_of(contract.actions, np.float64)
    if policy.is_normalised or actions == SCALED:
        if actions != SCALED:
            require_bounds(policy, low, high)
        return unscaled(policy)
    if (
        policy.is_normalised is None
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
    return [Normalise(middle, 1 / half)]


def unscaled(policy: ForeignPolicy) -> list[Stage]:
    """From actions in the file's own units to [-1, 1], where they are not that already."""
    if policy.is_normalised or policy.action_bounds is None:
        return []
    low, high = policy.action_bounds
    if not np.isfinite(high - low).all():
        raise UsageError("--actions scaled: the file's actions have no bounds to scale them by")
    half, middle = (high - low) / 2, (high + low) / 2
    return [Normalise(middle, 1 / half)]


def require_shapes(policy: ForeignPolicy, contract: Contract) -> None:
    if any(channel.choices for channel in contract.actions):
        raise BoardMismatchError(
            "the actions here are choices among names, and policies that choose are not imported"
        )
    for kind, theirs, ours in (
        ("observations", policy.observation_dim, len(contract.observations)),
        ("actions", policy.action_dim, len(contract.actions)),
    ):
        if theirs != ours:
            raise BoardMismatchError(
                f"the file's policy has {theirs} {kind}, and there are {ours} here: name the "
                "contract or the environment that it was trained for"
            )


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
    """Sentences on observations whose bounds in the file are others than here."""
    if policy.observation_bounds is None:
        return []
    found = []
    for channel, low, high in zip(contract.observations, *policy.observation_bounds, strict=True):
        here = (channel.minimum, channel.maximum)
        if np.isfinite([low, high]).all() and not np.allclose((low, high), here, rtol=1e-4):
            found.append(
                f"{channel.name} is from {low:g} to {high:g} in the file, and from {here[0]:g} to "
                f"{here[1]:g} {channel.unit} here: are the units the same?"
            )
    return found


def image_of(
    stages: list[Stage], place: Place, policy: ForeignPolicy, stem: str, sha256: str
) -> PolicyImage:
    """The image that computes the stages, with examples drawn from the channels' ranges."""
    contract = place.contract
    folded = fold(stages, ranges_of(contract.observations, np.float64))
    layers = [
        Layer(activation, weights.astype(np.float32), bias.astype(np.float32))
        for activation, weights, bias in folded.layers
    ]
    origin = Origin(place.experiment(stem), place.environment, policy.step, policy.seed, sha256)
    examples = sampled(contract, EXAMPLES)
    data = write_image(Network(folded.normaliser, layers), contract, origin, examples)
    return parse_policy(data, stem)


def prove(image: PolicyImage, stages: list[Stage]) -> Proof:
    """Compares the image, as boards run it, with the stages in double precision; refuses it where
    an action differs by more than 1e-6 of half its range."""
    observations = sampled(image.contract, SAMPLES)
    expected = np.clip(run(stages, observations.astype(float)), -1, 1)
    difference = differing(image, observations, expected)
    return checked(Proof(FORMULAS, SAMPLES, difference, rounding(stages, observations)))


def rounding(stages: list[Stage], observations: NDArray[np.float32]) -> float:
    exact = np.clip(run(stages, observations.astype(float)), -1, 1)
    return float(np.abs(np.clip(run_in_single(stages, observations), -1, 1) - exact).max())


def prove_by_library(
    image: PolicyImage, policy: ForeignPolicy, contract: Contract, actions: str | None
) -> Proof:
    """Compares the image with what the library itself computes of the file."""
    assert policy.reference is not None
    observations = sampled(contract, SAMPLES)
    given = policy.reference(observations)
    expected = np.clip(run(to_normalised(policy, contract, actions), given), -1, 1)
    difference = differing(image, observations, expected)
    stages = normalised_stages(policy, contract, actions)
    return checked(Proof("the library's own", SAMPLES, difference, rounding(stages, observations)))


def differing(image: PolicyImage, observations: NDArray[np.float32], expected: Array) -> float:
    outputs = np.clip(image.output(observations).astype(float), -1, 1)
    return float(np.abs(outputs - expected).max())


def checked(proof: Proof) -> Proof:
    if not proof.difference <= proof.limit:
        raise VerificationError(
            f"the image gives other actions than {proof.what}, by up to {proof.difference:.1e} of "
            f"half their range and not {proof.limit:.0e}: it was not made a run"
        )
    return proof


def prove_recorded(
    image: PolicyImage, stages: list[Stage], path: Path, contract: Contract
) -> Proof:
    """Compares the image with actions that the library gave, in the place's units."""
    observations, actions = recorded(path, contract)
    low, high = ranges_of(contract.actions, np.float64)
    half, middle = (high - low) / 2, (high + low) / 2
    expected = np.clip((actions - middle) / half, -1, 1)
    seen = observations.astype(np.float32)
    difference = differing(image, seen, expected)
    what = f"those recorded in {near_path(path)}"
    return checked(Proof(what, len(actions), difference, rounding(stages, seen)))


def recorded(path: Path, contract: Contract) -> tuple[Array, Array]:
    """Observations (n, ...) and actions (n, ...) of an .npz file."""
    arrays = arrays_in_npz(path)
    rows = []
    for name, channels in zip(
        RECORDED_ARRAYS, (contract.observations, contract.actions), strict=True
    ):
        values = arrays.get(name)
        if (
            values is None
            or values.ndim != 2
            or values.shape[1] != len(channels)
            or not len(values)
        ):
            shape = "no such array" if values is None else f"{values.shape}"
            raise DamagedFileError(
                f"{path}: {name} must be (count, {len(channels)}), and it has {shape}"
            )
        if not np.isfinite(values).all():
            raise DamagedFileError(f"{path}: a number of {name} is infinite or not a number")
        rows.append(values)
    if len(rows[0]) != len(rows[1]):
        raise DamagedFileError(f"{path} has {len(rows[0])} observations and {len(rows[1])} actions")
    return rows[0], rows[1]
