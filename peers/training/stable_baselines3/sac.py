"""Stable-Baselines3's SAC."""

import peer_run  # first: the stopwatch of the imports below
from pendulum import trained


def train(settings: peer_run.Settings, stopwatch: peer_run.Stopwatch) -> peer_run.Policy:
    from stable_baselines3 import SAC

    own = {"ent_coef": f"auto_{settings.alpha:g}", "target_entropy": settings.target_entropy}
    return trained(SAC, settings, stopwatch, **own)


if __name__ == "__main__":
    peer_run.run("stable-baselines3", train)
