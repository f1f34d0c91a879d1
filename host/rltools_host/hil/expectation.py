"""What a board must answer to an observation, and in what an answer differs from that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rltools_host.clients.messages import Action
from rltools_host.clients.refusals import EXECUTOR_STATUSES, name_of
from rltools_host.policies.image import Float32Array, PolicyImage
from rltools_host.policies.push import MOST_LAYERS, words_of

ACTED, HELD = "acted", "held"


class Difference(NamedTuple):
    """What an answer differs in from what is expected, and how."""

    what: str
    how: str

    def of(self, question: str) -> str:
        """For example "layer 2 of 3 differs: input #17 gives ..."."""
        return f"{self.what}: {question} {self.how}"


@dataclass(frozen=True)
class Expected:
    """`layers` is None where their bits are not specified, or not asked for."""

    status: str  # of EXECUTOR_STATUSES
    action: Float32Array
    layers: tuple[int, ...] | None = None

    @property
    def action_bits(self) -> tuple[int, ...]:
        return tuple(map(int, self.action.view(np.uint32)))

    def difference(self, answer: Action) -> Difference | None:
        """The first thing in which the answer differs."""
        count = len(self.layers or ())
        for layer, (theirs, ours) in enumerate(zip(answer.layers, self.layers or (), strict=False)):
            if theirs != ours:
                what = f"layer {layer + 1} of {count} differs"
                return Difference(what, f"gives the checksum {theirs:08x}, here {ours:08x}")
        status = name_of(answer.status, EXECUTOR_STATUSES)
        if status != self.status:
            return Difference("the status differs", f"ends in {status}, here in {self.status}")
        if self.layers is not None and len(answer.layers) != min(count, MOST_LAYERS):
            how = f"runs through {len(answer.layers)}, here {count}"
            return Difference("the number of layers differs", how)
        if answer.action_bits != self.action_bits:
            how = f"gives {words_of(answer.action_bits)}, here {words_of(self.action_bits)}"
            return Difference("the action differs", how)
        return None


def safe_action(image: PolicyImage, answer: Action) -> Float32Array:
    """What a board answers to what is not finite: its contract may state it (policy/contract.h).

    That of the image's own contract where the answer is no action.
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
    """What this machine computes; `safe` is done where there is no action.

    The bits of a NaN are the processor's own. One in a layer is in all layers behind it, so that
    where the network's output is finite every bit of every layer is specified.
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
    """Between the elements of the actions; infinite where one of the board's is not finite."""
    ours = np.array([value.action for value in expected], np.float64)
    if any(len(answer.action_bits) != ours.shape[1] for answer in answers):
        return math.inf
    bits = np.array([answer.action_bits for answer in answers], np.uint32)
    difference = np.abs(bits.view(np.float32).astype(np.float64) - ours)
    return float(np.where(np.isfinite(difference), difference, np.inf).max(initial=0.0))
