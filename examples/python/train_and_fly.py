"""Trains a policy on this machine, and lets it act in Gymnasium's own Pendulum-v1."""

import sys

import rlt

folder = sys.argv[1] if len(sys.argv) > 1 else None  # None: a new one under runs/
try:
    run = rlt.train("pendulum-td3", seed=0, out=folder, settings={"gamma": 0.98})
except rlt.RltError as error:  # also Ctrl-C while it trains: the sentence says how to go on
    sys.exit(f"error: {error}")
except KeyboardInterrupt:  # before there was anything to save
    sys.exit("interrupted before training began: nothing was saved")
returns = rlt.evaluate(run.policy, "Pendulum-v1", episodes=10)
print(f"{run.policy}: mean return {returns.mean():.1f} of {returns.size} episodes")
