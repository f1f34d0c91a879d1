"""Who plays the episodes of a run: the core, or environments of Python's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rltools_host.clients.messages import StatusText
from rltools_host.errors import UsageError
from rltools_host.gymnasium_tasks.environment_server import FAULT, OUTSIDE
from rltools_host.gymnasium_tasks.headers import headers_of
from rltools_host.gymnasium_tasks.imports import playable
from rltools_host.gymnasium_tasks.server_start import open_again, open_task
from rltools_host.gymnasium_tasks.task import TaskRequest
from rltools_host.link.framing import SEVERITY_NOTICE, SEVERITY_WARNING
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.task import Task
from rltools_host.training.plan import Plan, TrainingRequest

NEW_EPISODES = (
    "new episodes begin, as a checkpoint cannot hold those of Gymnasium's: the run goes on, but "
    "not with the bits of one that was never stopped"
)


@contextlib.contextmanager
def playing(request: TrainingRequest) -> Iterator[TrainingRequest]:
    """The request, with somebody who plays the episodes where the core does not."""
    server = None
    if request.resume is not None:
        folder = RunFolder.open(request.resume)
        asked = request.task
        if (task := folder.content.gymnasium) is not None:
            make_env = asked.make_env if isinstance(asked, TaskRequest) else None
            if make_env is None and not task.is_named:
                raise UsageError(
                    f"run {folder.name} was trained on {task.source} of a Python program: go on "
                    f"there with rlt.train_gymnasium(make_env, resume={folder.name!r})"
                )
            if request.experiment not in (None, task.experiment):
                raise UsageError(
                    f"run {folder.name} is of {task.source}, not of {request.experiment}: "
                    "leave the experiment out, the run names it"
                )
            server = open_again(
                playable(task, named_in(request)) if make_env is None else task, make_env
            )
        elif asked is not None:
            raise UsageError(f"run {folder.name} was trained on no task of Gymnasium's")
    elif isinstance(request.task, Task):
        server = open_again(request.task)
    elif request.task is not None:
        server = open_task(request.task)
    if server is None:
        yield request
        return
    with contextlib.closing(server):
        if request.built is None:
            headers_of(server.task).write()
        yield replace(request, experiment=server.task.experiment, server=server)


def named_in(request: TrainingRequest) -> str | None:
    """The task that the user names in a command that goes on, or has named for a whole group."""
    return request.task.source if request.task is not None else None


class EpisodeNotes:
    """What is worth knowing of the episodes of a run; nothing where the core plays them."""

    def __init__(self, plan: Plan) -> None:
        self._server = plan.server
        self._goes_on = plan.checkpoint is not None
        self._said: set[str] = set()

    def of_beginning(self) -> list[StatusText]:
        """What a checkpoint lacks of a run whose episodes are played in Python."""
        if self._server is None or not self._goes_on:
            return []
        return [StatusText(SEVERITY_NOTICE, NEW_EPISODES)]

    def new(self) -> list[StatusText]:
        """The first fault of each kind is an event of the run, like what a board says."""
        if self._server is None:
            return []
        faults = self._server.faults()
        said = {FAULT: faults.first, OUTSIDE: faults.first_outside}
        fresh = {kind: text for kind, text in said.items() if text and kind not in self._said}
        self._said |= fresh.keys()
        return [StatusText(SEVERITY_WARNING, kind + text) for kind, text in fresh.items()]

    def failure(self) -> str:
        """Why nobody plays any more; empty as long as somebody does."""
        return self._server.failure() if self._server is not None else ""

    def of_session(self) -> dict[str, Any]:
        """For run.json."""
        if self._server is None:
            return {}
        faults = self._server.faults()
        counts = {"environment_faults": faults.count}
        return counts | ({"observations_outside": faults.outside} if faults.outside else {})

    def document(self) -> dict[str, Any]:
        """For `rlt train --json`."""
        if self._server is None:
            return {}
        faults = self._server.faults()
        return {
            "task": self._server.task.source,
            "environment_faults": faults.count,
            "environment_fault": faults.first,
            "observations_outside": faults.outside,
            "observation_outside": faults.first_outside,
        }
