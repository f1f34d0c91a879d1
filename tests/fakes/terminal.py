"""A command on a terminal of so many columns, and the lines that are left on its screen."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]")


def on_terminal(
    command: Sequence[str | Path],
    width: int,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[int, list[str]]:
    """Its exit code, and every line that it wrote, also those that it wrote over later."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("4H", 40, width, 0, 0))
    given = os.environ if environment is None else environment
    # pytest-xdist tells its workers the width of its own terminal.
    given = {name: value for name, value in given.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        list(map(str, command)), stdin=its, stdout=its, stderr=its, cwd=folder, env=given
    ) as process:
        os.close(its)
        output = b""
        try:
            while piece := os.read(ours, 65536):
                output += piece
        except OSError:  # it has closed its end
            pass
    os.close(ours)
    text = CONTROL.sub("", output.decode())
    return process.returncode, [line for line in re.split(r"[\r\n]+", text) if line.strip()]


def drawn(picture: Any, width: int, height: int) -> list[str]:
    """The lines of a picture on a terminal of this size, without colors."""
    stream = io.StringIO()
    console = Console(
        file=stream, width=width, height=height, force_terminal=True, color_system=None
    )
    console.print(picture)
    return stream.getvalue().rstrip("\n").split("\n")
