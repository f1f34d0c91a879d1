"""The moving picture of an episode: an environment's shapes (build/picture.py) as an SVG that moves
by itself, without a script.

The movement of a body in MuJoCo is a clip that repeats, and frames side by side. This module is
also the program that draws them, as drawing may end its process.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rltools_host.build.description import Shape
from rltools_host.build.picture import Drawn, picture_of
from rltools_host.documents import Unfit
from rltools_host.environments.imports import silence_mujoco
from rltools_host.interruption import end_child, ending
from rltools_host.policies.episodes import Episode, name_in_gymnasium
from rltools_host.policies.image import PolicyImage
from rltools_host.report.markup import Values, number, text
from rltools_host.system import start_child

WIDTH = 230.0  # CSS pixels
MAX_FRAMES, SHADOWS = 300, 24
FARTHEST = 1e4  # pixels; what is farther away is drawn there
STYLE = """\
.picture svg { max-width: 320px; margin: 0 auto; overflow: hidden; }
.picture .body { color: var(--first); } .picture .part { color: var(--third); }
.picture .push { color: var(--second); } .picture .ground { color: var(--line); }
.picture line, .picture polyline { stroke: currentcolor; fill: none; stroke-linecap: round; }
.picture polyline { stroke-width: 1.5; stroke-linejoin: round; }
.picture polygon, .picture circle { fill: currentcolor; }
.picture .push { opacity: 0.85; }
.picture .shadows { opacity: 0.09; }
.picture .still { display: none; }
@media (prefers-reduced-motion: reduce) {
  .picture .still { display: inline; } .picture .moves { display: none; }
}
@media print { .picture .still { display: inline; } .picture .moves { display: none; } }
"""


@dataclass(frozen=True)
class Picture:
    """An episode as a moving picture."""

    figure: str  # HTML
    style: str  # CSS
    wide: bool = False  # above the panels instead of beside them


def shown_picture(shapes: Sequence[Shape], image: PolicyImage, episode: Episode) -> Picture | None:
    """Return the moving picture; None where an environment has no shapes, a note where they do
    not fit this policy."""
    channels = (*image.observations, *image.actions)
    try:
        picture = picture_of(shapes, channels)
    except Unfit as reason:
        name = text(image.environment)
        note = f'<p class="caption">The picture of {name} is not drawn: {text(reason)}.</p>'
        return Picture(note, "", wide=True)
    if picture is None:
        return None
    values = np.concatenate([episode.observations, episode.actions], axis=1)
    chosen = frames_of(len(values), MAX_FRAMES)
    canvas = Canvas(picture.view, len(values) * episode.step_s)
    drawn = picture.drawn(channels, values[chosen])
    shadows = frames_of(len(chosen), SHADOWS)
    body = [shape for shape in drawn if shape.look == "body"]
    return Picture(
        f'<figure class="picture"><svg viewBox="0 0 {WIDTH:g} {canvas.height:g}" role="img" '
        f'aria-label="{text(image.environment)} during the episode">'
        f'<g class="shadows">{"".join(canvas.at(body, frame) for frame in shadows)}</g>'
        f'<g class="still">{canvas.at(drawn, len(chosen) - 1)}</g>'
        f'<g class="moves">{canvas.moving(drawn)}</g></svg>'
        "<figcaption>In real time; shadows show where it was.</figcaption></figure>",
        STYLE,
    )


def frames_of(steps: int, count: int) -> list[int]:
    """Return at most `count` of the steps, evenly chosen, with the first and the last."""
    return sorted({round(step) for step in np.linspace(0, steps - 1, min(steps, count)).tolist()})


class Canvas:
    """A writer of shapes as elements of SVG, in pixels."""

    def __init__(self, view: tuple[float, float, float, float], seconds: float) -> None:
        self._left, bottom, right, self._top = view
        self._scale = WIDTH / (right - self._left)
        self.height = round((self._top - bottom) * self._scale, 1)
        self._seconds = seconds

    def at(self, shapes: Sequence[Drawn], frame: int) -> str:
        return "".join(
            element(shape, {name: row[frame] for name, row in self._attributes(shape).items()})
            for shape in shapes
        )

    def moving(self, shapes: Sequence[Drawn]) -> str:
        return "".join(self._moving(shape) for shape in shapes)

    def _moving(self, shape: Drawn) -> str:
        rows = self._attributes(shape)
        changes = "".join(
            f'<animate attributeName="{name}" dur="{self._seconds:g}s" repeatCount="indefinite" '
            f'values="{";".join(row)}"/>'
            for name, row in rows.items()
            if len(set(row)) > 1
        )
        return element(shape, {name: row[0] for name, row in rows.items()}, changes)

    def _attributes(self, shape: Drawn) -> dict[str, list[str]]:
        """Return each attribute of the element at each frame."""
        rows = shape.numbers
        if shape.kind == "circle":
            return {
                "cx": texts(self._x(rows[0])),
                "cy": texts(self._y(rows[1])),
                "r": texts(np.abs(rows[2]) * self._scale),
            }
        if shape.kind == "rod":
            ends = [self._x(rows[0]), self._y(rows[1]), self._x(rows[2]), self._y(rows[3])]
            named = dict(zip(("x1", "y1", "x2", "y2"), map(texts, ends), strict=True))
            return {**named, "stroke-width": texts(np.abs(rows[4]) * self._scale)}
        points = [
            f"{x},{y}"
            for x, y in zip(texts(self._x(rows[0::2])), texts(self._y(rows[1::2])), strict=True)
        ]
        frames = rows.shape[1]
        return {"points": [" ".join(points[frame::frames]) for frame in range(frames)]}

    def _x(self, values: Values) -> Values:
        return (values - self._left) * self._scale

    def _y(self, values: Values) -> Values:
        return (self._top - values) * self._scale


ELEMENTS = {"line": "polyline", "area": "polygon", "rod": "line", "circle": "circle"}


def element(shape: Drawn, attributes: dict[str, str], content: str = "") -> str:
    name = ELEMENTS[shape.kind]
    written = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f'<{name} class="{shape.look}"{written}>{content}</{name}>'


def texts(values: Values) -> list[str]:
    """Format pixels; NaN and remote positions are clipped to the far limit."""
    known = np.clip(np.nan_to_num(values, nan=FARTHEST), -FARTHEST, FARTHEST)
    return [f"{value:.1f}".removesuffix(".0") for value in known.ravel().tolist()]


LIBRARIES = {"egl": "EGL", "osmesa": "OSMesa"}  # of MUJOCO_GL: with a graphics card or without
HOW_TO_GET = "sudo apt-get install --no-install-recommends libegl1 libgl1-mesa-dri"
RENDERER = (sys.executable, "-I", "-m", __name__)
LONGEST_S = 60.0
FRAME_S = 0.05  # between two frames of the clip, about
STRIP_FRAMES = 8
STRIP_EVERY = 2  # of the clip's frames
START_S = (1.0, 3.0)  # the clip begins in between: the body runs, and has not yet come to rest
CLIP_S = (2.0, 3.0)  # shortest, longest
CLIP_STYLE = """\
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
    """The frames that are drawn."""

    steps: tuple[int, ...]  # of the episode, before which the clip's frames are
    in_strip: tuple[int, ...]  # of the clip's frames
    interval_s: float  # of the clip's frames

    @property
    def strip_interval_s(self) -> float:
        return self.interval_s * (self.in_strip[1] - self.in_strip[0] if self.in_strip[1:] else 0)


