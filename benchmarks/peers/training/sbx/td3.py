"""sbx: Stable-Baselines3's TD3 in JAX. Compilation is not timed: a short run compiles first, then
the model's first state is put back."""

import peer_run  # first: the stopwatch of the imports below


def train(settings: peer_run.Settings, stopwatch: peer_run.Stopwatch) -> peer_run.Policy:
    import gymnasium
    from sbx import TD3

    model = TD3(
        "MlpPolicy",
        gymnasium.make(settings.environment),
        qf_learning_rate=settings.learning_rate,
        **settings.of_stable_baselines("TD3"),
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
