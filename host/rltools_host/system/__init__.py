"""The room for what differs by system: locks, child processes, signals, limits, descriptors.

`posix.py` and `windows.py` define the same names. Nothing else in the package names what only one
system has (tests/tree/test_system_calls.py). Both need the standard library only.
"""

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

if (TYPE_CHECKING and sys.platform != "win32") or (not TYPE_CHECKING and find_spec("fcntl")):
    from rltools_host.system.posix import *  # noqa: F403
else:
    from rltools_host.system.windows import *  # noqa: F403
