"""A fault: a small change of one source file, which a test is to notice.

Most are generated: each place of the syntax at which an operator of python_syntax.py or
cpp_syntax.py applies is one. tests/mutants/kept.json has what no operator finds, in sentences, and
tests/mutants/dead.json names those that change nothing, each with its reason.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rltools_host.errors import RltError
from rltools_host.files import parse_json

KEPT = Path("tests/mutants/kept.json")
DEAD = Path("tests/mutants/dead.json")
LONGEST_QUOTE = 60
COMMUTATIVE = ("fma", "min", "max", "minimum", "maximum")  # of their first two arguments


class FaultListError(RltError):
    """An entry of kept.json or dead.json does not fit the tree."""

    exit_code = 2


@dataclass(frozen=True, order=True)
class Fault:
    """What source[start:end] becomes. `token` is what the operator changes: "<", "3", or the name
    of the function whose call is dropped."""

    path: Path
    start: int
    end: int
    becomes: str
    operator: str
    function: str
    token: str
    line: int
    sentence: str = ""

    def apply(self, source: str) -> str:
        return source[: self.start] + self.becomes + source[self.end :]

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    def described(self, source: str) -> str:
        before, after = (
            text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"
            for text in (" ".join(source[self.start : self.end].split()), self.becomes)
        )
        return (
            self.sentence or f"{self.function}: {self.operator}: {before} -> {after or 'nothing'}"
        )


def exchanges(text: str) -> dict[str, str]:
    """Of "< to <=, <= to <"."""
    return dict(pair.split(" to ") for pair in text.split(", "))


def fault_at(
    path: Path, source: str, span: tuple[int, int], becomes: str, operator: str, *names: str
) -> Fault:
    """`names`: the enclosing function, and what the operator changes (the text itself unless
    given)."""
    function, token = (*names, source[slice(*span)])[:2]
    return Fault(
        path, *span, becomes, operator, function, token, source.count("\n", 0, span[0]) + 1
    )


def kept_faults(root: Path, sources: Sequence[Path]) -> tuple[list[Fault], list[str]]:
    """The faults of kept.json, and a line for each entry that does not fit the tree. Files are
    named by the end of their path, so that an entry survives a move."""
    faults, problems = [], []
    for name, entries in parse_json((root / KEPT).read_bytes()).items():
        found = [path for path in sources if f"/{path}".endswith(f"/{name}")]
        if len(found) != 1:
            problems.append(f"{name} may be any of {', '.join(map(str, found)) or 'no files'}")
            continue
        source = (root / found[0]).read_text(encoding="utf-8")
        for entry in entries:
            text = entry["text"]
            if source.count(text) != 1:
                problems.append(
                    f"{found[0]} has {source.count(text) or 'no'} places with {text!r}: "
                    f"{entry['fault']}"
                )
                continue
            start = source.index(text)
            line = source.count("\n", 0, start) + 1
            faults.append(
                Fault(
                    *(found[0], start, start + len(text), entry["becomes"], "kept", "", text),
                    *(line, entry["fault"]),
                )
            )
    return faults, problems


def dead_faults(root: Path) -> list[dict[str, str]]:
    """What dead.json names by file, function, operator and token."""
    entries: list[dict[str, str]] = parse_json((root / DEAD).read_bytes())
    return entries


def without_dead(root: Path, faults: Iterable[Fault]) -> list[Fault]:
    dead = [
        (f"/{entry['file']}", entry["function"], entry["operator"], entry["token"])
        for entry in dead_faults(root)
    ]
    return [
        fault
        for fault in faults
        if not any(
            f"/{fault.path}".endswith(file)
            and (fault.function, fault.operator, fault.token) == (function, operator, token)
            for file, function, operator, token in dead
        )
    ]


def shuffled(faults: Iterable[Fault], seed: int, area: str) -> list[Fault]:
    """In the order in which they are tried: the same for the same tree, seed and area."""
    ordered = sorted(faults)
    random.Random(f"{seed} {area}").shuffle(ordered)
    return ordered
