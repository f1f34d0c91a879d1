"""Listing, renaming and deleting of runs and groups, for `rlt runs`.

A folder is a run's or a group's by its run.json or group.json, which must be as our tools write it.
Of such a folder, the files that our tools write are deleted, and no others; run.json goes last, so
that a deletion which was killed can be repeated. No symbolic link is followed.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import UNSET

from rltools_host import system
from rltools_host.errors import DamagedFileError, RltError, UsageError
from rltools_host.files import disk_error, is_partial
from rltools_host.runs.folder import OWN_FILE, REPORT_FILE, RunFolder
from rltools_host.runs.group import (
    CURVES_FILE,
    SCRATCH,
    STORAGE_FILE,
    GroupFolder,
    seed_ranges,
    statistics_of,
)
from rltools_host.runs.names import (
    GROUP_FILE,
    LATEST,
    RESULT_FILE,
    RUN_FILE,
    begun_us,
    find_group,
    find_run,
    is_group,
    is_run,
    run_names,
)
from rltools_host.runs.saves import SAVED_FILES, saves_in

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
        """Return the text that a search compares with."""
        kind = "group" if self.is_group else "run"
        texts = (self.name, self.experiment, self.board, self.state, kind)
        return " ".join(texts).casefold()

    def document(self) -> dict[str, object]:
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
    """Return the entries of a folder of runs, in the order in which they began; `with_members`,
    each run of a group too."""
    found = []
    for name in run_names(folder, (RUN_FILE, GROUP_FILE)):
        with contextlib.suppress(OSError):  # removed meanwhile
            path = folder / name
            of_group = is_group(path) and not is_run(path)
            members = members_of(path, name) if of_group else []
            entry = entry_of(path, name, of_group)
            found.append(of_a_group(entry, members) if of_group else of_a_run(entry))
            found += members if with_members else []
    return found


def entry_of(path: Path, name: str, of_group: bool) -> Entry:
    """Return an entry without what its file says; OSError if the folder is gone."""
    began_us = begun_us(path / (GROUP_FILE if of_group else RUN_FILE))
    return Entry(name, path, of_group, began_us, disk_bytes(path), DAMAGED)


def of_a_run(entry: Entry) -> Entry:
    """Return the entry with what run.json says."""
    try:
        folder = RunFolder.open(entry.path)
        run = folder.content
        return replace(
            entry,
            state=folder.state,
            experiment=run.experiment,
            board=run.board,
            seeds=() if run.seed is None else (run.seed,),
            step=run.step,
            steps=run.steps,
            result=run.return_mean,
            deviation=run.return_std,
            length=run.length_mean,
        )
    except RltError as error:
        return replace(entry, problem=str(error))


def of_a_group(entry: Entry, members: Sequence[Entry]) -> Entry:
    """Return the entry with what group.json and the runs say."""
    try:
        group = GroupFolder.open(entry.path)
        content = group.content
    except RltError as error:
        return replace(entry, problem=str(error))
    count = len(list(group.run_names()))
    finished = [member for member in members if member.state == FINISHED]
    figures = statistics_of([run.result for run in finished if run.result is not None])
    state = f"{len(finished)} of {count} finished"
    if members and len(finished) == count:
        state = FINISHED
    if content.tune is not None:  # pruned runs never finish
        state = f"{content.state}, {state}" if content.state != FINISHED else FINISHED
    return replace(
        entry,
        state=state,
        experiment=content.experiment,
        board=content.board,
        seeds=content.seeds,
        step=sum(member.step for member in members),
        steps=max((member.steps for member in members), default=content.steps or 0) * count,
        result=figures["mean"],
        deviation=figures["std"],
        length=statistics_of([run.length for run in finished if run.length is not None])["mean"],
    )


def members_of(path: Path, name: str) -> list[Entry]:
    """Return the entries of the group's runs that have begun."""
    with contextlib.suppress(RltError):
        folders = [run.folder for run in GroupFolder.open(path).run_names()]
        return [
            of_a_run(entry_of(path / each, f"{name}/{each}", False))
            for each in folders
            if is_run(path / each)
        ]
    return []


def disk_bytes(path: Path) -> int:
    """Return the bytes on the disk of a folder and all within; links are not followed."""
    total = 0
    with contextlib.suppress(OSError):
        total += system.bytes_on_disk(os.lstat(path))
        if not path.is_symlink():
            with os.scandir(path) as found:
                for entry in found:
                    if entry.is_dir(follow_symlinks=False):
                        total += disk_bytes(Path(entry.path))
                    else:
                        total += system.bytes_on_disk(entry.stat(follow_symlinks=False))
    return total


