"""Virtual environments of the benchmarks' peers: pinned, made on demand, outside the package."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rltools_host.bench import harness
from rltools_host.errors import MissingToolError
from rltools_host.project import PROJECT

INSTALL_LIMIT_S = 1800.0


def python_of(name: str, requirements: Path, directory: Path | None = None) -> Path:
    """The environment's interpreter; installs what requirements.txt pins where it is not there."""
    environment = (directory or PROJECT.benchmarks) / name
    python = environment / "bin" / "python"
    stamp = environment / "rlt-requirements.txt"
    wanted = requirements.read_bytes()
    if python.exists() and stamp.is_file() and stamp.read_bytes() == wanted:
        return python
    print(f"Setting up {name} for comparison", file=sys.stderr, flush=True)
    shutil.rmtree(environment, ignore_errors=True)
    install(name, [sys.executable, "-I", "-m", "venv", str(environment)])
    pip = [str(python), "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    install(name, [*pip, "-r", str(requirements)])
    stamp.write_bytes(wanted)
    return python


def install(name: str, command: Sequence[str]) -> None:
    result = harness.run_to_end(f"installing {name}", command, INSTALL_LIMIT_S)
    if result.returncode != 0:
        raise MissingToolError(f"{name} cannot be installed: {last_line(result.stderr)}")


def last_line(text: str) -> str:
    """Of what a program complained about: the line that says what it was."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def measure(
    name: str,
    python: Path,
    script: Path,
    arguments: Sequence[object],
    limit_s: float,
) -> dict[str, Any]:
    """Runs a peer's script with one thread; the JSON object on the last line that has one."""
    temporary = python.parent.parent / "tmp"  # what a peer compiles or leaves behind is its own
    temporary.mkdir(exist_ok=True)
    environment = {"PYTHONPATH": str(harness.BENCHMARKS_DIRECTORY), "TMPDIR": str(temporary)}
    result = harness.run_to_end(
        name,
        [str(python), str(script), *map(str, arguments)],
        limit_s,
        harness.one_thread_environment(environment),
        temporary,
    )
    if result.returncode != 0:
        raise harness.MeasurementError(
            f"{name} ended with code {result.returncode}: {last_line(result.stderr)}"
        )
    for line in reversed(result.stdout.splitlines()):
        if line.startswith("{"):
            try:
                document = json.loads(line)
            except ValueError:
                break
            if isinstance(document, dict):
                return document
    raise harness.MeasurementError(f"{name} printed no measurement")
