"""The folder of a group of runs, which differ in their seeds, or in a study in settings too.

Each run is an ordinary run's folder, `s<seed>` or `<variant>/s<seed>`. group.json says what the
group was asked for, from which `--resume` goes on, and sums up how its runs stand.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rltools_host.documents import typed
from rltools_host.errors import UsageError
from rltools_host.files import FolderLock, plain_json, write_atomically
from rltools_host.runs.contents import Group, Variant
from rltools_host.runs.folder import REPORT_FILE, read_checked
from rltools_host.runs.names import GROUP_FILE, beginning_now, find_group, make_empty

CURVES_FILE = "curves.csv"
STORAGE_FILE = "study.db"  # of a tuning
SCRATCH = ".work"  # while it trains: the program, and what its processes are told
FORMAT = 3  # of group.json; up to 2 hyperparameters had other names
SEEDS, STUDY, TUNE = "seeds", "study", "tune"  # kinds


class RunName(NamedTuple):
    """One run of a group: of which variant, empty where there are none, and of which seed."""

    variant: str
    seed: int

    @property
    def folder(self) -> Path:
        """Within the group's folder."""
        return Path(self.variant) / f"s{self.seed}"


class GroupFolder:
    """A group's folder; `metadata` is what is in group.json, with what newer tools may have put
    there, and `content` what this one knows of it. `update` writes it."""

    def __init__(self, path: Path, metadata: Mapping[str, Any]) -> None:
        self.path = path
        self.metadata = dict(metadata)
        self._lock = FolderLock(path)

    @property
    def content(self) -> Group:
        return typed(self.metadata, Group)

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
    def create(cls, path: Path, metadata: Mapping[str, Any]) -> GroupFolder:
        """A new folder; an existing one must be empty."""
        make_empty(path)
        begun = beginning_now(path.resolve())
        folder = cls(path.resolve(), {"format": FORMAT, **begun, **metadata})
        folder.update({})
        return folder

    @classmethod
    def open(cls, name: str | Path, runs_directory: Path | None = None) -> GroupFolder:
        path = find_group(name, runs_directory)
        if path is None:
            raise UsageError(f"{name} is not a group of runs: give its folder")
        return cls(path.resolve(), read_group_file(path / GROUP_FILE))

    def lock(self) -> None:
        self._lock.take()

    def close(self) -> None:
        self._lock.release()

    def change(self, changes: Mapping[str, Any]) -> None:
        """What the next update writes as well."""
        self.metadata = plain_json({**self.metadata, **changes})

    def update(self, changes: Mapping[str, Any]) -> None:
        """Writes group.json with these changes."""
        metadata = plain_json({**self.metadata, **changes, "format": FORMAT})
        text = json.dumps(metadata, indent=2) + "\n"
        write_atomically(self.path / GROUP_FILE, text.encode())
        self.metadata = metadata


def read_group_file(path: Path) -> dict[str, Any]:
    """The document of a group.json, checked."""
    return read_checked(path, Group, FORMAT, "restore it, or resume each run of the folder alone")


def statistics_of(returns: Sequence[float]) -> dict[str, float | int | None]:
    """Of the runs' final returns; the deviation is the population's, as boards report it, and a
    single run has none."""
    if not returns:
        return {"runs": 0, "mean": None, "median": None, "std": None, "worst": None}
    return {
        "runs": len(returns),
        "mean": statistics.fmean(returns),
        "median": statistics.median(returns),
        "std": statistics.pstdev(returns) if len(returns) > 1 else None,
        "worst": min(returns),
    }


def spoken(seeds: Sequence[int]) -> str:
    """`0 to 9`, `0, 3 and 5 to 7`: what is neighboring taken together."""
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
