"""A policy in 64 environments at once, all stepped in one call: python own_loop.py RUN."""

import sys

import rlt

policy = rlt.Policy.load(sys.argv[1] if len(sys.argv) > 1 else "latest")
env = rlt.make(policy.environment, num_envs=64, copy=False)
observations, _ = env.reset(seed=0)
mean_return = 0.0
for _ in range(200):
    observations, rewards, terminations, truncations, infos = env.step(policy(observations))
    mean_return += float(rewards.mean())
print(f"mean return {mean_return:.1f} of {env.num_envs} episodes")
