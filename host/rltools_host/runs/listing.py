"""Which runs and groups there are, and how each stands, for `rlt runs`. It writes nothing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rltools_host.errors import RltError
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.group import GroupFolder, spoken, statistics_of
from rltools_host.runs.names import GROUP_FILE, RUN_FILE, begun_us, is_group, is_run, run_names

BLOCK_BYTES = 512  # of st_blocks
DAMAGED = "damaged"
FINISHED = "finished"


@dataclass(frozen=True)
class Entry:
    """A run or a group; of one that cannot be read, `problem` says why.

    name: as other commands take it. result, deviation: of a run, its last evaluation's return and
    the deviation between its episodes; of a group, the mean and the deviation of its finished runs.
    length: steps of an episode of the last evaluation; of a group, the mean over these runs.
    """

    name: str
    path: Path
    is_group: bool
    begun_us: int
    disk_bytes: int
    state: str
    experiment: str = ""
    board: str = ""
    seeds: Sequence[int] = ()
    step: int = 0
    steps: int = 0
    result: float | None = None
    deviation: float | None = None
    length: float | None = None
    problem: str = ""

    @property
    def words(self) -> str:
        """What it is found by."""
        kind = "group" if self.is_group else "run"
        texts = (self.name, self.experiment, self.board, self.state, kind)
        return " ".join(texts).casefold()

    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "path": str(self.path),
            "kind": "group" if self.is_group else "run",
            "experiment": self.experiment or None,
            "board": self.board or None,
            "seeds": list(self.seeds),
            "step": self.step,
            "steps": self.steps,
            "return_mean": self.result,
            "return_std": self.deviation,
            "length_mean": self.length,
            "begun_us": self.begun_us,
            "disk_bytes": self.disk_bytes,
            "state": self.state,
            "problem": self.problem or None,
        }


def entries(folder: Path, with_members: bool = False) -> list[Entry]:
    """What a folder of runs has, in the order in which it began; `with_members`, each run of a
    group too."""
    found = []
    for name in run_names(folder, (RUN_FILE, GROUP_FILE)):
        with contextlib.suppress(OSError):  # removed meanwhile
            path = folder / name
            of_group = is_group(path) and not is_run(path)
            members = members_of(path, name) if of_group else []
            known = group_fields(path, members) if of_group else run_fields(path)
            found.append(entry_of(path, name, of_group, known))
            found += members if with_members else []
    return found


def entry_of(path: Path, name: str, of_group: bool, known: Mapping[str, Any]) -> Entry:
    """OSError where it is gone."""
    return Entry(
        name=name,
        path=path,
        is_group=of_group,
        begun_us=begun_us(path / (GROUP_FILE if of_group else RUN_FILE)),
        disk_bytes=disk_bytes(path),
        **known,
    )


def run_fields(path: Path) -> dict[str, Any]:
    try:
        folder = RunFolder.open(path)
        run = folder.content
        return {
            "state": folder.state,
            "experiment": run.experiment,
            "board": run.board,
            "seeds": () if run.seed is None else (run.seed,),
            "step": run.step,
            "steps": run.steps,
            "result": run.return_mean,
            "deviation": run.return_std,
            "length": run.length_mean,
        }
    except RltError as error:
        return {"state": DAMAGED, "problem": str(error)}


def group_fields(path: Path, members: Sequence[Entry]) -> dict[str, Any]:
    try:
        group = GroupFolder.open(path)
        content = group.content
    except RltError as error:
        return {"state": DAMAGED, "problem": str(error)}
    count = len(list(group.run_names()))
    finished = [member for member in members if member.state == FINISHED]
    figures = statistics_of([run.result for run in finished if run.result is not None])
    state = f"{len(finished)} of {count} finished"
    if members and len(finished) == count:
        state = FINISHED
    if content.tune is not None:  # pruned runs never finish
        state = f"{content.state}, {state}" if content.state != FINISHED else FINISHED
    return {
        "state": state,
        "experiment": content.experiment,
        "board": content.board,
        "seeds": content.seeds,
        "step": sum(member.step for member in members),
        "steps": max((member.steps for member in members), default=content.steps or 0) * count,
        "result": figures["mean"],
        "deviation": figures["std"],
        "length": statistics_of([run.length for run in finished if run.length is not None])["mean"],
    }


def members_of(path: Path, name: str) -> list[Entry]:
    """The runs of a group that have begun."""
    with contextlib.suppress(RltError):
        folders = [run.folder for run in GroupFolder.open(path).run_names()]
        return [
            entry_of(path / each, f"{name}/{each}", False, run_fields(path / each))
            for each in folders
            if is_run(path / each)
        ]
    return []


def disk_bytes(path: Path) -> int:
    """That a folder and all within take of the disk; links count as links, and are not followed."""
    total = 0
    with contextlib.suppress(OSError):
        total += os.lstat(path).st_blocks * BLOCK_BYTES
        if not path.is_symlink():
            with os.scandir(path) as found:
                for entry in found:
                    if entry.is_dir(follow_symlinks=False):
                        total += disk_bytes(Path(entry.path))
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * BLOCK_BYTES
    return total


def seeds_of(entry: Entry) -> str:
    return spoken(entry.seeds) if entry.seeds else "-"
