"""What is about to be fetched, how much it is, and the one question about it.

Uses the standard library only, as tools.py does.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence

from rltools_host.tree import TREE

# Of each group's locked wheels, for CPython 3.11 on Linux x86-64, with those that other groups
# have, too; what a group stands in for says its own (tools.STAND_INS).
MEGABYTES = {
    "default": 89,
    "test": 67,
    "lint": 30,
    "platformio": 8,
    "crazyflie": 55,
    "fit": 52,
    "onnx": 51,
    "parquet": 55,
    "esp-idf": 7,
    "mujoco": 51,
    "tune": 24,
    "ray": 83,
    "wandb": 28,
    "browser": 55,
    "docs": 38,
}
AGREED = "RLT_YES"  # in the environment, as --yes before the command
NOT_ASKED = ("CI", AGREED)
# A line of apt-get --print-uris: address, file, bytes, checksum.
ADDRESS = re.compile(r"^'[^']+' \S+ (\d+) ", re.MULTILINE)


def group_note(group: str) -> str:
    """` (89 MB to fetch)`, at most; empty where nobody knows."""
    size = MEGABYTES.get(group)
    return f" ({size} MB to fetch, or less)" if size else ""


def packages_note(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """The same of Debian packages: what this command of apt-get would fetch."""
    try:
        asked = subprocess.run(
            [*command, "--print-uris"],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    size = sum(map(int, ADDRESS.findall(asked.stdout)))
    return f": {max(size / 1e6, 0.1):,.1f} MB to fetch" if size else ""


def question() -> str:
    """Before .venv is made for the first time: it is about all that follows."""
    others = ", ".join(
        f"{group} {size} MB" for group, size in MEGABYTES.items() if group != "default"
    )
    return (
        f"This sets up {TREE.virtual_environment}:\n"
        f"  Python packages, {MEGABYTES['default']} MB to fetch\n"
        "Commands that need more fetch it when they are called, and say how much it is:\n"
        f"  other Python packages ({others}),\n"
        "  compilers and emulators by apt-get, if that is allowed here without a password.\n"
        "Nothing is written outside this folder, but for what apt-get installs.\n"
        "Go on? [Y/n] "
    )


def is_agreed(words: Sequence[str]) -> bool:
    """Asks once, where there is somebody to ask: `words` are those behind the launcher's name.

    A script is not asked: it says by calling that it wants what it calls.
    """
    is_asked = sys.stdin.isatty() and sys.stderr.isatty()
    if "--yes" in words[:1] or not is_asked or any(os.environ.get(name) for name in NOT_ASKED):
        return True
    print(question(), end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    return answer.strip().lower() in ("y", "yes") or answer == "\n"
