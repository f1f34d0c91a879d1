"""Sets up .venv for the launcher, with the system's Python and its standard library only.

While modules are loaded Ctrl-C has the system's action, as in __main__.py.
"""

import _signal
import sys
from os import path

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

sys.path.insert(0, path.abspath(path.join(path.dirname(__file__), "../..")))

import signal

from rltools_host.errors import Interrupted, RltError
from rltools_host.toolchain import downloads, tools


def main() -> int:
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        is_new = not tools.environment_python().exists()
        if is_new and not downloads.is_agreed(sys.argv[1:]):
            print("nothing was installed", file=sys.stderr)
            return 1
        tools.set_up()
    except RltError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted; the next start continues the set-up", file=sys.stderr)
        return Interrupted.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
