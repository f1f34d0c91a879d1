"""Stable-Baselines3's TD3."""

import pendulum

if __name__ == "__main__":
    pendulum.run("TD3")
