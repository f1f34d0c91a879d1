"""The moving picture of an episode: an environment's shapes (build/picture.py) as an SVG that moves
by itself, without a script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rltools_host.build.description import Shape
from rltools_host.build.picture import Drawn, picture_of
from rltools_host.documents import Unfit
from rltools_host.policies.episodes import Episode
from rltools_host.policies.image import PolicyImage
from rltools_host.report.markup import Values, text

WIDTH = 230.0  # CSS pixels
MOST_FRAMES, SHADOWS = 300, 24
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
    """None where an environment has no shapes; a note where they are not of this policy."""
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
    chosen = frames_of(len(values), MOST_FRAMES)
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


def frames_of(steps: int, most: int) -> list[int]:
    """So many of the steps at most, evenly, with the first and the last."""
    return sorted({round(step) for step in np.linspace(0, steps - 1, min(steps, most)).tolist()})


class Canvas:
    """Writes shapes as elements of SVG, in pixels."""

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
        """Each attribute of the element at each frame."""
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
    """Pixels; what is no number, or far away, is far away."""
    known = np.clip(np.nan_to_num(values, nan=FARTHEST), -FARTHEST, FARTHEST)
    return [f"{value:.1f}".removesuffix(".0") for value in known.ravel().tolist()]
