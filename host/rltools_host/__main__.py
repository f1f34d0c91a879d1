"""Entry point of the launcher `rlt`, which runs this file without `site`, and of `-m rltools_host`.

While modules are loaded Ctrl-C has the system's action, which ends the process without a traceback;
`cli.main` makes it an exception again.
"""

import _signal  # of the interpreter: `signal` itself takes milliseconds to load
import sys

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

if sys.flags.no_site:
    import site

    site.main()

try:
    from rltools_host.cli import main
except ModuleNotFoundError as error:
    if (error.name or "").startswith("rltools_host."):
        raise
    sys.exit(f"error: {sys.prefix} is damaged ({error}): delete it, ./rlt sets it up again")

if __name__ == "__main__":
    main()