def seeds_of(entry: Entry) -> str:
    return seed_ranges(entry.seeds) if entry.seeds else "-"


OF_GROUP = (REPORT_FILE, CURVES_FILE, STORAGE_FILE, f"{STORAGE_FILE}-journal")
NAME = re.compile(r"[^\W_][^/\0]{0,199}")


def find_named(name: str) -> Path:
    """Return the folder of a run or group; UsageError if it is a link."""
    path = find_group(name) or find_run(name)
    if path.is_symlink():
        raise UsageError(f"{path} is a symbolic link: name the folder that it leads to")
    return path.resolve()


@contextlib.contextmanager
def held(paths: Iterable[Path]) -> Iterator[None]:
    """Lock these runs and groups; UsageError if another process writes to one.

    DamagedFileError: a folder is not as our tools write it.
    """
    with contextlib.ExitStack() as stack:
        for path in paths:
            for folder in opened(path):
                folder.lock()
                stack.callback(folder.close)
        yield


def opened(path: Path) -> Iterator[RunFolder | GroupFolder]:
    """Open a run, or a group and its runs."""
    if is_run(path):
        run = RunFolder.open(path)
        if not run.content.experiment or run.content.format is UNSET:
            raise DamagedFileError(
                f"{run.run_path} does not name format and experiment as a run's does: "
                "remove that folder by hand"
            )
        yield run
        return
    group = GroupFolder.open(path)
    yield group
    for member in members(group):
        yield from opened(member)


def members(group: GroupFolder) -> list[Path]:
    """Return the folders of the runs that have begun, without links."""
    found = []
    for name in group.run_names():
        path = group.path / name.folder
        is_linked = path.is_symlink() or (name.variant and path.parent.is_symlink())
        if is_run(path) and not is_linked:
            found.append(path)
    return found


# -- renaming --------------------------------------------------------------------------------------


def rename(path: Path, name: str) -> Path:
    """Rename a run or a group within its folder; return the new path."""
    if name == LATEST or NAME.fullmatch(name) is None or not name.isprintable():
        raise UsageError(
            f'"{name}" is not a name for a run: begin with a letter or digit, write no slash, and '
            f"choose another than {LATEST}"
        )
    for above in path.parents[:2]:  # <group>/s0 or <group>/<variant>/s0
        if is_group(above):
            raise UsageError(f"{path} is a run of the group {above}: rename the group")
    target = path.with_name(name)
    with held([path]):
        try:
            system.rename_folder(path, target)
        except FileExistsError:
            raise UsageError(f"{target} is there already: choose another name") from None
        except OSError as error:
            raise disk_error(target, error) from None
    return target


# -- deletion --------------------------------------------------------------------------------------


def delete(path: Path) -> list[Path]:
    """Delete a run or a group that is `held`; return the paths that stay, as they are not ours."""
    if is_run(path):
        delete_run(path)
    else:
        group = GroupFolder.open(path)
        for member in members(group):
            delete_run(member)
        for variant in group.variants:
            if variant.name:
                remove_folder(path / variant.name)
        remove_files(path / SCRATCH, lambda _: True)
        remove_folder(path / SCRATCH)
        remove_files(path, lambda name: name in OF_GROUP or is_partial(name))
        remove_files(path, GROUP_FILE.__eq__)
        remove_folder(path)
    return [path / name for name in names_of(path)]


def delete_run(path: Path) -> None:
    for save in saves_in(path):
        remove_files(path / save, SAVED_FILES.__contains__)
        remove_folder(path / save)
    for name in names_of(path):
        if is_partial(name):  # of a save
            remove_files(path / name, lambda _: True)
            remove_folder(path / name)
    remove_files(path, lambda name: name != RUN_FILE and is_of_run(name))
    remove_files(path, RUN_FILE.__eq__)
    remove_folder(path)


def is_of_run(name: str) -> bool:
    """Return True if this is the name of a file that a run writes."""
    is_own = OWN_FILE.fullmatch(name) or RESULT_FILE.fullmatch(name)
    return bool(is_own) or name in SAVED_FILES or is_partial(name)


def names_of(path: Path) -> list[str]:
    """Return the names in a folder; none of a link to one."""
    try:
        return [] if path.is_symlink() else sorted(os.listdir(path))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise disk_error(path, error) from None


def remove_files(path: Path, is_ours: Callable[[str], bool]) -> None:
    """Remove the files with these names in a folder, as system.remove_files() does."""
    try:
        system.remove_files(path, is_ours)
    except OSError as error:
        raise disk_error(Path(error.filename), error) from None


def remove_folder(path: Path) -> None:
    """Remove the folder if it is empty."""
    with contextlib.suppress(OSError):
        path.rmdir()
