"""Compares an image with actions that a library recorded, in a file of numpy.savez."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from rltools_host.build.description import ranges_of
from rltools_host.errors import DamagedFileError
from rltools_host.foreign.network import Stage, Starts, run
from rltools_host.foreign.pickles import Array
from rltools_host.foreign.proof import FORMULAS, Proof, alike, compared, computed, single
from rltools_host.foreign.reading import arrays_in_npz
from rltools_host.hints import near_path
from rltools_host.policies.contract import Contract, choices_of
from rltools_host.policies.image import Float32Array, PolicyImage

ARRAYS = ("observations", "actions")
STARTS = "episode_starts"
Steps = tuple[Float32Array, Array, Starts | None]  # observations (n, o), actions (n, a), starts (n)


def prove_recorded(
    image: PolicyImage, stages: list[Stage], path: Path, contract: Contract, steps: Steps
) -> Proof:
    """Compares the image with actions that the library gave, in the place's units."""
    seen, actions, starts = steps
    what = f"those recorded in {near_path(path)}"
    low, high = ranges_of(contract.actions, np.float64)
    if choices_of(contract.actions):
        if not ((actions >= low) & (actions <= high) & (actions == np.rint(actions))).all():
            raise DamagedFileError(f"{path}: an action is none of the choices, which count from 0")
        outputs = run(stages, seen.astype(float), starts)
        proof = compared(image, stages, seen, starts, outputs, FORMULAS)
        proof = replace(proof, chosen_by=what)
        scale = max(1.0, float(np.abs(outputs).max()))
        ours, theirs = computed(image, seen, starts)[1], actions.astype(np.int64)
        return replace(proof, alike=alike(ours, outputs, theirs, contract, proof, scale))
    half, middle = (high - low) / 2, (high + low) / 2
    return compared(image, stages, seen, starts, (actions - middle) / half, what)


def recorded(path: Path, contract: Contract, in_time: bool = False) -> Steps:
    """What the .npz file has; in_time: and which of the steps begin an episode, the first alone
    where the file does not say."""
    arrays = arrays_in_npz(path)
    rows = []
    for name, channels in zip(ARRAYS, (contract.observations, contract.actions), strict=True):
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
        if not (np.abs(values) <= np.finfo(np.float32).max).all():
            raise DamagedFileError(f"{path}: a number of {name} is infinite or not a number")
        rows.append(values)
    if len(rows[0]) != len(rows[1]):
        raise DamagedFileError(f"{path} has {len(rows[0])} observations and {len(rows[1])} actions")
    starts = starts_in(arrays, path, len(rows[0])) if in_time else None
    return single(rows[0]), rows[1], starts


def starts_in(arrays: Mapping[str, Array], path: Path, count: int) -> Starts:
    given = arrays.get(STARTS)
    if given is None:
        return np.arange(count) < 1
    if given.shape != (count,) or not np.isin(given, (0, 1)).all() or given[0] != 1:
        raise DamagedFileError(
            f"{path}: {STARTS} must be 1 where an episode begins, with the first of the "
            f"{count} observations, and 0 elsewhere"
        )
    starts: Starts = given == 1
    return starts
