"""Errors that a user can cause or meet: one sentence each, and an exit code for each
of six kinds (docs/design.md).

A subclass is there only where code catches it apart from its base, whose exit code it has.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, ClassVar


class RltError(Exception):
    """An error that is shown as one sentence (what, where, what to do), never as a traceback."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.details: dict[str, Any] = {}  # further keys of the object that `--json` prints


class UsageError(RltError):
    """A command line, a value or a name on it that makes no sense."""

    exit_code = 2


# -- the environment -------------------------------------------------------------------------------


class EnvironmentFaultError(RltError):
    """A fault of what is needed here: a tool, a build, or the environment that a task runs."""

    exit_code = 3


class MissingToolError(EnvironmentFaultError):
    """A program or a Python package that is needed, and is not installed."""


class BuildError(EnvironmentFaultError):
    """A failure of compiling or linking, or a result that exceeds a memory region."""


class EnvironmentLostError(EnvironmentFaultError):
    """An environment that has ended or does not answer; a run that had begun was saved."""


class TrainingFaultError(EnvironmentFaultError):
    """A training that the board stopped because a value was not finite."""

    what_a_check_says = "says whether the environment does it, and by which action"

    def __init__(self, message: str, cause: str = "") -> None:
        """Keep as `cause` the clause that names the value."""
        super().__init__(message)
        self.cause = cause


class BrokenEnvironmentError(TrainingFaultError):
    """A value that was not finite in the environment's step that the message names."""

    what_a_check_says = "looks for more such steps"


# -- the board -------------------------------------------------------------------------------------


class BoardError(RltError):
    """A board that cannot be reached, or that does not fit what it is used for."""

    exit_code = 4


class PortError(BoardError):
    """A port that cannot be opened, or on which no board answers."""


class LinkLostError(BoardError):
    """A board that stopped answering: unplugged, closed or killed."""


class BoardMismatchError(BoardError):
    """A board, or a file, of another experiment, version or firmware."""


class FileNotThereError(BoardMismatchError):
    """A file that the board does not have."""


# -- the disk --------------------------------------------------------------------------------------


class FileError(RltError):
    """A file that cannot be read or written."""

    exit_code = 5


class DamagedFileError(FileError):
    """A file whose content is not of its format, or does not match its checksum."""


class DiskError(FileError):
    """A file that cannot be written: the disk is full, or the folder is read-only."""

    def __init__(self, message: str, cause: str = "", first: str = "") -> None:
        """Keep the sentence without its remedy as `cause`, and what to do about the disk."""
        super().__init__(message)
        self.cause = cause or message
        self.first = first or "make room for it"

    def then(self, remedy: str, besides: str = "") -> DiskError:
        """Return the error with another remedy: `free some space, then go on with ...`."""
        clauses = [self.cause, *([besides] if besides else []), f"{self.first}, then {remedy}"]
        return DiskError("; ".join(clauses), self.cause, self.first)


# -- the policy ------------------------------------------------------------------------------------


class RefusedError(RltError):
    """A policy, a state or a request that is not accepted.

    A policy fails its gate or flight, bits are not those of this machine, or the board refuses.
    """

    exit_code = 6


class Interrupted(RltError):
    """A command that the user stopped with Ctrl-C; the message says how to continue."""

    exit_code = 130


SUGGESTIONS = 3
SHORTEST_PART = 3  # of a name that is suggested, as it has what was typed


def near_matches(name: str, known: Iterable[str], last: int = 0) -> str:
    """Return a clause for an unknown name: the names that are similar or contain it, or else all.

    Of names in the order of time, it has the `last` ones.
    """
    names = [*known] if last else sorted(known)
    part_of = [each for each in names if name in each] if len(name) >= SHORTEST_PART else []
    similar = difflib.get_close_matches(name, names, n=SUGGESTIONS)
    if close := [*dict.fromkeys([*similar, *reversed(part_of)])][:SUGGESTIONS]:
        return f"did you mean {' or '.join(close)}?"
    if not names:
        return "there are none"
    if 0 < last < len(names):
        return f"the last of {len(names):,} are {', '.join(names[-last:])}"
    return f"known are {', '.join(names)}"


def unknown_name(kind: str, name: str, known: Iterable[str], last: int = 0) -> UsageError:
    """Return an error such as `unknown board "hots": did you mean host?`."""
    return UsageError(f'unknown {kind} "{name}": {near_matches(name, known, last)}')
