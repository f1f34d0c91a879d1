"""A fault: a small change of one source file, which a test is to notice; and what became of it.

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
from rltools_host.runs.aggregates import wilson_interval

KEPT = Path("tests/mutants/kept.json")
DEAD = Path("tests/mutants/dead.json")
LONGEST_QUOTE = 60
# Of their first two arguments.
COMMUTATIVE = ("fma", "min", "max", "minimum", "maximum", "middle_of")


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
    """What dead.json names by file, function, operator, token and what that becomes; what it does
    not say is about all."""
    entries: list[dict[str, str]] = parse_json((root / DEAD).read_bytes())
    return entries


def without_dead(root: Path, faults: Iterable[Fault]) -> list[Fault]:
    dead = dead_faults(root)
    return [
        fault
        for fault in faults
        if not any(
            f"/{fault.path}".endswith(f"/{entry['file']}")
            and fault.operator == entry["operator"]
            and entry.get("function") in (None, fault.function)
            and entry.get("token") in (None, fault.token)
            and entry.get("becomes") in (None, fault.becomes)
            for entry in dead
        )
    ]


def shuffled(faults: Iterable[Fault], seed: int, area: str) -> list[Fault]:
    """In the order in which they are tried: the same for the same tree, seed and area."""
    ordered = sorted(faults)
    random.Random(f"{seed} {area}").shuffle(ordered)
    return ordered


# -- verdicts --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What became of a fault; `by` says what noticed it, or why it could not be tried; `is_daily`
    is of the test that did: one that `rlt test` runs without --all."""

    area: str
    fault: Fault
    sentence: str
    noticed: bool
    by: str
    seconds: float
    is_valid: bool = True
    is_daily: bool = True


def table(goals: dict[str, float], verdicts: Sequence[Verdict]) -> list[dict[str, object]]:
    """A row for each area of which something was tried; a goal is missed where the interval lies
    below it."""
    rows: list[dict[str, object]] = []
    for area, goal in goals.items():
        mine = [verdict for verdict in verdicts if verdict.area == area and verdict.is_valid]
        if not mine:
            continue
        noticed = sum(verdict.noticed for verdict in mine)
        low, high = wilson_interval(noticed, len(mine))
        rows.append(
            {
                "area": area,
                "noticed": noticed,
                "noticed_daily": sum(v.noticed and v.is_daily for v in mine),
                "tried": len(mine),
                "not_compiling": sum(v.area == area and not v.is_valid for v in verdicts),
                "share": noticed / len(mine),
                "low": low,
                "high": high,
                "goal": goal,
                "missed": high < goal,
            }
        )
    return rows


def print_result(
    rows: Sequence[dict[str, object]], verdicts: Sequence[Verdict], all_tests: bool
) -> None:
    print(f"\n{'area':<22} noticed      share  95 % interval     goal")
    for row in rows:
        print(
            f"{row['area']!s:<22} {row['noticed']:>3} of {row['tried']:>3} {row['share']:>8.1%}  "
            f"{row['low']:>6.1%} to {row['high']:>6.1%}  {row['goal']:>6.0%}"
            f"{'  missed' if row['missed'] else ''}"
        )
    tried = [verdict for verdict in verdicts if verdict.is_valid]
    noticed = sum(verdict.noticed for verdict in tried)
    if tried:
        low, high = wilson_interval(noticed, len(tried))
        print(
            f"{'all':<22} {noticed:>3} of {len(tried):>3} {noticed / len(tried):>8.1%}  "
            f"{low:>6.1%} to {high:>6.1%}"
        )
    if all_tests and noticed:
        daily = sum(verdict.noticed and verdict.is_daily for verdict in tried)
        low, high = wilson_interval(daily, noticed)
        print(
            f"of these by the tests of every day: {daily} of {noticed}, {daily / noticed:.1%} "
            f"({low:.1%} to {high:.1%})"
        )
    if unnoticed := [verdict for verdict in tried if not verdict.noticed]:
        print("\nunnoticed:")
    for verdict in unnoticed:
        print(f"  {verdict.fault.place}: {verdict.sentence} ({verdict.by})")


def document(
    rows: Sequence[dict[str, object]], verdicts: Sequence[Verdict], seed: int
) -> dict[str, object]:
    return {
        "seed": seed,
        "areas": list(rows),
        "faults": [
            {
                "area": verdict.area,
                "file": str(verdict.fault.path),
                "line": verdict.fault.line,
                "function": verdict.fault.function,
                "operator": verdict.fault.operator,
                "token": verdict.fault.token,
                "fault": verdict.sentence,
                "noticed": verdict.noticed,
                "by": verdict.by,
                "daily": verdict.noticed and verdict.is_daily,
                "compiles": verdict.is_valid,
                "seconds": round(verdict.seconds, 3),
            }
            for verdict in verdicts
        ],
    }
