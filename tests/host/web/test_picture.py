"""A picture as the page draws it, and as a report does: the same shapes at the same places."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.web import DRONE, PENDULUM
from programs import in_node
from rltools_host.build.description import Channel, Shape, channels, shapes
from rltools_host.build.experiments import describe
from rltools_host.build.picture import picture_of
from rltools_host.report.picture import FARTHEST, Canvas
from rltools_host.report.picture import WIDTH as REPORT_WIDTH
from rltools_host.tree import TREE
from rltools_host.web.site import picture_document

HERE = TREE.root / "tests" / "host" / "web"
SCRIPT = TREE.root / "host" / "rltools_host" / "web" / "page" / "picture.js"
ROUNDED = 0.13  # pixels of the page: both round to a tenth, the report's are larger
CHANNELS = tuple(Channel(name, "1", -1.0, 1.0) for name in ("a", "b"))
# Each operation and function, names that shapes give, each kind and look.
EVERYTHING = (
    Shape("view", "", "-2, -1, 2, 1.5"),
    Shape("let", "s", "sin(a) + cos(b) * 0.5 - -a / 4"),
    Shape("let", "t", "atan2(s, b) + sqrt(abs(a)) + min(a, b) - max(s, +b)"),
    Shape("line", "ground", "-1, s, t, 0.5, a, b"),
    Shape("area", "part", "0, 0, a, s, b, t"),
    Shape("rod", "body", "a, b, s, t, 0.1 + a * a"),
    Shape("circle", "push", "a / b, b / a, s / 10"),
)
VALUES = ((0.3, -0.7), (-1.0, 1.0), (0.0, 0.0), (0.0, 2.0), (1e9, -1e9), (math.nan, 1.0))


def numbers(attributes: dict[str, str]) -> list[float]:
    """Of an element, in the attributes' order of the alphabet."""
    return [
        float(text)
        for name, value in sorted(attributes.items())
        if name not in ("class", "kind")
        for text in re.split("[ ,]", value)
    ]


def compare(
    picture_shapes: Sequence[Shape], known: Sequence[Channel], values: Any, folder: Path
) -> int:
    """How many elements both have drawn."""
    picture = picture_of(picture_shapes, known)
    assert picture is not None
    rows = [
        {
            channel.name: None if math.isnan(value) else value
            for channel, value in zip(known, row, strict=True)
        }
        for row in values
    ]
    file = folder / "picture.json"
    file.write_text(json.dumps({"picture": picture_document(picture), "rows": rows}))
    said = json.loads(in_node(HERE / "picture_in_node.mjs", SCRIPT, file))
    scale = float(said["viewBox"].split()[2]) / REPORT_WIDTH
    canvas = Canvas(picture.view, 1.0)
    drawn = picture.drawn(known, np.array(values, float))
    count = 0
    for frame, elements in enumerate(said["found"]):
        for shape, found in zip(drawn, elements, strict=True):
            text = canvas.at([shape], frame)
            expected = dict(re.findall(r' ([\w-]+)="([^"]*)"', text))
            assert text.startswith(f"<{found['kind']} ")
            assert found["class"] == expected["class"]
            if "stroke-width" not in expected:
                found.pop("stroke-width", None)  # which the report has in its style
            for mine, theirs in zip(numbers(found), numbers(expected), strict=True):
                if abs(theirs) >= FARTHEST or abs(mine) >= FARTHEST:
                    assert mine * theirs > 0
                else:
                    assert mine == pytest.approx(theirs * scale, abs=ROUNDED)
            count += 1
    return count


def test_the_page_draws_what_a_report_draws(tmp_path: Path) -> None:
    assert compare(EVERYTHING, CHANNELS, VALUES, tmp_path) == 4 * len(VALUES)


@pytest.mark.all
@pytest.mark.parametrize("experiment", [PENDULUM, DRONE])
def test_pictures_of_experiments_are_alike(experiment: str, tmp_path: Path) -> None:
    environment = describe(experiment).environment
    known = channels([*environment["observations"], *environment["actions"]])
    values = np.random.default_rng(26).uniform(-1, 1, (20, len(known))).tolist()
    count = compare(shapes(environment["picture"]), known, values, tmp_path)
    assert count >= 2 * len(values)
