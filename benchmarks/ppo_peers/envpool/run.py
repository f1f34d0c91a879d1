"""EnvPool alone: random actions, nothing learnt."""

import ppo_run


def sample(settings: ppo_run.Settings) -> None:
    import numpy as np

    count, length = settings.environments, settings.rollout_steps
    environments = ppo_run.make_environments(count, settings.threads, settings.seed)
    space = environments.action_space
    turns = ppo_run.TrainingTurns(count)
    ppo_run.introduce(turns, "envpool", environments, {}, f"{count} environments, random actions")
    generator = np.random.default_rng(settings.seed)
    actions = generator.uniform(space.low, space.high, (length, count, *space.shape))
    environments.reset()
    while True:
        turns.begin_iteration()
        for action in actions:
            _, reward, terminated, truncated, _ = environments.step(action)
            turns.add_step(reward, terminated | truncated)


if __name__ == "__main__":
    sample(ppo_run.settings())
