"""rl_games' PPO with its own adapter of EnvPool.

`published` is the file configs/mujoco/ant_envpool.yaml that comes with the package; the shared
setting is that file with the networks, rewards and normalization of the experiment.
"""

from pathlib import Path
from typing import Any

import ppo_run


def configuration(settings: ppo_run.Settings) -> dict[str, Any]:
    import rl_games
    import yaml

    folder = Path(rl_games.__file__).parent / "configs" / "mujoco"
    whole: dict[str, Any] = yaml.safe_load((folder / "ant_envpool.yaml").read_text())
    parameters = whole["params"]
    parameters["seed"] = settings.seed
    parameters["torch_threads"] = settings.threads
    config = parameters["config"]
    config.update(
        env_name="counted",
        device="cpu",
        device_name="cpu",
        print_stats=False,
        save_frequency=0,
        save_best_after=2**31,
        max_epochs=-1,
        mixed_precision=False,  # it is CUDA's
    )
    config["env_config"] = {
        "env_name": ppo_run.TASK,
        "env_type": "gymnasium",
        "seed": settings.seed,
        "num_threads": settings.threads,
    }
    if not settings.published:
        network = parameters["network"]
        network["separate"] = True
        network["mlp"].update(units=list(settings.hidden), activation="relu")
        network["space"]["continuous"]["sigma_init"]["val"] = settings.log_std_init
        config.update(
            normalize_value=False,
            clip_value=False,
            critic_coef=2 * settings.vf_coef,  # it halves it
            reward_shaper={"scale_value": settings.reward_scale},
            learning_rate=settings.learning_rate,
            gamma=settings.gamma,
            tau=settings.gae_lambda,
            e_clip=settings.clip_range,
            grad_norm=settings.max_grad_norm,
            kl_threshold=settings.target_kl,
            num_actors=settings.environments,
            horizon_length=settings.n_steps,
            minibatch_size=settings.batch_size,
            mini_epochs=settings.n_epochs,
        )
    return whole


def train(settings: ppo_run.Settings) -> None:
    from rl_games.common import env_configurations, vecenv
    from rl_games.common.algo_observer import AlgoObserver
    from rl_games.envs.envpool import Envpool
    from rl_games.torch_runner import Runner

    whole = configuration(settings)
    config = whole["params"]["config"]
    turns = ppo_run.TrainingTurns(config["num_actors"])

    class Counted(Envpool):
        def step(self, action: Any) -> Any:
            result = super().step(action)
            turns.add_step(result[1], result[2])
            return result

    class AtIterations(AlgoObserver):
        def after_init(self, algo: Any) -> None:
            environments = algo.vec_env.env
            threads = {"PyTorch": ppo_run.torch_threads()}
            units = "-".join(map(str, whole["params"]["network"]["mlp"]["units"]))
            settings_text = (
                f"{config['num_actors']} x {config['horizon_length']}, "
                f"{config['minibatch_size']}, {config['mini_epochs']} epochs, {units}"
            )
            ppo_run.introduce(turns, "rl-games", environments, threads, settings_text)
            turns.begin_iteration()

        def after_print_stats(self, *_: Any) -> None:
            turns.begin_iteration()

    vecenv.register("COUNTED", lambda _, count, **options: Counted("", count, **options))
    env_configurations.register("counted", {"env_creator": None, "vecenv_type": "COUNTED"})
    runner = Runner(AtIterations())
    runner.load(whole)
    runner.run({"train": True, "play": False})


if __name__ == "__main__":
    train(ppo_run.settings())
