"""Entry point of the launcher `rlt` and of `python -m rltools_host`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

SET_UP_AGAIN = "RLT_SET_UP_AGAIN"  # in the environment of the launcher's second start


def set_up_again(error: ModuleNotFoundError) -> NoReturn:
    """Remove the stamps of a damaged .venv and restart the launcher, once; else exit with a remedy.

    The launcher starts Python isolated (`-I`); another start does not touch .venv.
    """
    package = Path(__file__).resolve().parent
    environment = package.parents[1] / ".venv"
    launcher = os.environ.get("RLT_COMMAND")
    is_launched = bool(launcher) and bool(sys.flags.isolated)
    is_own = is_launched or Path(sys.prefix) == environment
    damage = f"{environment if is_own else sys.prefix} is damaged ({error})"
    remedy = "delete it, ./rlt sets it up again"
    if is_launched and SET_UP_AGAIN not in os.environ:
        try:
            for stamp in ("rlt-environment.txt", "rlt-default.txt", "rlt-lock.txt"):
                (environment / stamp).unlink(missing_ok=True)
            print(f"{environment} is damaged ({error}): it is set up again", file=sys.stderr)
            words = [str(launcher), *sys.argv[1:]]
            os.execve(words[0], words, {**os.environ, SET_UP_AGAIN: "1"})
        except OSError as failure:
            damage += f", and cannot be repaired ({failure})"
            if isinstance(failure, PermissionError):
                remedy = "clone the tree for yourself and run ./rlt there"
    if (package / "tree").is_dir():  # installed from a wheel
        sys.exit(f"error: {damage}: pip install --force-reinstall rltools-host")
    if not is_own:
        sys.exit(f"error: {sys.executable}: {error}; start {environment.parent / 'rlt'}")
    sys.exit(f"error: {damage}: {remedy}")


def start() -> NoReturn:
    """Import and run the command line."""
    try:
        from rltools_host.commands import cli
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("rltools_host."):
            raise
        set_up_again(error)
    os.environ.pop(SET_UP_AGAIN, None)
    cli.main()


def main() -> NoReturn:
    """Run the command line; end with one word where Ctrl-C comes while modules are imported."""
    try:
        start()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
