"""Stable-Baselines3; it scales actions to [-1, 1] itself."""

import peer_run  # first: the stopwatch of the imports below


def run(name: str) -> None:
    """Train with the algorithm of this name, and print the results."""

    def train(settings: peer_run.Settings, stopwatch: peer_run.Stopwatch) -> peer_run.Policy:
        import gymnasium
        import stable_baselines3
        import torch

        torch.set_num_threads(1)
        environment = gymnasium.make(settings.environment)
        options = settings.of_stable_baselines(name)
        algorithm = getattr(stable_baselines3, name)
        model = algorithm("MlpPolicy", environment, device="cpu", **options)
        with stopwatch:
            model.learn(settings.steps)
        return lambda observations: model.predict(observations, deterministic=True)[0]

    peer_run.run("stable-baselines3", train)
