"""sbx: Stable-Baselines3's TD3 in JAX. Compilation is not timed: a short run compiles first, then
the model's first state is put back."""

import peer_run  # first: the stopwatch of the imports below


def train(settings: peer_run.Settings, stopwatch: peer_run.Stopwatch) -> peer_run.Policy:
    import gymnasium
    import numpy as np
    from sbx import TD3
    from stable_baselines3.common.noise import NormalActionNoise

    model = TD3(
        "MlpPolicy",
        gymnasium.make(settings.environment),
        learning_rate=settings.learning_rate,
        qf_learning_rate=settings.learning_rate,
        buffer_size=settings.buffer_size,
        learning_starts=settings.learning_starts,
        batch_size=settings.batch_size,
        tau=settings.tau,
        gamma=settings.gamma,
        train_freq=1,
        gradient_steps=1,
        policy_delay=settings.policy_delay,
        target_policy_noise=settings.policy_noise,
        target_noise_clip=settings.noise_clip,
        action_noise=NormalActionNoise(np.zeros(1), np.full(1, settings.action_noise)),
        policy_kwargs={"net_arch": list(settings.hidden)},
        seed=settings.seed,
    )
    # JAX's states are immutable, and keep the compiled functions that another model would not find.
    first_states = model.policy.actor_state, model.policy.qf_state
    model.learn(settings.learning_starts + 50)
    model.policy.actor_state, model.policy.qf_state = first_states
    model.replay_buffer.reset()
    model._n_updates = 0
    with stopwatch:
        model.learn(settings.steps)
    return lambda observations: model.predict(observations, deterministic=True)[0]


if __name__ == "__main__":
    peer_run.run("sbx-rl", train)
