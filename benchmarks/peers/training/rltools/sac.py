"""PyPI rltools' SAC."""

import peer_run  # first: the stopwatch of the imports below
from pendulum import trained


def train(settings: peer_run.Settings, stopwatch: peer_run.Stopwatch) -> peer_run.Policy:
    from rltools import SAC

    own = {"ALPHA": settings.alpha, "TARGET_ENTROPY": settings.target_entropy}
    return trained(SAC, settings, stopwatch, **own)


if __name__ == "__main__":
    peer_run.run("rltools", train)
