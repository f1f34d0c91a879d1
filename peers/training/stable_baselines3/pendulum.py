"""Stable-Baselines3; it scales actions to [-1, 1] itself."""

from typing import Any

import peer_run  # first: the stopwatch of the imports below


def trained(
    algorithm: Any, settings: peer_run.Settings, stopwatch: peer_run.Stopwatch, **own: Any
) -> peer_run.Policy:
    """`own`: what only this algorithm has."""
    import gymnasium
    import torch

    torch.set_num_threads(1)
    model = algorithm(
        "MlpPolicy",
        gymnasium.make(settings.environment),
        learning_rate=settings.learning_rate,
        buffer_size=settings.buffer_size,
        learning_starts=settings.learning_starts,
        batch_size=settings.batch_size,
        tau=settings.tau,
        gamma=settings.gamma,
        train_freq=1,
        gradient_steps=1,
        policy_kwargs={"net_arch": list(settings.hidden)},
        seed=settings.seed,
        device="cpu",
        **own,
    )
    with stopwatch:
        model.learn(settings.steps)
    return lambda observations: model.predict(observations, deterministic=True)[0]
