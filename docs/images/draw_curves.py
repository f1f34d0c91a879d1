"""Draws the learning curves of the algorithms' pages, each over ten seeds: mean and deviation.

.venv/bin/python docs/images/draw_curves.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import rlt
from rltools_host.report.group_page import write_group_report
from rltools_host.runs.group import GroupFolder

FOLDER = Path(__file__).resolve().parent
EXPERIMENTS = {
    "td3": "pendulum-td3",
    "sac": "pendulum-sac",
    "ppo": "pendulum-ppo",
    "dqn": "cartpole-dqn",
}
SEEDS = range(10)
mpl.rcParams["svg.hashsalt"] = "rlt"  # the same file each time


def draw(algorithm: str, experiment: str, folder: Path) -> None:
    group = rlt.train(experiment, board="host", seeds=SEEDS, out=folder / algorithm, quiet=True)
    _, curves = write_group_report(GroupFolder.open(str(group.path)))
    curve = np.genfromtxt(curves, delimiter=",", names=True)
    figure, axes = plt.subplots(figsize=(7, 3))
    for seed in SEEDS:
        axes.plot(curve["step"], curve[f"seed_{seed}"], color="0.75", linewidth=0.7)
    mean, deviation = curve["mean"], curve["deviation"]
    axes.plot(curve["step"], mean, color="tab:blue")
    axes.fill_between(curve["step"], mean - deviation, mean + deviation, alpha=0.2)
    axes.set(xlabel="steps", ylabel="return", title=f"{experiment}, {len(SEEDS)} seeds")
    figure.tight_layout()
    figure.savefig(FOLDER / f"curves_{algorithm}.svg", metadata={"Date": None})


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for algorithm, experiment in EXPERIMENTS.items():
            draw(algorithm, experiment, Path(folder))


if __name__ == "__main__":
    main()
