"""An environment's picture: what may be written, and where its shapes are."""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest

from rltools_host.build import picture
from rltools_host.build.description import Channel, Shape
from rltools_host.documents import Unfit

CHANNELS = (Channel("angle", "rad", -3, 3), Channel("torque_t-1", "1", -1, 1))
VIEW = Shape("view", "", "-2, -1, 2, 1")


def test_numbers_are_computed_at_each_step() -> None:
    shapes = [
        VIEW,
        Shape("let", "x", "2 * cos(angle)"),
        Shape("rod", "body", "0, -0.5, x, x / 4 - -1, max(0.1, min(0.2, abs(angle)))"),
        Shape("line", "ground", "0, 1, sqrt(4), atan2(1, 0), 1 / 0, 1e-1"),
    ]
    found = picture.picture_of(shapes, CHANNELS)
    assert found is not None
    assert found.view == (-2, -1, 2, 1)
    angle = np.array([0.0, 0.15, -2.0])
    rod, line = found.drawn(CHANNELS, np.stack([angle, angle], axis=1))
    x = 2 * np.cos(angle)
    assert (rod.kind, rod.look) == ("rod", "body")
    expected = np.stack([0 * x, 0 * x - 0.5, x, x / 4 + 1, [0.1, 0.15, 0.2]])
    assert np.allclose(rod.numbers, expected)
    assert np.array_equal(line.numbers[:, 2], [0, 1, 2, np.pi / 2, np.nan, 0.1], equal_nan=True)


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        (("circle", "body", "0, 0"), "a circle with 2 numbers: it has x, y and the radius"),
        (("circle", "body", "0, 0, speed"), '"speed" is neither a channel'),
        (("circle", "body", "0, 0, sin"), '"sin" is neither a channel'),
        (("let", "2x", "1"), '"2x" is not a name'),
        (("circle", "body", "0, 0, exp(angle)"), "is none of numbers"),
        (("circle", "body", "0, 0, sin(angle, angle)"), "is none of numbers"),
        (("circle", "body", "0, 0, abs(angle.real)"), r'"angle\.real" is none of numbers, chann'),
        (("circle", "body", "0, 0, (lambda: 1)()"), "is not a list of expressions"),
        (("circle", "body", "0, 0, angle[0]"), "is not a list of expressions"),
        (("circle", "body", "1" * 500), "is not a list of expressions in up to 400"),
        (("circle", "body", "(" * 199 + ")" * 199), "is none of numbers|is not a list"),
        (("circle", "body", "0, 0, " + "-" * 300 + "1"), "is not a list of expressions"),
        (("circle", "body", "0, 0, " + "9" * 350), "is none of numbers"),
        (("circle", "body", "0, 0, 1e999"), "is none of numbers"),
    ],
)
def test_what_is_no_shape_is_refused(shape: tuple[str, str, str], sentence: str) -> None:
    with pytest.raises(Unfit, match=r"^shape 1 of the picture: ") as error:
        picture.picture_of([VIEW, Shape(*shape)], CHANNELS)
    assert re.search(sentence, str(error.value))


@pytest.mark.parametrize("form", ["-{}", "max(1,{})"])
def test_how_deep_an_expression_may_be(form: str) -> None:
    """39 operations around a number are 40 levels."""
    deep = "1"
    for _ in range(39):
        deep = form.format(deep)
    picture.check_tree(ast.parse(deep, mode="eval").body, 40)
    with pytest.raises(Unfit, match=r"is nested more than 40 times$"):
        picture.check_tree(ast.parse(form.format(deep), mode="eval").body, 40)


def test_how_long_and_how_large_numbers_may_be() -> None:
    assert len(picture.trees_of(Shape("let", "x", "1" + " " * 399))) == 1
    with pytest.raises(Unfit, match="in up to 400 letters"):
        picture.trees_of(Shape("let", "x", "1" + " " * 400))
    assert len(picture.trees_of(Shape("line", "part", "1e30, -1e30"))) == 2
    with pytest.raises(Unfit, match="is none of numbers"):
        picture.trees_of(Shape("let", "x", "1.01e30"))


@pytest.mark.parametrize(
    "view",
    [
        *("0, 0, 1", "0, 0, angle, 1", "0, 0, 1, 1 / 0"),
        *("1, 0, 1, 1", "0, -1e308, 1, 1e308"),  # without a width; with one that no number holds
    ],
)
def test_a_view_is_four_numbers(view: str) -> None:
    with pytest.raises(Unfit, match="the picture's view is"):
        picture.picture_of([Shape("view", "", view)], CHANNELS)


def test_the_view_comes_first_and_shapes_are_few() -> None:
    with pytest.raises(Unfit, match="does not begin with"):
        picture.picture_of([Shape("circle", "body", "0, 0, 1"), VIEW], CHANNELS)
    with pytest.raises(Unfit, match="has 65 shapes: 64 at most"):
        picture.picture_of([VIEW] * 65, CHANNELS)
