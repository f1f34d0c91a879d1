"""RAPTOR's published policy, of PyPI's foundation-policy, for `rlt bench any-airframe`.

By the package's own description and metadata it observes, at a step of 10 ms: position, the
rotation matrix of the attitude row by row, linear velocity, angular velocity in the body's frame,
its last action; x forward, y left, z up. Its action is four motor commands in [-1, 1], front right,
back right, back left, front left. That is the order and these are the axes of the observations that
come in here; what differs is the attitude, which comes as a quaternion.

Its hidden state and its last action go on each 10 ms. --each-tick: it acts again in each tick of
2 ms, from the state and the last action from which its step began.

Standard input has, for each tick, its number (u4) and ROWS observations of 13 floats; number 0
begins flights. Standard output has ROWS motor commands of 4 floats, parts of the greatest speed in
[0, 1]; before the first a line that says who this is.
"""

from __future__ import annotations

import copy
import json
import os
import sys
from importlib.metadata import version

import numpy as np
from foundation_policy import Raptor

ROWS = 32
STEP_TICKS = 5  # of 2 ms


def rotation(q: np.ndarray) -> np.ndarray:
    """Return the rotations (rows, 9) from body to world of quaternions w, x, y, z (rows, 4)."""
    w, x, y, z = q.T
    rows = (
        *(1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        *(2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        *(2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.stack(rows, axis=-1)


def read(count: int) -> bytes:
    data = sys.stdin.buffer.read(count)
    if len(data) < count:
        sys.exit(0)
    return data


def main() -> None:
    each_tick = "--each-tick" in sys.argv
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    policy = Raptor()
    answers.write(json.dumps({"version": version("foundation-policy")}).encode() + b"\n")
    answers.flush()
    before = copy.deepcopy(policy)
    last = acted = np.zeros((ROWS, 4), np.float32)
    while True:
        tick = int(np.frombuffer(read(4), "<u4")[0])
        seen = np.frombuffer(read(4 * 13 * ROWS), "<f4").reshape(ROWS, 13)
        if tick == 0:
            policy.reset()
            last = acted = np.zeros((ROWS, 4), np.float32)
        is_step = tick % STEP_TICKS == 0
        if is_step or each_tick:
            if is_step:
                before, last = copy.deepcopy(policy), acted
            parts = (seen[:, :3], rotation(seen[:, 6:10]), seen[:, 3:6], seen[:, 10:], last)
            observation = np.concatenate(parts, axis=1).astype(np.float32)
            mind = policy if is_step else copy.deepcopy(before)
            action = np.clip(mind.evaluate_step(observation), -1.0, 1.0).astype(np.float32)
            if is_step:
                acted = action
        answers.write((0.5 * action + 0.5).astype("<f4").tobytes())
        answers.flush()


if __name__ == "__main__":
    main()
