"""Who plays the episodes of a task, as those see it who train; without what only players need."""

from __future__ import annotations

import abc
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rltools_host.gymnasium_tasks.task import Task

FAULT = "the environment failed: "  # an event of a run, before its sentence
FAULTS_FILE = "faults.json"  # in the folder of a server that is a process


@dataclass
class Faults:
    """How often an environment failed and was begun anew."""

    count: int = 0
    first: str = ""  # a sentence
    given_up: str = ""  # why nothing is played any more

    def document(self) -> dict[str, Any]:
        return {"count": self.count, "first": self.first, "given_up": self.given_up}


class EnvironmentServer(abc.ABC):
    """Plays the episodes of a task for the program that trains."""

    task: Task
    folder: Path  # in which its socket lies

    @property
    def socket_path(self) -> Path:
        return self.folder / "socket"

    @abc.abstractmethod
    def faults(self) -> Faults:
        """How often an environment has failed up to now."""

    @abc.abstractmethod
    def failure(self) -> str:
        """Why it plays no more; empty as long as it does."""

    @abc.abstractmethod
    def close(self) -> None:
        """Ends it; a second time does nothing."""


def new_folder() -> Path:
    """A short path, as a socket's may have 107 bytes, where nobody else may enter."""
    return Path(tempfile.mkdtemp(prefix="rlt-", dir="/tmp" if Path("/tmp").is_dir() else None))
