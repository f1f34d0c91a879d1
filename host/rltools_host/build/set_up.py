"""Sets up .venv with the system's Python and its standard library only, after one question about
all that is fetched, and becomes the command line.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "../..")))

from collections.abc import Sequence
from typing import NoReturn

from rltools_host.build import tools
from rltools_host.build.toolchains import GROUPS
from rltools_host.errors import Interrupted, MissingToolError, RltError
from rltools_host.tree import TREE

AGREED = "RLT_YES"  # in the environment, as --yes before the command
NOT_ASKED = ("CI", AGREED)


def question() -> str:
    """Return the question before .venv is created, which lists all that may be fetched."""
    others = ", ".join(
        f"{name} {group.megabytes} MB"
        for name, group in GROUPS.items()
        if group.megabytes and name != "default"
    )
    return (
        f"This sets up {TREE.virtual_environment}:\n"
        f"  Python packages, {GROUPS['default'].megabytes} MB to fetch\n"
        "Commands that need more fetch it when they are called, and say how much it is:\n"
        f"  other Python packages ({others}),\n"
        "  compilers and emulators by apt-get, if that is allowed here without a password.\n"
        "Nothing is written outside this folder, but for what apt-get installs.\n"
        "Go on? [Y/n] "
    )


def is_agreed(words: Sequence[str]) -> bool:
    """Ask for consent on a terminal; `words` are those after the launcher.

    A script is not asked: its call is the consent.
    """
    is_asked = sys.stdin.isatty() and sys.stderr.isatty()
    if "--yes" in words[:1] or not is_asked or any(os.environ.get(name) for name in NOT_ASKED):
        return True
    print(question(), end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    return answer.strip().lower() in ("y", "yes") or answer == "\n"


def main() -> int:
    """Return the exit code of the set-up."""
    try:
        is_new = not tools.environment_python().exists()
        if is_new and not is_agreed(sys.argv[1:]):
            print("nothing was installed", file=sys.stderr)
            return 1
        tools.set_up()
    except RltError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        what = error.filename or TREE.virtual_environment
        print(f"error: {what}: {error.strerror or error}; {tools.OWN_CLONE}", file=sys.stderr)
        return MissingToolError.exit_code
    except KeyboardInterrupt:
        print("interrupted; the next start continues the set-up", file=sys.stderr)
        return Interrupted.exit_code
    return 0


def become_command_line() -> NoReturn:
    """Run the command line with the words after the launcher in place of this program."""
    program = str(TREE.file("host/rltools_host/__main__.py"))
    words = [str(tools.environment_python()), "-I", program, *sys.argv[1:]]
    if os.name == "nt":  # where a program that replaces this one is one that no shell waits for
        sys.exit(subprocess.call(words))
    os.execv(words[0], words)


if __name__ == "__main__":
    if code := main():
        sys.exit(code)
    become_command_line()
