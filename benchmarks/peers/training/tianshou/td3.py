"""Tianshou's TD3 with its off-policy trainer: one step, one update, no tests in between."""

from typing import Any

import peer_run  # first: the stopwatch of the imports below


def make_algorithm(settings: peer_run.Settings, environment: Any) -> Any:
    from tianshou.algorithm import TD3
    from tianshou.algorithm.modelfree.ddpg import ContinuousDeterministicPolicy
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.exploration import GaussianNoise
    from tianshou.utils.net.common import Net
    from tianshou.utils.net.continuous import ContinuousActorDeterministic, ContinuousCritic

    observation_shape = environment.observation_space.shape
    action_shape = environment.action_space.shape

    def critic() -> Any:
        return ContinuousCritic(
            preprocess_net=Net(
                state_shape=observation_shape,
                action_shape=action_shape,
                hidden_sizes=settings.hidden,
                concat=True,
            )
        )

    actor = ContinuousActorDeterministic(
        preprocess_net=Net(state_shape=observation_shape, hidden_sizes=settings.hidden),
        action_shape=action_shape,
        max_action=1.0,
    )
    optimizer = AdamOptimizerFactory(lr=settings.learning_rate)
    return TD3(
        policy=ContinuousDeterministicPolicy(
            actor=actor,
            exploration_noise=GaussianNoise(sigma=settings.action_noise),
            action_space=environment.action_space,
        ),
        policy_optim=optimizer,
        critic=critic(),
        critic_optim=optimizer,
        critic2=critic(),
        critic2_optim=optimizer,
        tau=settings.tau,
        gamma=settings.gamma,
        policy_noise=settings.target_policy_noise,
        update_actor_freq=settings.policy_delay,
        noise_clip=settings.target_noise_clip,
    )


def train(settings: peer_run.Settings, stopwatch: peer_run.Stopwatch) -> peer_run.Policy:
    import gymnasium
    import numpy as np
    import torch
    from tianshou.data import Collector, ReplayBuffer
    from tianshou.trainer import OffPolicyTrainerParams

    torch.set_num_threads(1)
    torch.manual_seed(settings.seed)
    np.random.seed(settings.seed)
    environment = gymnasium.make(settings.environment)
    environment.action_space.seed(settings.seed)
    algorithm = make_algorithm(settings, environment)
    collector = Collector(
        algorithm, environment, ReplayBuffer(settings.buffer_size), exploration_noise=True
    )
    collector.reset(gym_reset_kwargs={"seed": settings.seed})
    with stopwatch:
        collector.collect(n_step=settings.learning_starts, random=True)
        algorithm.run_training(
            OffPolicyTrainerParams(
                max_epochs=1,
                epoch_num_steps=settings.steps - settings.learning_starts,
                training_collector=collector,
                collection_step_num_env_steps=1,
                batch_size=settings.batch_size,
                update_step_num_gradient_steps_per_sample=1.0,
                verbose=False,
                show_progress=False,
            )
        )

    def policy(observations: Any) -> Any:
        with torch.no_grad():
            actions = algorithm.policy.actor(observations)[0]
        return settings.maximum_action * actions.numpy()

    return policy


if __name__ == "__main__":
    peer_run.run("tianshou", train)
