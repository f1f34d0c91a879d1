"""The time as files and names say it, always in UTC: what comes later also sorts later.

No other module asks what time it is on the wall (tests/tree/test_clock.py).
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

LAST_US = 2**53 - 1  # in 2255; every reader of JSON has it exactly


def timestamp(precision: str = "seconds") -> str:
    """`2026-11-23T17:05:00+00:00`."""
    return datetime.now(UTC).isoformat(timespec=precision)


def date() -> str:
    """`2026-11-23`."""
    return datetime.now(UTC).date().isoformat()


def folder_date() -> str:
    """`20261123-170500`, with which the name of a run's folder begins."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}"


def minute(moment_us: int) -> str:
    """`2026-11-23 17:05`, of microseconds since 1970."""
    return f"{datetime.fromtimestamp(moment_us / 1_000_000, UTC):%Y-%m-%d %H:%M}"


def now_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def microseconds_of(stamp: str) -> int:
    """Of a `timestamp`, since 1970; without an offset it is taken for UTC. ValueError if it is
    none."""
    moment = datetime.fromisoformat(stamp)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1_000_000)


def microseconds_of_local(stamp: str) -> int:
    """Of a `folder_date` as runs had it earlier, by the local time of where they began, which is
    taken for that of here. ValueError if it is none."""
    try:
        return int(datetime.strptime(stamp, "%Y%m%d-%H%M%S").timestamp() * 1_000_000)
    except OverflowError:
        raise ValueError(f"{stamp} is not a time") from None
