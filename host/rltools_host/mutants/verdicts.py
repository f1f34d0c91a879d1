"""What became of faults, and the table of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rltools_host.mutants.faults import Fault


@dataclass(frozen=True)
class Verdict:
    """What became of a fault; `by` says what noticed it, or why it could not be tried."""

    area: str
    fault: Fault
    sentence: str
    noticed: bool
    by: str
    seconds: float
    is_valid: bool = True
    is_daily: bool = True


def interval(noticed: int, tried: int) -> tuple[float, float]:
    """Wilson's, with 95 % confidence, of a share."""
    z = 1.96
    share = noticed / tried
    middle = (share + z * z / (2 * tried)) / (1 + z * z / tried)
    half = z / (1 + z * z / tried) * math.sqrt(share * (1 - share) / tried + (z / (2 * tried)) ** 2)
    return max(0.0, middle - half), min(1.0, middle + half)


def table(goals: dict[str, float], verdicts: Sequence[Verdict]) -> list[dict[str, object]]:
    """A row for each area of which something was tried; a goal is missed where the interval lies
    below it."""
    rows: list[dict[str, object]] = []
    for area, goal in goals.items():
        mine = [verdict for verdict in verdicts if verdict.area == area and verdict.is_valid]
        if not mine:
            continue
        noticed = sum(verdict.noticed for verdict in mine)
        low, high = interval(noticed, len(mine))
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
        low, high = interval(noticed, len(tried))
        print(
            f"{'all':<22} {noticed:>3} of {len(tried):>3} {noticed / len(tried):>8.1%}  "
            f"{low:>6.1%} to {high:>6.1%}"
        )
    if all_tests and noticed:
        daily = sum(verdict.noticed and verdict.is_daily for verdict in tried)
        low, high = interval(daily, noticed)
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
                "daily": verdict.is_daily,
                "compiles": verdict.is_valid,
                "seconds": round(verdict.seconds, 3),
            }
            for verdict in verdicts
        ],
    }
