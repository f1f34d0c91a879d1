"""Which Python files may be imported for a task: those that the user has named in this checkout.

A run says by itself what its task is imported from, and a run may come from anybody. What a user
names (`rlt train gym:FILE.py:NAME`, `rlt evaluate RUN --task gym:MODULE:ID`) is noted outside of
all runs, by the place of the file; a run's word alone imports nothing else. An id of Gymnasium's
own needs no agreement, as it imports nothing but Gymnasium.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from rltools_host.errors import UnknownNameError, UsageError
from rltools_host.files import disk_error, write_atomically
from rltools_host.gymnasium_tasks.task import PREFIX
from rltools_host.hints import command_line
from rltools_host.project import PROJECT


def file_named_by(source: str) -> Path | None:
    """What gym:FILE.py:NAME or gym:MODULE:ID imports; None where that is nothing but Gymnasium.

    Nothing is imported to find it. UsageError, UnknownNameError: there is no such file.
    """
    place, colon, identity = source.removeprefix(PREFIX).rpartition(":")
    if not colon:
        return None
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise no_file(place)
        return Path(place).resolve()
    before = list(sys.path)
    look_in(Path.cwd())
    try:
        return file_of_module(place, identity)
    finally:
        sys.path[:] = before


def look_in(*folders: Path) -> None:
    """Has Python find modules where PYTHONPATH says, which isolated processes leave out, and in
    these folders; what is installed comes first."""
    own = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path += [entry for entry in (*own, *map(str, folders)) if entry not in sys.path]


def file_of_module(module: str, identity: str) -> Path:
    specification: ModuleSpec | None = None
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        try:
            if specification is None:
                specification = importlib.util.find_spec(part)
            else:
                within = specification.submodule_search_locations
                specification = PathFinder.find_spec(name, within) if within else None
        except (ImportError, ValueError):
            specification = None
        if specification is None:
            raise no_module(name, identity)
    assert specification is not None
    folders = list(specification.submodule_search_locations or [])
    place = specification.origin if specification.has_location else next(iter(folders), None)
    if place is None:
        raise no_module(name, identity)
    return Path(place).resolve()


def no_file(place: str) -> UsageError:
    return UsageError(f"there is no file {place}: gym:FILE.py:NAME names a class or a function")


def no_module(module: str, identity: str) -> UnknownNameError:
    return UnknownNameError(
        f'there is no Python module "{module}": for {identity} start the command in its '
        "folder, or install it"
    )


def note_of(file: Path) -> Path:
    """Which is there where the user has named the file."""
    return PROJECT.named_tasks / hashlib.sha256(os.fsencode(file)).hexdigest()


def agree(source: str) -> None:
    """The user has named this task: its file may be imported, now and for runs that name it."""
    file = file_named_by(source)
    if file is None or note_of(file).is_file():
        return
    note = note_of(file)
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(note, error) from None
    write_atomically(note, os.fsencode(file) + b"\n")


def is_agreed(source: str) -> bool:
    """Whether what a run says of its task may be imported."""
    file = file_named_by(source)
    return file is None or note_of(file).is_file()


def require_agreement(source: str) -> None:
    """UsageError unless it may be."""
    if is_agreed(source):
        return
    train = command_line("train", source, "--resume", "RUN")
    evaluate = command_line("evaluate", "RUN", "--task", source)
    raise UsageError(
        f"the task {source} is Python code that a run names, and that you have not named here: it "
        f"was not imported; if you trust it, name it yourself, as in `{evaluate}` or `{train}`"
    )


def source_to_play(source: str, named: str | None) -> str:
    """What makes the environments of a run's task: what the user names (None: nothing), which may
    lie elsewhere than the run says, else what the run says, where that may be imported."""
    if named is None:
        require_agreement(source)
        return source
    (place, _, name), (own, _, same) = (
        each.removeprefix(PREFIX).rpartition(":") for each in (source, named)
    )
    if name != same or bool(place) != bool(own):  # Gymnasium's own task lies nowhere else
        raise UsageError(f"the run was trained on {source}, not on {named}")
    agree(named)
    return named
