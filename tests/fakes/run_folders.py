"""Folders of runs and groups from plain documents, and their documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs, to_builtins

from rltools_host.documents import typed
from rltools_host.files import plain_json
from rltools_host.runs.contents import Group, Run
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.group import FORMAT, GroupFolder


def new_run(
    path: Path,
    document: Mapping[str, Any] | None = None,
    files: Sequence[tuple[str, bytes]] = (),
    restarts: bool = False,
) -> RunFolder:
    return RunFolder.create(path, typed(plain_json(document or {}), Run), files, restarts)


def new_group(path: Path, document: Mapping[str, Any]) -> GroupFolder:
    return GroupFolder.create(path, typed({"format": FORMAT, **document}, Group))


def change(folder: RunFolder, **fields: Any) -> None:
    """Write run.json with these fields changed."""
    folder.write(structs.replace(folder.content, **fields))


def document_of(folder: RunFolder | GroupFolder) -> dict[str, Any]:
    """Return run.json or group.json."""
    document: dict[str, Any] = to_builtins(folder.content)
    return document
