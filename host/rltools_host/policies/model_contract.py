"""What models for other frameworks say of a policy, and what they cannot hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from rltools_host.build.description import Channel
from rltools_host.errors import UsageError
from rltools_host.policies.contract import masks_of
from rltools_host.policies.image import PolicyImage
from rltools_host.policies.image_records import (
    RESET_AT_ACTIVATION,
    RESET_AT_FAULT,
    RESET_AT_PAUSE,
    RESET_AT_STALE_INPUT,
    Recurrence,
)

T = TypeVar("T")
RESETS = {
    RESET_AT_ACTIVATION: "activation",
    RESET_AT_FAULT: "fault",
    RESET_AT_STALE_INPUT: "stale input",
    RESET_AT_PAUSE: "pause",
}


def require_no_masks(image: PolicyImage, framework: str) -> None:
    if any(mask is not None for mask in masks_of(image.observations, image.actions)):
        raise UsageError(
            f"no export for {framework} of a policy whose observations forbid choices is written "
            "yet: export it with --to c"
        )


def known(table: Mapping[str, T], activation: str, framework: str) -> T:
    if activation not in table:
        raise UsageError(f"no export for {framework} of a policy with {activation} is written yet")
    return table[activation]


def recurrence(of: Recurrence) -> dict[str, Any]:
    """When the hidden state moves on, and when it is zero."""
    return {
        "trained_interval_us": of.trained_interval_us,
        "most_pause_us": of.most_pause_us,
        "state_dim": of.state_dim,
        "reset_at": [name for bit, name in RESETS.items() if of.reset_at & bit],
    }


def contract(image: PolicyImage) -> dict[str, Any]:
    """What a user has to know of inputs and outputs."""

    def rows(channels: Sequence[Channel]) -> list[dict[str, Any]]:
        return [
            {
                "name": c.name,
                "unit": "choice" if c.choices else c.unit,
                "minimum": c.minimum,
                "maximum": c.maximum,
                **({"choices": [*c.choices]} if c.choices else {}),
            }
            for c in channels
        ]

    return {
        "experiment": image.experiment,
        "environment": image.environment,
        "state_sha256": image.state_sha256,
        "step_interval_us": image.step_interval_us,
        **({} if image.recurrence is None else {"recurrence": recurrence(image.recurrence)}),
        "observations": rows(image.observations),
        "actions": rows(image.actions),
    }
