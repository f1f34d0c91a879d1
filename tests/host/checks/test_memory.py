"""The content of a board's memories, in bytes that are counted by hand."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rltools_host.checks import memory
from rltools_host.checks.memory import BoardFit
from rltools_host.errors import BuildError

made: Any = SimpleNamespace
SIZES = {
    "learner": 1000,
    "scratch": 200,
    "replay": 5000,
    "policy": 30,
    "width": 64,
    "code": 108 * 1024,
}
CODE, STACK = SIZES["code"], memory.STACK_BYTES


def region(use: str, size: int = 100_000, step: int = 1, name: str = "RAM") -> Any:
    return made(name=name, use=use, bytes=size, code_step_bytes=step)


@pytest.mark.parametrize(
    ("use", "step", "count"),
    [
        ("learner", 1, 1000),
        ("scratch, learner", 1, 1200),
        ("replay buffer", 1, 5030),
        ("stack", 1, STACK),
        ("code", 1, CODE),
        ("code", 32768, 4 * 32768),  # 108 KB in steps of 32
        ("code,stack", 4096, CODE + STACK),
        ("maps", 1, 0),
    ],
)
def test_what_lies_in_a_memory(use: str, step: int, count: int) -> None:
    assert memory.bytes_in(region(use, step=step), SIZES) == count


def board(name: str, size: int, programs: tuple[str, ...] = ("train",)) -> Any:
    memories = [region("learner", size, name="A"), region("scratch", 400, name="B")] if size else []
    return made(
        name=name,
        title=name.upper(),
        memory=memories,
        programs=programs,
        toolchain=made(builder="cmake"),
    )


def test_boards_that_train_and_the_widest_layers_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    boards = [
        board("large", 4000),
        board("small", 2000),
        board("tiny", 999),
        board("host", 0),
        board("other", 4000, ("infer",)),
        board("lacks", 4000),
    ]
    monkeypatch.setattr(memory, "list_boards", lambda: boards)
    monkeypatch.setattr(memory.cmake, "programs_of", lambda board: board.programs)
    monkeypatch.setattr(memory.cmake, "TRAIN", "train")
    differences = {"large": {"A": -1000, "B": 100}}
    monkeypatch.setattr(memory, "linked_differences", lambda board, *_: differences.get(board.name))
    monkeypatch.setattr(
        memory.experiments, "lacking", lambda _, board: ["x"] if board.name == "lacks" else []
    )
    wider = [{**SIZES, "learner": 1000 * factor, "width": 32 * factor} for factor in (1, 2, 4, 5)]
    assert memory.fits("e", [SIZES, *wider]) == [
        BoardFit("large", "LARGE", {"A": 0.0, "B": 0.75}, 160, is_linked=True),
        BoardFit("small", "SMALL", {"A": 0.5, "B": 0.5}, 64),
        BoardFit("tiny", "TINY", {"A": 1000 / 999, "B": 0.5}, 0),
    ]


def test_firmware_that_is_younger_than_all_sources_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise BuildError("more than there is")

    program = tmp_path / "e.elf"
    large, youngest = board("large", 4000), [0.0]
    usage = [{"name": "A", "used_bytes": 1500}, {"name": "B", "used_bytes": 150}]
    monkeypatch.setattr(memory.firmware, "program_path", lambda *_: program)
    monkeypatch.setattr(memory, "last_change_s", lambda: youngest[0])
    monkeypatch.setattr(memory, "memory_usage", lambda *_: usage)
    assert memory.linked_differences(large, "e", SIZES) is None, "there is none"
    program.touch()
    assert memory.linked_differences(large, "e", SIZES) == {"A": 500, "B": -50}
    assert memory.parts_of(large, SIZES, {"A": 500, "B": -50}) == {"A": 0.375, "B": 0.375}
    with monkeypatch.context() as patch:
        patch.setattr(memory, "memory_usage", refuse)
        assert memory.linked_differences(large, "e", SIZES) is None, "it is too large"
    youngest[0] = program.stat().st_mtime
    assert memory.linked_differences(large, "e", SIZES) is None, "it may be of other sources"
    youngest[0] = 0.0
    large.toolchain.builder = "platformio"
    assert memory.linked_differences(large, "e", SIZES) is None
