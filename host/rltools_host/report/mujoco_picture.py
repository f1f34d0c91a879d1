"""The movement of a body in MuJoCo: a clip that repeats, and frames side by side."""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rltools_host.child_process import end_child, ending, start_child
from rltools_host.policies.episodes import Episode, name_in_gymnasium
from rltools_host.policies.image import PolicyImage
from rltools_host.report import mujoco_frames
from rltools_host.report.markup import number, text
from rltools_host.report.picture import Picture

LIBRARIES = {"egl": "EGL", "osmesa": "OSMesa"}  # of MUJOCO_GL: with a graphics card or without
HOW_TO_GET = "sudo apt-get install --no-install-recommends libegl1 libgl1-mesa-dri"
LONGEST_S = 60.0
FRAME_S = 0.05  # between two frames of the clip, about
STRIP_FRAMES = 8
STRIP_EVERY = 2  # of the clip's frames
START_S = (1.0, 3.0)  # the clip begins in between: the body runs, and has not yet come to rest
CLIP_S = (2.0, 3.0)  # shortest, longest
STYLE = """\
.movement .clip { display: grid; gap: 20px; align-items: end; }
.movement .clip { grid-template-columns: minmax(0, 480px) 1fr; }
.movement img { display: block; width: 100%; height: auto; border-radius: 8px; }
.movement .strip { margin: 14px 0 22px; border-radius: 0; }
@media (max-width: 720px) { .movement .clip { grid-template-columns: 1fr; gap: 8px; } }
@media (prefers-reduced-motion: reduce) { .movement .clip img { display: none; } }
@media print { .movement .clip img { display: none; } }
"""


@dataclass(frozen=True)
class Frames:
    """Which frames are drawn."""

    steps: tuple[int, ...]  # of the episode, before which the clip's frames are
    in_strip: tuple[int, ...]  # of the clip's frames
    interval_s: float  # of the clip's frames

    @property
    def strip_interval_s(self) -> float:
        return self.interval_s * (self.in_strip[1] - self.in_strip[0] if self.in_strip[1:] else 0)


class NotDrawn(Exception):
    """Why, for each library that was tried."""


def is_drawn_by_mujoco(environment: str) -> bool:
    """Whether it is one of Gymnasium's tasks of MuJoCo."""
    import gymnasium

    specification = gymnasium.registry.get(name_in_gymnasium(environment))
    entry = str(specification.entry_point) if specification else ""
    return entry.startswith("gymnasium.envs.mujoco")


def draw(image: PolicyImage, episode: Episode) -> Picture:
    frames = frames_of(episode, image.step_interval_us * 1e-6)
    try:
        clip, strip = rendered(name_in_gymnasium(image.environment), episode, frames)
    except NotDrawn as reason:
        note = (
            f'<p class="caption">The movement is not drawn here ({text(reason)}): on Debian and '
            f"Ubuntu, <code>{HOW_TO_GET}</code> installs what MuJoCo draws with, with a graphics "
            "card or without.</p>"
        )
        return Picture(figure=note, style="", wide=True)
    return Picture(figure=figure(clip, strip, frames, image), style=STYLE, wide=True)


def frames_of(episode: Episode, step_s: float) -> Frames:
    """The clip is the piece whose end is most like its beginning, once the body runs."""
    steps = len(episode.rewards)
    every = max(1, round(FRAME_S / step_s))
    earliest, latest = (round(seconds / step_s) for seconds in START_S)
    shortest, longest = (round(seconds / step_s) // every * every for seconds in CLIP_S)
    first, length = 0, steps
    if steps > latest + longest:
        seen = episode.observations[earliest : latest + longest]
        spread = seen.std(axis=0)
        scaled = seen / np.where(spread > 0, spread, 1)
        starts = latest - earliest
        differences = {
            count: np.square(scaled[count : count + starts] - scaled[:starts]).sum(axis=1)
            for count in range(shortest, longest + 1, every)
        }
        length = min(differences, key=lambda count: float(differences[count].min()))
        first = earliest + int(differences[length].argmin())
    clip = tuple(range(first, first + length, every))
    strip_every = min(STRIP_EVERY, max(1, len(clip) // STRIP_FRAMES))
    return Frames(
        steps=clip,
        in_strip=tuple(range(len(clip)))[::strip_every][:STRIP_FRAMES],
        interval_s=every * step_s,
    )


def rendered(environment: str, episode: Episode, frames: Frames) -> tuple[bytes, bytes]:
    """Clip and strip as WebP; NotDrawn where no library of this machine draws them."""
    reasons = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(
            folder / mujoco_frames.INPUT,
            actions=episode.actions,
            rewards=episode.rewards,
            steps=frames.steps,
            in_strip=frames.in_strip,
            interval_s=frames.interval_s,
        )
        arguments = [environment, str(episode.seed), name]
        for library, title in LIBRARIES.items():
            why = run_renderer([*renderer_command(), *arguments], library)
            if why is None:
                return (
                    (folder / mujoco_frames.CLIP).read_bytes(),
                    (folder / mujoco_frames.STRIP).read_bytes(),
                )
            reasons.append(f"{title}: {why}")
    raise NotDrawn("; ".join(reasons))


def renderer_command() -> list[str]:
    return [sys.executable, "-I", "-m", mujoco_frames.__name__]


def run_renderer(command: Sequence[str], library: str) -> str | None:
    """Nothing where it has drawn, else why not: it may crash in the driver, or wait in it."""
    child = start_child(command, environment={"MUJOCO_GL": library, "PYOPENGL_PLATFORM": library})
    try:
        code = child.wait(LONGEST_S)
    except subprocess.TimeoutExpired:
        return f"longer than {number(LONGEST_S)} s"
    finally:
        end_child(child, 0)
    if code == mujoco_frames.NO_OPENGL:
        return "not found"
    if code == mujoco_frames.ANOTHER_EPISODE:
        return "the episode was another one"
    return ending(child) if code else None


def figure(clip: bytes, strip: bytes, frames: Frames, image: PolicyImage) -> str:
    step_s = image.step_interval_us * 1e-6
    begin_s = frames.steps[0] * step_s
    seconds = len(frames.steps) * frames.interval_s
    width = 100 * len(frames.in_strip) / STRIP_FRAMES
    name = text(image.environment)
    return f"""<figure class="movement"><div class="clip">
<img src="{data_uri(clip)}" alt="{name} moves as in the episode">
<figcaption>{number(seconds, 1)}\N{NO-BREAK SPACE}s of this episode from
{number(begin_s, 1)}\N{NO-BREAK SPACE}s on, in real time; the camera follows. Below, frames from
there on, {number(frames.strip_interval_s, 2)}\N{NO-BREAK SPACE}s apart.</figcaption></div>
<img class="strip" style="width:{width:g}%" src="{data_uri(strip)}"
 alt="{name} in {len(frames.in_strip)} frames">
</figure>"""


def data_uri(webp: bytes) -> str:
    return f"data:image/webp;base64,{base64.b64encode(webp).decode()}"
