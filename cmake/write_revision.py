"""Writes a C header that defines RLT_REVISION: git's short hash, "-dirty" after local changes.

Usage: write_revision.py HEADER. Leaves a header alone that already says so: nothing is rebuilt.
The revision is empty without git.
"""

import os
import subprocess
import sys

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def revision() -> str:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=9", "--exclude=*"]
    try:
        output = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return output.stdout.strip()[:15]


def write_if_different(path: str, text: str) -> None:
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    write_if_different(sys.argv[1], f'#pragma once\n#define RLT_REVISION "{revision()}"\n')
