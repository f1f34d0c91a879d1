"""Draws frames of an episode offscreen with MuJoCo: a program, as drawing may end its process.

    python -m rltools_host.report.mujoco_frames ENVIRONMENT SEED FOLDER

FOLDER has episode.npz: the actions and rewards of an episode of Gymnasium from the reset with SEED,
and before which steps the frames are. The program adds clip.webp and strip.webp. MUJOCO_GL says
with which library MuJoCo draws.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rltools_host.gymnasium_tasks.imports import silence_mujoco

INPUT, CLIP, STRIP = "episode.npz", "clip.webp", "strip.webp"
NO_OPENGL = 3  # exit code where there is nothing to draw with
ANOTHER_EPISODE = 4  # exit code where the actions earn other rewards than they did

WIDTH, HEIGHT = 480, 360
CAMERA = "track"  # which Gymnasium's models have; it follows the body
SKY = 60  # pixels that the strip leaves out
CELL = (240, 200)
GAP = 6
QUALITY = 72

Frame = NDArray[np.uint8]


def main(environment_name: str, seed: str, folder: Path) -> int:
    try:
        environment = make_environment(environment_name)
        renderer = make_renderer(environment.model)
    except Exception:  # AttributeError, RuntimeError ...: MuJoCo loads the library when imported
        return NO_OPENGL
    with np.load(folder / INPUT) as episode:
        actions, rewards, steps = episode["actions"], episode["rewards"], episode["steps"]
        in_strip, interval_s = episode["in_strip"], float(episode["interval_s"])
    wanted = set(steps.tolist())
    frames: list[Frame] = []
    environment.reset(seed=int(seed))
    for step, action in enumerate(actions):
        if step in wanted:
            frames.append(drawn(renderer, environment.data))
        if environment.step(action)[1] != rewards[step]:
            return ANOTHER_EPISODE
    write_clip(folder / CLIP, frames, interval_s)
    write_strip(folder / STRIP, [frames[index] for index in in_strip])
    return 0


def make_environment(name: str) -> Any:
    import gymnasium

    silence_mujoco()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Gymnasium has newer versions
        return gymnasium.make(name, disable_env_checker=True).unwrapped


def make_renderer(model: Any) -> Any:
    import mujoco

    renderer = mujoco.Renderer(model, HEIGHT, WIDTH)
    # They speckle a body that is far from where it began: the light stays there.
    renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = False
    return renderer


def drawn(renderer: Any, data: Any) -> Frame:
    renderer.update_scene(data, camera=CAMERA)
    frame: Frame = renderer.render()
    return frame


def write_clip(path: Path, frames: Sequence[Frame], interval_s: float) -> None:
    """An animation that begins again at its end, without controls."""
    from PIL import Image

    images = [Image.fromarray(frame) for frame in frames]
    images[0].save(
        path,
        save_all=True,
        append_images=images[1:],
        duration=round(interval_s * 1000),
        loop=0,
        quality=QUALITY,
        method=3,
    )


def write_strip(path: Path, frames: Sequence[Frame]) -> None:
    """The frames' middles side by side."""
    from PIL import Image

    width, height = CELL
    strip = Image.new("RGBA", (len(frames) * (width + GAP) - GAP, height))
    left = (WIDTH - HEIGHT) // 2
    for place, frame in enumerate(frames):
        middle = Image.fromarray(frame).crop((left, SKY, left + HEIGHT, HEIGHT))
        strip.paste(middle.resize(CELL), (place * (width + GAP), 0))
    strip.save(path, quality=QUALITY, method=6)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
