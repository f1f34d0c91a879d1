"""Locks the Python packages of pyproject.toml in lock.txt: exact versions with hashes, for each
system and Python 3.11 to 3.14.

A line under each package names the groups that need it. Needs uv (pip install uv). Versions stay as
they are where they can, or become the newest with --upgrade.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
LOCK = TREE / "host/requirements/lock.txt"
HEADER = "# Written by host/requirements/lock.py; install with `./rlt`.\n"
ENTRY = re.compile(r"^(?=[a-z0-9])", re.MULTILINE)


def compiled(*options: str) -> list[str]:
    """Return the entries of uv for these options."""
    command = ["uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"]
    command += ["--no-header", "--no-annotate", "--no-emit-index-url", *options]
    text = subprocess.run(command, cwd=TREE, stdout=subprocess.PIPE, text=True, check=True).stdout
    return ENTRY.split(text)[1:]


def pinned(entry: str) -> str:
    """Return `name==version` of an entry."""
    return entry.split()[0]


def main() -> None:
    groups = tomllib.loads((TREE / "pyproject.toml").read_text())["dependency-groups"]
    together = [word for group in groups for word in ("--group", group)]
    former = [] if "--upgrade" in sys.argv[1:] else ["--constraint", str(LOCK)]
    entries = compiled("pyproject.toml", *together, "--generate-hashes", *former)
    with_hashes = LOCK.with_suffix(".new")
    with_hashes.write_text("".join(entries))
    needed = {"default": ["pyproject.toml"]} | {group: ["--group", group] for group in groups}
    names = {
        group: {pinned(entry) for entry in compiled(*options, "--constraint", str(with_hashes))}
        for group, options in needed.items()
    }
    lines = [HEADER]
    for entry in entries:
        of_entry = [group for group in names if pinned(entry) in names[group]]
        lines.append(f"{entry.rstrip()}\n    # groups: {' '.join(of_entry)}\n")
    with_hashes.write_text("".join(lines))
    with_hashes.replace(LOCK)


if __name__ == "__main__":
    main()
