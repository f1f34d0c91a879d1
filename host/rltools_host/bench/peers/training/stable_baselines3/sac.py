"""Stable-Baselines3's SAC; it scales actions to [-1, 1] itself."""

import peer_run  # first: the stopwatch of the imports below


def train(settings: peer_run.Settings, stopwatch: peer_run.Stopwatch) -> peer_run.Policy:
    import gymnasium
    import torch
    from stable_baselines3 import SAC

    torch.set_num_threads(1)
    model = SAC(
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
        ent_coef=f"auto_{settings.alpha:g}",
        target_entropy=settings.target_entropy,
        policy_kwargs={"net_arch": list(settings.hidden)},
        seed=settings.seed,
        device="cpu",
    )
    with stopwatch:
        model.learn(settings.steps)
    return lambda observations: model.predict(observations, deterministic=True)[0]


if __name__ == "__main__":
    peer_run.run("stable-baselines3", train)
