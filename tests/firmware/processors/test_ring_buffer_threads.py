"""The queue between interrupt and program, with the thread sanitizer: its memory order.

On x86-64 a weaker order gives the same bytes, so that only the sanitizer notices it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from programs import output_of
from rltools_host.tree import TREE

pytestmark = pytest.mark.all  # a sanitizer

HERE = Path(__file__).parent


def test_writer_and_reader_race_for_nothing(doctest_main: Path, tmp_path: Path) -> None:
    program = tmp_path / "test_processors"
    flags = ("-std=c++17", "-O1", "-g", "-fsanitize=thread", "-pthread")
    sources = (HERE / "test_processors.cpp", doctest_main)
    output_of("g++", *flags, f"-I{TREE.root / 'firmware'}", *sources, "-o", program)
    assert "3 passed" in output_of(program, "--test-case=ring buffer*")
