"""Where a run comes from: revision of the sources, versions of packages, machine."""

from __future__ import annotations

import os
import platform
import subprocess
from typing import Any

import rltools_host
from rltools_host.runs.contents import Run
from rltools_host.tree import TREE


def git_revision() -> dict[str, Any]:
    """The tree's revision and whether it was changed since; empty outside of git, also where a
    repository around an installed tree is another's."""
    unknown = {"git_revision": None, "git_dirty": None}
    if not (TREE.root / ".git").exists():
        return unknown

    def git(*arguments: str) -> str:
        result = subprocess.run(
            ["git", "-C", str(TREE.root), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
        return result.stdout.strip()

    try:
        revision = git("rev-parse", "HEAD")
        return {"git_revision": revision, "git_dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return unknown


def version() -> str:
    """Of these tools: of the package, and of the tree where it has one."""
    revision = git_revision()["git_revision"]
    return f"{rltools_host.__version__}{f' {revision}' if revision else ''}"


def machine() -> dict[str, Any]:
    return {
        "platform": platform.platform(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
    }


def package_versions() -> dict[str, str]:
    from pymavlink import __version__ as pymavlink_version  # importlib.metadata takes longer

    return {
        "rltools_host": rltools_host.__version__,
        "python": platform.python_version(),
        "pymavlink": pymavlink_version,
    }


def checkpoint_versions(run: Run) -> dict[str, str]:
    """What the checkpoint says of its origin."""
    return run.versions | ({"git_revision": run.git_revision} if run.git_revision else {})
