"""skrl's TD3 with its sequential trainer, without its log, checkpoints and progress bar."""

from typing import Any

import peer_run  # first: the stopwatch of the imports below


def make_models(settings: peer_run.Settings, environment: Any) -> dict[str, Any]:
    import torch
    from skrl.models.torch import DeterministicMixin, Model
    from torch import nn

    class Network(DeterministicMixin, Model):
        def __init__(self, sees: list[str], last: nn.Module) -> None:
            Model.__init__(
                self,
                observation_space=environment.observation_space,
                action_space=environment.action_space,
                device="cpu",
            )
            DeterministicMixin.__init__(self)
            self.sees = sees
            widths = {"observations": self.num_observations, "taken_actions": self.num_actions}
            first, second = settings.hidden
            self.network = nn.Sequential(
                nn.Linear(sum(widths[name] for name in sees), first),
                nn.ReLU(),
                nn.Linear(first, second),
                nn.ReLU(),
                nn.Linear(second, 1),
                last,
            )

        def compute(self, inputs: dict[str, Any], role: str = "") -> Any:  # noqa: ARG002
            return self.network(torch.cat([inputs[name] for name in self.sees], 1)), {}

    models: dict[str, Any] = {}
    for name in ("policy", "target_policy"):
        models[name] = Network(["observations"], nn.Tanh())
    for name in ("critic_1", "critic_2", "target_critic_1", "target_critic_2"):
        models[name] = Network(["observations", "taken_actions"], nn.Identity())
    return models


def train(settings: peer_run.Settings, stopwatch: peer_run.Stopwatch) -> peer_run.Policy:
    import gymnasium
    import torch
    from gymnasium.wrappers import RescaleAction
    from skrl.agents.torch.td3 import TD3, TD3_CFG
    from skrl.envs.wrappers.torch import wrap_env
    from skrl.memories.torch import RandomMemory
    from skrl.resources.noises.torch import GaussianNoise
    from skrl.trainers.torch import SequentialTrainer
    from skrl.utils import set_seed

    torch.set_num_threads(1)
    set_seed(settings.seed)
    environment = wrap_env(RescaleAction(gymnasium.make(settings.environment), -1.0, 1.0))
    models = make_models(settings, environment)
    configuration = TD3_CFG(
        gradient_steps=1,
        batch_size=settings.batch_size,
        discount_factor=settings.gamma,
        polyak=settings.tau,
        learning_rate=settings.learning_rate,
        random_timesteps=settings.learning_starts,
        learning_starts=settings.learning_starts,
        exploration_noise=GaussianNoise,
        exploration_noise_kwargs={"mean": 0.0, "std": settings.action_noise, "device": "cpu"},
        policy_delay=settings.policy_delay,
        smooth_regularization_noise=GaussianNoise,
        smooth_regularization_noise_kwargs={
            "mean": 0.0,
            "std": settings.target_policy_noise,
            "device": "cpu",
        },
        smooth_regularization_clip=settings.target_noise_clip,
    )
    configuration.experiment.write_interval = 0
    configuration.experiment.checkpoint_interval = 0
    agent = TD3(
        models=models,
        memory=RandomMemory(memory_size=settings.buffer_size, num_envs=1, device="cpu"),
        cfg=configuration,
        observation_space=environment.observation_space,
        action_space=environment.action_space,
        device="cpu",
    )
    trainer = SequentialTrainer(
        env=environment,
        agents=agent,
        cfg={"timesteps": settings.steps, "headless": True, "disable_progressbar": True},
    )
    with stopwatch:
        trainer.train()

    def policy(observations: Any) -> Any:
        with torch.no_grad():
            actions = models["policy"].network(torch.as_tensor(observations))
        return settings.maximum_action * actions.numpy()

    return policy


if __name__ == "__main__":
    peer_run.run("skrl", train)
