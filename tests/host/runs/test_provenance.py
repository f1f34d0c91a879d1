"""Where a run comes from: what it says of the tree, the packages and the machine."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import replace
from pathlib import Path

import pytest

import rltools_host
from rltools_host.runs import provenance
from rltools_host.runs.contents import Run
from rltools_host.tree import TREE


def test_the_machine_and_the_packages_are_named() -> None:
    assert provenance.machine() == {
        "platform": platform.platform(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
    }
    versions = provenance.package_versions()
    assert versions["python"] == platform.python_version()
    assert versions["rltools_host"] == rltools_host.__version__
    assert re.fullmatch(r"[\d.]+", versions["pymavlink"])


def test_a_tree_without_git_has_no_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (TREE.root / ".git").exists():
        revision = provenance.git_revision()["git_revision"]
        assert re.fullmatch(r"[0-9a-f]{40}", revision)
        assert provenance.version() == f"{rltools_host.__version__} {revision}"
    monkeypatch.setattr(provenance, "TREE", replace(TREE, root=tmp_path))
    assert provenance.git_revision() == {"git_revision": None, "git_dirty": None}
    assert provenance.version() == rltools_host.__version__


def test_a_checkpoint_says_its_revision_where_there_is_one() -> None:
    run = Run(state="paused")
    assert provenance.checkpoint_versions(run) == run.versions
    run = Run(state="paused", git_revision="abc")
    assert provenance.checkpoint_versions(run) == {**run.versions, "git_revision": "abc"}
