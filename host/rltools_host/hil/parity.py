"""Whether a board computes this machine's bits, layer by layer."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rltools_host.clients.file_packet import Progress
from rltools_host.clients.messages import Action
from rltools_host.clients.policies import PolicyClient
from rltools_host.hil import expectation
from rltools_host.hil.expectation import Expected
from rltools_host.hil.inputs import Inputs, make_inputs, make_not_finite
from rltools_host.hil.ticks import TickOutcome, check_ticks
from rltools_host.policies.contract import PlaceInput
from rltools_host.policies.image import PolicyImage

SHOWN_INPUTS = 4  # in the table of layers


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
        return expectation.largest_difference(self.expected, self.answers)

    @property
    def outputs_sha256(self) -> str:
        """Of the board's actions, as floats, in the order of the inputs."""
        return sha256_of([answer.action_bits for answer in self.answers])

    @property
    def expected_sha256(self) -> str:
        return sha256_of([expected.action_bits for expected in self.expected])

    def document(self) -> dict[str, Any]:
        return {
            "inputs": self.count,
            "not_finite_inputs": self.not_finite,
            "mismatches": self.mismatches,
            "executor_calls": self.ticks.checked,
            "executor_mismatches": self.ticks.failed,
            "first_mismatch": self.first or None,
        }

    def layer_rows(self) -> list[tuple[str, ...]]:
        """Checksums of the layers of the first inputs that differ, or of the first ones."""
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
    asked: Sequence[PlaceInput],
    count: int,
    progress: Progress | None = None,
) -> Parity:
    """Sends the inputs to the board, whose acting policy is the image, and compares.

    `asked` is what the board gives the policy by itself.
    """
    inputs = make_inputs(image.observations, count)
    further = make_not_finite(image.observations)
    values = np.concatenate([inputs.values, further.values])
    kinds = (*inputs.kinds, *further.kinds)
    answers = client.forward_all(values.tolist(), progress)
    safe = expectation.safe_action(image, answers[count])
    expected = expectation.forward(image, values, safe)
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
