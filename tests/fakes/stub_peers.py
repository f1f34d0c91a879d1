"""Peers of benchmarks whose environments are there already."""

from __future__ import annotations

import sys
from pathlib import Path


def add_peer(peers: Path, environments: Path, name: str, script: str, file_name: str) -> None:
    """Its environment is this interpreter with what it has installed."""
    (peers / name).mkdir(parents=True)
    (peers / name / file_name).write_text(script)
    (peers / name / "requirements.txt").write_text("# nothing\n")
    environment = environments / name
    (environment / "bin").mkdir(parents=True)
    python = environment / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (environment / "rlt-requirements.txt").write_text("# nothing\n")