class NotDrawn(Exception):
    """The reason for each library that failed to draw."""


def is_drawn_by_mujoco(environment: str) -> bool:
    """Return whether it is one of Gymnasium's tasks of MuJoCo."""
    import gymnasium

    specification = gymnasium.registry.get(name_in_gymnasium(environment))
    entry = str(specification.entry_point) if specification else ""
    return entry.startswith("gymnasium.envs.mujoco")


def draw(image: PolicyImage, episode: Episode) -> Picture:
    frames = clip_frames(episode, image.step_interval_us * 1e-6)
    try:
        clip, strip = rendered(name_in_gymnasium(image.environment), episode, frames)
    except NotDrawn as reason:
        note = (
            f'<p class="caption">The movement is not drawn here ({text(reason)}): on Debian and '
            f"Ubuntu, <code>{HOW_TO_GET}</code> installs what MuJoCo draws with, with a graphics "
            "card or without.</p>"
        )
        return Picture(figure=note, style="", wide=True)
    return Picture(figure=figure(clip, strip, frames, image), style=CLIP_STYLE, wide=True)


def clip_frames(episode: Episode, step_s: float) -> Frames:
    """Choose the part of the episode whose end is closest to its beginning, once the body runs."""
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
    """Return clip and strip as WebP; raise NotDrawn where no library of this machine draws them."""
    reasons = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(
            folder / INPUT,
            actions=episode.actions,
            rewards=episode.rewards,
            steps=frames.steps,
            in_strip=frames.in_strip,
            interval_s=frames.interval_s,
        )
        arguments = [environment, str(episode.seed), name]
        for library, title in LIBRARIES.items():
            why = run_renderer([*RENDERER, *arguments], library)
            if why is None:
                return (folder / CLIP).read_bytes(), (folder / STRIP).read_bytes()
            reasons.append(f"{title}: {why}")
    raise NotDrawn("; ".join(reasons))


