"""The command line in processes of its own, and how the runs of a group stand meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from rltools_host.runs.folder import RunFolder
from rltools_host.tree import TREE
from run_folders import document_of

RLT = (sys.executable, "-m", "rltools_host")
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": f"{TREE.root / 'host'}:{TREE.root / 'tests' / 'fakes'}",
    "TERM": "dumb",
    "RLT_COMMAND": str(TREE.root / "rlt"),
}


def rlt(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RLT, *map(str, words)],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=200,
        **options,
    )


def started(*words: str | Path, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*RLT, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        **options,
    )


def trains(run: Path) -> bool:
    """Whether the run has reported, and is not at its end."""
    metrics = run / "metrics.jsonl"
    if not metrics.is_file() or not metrics.stat().st_size:
        return False
    return str(RunFolder.open(run).content.state) == "training"


def is_state(run: Path, state: str) -> bool:
    return (run / "run.json").is_file() and RunFolder.open(run).content.state == state


def state_of(run: Path) -> str:
    """The hash of a run that has finished."""
    metadata = document_of(RunFolder.open(run))
    assert metadata["state"] == "finished"
    return str(metadata["state_sha256"])


def children_of(pid: int) -> list[int]:
    """None where it has ended."""
    try:
        text = (Path("/proc") / str(pid) / "task" / str(pid) / "children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def command_of(pid: int) -> str:
    """Empty where it has ended, which it may between being found and being asked."""
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
