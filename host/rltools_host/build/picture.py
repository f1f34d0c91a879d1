"""The look of an environment: flat shapes whose numbers are expressions of its channels.

An environment of the core lists them in its header (rl/picture.h), one of Gymnasium's in its
`metadata`; docs/environments.md, "A picture", tells authors. They are data, of a file perhaps that
somebody sent: expressions are read into a tree of known operations, and nothing else is computed.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rltools_host.build.description import Channel, Shape
from rltools_host.documents import Unfit, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[Any]
LOOKS = ("body", "part", "push", "ground")
VIEW, LET = "view", "let"
# How many numbers a kind has: at least so many, and how many more at a time.
NUMBERS = {"line": (4, 2), "area": (6, 2), "rod": (5, 0), "circle": (3, 0)}
MEANT = {
    "line": "x, y of two points or more",
    "area": "x, y of three points or more",
    "rod": "x, y of both ends and the width",
    "circle": "x, y and the radius",
}
MAX_SHAPES, MAX_NUMBERS_LENGTH, MAX_DEPTH = 64, 400, 40
LARGEST = 1e30
PLAIN = re.compile(r"[A-Za-z0-9_.+\-*/(), ]*")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# How many arguments a function has, and what NumPy calls it.
FUNCTIONS: Mapping[str, tuple[int, str]] = {
    **{name: (1, name) for name in ("sin", "cos", "sqrt", "abs")},
    "atan2": (2, "arctan2"),
    "min": (2, "minimum"),
    "max": (2, "maximum"),
}


def quotient(dividend: Any, divisor: Any) -> Any:
    """Divide arrays or numbers, by zero as NumPy does."""
    try:
        return dividend / divisor
    except ZeroDivisionError:
        return math.nan


OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: quotient,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


@dataclass(frozen=True)
class Drawn:
    """A shape over an episode; `numbers` are (count of them, steps)."""

    kind: str
    look: str
    numbers: Values


@dataclass(frozen=True)
class Picture:
    """Shapes that are valid; the view is left, bottom, right, top."""

    view: tuple[float, float, float, float]
    shapes: tuple[Shape, ...]  # the view is not among them

    def drawn(self, channels: Sequence[Channel], values: Values) -> list[Drawn]:
        """Return the shapes at each step of `values` (steps, channels)."""
        import numpy as np

        names: dict[str, Values] = {
            channel.name: values[:, index].astype(float) for index, channel in enumerate(channels)
        }
        found = []
        with np.errstate(all="ignore"):
            for shape in self.shapes:
                rows = [
                    np.broadcast_to(computed(tree, names), (len(values),))
                    for tree in trees_of(shape)
                ]
                if shape.kind == LET:
                    (names[shape.look],) = rows
                else:
                    found.append(Drawn(shape.kind, shape.look, np.array(rows, float)))
        return found


def picture_of(shapes: Sequence[Shape], channels: Sequence[Channel]) -> Picture | None:
    """Return the picture of an environment with these channels; None without shapes.

    Actions come after observations. Raise Unfit for a shape that is not valid.
    """
    if not shapes:
        return None
    if len(shapes) > MAX_SHAPES:
        raise Unfit(f"the picture has {len(shapes)} shapes: {MAX_SHAPES} at most")
    first, *others = shapes
    if first.kind != VIEW:
        raise Unfit('the picture does not begin with {"view", "", "left, bottom, right, top"}')
    known = {channel.name for channel in channels}
    for index, shape in enumerate(others, 1):
        try:
            check_shape(shape, known)
        except Unfit as reason:
            raise Unfit(f"shape {index} of the picture: {reason}") from None
        if shape.kind == LET:
            known.add(shape.look)
    try:
        left, bottom, right, top = (float(computed(tree, {})) for tree in trees_of(first))
        if not (left < right and bottom < top and math.isfinite(right - left + top - bottom)):
            raise ValueError
    except (KeyError, ValueError, ArithmeticError):
        raise Unfit(
            f"the picture's view is {shown(first.numbers)}, not the numbers left, bottom, right, "
            "top"
        ) from None
    return Picture((left, bottom, right, top), tuple(others))


def check_shape(shape: Shape, known: set[str]) -> None:
    """Raise Unfit unless the shape can be drawn from these names."""
    trees = trees_of(shape)
    for tree in trees:
        for name in names_in(tree):
            if name not in known:
                raise Unfit(
                    f"{shown(name)} is neither a channel nor a name that an earlier shape gives"
                )
    if shape.kind == LET:
        if not NAME.fullmatch(shape.look) or len(trees) != 1:
            raise Unfit(f'{shown(shape.look)} is not a name: write {{"let", "tip", "expression"}}')
        return
    if shape.kind not in NUMBERS:
        raise Unfit(f"the kind {shown(shape.kind)}: known are {', '.join((LET, *NUMBERS))}")
    if shape.look not in LOOKS:
        raise Unfit(f"the look {shown(shape.look)}: known are {', '.join(LOOKS)}")
    least, more = NUMBERS[shape.kind]
    extra = len(trees) - least
    if extra < 0 or (extra % more if more else extra):
        raise Unfit(f"a {shape.kind} with {len(trees)} numbers: it has {MEANT[shape.kind]}")


def trees_of(shape: Shape) -> list[ast.expr]:
    """Return the expressions of a shape's numbers; raise Unfit where they are none."""
    text = shape.numbers
    if len(text) > MAX_NUMBERS_LENGTH or not PLAIN.fullmatch(text):
        raise Unfit(
            f"{shown(text)} is not a list of expressions in up to {MAX_NUMBERS_LENGTH} letters"
        )
    try:
        whole = ast.parse(f"({text.strip()},)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Unfit(f"{shown(text)} is not a list of expressions") from None
    if not isinstance(whole, ast.Tuple):
        raise Unfit(f"{shown(text)} is not a list of expressions")
    for tree in whole.elts:
        check_tree(tree, MAX_DEPTH)
    return whole.elts


def check_tree(tree: ast.expr, deepest: int) -> None:
    if deepest == 0:
        raise Unfit(f"it is not a list of expressions: one is nested more than {MAX_DEPTH} times")
    match tree:
        case ast.Name():
            pass
        case ast.Constant(value=int() | float() as value) if (
            not isinstance(value, bool) and abs(value) <= LARGEST
        ):
            pass
        case ast.BinOp(left=left, right=right) if type(tree.op) in OPERATORS:
            check_tree(left, deepest - 1)
            check_tree(right, deepest - 1)
        case ast.UnaryOp(operand=operand) if type(tree.op) in OPERATORS:
            check_tree(operand, deepest - 1)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if (
            name in FUNCTIONS and len(arguments) == FUNCTIONS[name][0]
        ):
            for argument in arguments:
                check_tree(argument, deepest - 1)
        case _:
            raise Unfit(
                f"{shown(ast.unparse(tree))} is none of numbers, channels, + - * / and "
                f"{', '.join(FUNCTIONS)}"
            )


def names_in(tree: ast.expr) -> set[str]:
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called
    }


def computed(tree: ast.expr, names: Mapping[str, Values]) -> Any:
    """Return the value of an expression that check_tree() accepted; raise KeyError for a name."""
    match tree:
        case ast.Name(id=name):
            return names[name]
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.BinOp(left=left, op=op, right=right):
            return OPERATORS[type(op)](computed(left, names), computed(right, names))
        case ast.UnaryOp(op=op, operand=operand):
            return OPERATORS[type(op)](computed(operand, names))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            import numpy as np

            function = getattr(np, FUNCTIONS[name][1])
            with np.errstate(all="ignore"):
                return function(*(computed(argument, names) for argument in arguments))
    raise KeyError(ast.unparse(tree))
