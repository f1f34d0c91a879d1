"""Entry point of the launcher `rlt`, which runs this file without `site`, and of `-m rltools_host`.

While modules are loaded Ctrl-C has the system's action, which ends the process without a traceback;
`cli.main` makes it an exception again.
"""

from __future__ import annotations

import _signal  # of the interpreter: `signal` itself takes milliseconds to load
import sys

# First of all: `os` alone takes a millisecond to load.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
if "rlt_interrupt_waits" in sys._xoptions:  # the launcher has blocked it
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGINT])

import os

TYPE_CHECKING = False  # typing takes milliseconds to load
if TYPE_CHECKING:
    from typing import NoReturn

if sys.flags.no_site:
    import site

    site.main()

SET_UP_AGAIN = "RLT_SET_UP_AGAIN"  # in the environment of the launcher's second start


def set_up_again(error: ModuleNotFoundError) -> NoReturn:
    """Starts the launcher anew, once, with a .venv whose stamps no longer say that it is whole."""
    tree = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    environment = os.path.join(tree, ".venv")
    launcher = os.environ.get("RLT_COMMAND")
    damage = f"{sys.prefix} is damaged ({error})"
    if launcher and sys.flags.no_site and SET_UP_AGAIN not in os.environ:
        try:
            for stamp in ("rlt-environment.txt", "rlt-default.txt"):
                if os.path.exists(os.path.join(environment, stamp)):
                    os.unlink(os.path.join(environment, stamp))
            print(f"{environment} is damaged ({error}): it is set up again", file=sys.stderr)
            words = ["/bin/sh", launcher, *sys.argv[1:]]
            os.execve(words[0], words, {**os.environ, SET_UP_AGAIN: "1"})
        except OSError as failure:
            damage += f", and cannot be repaired ({failure})"
    if os.path.isdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tree")):  # a wheel's
        sys.exit(f"error: {damage}: pip install --force-reinstall rltools-host")
    sys.exit(f"error: {damage}: delete it, ./rlt sets it up again")


try:
    from rltools_host.commands.cli import main
except ModuleNotFoundError as error:
    if (error.name or "").startswith("rltools_host."):
        raise
    set_up_again(error)
os.environ.pop(SET_UP_AGAIN, None)

if __name__ == "__main__":
    main()
