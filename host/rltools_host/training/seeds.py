"""Which seeds `--seeds` means, and how many of their runs go on at once."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from rltools_host.boards.description import Board
from rltools_host.documents import LARGEST_U32
from rltools_host.errors import UsageError
from rltools_host.runs.names import find_group

MOST_SEEDS = 1000
THREADS_UNLESS_SAID = 2  # of a board that takes threads: kernels/threads/pool.h
PART = re.compile(r"(\d{1,20})(?:-(\d{1,20}))?", re.ASCII)


def parse_seeds(text: str) -> tuple[int, ...]:
    """`0-9`, or `0,3,5-7`: each seed once, in this order."""
    seeds: list[int] = []
    for part in text.split(","):
        match = PART.fullmatch(part.strip())
        if match is None:
            raise UsageError(f'--seeds "{text}": write seeds and ranges, as in 0-9 or 0,3,5-7')
        first = int(match[1])
        last = first if match[2] is None else int(match[2])
        if last > LARGEST_U32:
            raise UsageError(f"--seeds: {last} is too large, the largest seed is {LARGEST_U32}")
        if last < first:
            raise UsageError(f"--seeds: the range {part.strip()} runs backwards: {last}-{first}")
        if last - first + 1 + len(seeds) > MOST_SEEDS:
            raise UsageError(f'--seeds "{text}": these are more than {MOST_SEEDS:,} seeds')
        seeds += range(first, last + 1)
    twice = [seed for seed in seeds if seeds.count(seed) > 1]
    if twice:
        raise UsageError(f"--seeds: {twice[0]} is given twice: give each seed once")
    return tuple(seeds)


def means_group(resume: str | None, seeds: str | None, jobs: int | None) -> bool:
    """Whether `rlt train` is to train a group of runs and not one."""
    if seeds is not None or (resume is not None and find_group(resume) is not None):
        return True
    if jobs is not None:
        raise UsageError("--jobs goes with --seeds, or with --resume and a group of runs")
    return False


def spoken(seeds: Sequence[int]) -> str:
    """`0 to 9`, `0, 3 and 5 to 7`: what is neighbouring taken together."""
    ranges: list[list[int]] = []
    for seed in seeds:
        if ranges and seed == ranges[-1][-1] + 1:
            ranges[-1].append(seed)
        else:
            ranges.append([seed])
    parts: list[str] = []
    for entry in ranges:
        few = len(entry) < 3
        parts += map(str, entry) if few else [f"{entry[0]} to {entry[-1]}"]
    return ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]


def processors() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0))


def jobs_on(board: Board, port: str | None, threads: int | None, given: int | None) -> int:
    """How many runs go on at once: as many as there are processors, for the threads of each."""
    if given is not None and given < 1:
        raise UsageError(f"--jobs {given}: at least 1 is needed")
    if board.is_flashed or port is not None:
        if given is not None and given > 1:
            raise UsageError(
                f"--jobs {given} does not go with board {board.name} on a port: it trains one "
                "seed after the other"
            )
        return 1
    if given is not None:
        return given
    each = (threads or THREADS_UNLESS_SAID) if board.takes_threads else 1
    return max(1, processors() // each)
