"""PyPI's rltools with MKL, on gymnasium's pendulum as its documentation has it.

It compiles the training loop when its algorithm is called, which counts as setup.
"""

from typing import Any

import peer_run  # first: the stopwatch of the imports below


def make_environment(name: str, seed: int) -> Any:
    """Return Gymnasium's environment, wrapped as in the package's documentation."""
    import gymnasium
    from gymnasium.wrappers import RescaleAction

    environment = RescaleAction(gymnasium.make(name), -1.0, 1.0)
    environment.reset(seed=seed)
    return environment


def trained(
    algorithm: Any, settings: peer_run.Settings, stopwatch: peer_run.Stopwatch, **own: Any
) -> peer_run.Policy:
    """Train with the settings, and those that only this algorithm has (`own`)."""
    import numpy as np

    model = algorithm(
        lambda: make_environment(settings.environment, settings.seed),
        enable_evaluation=False,
        GAMMA=settings.gamma,
        ACTOR_BATCH_SIZE=settings.batch_size,
        CRITIC_BATCH_SIZE=settings.batch_size,
        ACTOR_POLYAK=1.0 - settings.tau,
        CRITIC_POLYAK=1.0 - settings.tau,
        N_WARMUP_STEPS=settings.learning_starts,
        STEP_LIMIT=settings.steps,
        REPLAY_BUFFER_CAP=settings.buffer_size,
        ACTOR_HIDDEN_DIM=settings.hidden[0],
        CRITIC_HIDDEN_DIM=settings.hidden[0],
        OPTIMIZER_ALPHA=settings.learning_rate,
        **own,
    )
    state = model.State(settings.seed)
    with stopwatch:
        while not state.step():
            pass

    def policy(observations: Any) -> Any:
        actions = np.array([state.action(observation) for observation in observations])
        return settings.maximum_action * np.clip(actions, -1.0, 1.0)

    return policy
