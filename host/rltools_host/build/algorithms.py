"""Which algorithms there are: the headers of rl/algorithms that define kName.

A new header appears by itself. What follows from an algorithm, its compiled code states.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from rltools_host.tree import TREE

STRUCT = re.compile(
    r"^struct (\w+) : (\w+) {\n  static constexpr const char\* kName = ", re.MULTILINE
)


@dataclass(frozen=True)
class Algorithm:
    """What the tools know of an algorithm before it is compiled."""

    name: str  # of its header, and on the command line
    struct: str
    has_rollouts: bool  # it learns from what several environments did together, not from a replay

    @property
    def environments(self) -> int:
        """How many a task of Gymnasium's steps at once, where nobody says."""
        return 8 if self.has_rollouts else 1


@cache
def algorithms() -> Mapping[str, Algorithm]:
    """All of them, by their names."""
    found = {}
    bases = {"OnPolicy": ""}
    for header in sorted((TREE.include / "rltools" / "rl" / "algorithms").glob("*.h")):
        if stated := STRUCT.search(header.read_text(encoding="utf-8")):
            found[header.stem] = stated[1]
            bases[stated[1]] = stated[2]
    return {
        name: Algorithm(name, struct, is_on_policy(struct, bases)) for name, struct in found.items()
    }


def is_on_policy(struct: str, bases: Mapping[str, str]) -> bool:
    return struct == "OnPolicy" or (struct in bases and is_on_policy(bases[struct], bases))


def listed() -> str:
    """Their names, in words."""
    *first, last = algorithms()
    return f"{', '.join(first)} or {last}"
