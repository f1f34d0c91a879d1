"""`mujoco.rollout` on Ant's model: what this machine's threads simulate, and nothing else.

Actions as a policy draws them that has learned nothing, each for the five steps of a step of
Ant-v4; the 64 ants go on for 16 steps of the environment at a time, and those that are then out of
the heights in which an episode goes on begin again. No observation, no reward, no policy.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ppo_run import actions_of_a_new_policy
from turns import TrainingTurns

ENVIRONMENTS, FRAME_SKIP = 64, 5
ROLLOUT_STEPS, ROLLOUTS = 16, 4  # of an iteration
HEALTHY_HEIGHT_M = (0.2, 1.0)
RESET_NOISE = 0.1


def main() -> None:
    import gymnasium
    import mujoco
    import numpy as np
    from mujoco import rollout

    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    assets = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
    model = mujoco.MjModel.from_xml_path(str(assets / "ant.xml"))
    data = [mujoco.MjData(model) for _ in range(arguments.threads)]
    physics = mujoco.mjtState.mjSTATE_FULLPHYSICS
    size = mujoco.mj_stateSize(model, physics)
    generator = np.random.default_rng(0)

    def begun(count: int) -> Any:
        states = np.zeros((count, size))  # time, positions, velocities
        noise = generator.uniform(-RESET_NOISE, RESET_NOISE, (count, model.nq))
        states[:, 1 : 1 + model.nq] = model.qpos0 + noise
        states[:, 1 + model.nq :] = RESET_NOISE * generator.standard_normal((count, model.nv))
        return states

    if size != 1 + model.nq + model.nv:
        raise SystemExit("Ant's model has another state than time, positions and velocities")
    actions = actions_of_a_new_policy((ROLLOUTS, ENVIRONMENTS, ROLLOUT_STEPS, model.nu))
    controls = np.ascontiguousarray(np.repeat(actions, FRAME_SKIP, axis=2))
    states = begun(ENVIRONMENTS)
    reached = np.empty((ENVIRONMENTS, ROLLOUT_STEPS * FRAME_SKIP, size))
    turns = TrainingTurns(ENVIRONMENTS)
    turns.say(
        {
            "version": mujoco.__version__,
            "observation_dim": None,
            "action_dim": int(model.nu),
            "threads": {"mujoco.rollout": arguments.threads},
            "simulator": f"MuJoCo {mujoco.__version__}",
            "settings": f"{ENVIRONMENTS} environments",
        }
    )
    nothing = np.zeros(ENVIRONMENTS), np.zeros(ENVIRONMENTS, bool)
    # without a pool the caller's thread works; with one the caller waits
    with rollout.Rollout(nthread=arguments.threads if arguments.threads > 1 else 0) as pool:
        while True:
            turns.begin_iteration()
            for part in controls:
                pool.rollout([model], data, states, part, state=reached)
                states = reached[:, -1].copy()
                height_m = states[:, 3]
                fallen = ~((height_m >= HEALTHY_HEIGHT_M[0]) & (height_m <= HEALTHY_HEIGHT_M[1]))
                states[fallen] = begun(int(fallen.sum()))
                for _ in range(ROLLOUT_STEPS):
                    turns.add_step(*nothing)


if __name__ == "__main__":
    main()
