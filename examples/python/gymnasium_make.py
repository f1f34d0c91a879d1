"""A compiled environment by Gymnasium's own functions, with random actions."""

import gymnasium

import rlt

env = gymnasium.make("rlt/Pendulum-v1")  # `import rlt` has given Gymnasium the name
observation, _ = env.reset(seed=0)
steps, done = 0, False
while not done:
    observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
    steps, done = steps + 1, terminated or truncated
print(f"{steps} steps with {env.action_space}; there are {', '.join(rlt.list_environments())}")
