"""What plots are drawn from, call by call, against those that somebody has looked at.

RLT_DRAWN=write makes tests/host/report/drawn.json again: look at a report, then at the difference.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from rltools_host.report import markup
from rltools_host.tree import TREE

STORED = TREE.root / "tests" / "host" / "report" / "drawn.json"
SHORT = 6  # values that are shown; of more the number and a checksum


class Recorded:
    """A figure, its axes or an axis: notes each call, and makes it."""

    def __init__(self, real: Any, name: str, calls: list[str]) -> None:
        self.real, self._name, self._calls = real, name, calls

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(self.real, attribute)
        name = f"{self._name}.{attribute}"
        if not callable(value):
            return self._wrapped(value, name)

        def call(*arguments: Any, **named: Any) -> Any:
            words = [shown(each) for each in arguments]
            words += [f"{key}={shown(each)}" for key, each in sorted(named.items())]
            self._calls.append(f"{name}({', '.join(words)})")
            return self._wrapped(value(*arguments, **named), attribute.removeprefix("add_"))

        return call

    def _wrapped(self, value: Any, name: str) -> Any:
        from matplotlib.axes import Axes

        if isinstance(value, np.ndarray) and value.dtype == object:
            found = np.empty(value.size, object)
            found[:] = [
                Recorded(each, f"{name}{i}", self._calls) for i, each in enumerate(value.flat)
            ]
            return found.reshape(value.shape)
        if isinstance(value, list) and value and isinstance(value[0], Axes):
            return [Recorded(each, f"{name}{i}", self._calls) for i, each in enumerate(value)]
        is_part = isinstance(value, Axes) or name.endswith(("axis", "line", "dataLim"))
        return Recorded(value, name, self._calls) if is_part else value


def shown(value: Any) -> str:
    if isinstance(value, bool | str | None):
        return repr(value)
    if isinstance(value, int | float | np.number):
        return f"{float(value):.5g}"
    if isinstance(value, np.ndarray | list | tuple | range) and len(value) > SHORT:
        parts = [shown(each) for each in value]
        return f"{len(parts)} values {zlib.crc32(','.join(parts).encode()):08x}"
    if isinstance(value, np.ndarray | list | tuple | range):
        return f"[{', '.join(map(shown, value))}]"
    return getattr(value, "__name__", type(value).__name__)


@contextmanager
def drawn(patch: pytest.MonkeyPatch) -> Iterator[dict[str, list[str]]]:
    """By the plot's label and width: what is drawn meanwhile. Nothing is rendered."""
    found: dict[str, list[str]] = {}
    real_figure_of = markup.figure_of

    @contextmanager
    def figure_of(width: int, height: int) -> Iterator[Any]:
        with real_figure_of(width, height) as figure:
            yield Recorded(figure, f"figure {width} x {height}", [])

    def svg_of(figure: Any, css_class: str, label: str) -> str:
        found[f"{label}, {css_class}"] = figure._calls
        return "<svg/>"

    with patch.context() as patched:
        patched.setattr(markup, "figure_of", figure_of)
        patched.setattr(markup, "svg_of", svg_of)
        yield found


def check_drawn(found: dict[str, list[str]]) -> None:
    stored = json.loads(STORED.read_text()) if STORED.is_file() else {}
    if os.environ.get("RLT_DRAWN") == "write":
        whole = dict(sorted({**stored, **found}.items()))
        STORED.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
        return
    assert found
    assert found == {label: stored.get(label) for label in found}
