"""Stable-Baselines3's TD3; it scales actions to [-1, 1] itself."""

import peer_run  # first: the stopwatch of the imports below


def train(settings: peer_run.Settings, stopwatch: peer_run.Stopwatch) -> peer_run.Policy:
    import gymnasium
    import numpy as np
    import torch
    from stable_baselines3 import TD3
    from stable_baselines3.common.noise import NormalActionNoise

    torch.set_num_threads(1)
    model = TD3(
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
        action_noise=NormalActionNoise(np.zeros(1), np.full(1, settings.action_noise)),
        policy_delay=settings.policy_delay,
        target_policy_noise=settings.policy_noise,
        target_noise_clip=settings.noise_clip,
        policy_kwargs={"net_arch": list(settings.hidden)},
        seed=settings.seed,
        device="cpu",
    )
    with stopwatch:
        model.learn(settings.steps)
    return lambda observations: model.predict(observations, deterministic=True)[0]


if __name__ == "__main__":
    peer_run.run("stable-baselines3", train)
