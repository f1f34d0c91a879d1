"""Draws the gait of a run's policy in MuJoCo, eight frames side by side: the picture in the README.

.venv/bin/python docs/images/draw_gait.py RUN docs/images/gait.webp
"""

from __future__ import annotations

import sys
from pathlib import Path

from rltools_host.policies.image import read_run_policy
from rltools_host.report.picture import frames_of, rendered
from rltools_host.report.run_data import evaluate_here
from rltools_host.runs.folder import RunFolder


def main() -> None:
    folder, destination = RunFolder.open(sys.argv[1]), Path(sys.argv[2])
    image = read_run_policy(folder)
    _, episode = evaluate_here(image, folder)
    if episode is None:
        sys.exit(f"Gymnasium has no environment {image.environment}")
    frames = frames_of(episode, image.step_interval_us * 1e-6)
    destination.write_bytes(rendered(image.environment, episode, frames)[1])
    print(f"seed {episode.seed}, return {episode.episode_return:.1f}")


if __name__ == "__main__":
    main()
