"""Steps a second of MuJoCo's tasks: the core's environments, MuJoCo's own loop, Gymnasium.

    .venv/bin/python -m benchmarks.mujoco_steps [ROUNDS]

A second is one of a core's own time. The first two take turns in one program (mujoco_steps.cpp);
Gymnasium's environments are stepped after it. Each begins anew after 1,000 random actions and not
where an episode ends, so that all have the same work.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings

import numpy as np

from rltools_host.bench import harness
from rltools_host.errors import RltError
from rltools_host.toolchain import tools
from rltools_host.ui.table import aligned

STEPS = 1000


def gymnasium_steps_s(task: str, rounds: int) -> float:
    """The median of rounds."""
    import gymnasium

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there is a version 5
        environment = gymnasium.make(task, disable_env_checker=True).unwrapped
    space = environment.action_space
    assert isinstance(space, gymnasium.spaces.Box)
    actions = np.random.default_rng(0).uniform(space.low, space.high, (STEPS, *space.shape))
    measured = []
    for i in range(rounds):
        environment.reset(seed=i)
        started = time.process_time()
        for action in actions:
            environment.step(action)
        measured.append(STEPS / (time.process_time() - started))
    environment.close()
    return harness.median(measured)


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 21
    try:
        tools.ensure_group("mujoco")
        measured, _ = harness.run_program("mujoco_steps", rounds)
    except RltError as error:
        print(f"mujoco_steps: {error}", file=sys.stderr)
        return error.exit_code
    rows = [("task", "environment", "MuJoCo's loop", "part of it", "Gymnasium")]
    with tempfile.TemporaryDirectory() as folder, harness.pinned():
        os.chdir(folder)  # MuJoCo writes its warnings there
        for task, row in measured.items():
            assert row["same_positions"], task
            rows.append(
                (
                    task,
                    f"{row['environment_steps_s']:,}",
                    f"{row['loop_steps_s']:,}",
                    f"{100 * row['ratio']:.1f} %",
                    f"{gymnasium_steps_s(task, max(1, rounds // 3)):,.0f}",
                )
            )
        os.chdir("/")
    print("\n".join(aligned(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
