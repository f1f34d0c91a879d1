"""Stable-Baselines3's PPO on EnvPool's environments.

EnvPool begins an episode again in the step after its end; Stable-Baselines3 wants the first
observation at once, and the last one beside it, so that those environments are reset here, as in
EnvPool's own example. `published` is the entry of Ant in RL Baselines3 Zoo: the library's defaults
with normalized observations and rewards, one environment.
"""

from typing import Any

import ppo_run


def vector_environment(environments: Any, count: int, turns: ppo_run.TrainingTurns) -> Any:
    import numpy as np
    from gymnasium import spaces
    from stable_baselines3.common.vec_env import VecEnv

    class Adapter(VecEnv):
        def __init__(self) -> None:
            space = environments.action_space
            actions = spaces.Box(-1.0, 1.0, space.shape, np.float32)
            shape = environments.observation_space.shape
            observations = spaces.Box(-np.inf, np.inf, shape, np.float64)
            super().__init__(count, observations, actions)

        def reset(self) -> Any:
            return environments.reset()[0]

        def step_async(self, actions: Any) -> None:
            self.actions = actions.astype(np.float64)

        def step_wait(self) -> Any:
            observation, reward, terminated, truncated, _ = environments.step(self.actions)
            ended = terminated | truncated
            turns.add_step(reward, ended)
            infos: list[dict[str, Any]] = [{} for _ in range(count)]
            where = np.flatnonzero(ended)
            if len(where):
                observation = observation.copy()
                for index in where:
                    infos[index]["terminal_observation"] = observation[index].copy()
                    infos[index]["TimeLimit.truncated"] = bool(truncated[index])
                observation[where] = environments.reset(where.astype(np.int32))[0]
            return observation, reward, ended, infos

        def close(self) -> None:
            pass

        def get_attr(self, attr_name: str, *_: Any, **__: Any) -> Any:
            return [getattr(self, attr_name, None)] * count

        def set_attr(self, *_: Any, **__: Any) -> None:
            raise NotImplementedError

        def env_method(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        def env_is_wrapped(self, *_: Any, **__: Any) -> list[bool]:
            return [False] * count

    return Adapter()


def train(settings: ppo_run.Settings) -> None:
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import VecNormalize

    ppo_run.hold_torch_to(settings.threads)
    count = 1 if settings.published else settings.environments
    environments = ppo_run.make_environments(count, min(settings.threads, count), settings.seed)
    turns = ppo_run.TrainingTurns(count)
    adapter = vector_environment(environments, count, turns)

    class AtIterations(BaseCallback):
        def _on_step(self) -> bool:
            return True

        def _on_rollout_start(self) -> None:
            turns.begin_iteration()

    options: dict[str, Any] = {}
    settings_text = "1 x 2048, 64, 10 epochs, 64-64"
    if settings.published:
        wrapped = VecNormalize(adapter)
    else:
        wrapped = VecNormalize(adapter, norm_reward=False)
        wrapped = scaled_rewards(wrapped, settings.reward_scale)
        layers = list(settings.hidden)
        options = {
            "learning_rate": settings.learning_rate,
            "n_steps": settings.n_steps,
            "batch_size": settings.batch_size,
            "n_epochs": settings.n_epochs,
            "gamma": settings.gamma,
            "gae_lambda": settings.gae_lambda,
            "clip_range": settings.clip_range,
            "vf_coef": settings.vf_coef,
            "max_grad_norm": settings.max_grad_norm,
            "policy_kwargs": {
                "net_arch": {"pi": layers, "vf": layers},
                "activation_fn": torch.nn.ReLU,
                "log_std_init": settings.log_std_init,
            },
        }
        settings_text = settings.text()
    model = PPO("MlpPolicy", wrapped, seed=settings.seed, device="cpu", **options)
    threads = {"PyTorch": ppo_run.torch_threads()}
    ppo_run.introduce(turns, "stable-baselines3", environments, threads, settings_text)
    model.learn(2**62, callback=AtIterations())


def scaled_rewards(environments: Any, scale: float) -> Any:
    from stable_baselines3.common.vec_env import VecEnvWrapper

    class Scaled(VecEnvWrapper):
        def reset(self) -> Any:
            return self.venv.reset()

        def step_wait(self) -> Any:
            observation, reward, ended, infos = self.venv.step_wait()
            return observation, scale * reward, ended, infos

    return Scaled(environments)


if __name__ == "__main__":
    train(ppo_run.settings())
