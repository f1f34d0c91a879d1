"""Stable-Baselines3's SAC."""

import pendulum

if __name__ == "__main__":
    pendulum.run("SAC")
