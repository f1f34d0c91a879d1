"""The program of a GPU: when it is built again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rltools_host.build import gpu
from rltools_host.build.experiments import build_description
from rltools_host.tree import TREE

INCLUDED = re.compile(r'^#include "(.+)"$', re.MULTILINE)


def test_an_edit_of_each_header_builds_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    source = TREE.root / gpu.SOURCE
    folders = [TREE.root / folder for folder in build_description()["include_directories"]]
    included = [
        path
        for name in INCLUDED.findall(source.read_text())
        for path in (folder / name for folder in folders)
        if path.is_file()
    ]
    assert len(included) > 4
    read = Path.read_bytes

    def digest(edited: Path | None) -> str:
        with monkeypatch.context() as patched:
            patched.setattr(Path, "read_bytes", lambda path: read(path) + b" " * (path == edited))
            return gpu.digest_of_sources("pendulum-td3", [])

    present = digest(None)
    assert present == digest(TREE.root / "README.md")
    assert [path.name for path in (source, *included) if digest(path) == present] == []
