"""Errors that a user can cause or meet: one sentence (what, where, what to do), one exit code."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, ClassVar


class RltError(Exception):
    """An error that is shown as one sentence, never as a traceback."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.details: dict[str, Any] = {}  # further keys of the object that `--json` prints


class UsageError(RltError):
    """The command line or a value on it makes no sense."""

    exit_code = 2


class UnknownNameError(RltError):
    """No experiment, board, hyperparameter or run of this name."""

    exit_code = 3


class MissingToolError(RltError):
    """A program that is needed is not installed."""

    exit_code = 4


class PortError(RltError):
    """A port cannot be opened, or no board answers on it."""

    exit_code = 5


class BoardMismatchError(RltError):
    """The board, or a file, belongs to another experiment, version or firmware."""

    exit_code = 6


class FileNotThereError(BoardMismatchError):
    """A board has no file of this name."""


class DamagedFileError(RltError):
    """A file is not what its checksum says, or not of its format."""

    exit_code = 7


class DiskError(RltError):
    """A file cannot be written: the disk is full, or the place is read-only."""

    exit_code = 8

    def __init__(self, message: str, cause: str = "", first: str = "") -> None:
        """`cause` is the sentence without its remedy; `first` is what to do about the disk."""
        super().__init__(message)
        self.cause = cause or message
        self.first = first or "make room for it"

    def then(self, remedy: str, besides: str = "") -> DiskError:
        """The same with another remedy: `free some space, then go on with ...`."""
        clauses = [self.cause, *([besides] if besides else []), f"{self.first}, then {remedy}"]
        return DiskError("; ".join(clauses), self.cause, self.first)


class BuildError(RltError):
    """Compiling or linking failed, or the result exceeds a memory region."""

    exit_code = 9


class LinkLostError(RltError):
    """The board stopped answering: unplugged, closed or killed."""

    exit_code = 10


class TrainingFaultError(RltError):
    """The board stopped training by itself, as a value was not finite."""

    exit_code = 11
    what_a_check_says = "says whether the environment does it, and by which action"

    def __init__(self, message: str, cause: str = "") -> None:
        """`cause` says alone what was not finite."""
        super().__init__(message)
        self.cause = cause


class BrokenEnvironmentError(TrainingFaultError):
    """The value that was not finite came from the environment, by a step that the message names."""

    what_a_check_says = "looks for more such steps"


class VerificationError(RltError):
    """Two things that must be equal are not."""

    exit_code = 12


class PythonVersionError(RltError):
    """This Python is too old."""

    exit_code = 13


class RefusedError(RltError):
    """The board does not do what it is asked for, as it stands; or does not take a policy."""

    exit_code = 14


class EnvironmentLostError(RltError):
    """What plays the episodes has ended, or given up; a run that had begun was saved."""

    exit_code = 15


class FlightError(RltError):
    """A flight failed or was broken off: the message says why, and how the vehicle was left."""

    exit_code = 16


class GateError(RltError):
    """A policy was to succeed more often than it did."""

    exit_code = 17


class CheckError(RltError):
    """An environment has faults that are to be mended before a policy is trained in it."""

    exit_code = 18


class Interrupted(RltError):
    """The user pressed Ctrl-C; the message says how to go on."""

    exit_code = 130


def near_matches(name: str, known: Iterable[str]) -> str:
    """A clause for an unknown name: the closest known ones, or all when there are few."""
    names = sorted(known)
    if close := difflib.get_close_matches(name, names, n=3, cutoff=0.5):
        return f"did you mean {' or '.join(close)}?"
    if not names:
        return "there are none"
    return f"known are {', '.join(names)}"


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """For example: `unknown board "hots": did you mean host?`."""
    return UnknownNameError(f'unknown {kind} "{name}": {near_matches(name, known)}')