def run_renderer(command: Sequence[str], library: str) -> str | None:
    """Draw in a process of its own, which may crash or hang in the driver; return None, or why
    it failed."""
    child = start_child(command, environment={"MUJOCO_GL": library, "PYOPENGL_PLATFORM": library})
    try:
        code = child.wait(LONGEST_S)
    except subprocess.TimeoutExpired:
        return f"longer than {number(LONGEST_S)} s"
    finally:
        end_child(child, 0)
    if code == NO_OPENGL:
        return "not found"
    if code == ANOTHER_EPISODE:
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


# -- the program -----------------------------------------------------------------------------------

INPUT, CLIP, STRIP = "episode.npz", "clip.webp", "strip.webp"
NO_OPENGL = 3  # exit code where there is nothing to draw with
ANOTHER_EPISODE = 4  # exit code where the actions earn other rewards than they did

CLIP_WIDTH, CLIP_HEIGHT = 480, 360
CAMERA = "track"  # which Gymnasium's models have; it follows the body
SKY = 60  # pixels that the strip leaves out
CELL = (240, 200)
GAP = 6
QUALITY = 72

Frame = NDArray[np.uint8]


def main(environment_name: str, seed: str, folder: Path) -> int:
    """Draw CLIP and STRIP from INPUT in the folder: an episode of Gymnasium from the reset with
    the seed, and the steps before which the frames are taken. MUJOCO_GL names MuJoCo's library."""
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
            renderer.update_scene(environment.data, camera=CAMERA)
            frames.append(renderer.render())
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

    renderer = mujoco.Renderer(model, CLIP_HEIGHT, CLIP_WIDTH)
    # They speckle a body that is far from where it began: the light stays there.
    renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = False
    return renderer


def write_clip(path: Path, frames: Sequence[Frame], interval_s: float) -> None:
    """Write an animation that repeats, without controls."""
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
    """Write the frames' middles side by side."""
    from PIL import Image

    width, height = CELL
    strip = Image.new("RGBA", (len(frames) * (width + GAP) - GAP, height))
    left = (CLIP_WIDTH - CLIP_HEIGHT) // 2
    for index, frame in enumerate(frames):
        middle = Image.fromarray(frame).crop((left, SKY, left + CLIP_HEIGHT, CLIP_HEIGHT))
        strip.paste(middle.resize(CELL), (index * (width + GAP), 0))
    strip.save(path, quality=QUALITY, method=6)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
