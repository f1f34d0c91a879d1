"""Trains with many seeds and evaluates each policy in gymnasium: the table of the README.

    .venv/bin/python -m benchmarks.learning_seeds             ten seeds of pendulum-td3 on the host
    .venv/bin/python -m benchmarks.learning_seeds --seeds 30 --board qemu-cortex-m7

Every seed is in the table, and all policies are tried on the same 100 episodes.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rltools_host.commands import train
from rltools_host.errors import RltError
from rltools_host.policies.evaluation import GYMNASIUM, evaluate_policy
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.training.plan import TrainingRequest

EPISODES = 100
FIRST_EPISODE_SEED = 0


@dataclass(frozen=True)
class SeedResult:
    """One seed: how long it trained, the state it ended in, and the returns of its policy."""

    seed: int
    train_s: float
    state_sha256: str
    return_mean: float
    return_std: float
    return_min: float


def learn(experiment: str, board: str, seed: int, steps: int | None, folder: Path) -> SeedResult:
    """Trains into `folder`, as `rlt train` does, and evaluates as `rlt evaluate --in gymnasium`."""
    with contextlib.redirect_stdout(io.StringIO()):  # its progress
        document = train.run(
            TrainingRequest(experiment, board, seed, steps, out=folder), tensorboard=False
        )
    image = read_run_policy(RunFolder.open(str(folder)))
    image.verify()
    evaluation = evaluate_policy(image, str(folder), EPISODES, FIRST_EPISODE_SEED, GYMNASIUM)
    return SeedResult(
        seed=seed,
        train_s=document["train_s"],
        state_sha256=document["state_sha256"],
        return_mean=evaluation.mean,
        return_std=evaluation.std,
        return_min=min(evaluation.returns),
    )


def learn_seeds(
    seeds: Sequence[int],
    experiment: str = "pendulum-td3",
    board: str = "host",
    steps: int | None = None,
) -> list[SeedResult]:
    results = []
    with tempfile.TemporaryDirectory() as directory:
        for seed in seeds:
            results.append(learn(experiment, board, seed, steps, Path(directory) / str(seed)))
            print(
                f"seed {seed}: {results[-1].return_mean:.1f} after {results[-1].train_s:.1f} s",
                file=sys.stderr,
                flush=True,
            )
    return results


def table(results: Sequence[SeedResult]) -> str:
    """Markdown, one row per seed and the median below."""
    lines = [
        f"| seed | mean return, {EPISODES} episodes | worst episode | training | state_sha256 |",
        "|---:|---:|---:|---:|:---|",
    ]
    for result in results:
        lines.append(
            f"| {result.seed} | {result.return_mean:.1f} ± {result.return_std:.1f} "
            f"| {result.return_min:.1f} | {result.train_s:.2f} s "
            f"| `{result.state_sha256[:16]}…` |"
        )
    median = statistics.median(result.return_mean for result in results)
    seconds = statistics.median(result.train_s for result in results)
    lines.append(f"| **median** | **{median:.1f}** | | {seconds:.2f} s | |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Trains with many seeds and prints a table.")
    parser.add_argument("--experiment", default="pendulum-td3")
    parser.add_argument("--board", default="host")
    parser.add_argument("--seeds", type=int, default=10, help="seeds 0 to this one, exclusive")
    parser.add_argument("--steps", type=int, help="steps of each run instead of the default")
    arguments = parser.parse_args()
    try:
        seeds = range(arguments.seeds)
        print(
            table(learn_seeds(seeds, arguments.experiment, arguments.board, arguments.steps)),
        )
    except RltError as error:
        print(f"learning_seeds: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
