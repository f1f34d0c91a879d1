"""PyPI rltools' TD3."""

import peer_run  # first: the stopwatch of the imports below
from pendulum import trained


def train(settings: peer_run.Settings, stopwatch: peer_run.Stopwatch) -> peer_run.Policy:
    from rltools import TD3

    return trained(
        TD3,
        settings,
        stopwatch,
        ACTOR_TRAINING_INTERVAL=settings.policy_delay,
        ACTOR_TARGET_UPDATE_INTERVAL=settings.policy_delay,
        CRITIC_TARGET_UPDATE_INTERVAL=settings.policy_delay,
        TARGET_NEXT_ACTION_NOISE_STD=settings.target_policy_noise,
        TARGET_NEXT_ACTION_NOISE_CLIP=settings.target_noise_clip,
        EXPLORATION_NOISE=settings.action_noise,
    )


if __name__ == "__main__":
    peer_run.run("rltools", train)
