"""The folder of a group of runs, which differ in their seeds, or in a study in settings too.

Each run is an ordinary run's folder, `s<seed>` or `<variant>/s<seed>`. group.json says what the
group was asked for, from which `--resume` continues, and has the states of its runs.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from rltools_host.errors import UsageError
from rltools_host.files import FolderLock
from rltools_host.runs.contents import Group, Variant
from rltools_host.runs.folder import REPORT_FILE, read_checked, write_document
from rltools_host.runs.names import GROUP_FILE, begun_us_now, find_group, make_empty

CURVES_FILE = "curves.csv"
STORAGE_FILE = "study.db"  # of a tuning
SCRATCH = ".work"  # while it trains: the program, and the requests of its processes
FORMAT = 3  # of group.json; up to 2 hyperparameters had other names
SEEDS, STUDY, TUNE = "seeds", "study", "tune"  # kinds


class RunName(NamedTuple):
    """A run of a group: its variant, empty if there are none, and its seed."""

    variant: str
    seed: int

    @property
    def folder(self) -> Path:
        """Return the path within the group's folder."""
        return Path(self.variant) / f"s{self.seed}"


class GroupFolder:
    """The folder of a group. `content` is its group.json, which `write` replaces."""

    def __init__(self, path: Path, content: Group) -> None:
        self.path = path
        self.content = content
        self._lock = FolderLock(path)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def report_path(self) -> Path:
        return self.path / REPORT_FILE

    @property
    def curves_path(self) -> Path:
        return self.path / CURVES_FILE

    @property
    def title(self) -> str:
        return self.content.title

    @property
    def variants(self) -> list[Variant]:
        return self.content.variants

    def run_names(self) -> Iterator[RunName]:
        content = self.content
        for variant in content.variants:
            for seed in content.seeds:
                yield RunName(variant.name, seed)

    @classmethod
    def create(cls, path: Path, group: Group) -> GroupFolder:
        """Create a folder; an existing one must be empty."""
        make_empty(path)
        folder = cls(path.resolve(), group)
        folder.write(structs.replace(group, begun_us=group.begun_us or begun_us_now(folder.path)))
        return folder

    @classmethod
    def open(cls, name: str | Path) -> GroupFolder:
        path = find_group(name)
        if path is None:
            raise UsageError(f"{name} is not a group of runs: give its folder")
        return cls(path.resolve(), read_group_file(path / GROUP_FILE))

    def lock(self) -> None:
        self._lock.take()

    def close(self) -> None:
        self._lock.release()

    def write(self, group: Group) -> None:
        """Replace group.json, and `content` once the file is on the disk."""
        self.content = write_document(self.path / GROUP_FILE, group)


def read_group_file(path: Path) -> Group:
    return read_checked(path, Group, FORMAT, "restore it, or resume each run of the folder alone")


def statistics_of(returns: Sequence[float]) -> dict[str, float | int | None]:
    """Return statistics of final returns; the deviation is the population's, as boards report it,
    and None for a single run."""
    if not returns:
        return {"runs": 0, "mean": None, "median": None, "std": None, "worst": None}
    return {
        "runs": len(returns),
        "mean": statistics.fmean(returns),
        "median": statistics.median(returns),
        "std": statistics.pstdev(returns) if len(returns) > 1 else None,
        "worst": min(returns),
    }


def seed_ranges(seeds: Sequence[int]) -> str:
    """Return `0 to 9`, or `0, 3 and 5 to 7`."""
    ranges: list[list[int]] = []
    for seed in seeds:
        if ranges and seed == ranges[-1][-1] + 1:
            ranges[-1].append(seed)
        else:
            ranges.append([seed])
    parts: list[str] = []
    for entry in ranges:
        parts += map(str, entry) if len(entry) < 3 else [f"{entry[0]} to {entry[-1]}"]
    return ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]
