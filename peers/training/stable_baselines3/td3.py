"""Stable-Baselines3's TD3."""

import peer_run  # first: the stopwatch of the imports below
from pendulum import trained


def train(settings: peer_run.Settings, stopwatch: peer_run.Stopwatch) -> peer_run.Policy:
    import numpy as np
    from stable_baselines3 import TD3
    from stable_baselines3.common.noise import NormalActionNoise

    return trained(
        TD3,
        settings,
        stopwatch,
        action_noise=NormalActionNoise(np.zeros(1), np.full(1, settings.action_noise)),
        policy_delay=settings.policy_delay,
        target_policy_noise=settings.policy_noise,
        target_noise_clip=settings.noise_clip,
    )


if __name__ == "__main__":
    peer_run.run("stable-baselines3", train)
