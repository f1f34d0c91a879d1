"""`info["action_mask"]` of an environment whose actions are choices: 1 for each choice that it
allows, and 0 for the others, (choices) in whole numbers, at each reset and step. The choices of a
MultiDiscrete follow one another. (Gymnasium's Taxi has one; PettingZoo's form is the same.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rltools_host.build.description import Channel
from rltools_host.errors import UsageError
from rltools_host.runs.policy_text import LONGEST_CHANNEL_NAME
from rltools_host.runs.task import Task

KEY = "action_mask"


class MaskFault(Exception):
    """What a mask may not be: a sentence."""


def gives_masks(environment: Any) -> bool:
    """Whether a reset does. One that raises says nothing here."""
    try:
        _, info = environment.reset(seed=0)
    except Exception:
        return False
    return isinstance(info, Mapping) and info.get(KEY) is not None


def mask_channels(actions: Sequence[Channel], observations: Sequence[Channel]) -> list[Channel]:
    """An observation for each choice, by the name that makes it a mask in policies."""
    taken = {channel.name for channel in observations}
    found = []
    for action in actions:
        for choice in action.choices:
            name = f"{action.name}:{choice}"
            if len(name.encode()) > LONGEST_CHANNEL_NAME:
                raise UsageError(
                    f'the environment gives info["{KEY}"], and the mask of {choice} is then called '
                    f'"{name}", which has more than {LONGEST_CHANNEL_NAME} bytes: give the '
                    "action, or its choices, shorter names by --channels"
                )
            if name in taken:
                raise UsageError(
                    f'the environment gives info["{KEY}"], and its observation {name} is a mask, '
                    "too: leave out one of the two"
                )
            taken.add(name)
            found.append(Channel(name, "1", 0.0, 1.0))
    return found


def mask_of(info: Any, task: Task, where: str, *, ends: bool = False) -> NDArray[np.float32]:
    """The mask (mask_count) that reset or step gave; where an episode ends it may allow nothing.

    MaskFault: it is missing, or none, or there is one where none was.
    """
    given = info.get(KEY) if isinstance(info, Mapping) else None
    if not task.has_masks:
        if given is not None and any(action.choices for action in task.actions):
            raise MaskFault(
                f'{where} gave info["{KEY}"], and the first reset did not: give it at each reset '
                "and step, or never"
            )
        return np.zeros(0, np.float32)
    if given is None:
        raise MaskFault(
            f'{where} gave no info["{KEY}"], and the first reset did: give it at each reset and '
            "step"
        )
    mask = np.asarray(given)
    if mask.shape != (task.mask_count,) or mask.dtype.kind not in "iub":
        raise MaskFault(
            f'{where} gave info["{KEY}"] of shape {mask.shape} and type {mask.dtype}, and the task '
            f"has {task.mask_count} choices: give ({task.mask_count},) in whole numbers, 1 for "
            "each that is allowed"
        )
    if not ((mask == 0) | (mask == 1)).all():
        raise MaskFault(f'{where} gave info["{KEY}"] with a number that is neither 0 nor 1')
    first = 0
    for action in task.actions:
        part = mask[first : first + len(action.choices)]
        first += len(action.choices)
        if not ends and not part.any():
            raise MaskFault(f'{where} gave info["{KEY}"] that allows no choice of {action.name}')
    return mask.astype(np.float32)


def with_mask(
    seen: NDArray[np.float32], info: Any, task: Task, where: str, *, ends: bool = False
) -> NDArray[np.float32]:
    """The observation, of a task with masks with the mask behind it. MaskFault: as of mask_of()."""
    if not task.has_masks and type(info) is dict and KEY not in info:
        return seen  # at most steps
    mask = mask_of(info, task, where, ends=ends)
    return np.concatenate([seen, mask]) if task.has_masks else seen


def nearest_allowed(
    action: NDArray[np.float32], mask: NDArray[np.float32], task: Task
) -> NDArray[np.float32]:
    """Each choice, or the nearest one that the mask allows; of none allowed, itself."""
    if not task.has_masks:
        return action
    chosen, first = action.copy(), 0
    for index, channel in enumerate(task.actions):
        count = len(channel.choices)
        order = np.argsort(np.abs(np.arange(count) - int(action[index])), kind="stable")
        allowed = mask[first + order] > 0
        chosen[index] = order[int(np.argmax(allowed))]
        first += count
    return chosen
