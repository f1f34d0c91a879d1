"""What training would occupy of each board's memories, from the sizes of what is compiled; and the
widest hidden layers that fit.

A board's description says what is in each memory (`use`). Code and stack are those of this tree's
own firmware, rounded up: what an environment adds is not known before it is linked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rltools_host.boards.description import Board, MemoryRegion, list_boards
from rltools_host.build import cmake, experiments

CODE_BYTES = 108 * 1024
STACK_BYTES = 36 * 1024  # with the link's messages and the application's own data
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class BoardFit:
    board: str
    title: str
    parts: dict[str, float]  # of each memory, of which 1 is all of it
    widest: int  # of the widths that were tried; 0: none fits

    @property
    def fits(self) -> bool:
        return all(part <= 1.0 for part in self.parts.values())

    def document(self) -> dict[str, Any]:
        return {"board": self.board, "fits": self.fits, "memory": self.parts, "widest": self.widest}


def bytes_in(region: MemoryRegion, sizes: Sizes) -> int:
    """Of what lies in it, by its words."""
    of_word = {
        "code": -(-CODE_BYTES // region.code_step_bytes) * region.code_step_bytes,
        "learner": sizes["learner"],
        "scratch": sizes["scratch"],
        "stack": STACK_BYTES,
        "replay buffer": sizes["replay"] + sizes["policy"],
    }
    return sum(of_word.get(word.strip(), 0) for word in region.use.split(","))


def parts_of(board: Board, sizes: Sizes) -> dict[str, float]:
    return {region.name: bytes_in(region, sizes) / region.bytes for region in board.memory}


def fits(experiment: str, bytes_of_widths: Sequence[Sizes]) -> list[BoardFit]:
    """Of every board with a memory of its own for which the experiment is built; the first sizes
    are the experiment's own."""
    own, *others = bytes_of_widths
    found = []
    for board in list_boards():
        is_trained_on = cmake.TRAIN in cmake.programs_of(board) and board.memory
        if not is_trained_on or experiments.lacking(experiment, board):
            continue
        widths = [sizes["width"] for sizes in others if max(parts_of(board, sizes).values()) <= 1.0]
        parts = parts_of(board, own)
        found.append(BoardFit(board.name, board.title, parts, max(widths, default=0)))
    return found
