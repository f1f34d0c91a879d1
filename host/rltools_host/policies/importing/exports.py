"""Readers of what `rlt export RUN --to safetensors` and `--to pytorch` write
(policies/frameworks.py). The image of such a policy has the same bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from rltools_host.files import parse_json
from rltools_host.policies.activations import ACTIVATIONS
from rltools_host.policies.importing.layers import module, only, tensors_of
from rltools_host.policies.importing.network import (
    MAX_LAYERS,
    Activate,
    Dense,
    ForeignPolicy,
    Normalize,
    Stage,
    widths,
)
from rltools_host.policies.importing.pickles import UnreadableError
from rltools_host.policies.importing.state_dicts import Given
from rltools_host.policies.onnx_model import ExportedContract

TEXTS = ("activations", "contract")  # of the metadata
EXPORTED = {"mean", "inverse_std", "lowest", "highest"}


def is_exported(document: Any) -> bool:
    return isinstance(document, dict) and document.keys() >= EXPORTED


def exported_policy(
    document: Mapping[str, object], texts: Mapping[str, str], given: Given
) -> ForeignPolicy:
    """Return the policy of layers 0, 1 ... with the activations and the contract of the file's
    metadata."""
    table = tensors_of(document, "file")
    count = len({name.split(".")[1] for name in table if name.startswith("layers.")})
    names = [f"layers.{index}" for index in range(min(count, MAX_LAYERS + 1))]
    only(table, names, "|".join(EXPORTED), "policy of rlt export")
    stated = exported_texts(texts)
    if stated is None:
        hidden, output = given.hidden("module of rlt export"), given.output_activation
        if output is None:
            raise UnreadableError("its state_dict() does not say how it ends: --output-activation")
        activations = [hidden] * (len(names) - 1) + [output]
        contract = None
    else:
        given.nothing("policy of rlt export")
        activations, contract = stated
    if len(activations) != len(names) or not set(activations) <= ACTIVATIONS.keys():
        raise UnreadableError("its activations are not those of its layers")
    stages: list[Stage] = []
    mean, scale = (np.ravel(table[name]) for name in ("mean", "inverse_std"))
    if mean.any() or (scale != 1).any():
        stages.append(Normalize(mean, scale))
    for name, activation in zip(names, activations, strict=True):
        layers = module(table, name)
        stages += layers
        if isinstance(layers[-1], Dense):
            stages.append(Activate(activation))
        elif activation != "identity" and stated is not None:
            raise UnreadableError("its activations are not those of its layers")
    bounds = np.ravel(table["lowest"]), np.ravel(table["highest"])
    if contract is None:
        if widths(stages)[1] != bounds[0].size:
            raise UnreadableError(
                "its actions are discrete: import the policy.safetensors of its export"
            )
        return ForeignPolicy("rlt export", tuple(stages), True, action_bounds=bounds)
    choices = tuple(len(row.choices) for row in contract.actions if row.choices)
    memory = contract.recurrence
    interval_us = contract.step_interval_us if memory is None else memory.trained_interval_us
    rows = contract.observations
    low, high = (np.array([getattr(row, end) for row in rows]) for end in ("minimum", "maximum"))
    return ForeignPolicy(
        "rlt export",
        tuple(stages),
        is_normalized=not choices,
        choices=choices,
        observation_bounds=(low, high),
        action_bounds=None if choices else bounds,
        step_interval_us=interval_us,
        channel_names=tuple(row.name for row in rows),
    )


def exported_texts(texts: Mapping[str, str]) -> tuple[list[str], ExportedContract] | None:
    """Parse activations and contract, or return None where there are neither."""
    if not texts.keys() & set(TEXTS):
        return None
    try:
        activations, contract = (parse_json(texts[key].encode()) for key in TEXTS)
        return msgspec.convert(activations, list[str]), msgspec.convert(contract, ExportedContract)
    except (KeyError, ValueError, msgspec.ValidationError):
        raise UnreadableError("its metadata is not that of rlt export") from None
