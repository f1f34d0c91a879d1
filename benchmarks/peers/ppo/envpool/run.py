"""EnvPool alone: actions as a policy draws them that has learned nothing, and learns nothing."""

import ppo_run


def sample(settings: ppo_run.Settings) -> None:
    count, length = settings.environments, settings.n_steps
    environments = ppo_run.make_environments(count, settings.threads, settings.seed)
    space = environments.action_space
    turns = ppo_run.TrainingTurns(count)
    ppo_run.introduce(turns, "envpool", environments, {}, f"{count} environments")
    actions = ppo_run.actions_of_a_new_policy((length, count, *space.shape))
    environments.reset()
    while True:
        turns.begin_iteration()
        for action in actions:
            _, reward, terminated, truncated, _ = environments.step(action)
            turns.add_step(reward, terminated | truncated)


if __name__ == "__main__":
    sample(ppo_run.settings())
