"""Opens what plays a task's episodes, for a new run or for one that goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rltools_host.errors import UsageError
from rltools_host.gymnasium_tasks.agreement import agree, require_agreement, source_to_play
from rltools_host.gymnasium_tasks.environment_server import EnvironmentServer
from rltools_host.gymnasium_tasks.header import headers_of
from rltools_host.gymnasium_tasks.maker import install_what_it_needs
from rltools_host.gymnasium_tasks.process import ServerProcess
from rltools_host.gymnasium_tasks.task import PREFIX, MakeEnvironment, Task, TaskRequest


def is_task(name: str | None) -> bool:
    """Whether it names a task of Gymnasium's, and no experiment."""
    return name is not None and name.startswith(PREFIX)


def open_task(request: TaskRequest) -> EnvironmentServer:
    """For a new run, or a group's: the environment says what there is to learn."""
    request.checked_sizes()
    if request.make_env is not None:
        return in_thread(request)
    if request.source == PREFIX:
        raise UsageError("gym: names no task: write gym:HalfCheetah-v5, for example")
    request = with_whole_path(request)
    agree(request.source)
    install_what_it_needs(request.source)
    return ServerProcess(request)


def open_again(task: Task, make_env: MakeEnvironment | None = None) -> EnvironmentServer:
    """For a run that goes on, or one of a group: what is compiled is as it was. A task that has no
    name needs the function."""
    if make_env is None:
        require_agreement(task.source)
    request = TaskRequest(
        task.source,
        make_env,
        name=task.environment,
        algorithm=task.algorithm,
        hidden=task.hidden,
        environments=task.sizes.environments,
    )
    if make_env is not None:
        return in_thread(request, task)
    install_what_it_needs(task.source)
    return ServerProcess(request, task)


def in_thread(request: TaskRequest, task: Task | None = None) -> EnvironmentServer:
    from rltools_host.gymnasium_tasks.server import ServerInThread  # with NumPy

    return ServerInThread(request, task)


def with_whole_path(request: TaskRequest) -> TaskRequest:
    """As it is found from any folder."""
    return replace(request, source=whole_source(request.source))


def whole_source(source: str) -> str:
    """gym:FILE.py:NAME with the file's whole path."""
    file, colon, attribute = source.removeprefix(PREFIX).rpartition(":")
    if not colon or not file.endswith(".py"):
        return source
    return f"{PREFIX}{Path(file).resolve()}:{attribute}"


def task_of_run(metadata: Mapping[str, Any]) -> Task | None:
    """The task of a run, from its run.json; None where it learnt a compiled experiment.

    Whoever wrote the file names there what to import: playable() says whether that may be.
    """
    document = metadata.get("gymnasium")
    return None if document is None else Task.of_document(document)


def playable(task: Task, named: str | None) -> Task:
    """The task of a run or a group, played by what the user names, or by what is agreed to."""
    if not task.is_named:
        return task
    if named is not None and not is_task(named):
        raise UsageError(f"{named} is no task: write gym:FILE.py:NAME, or gym:ID, as the run has")
    whole = None if named is None else whole_source(named)
    return replace(task, source=source_to_play(task.source, whole))


def subject_of_run(metadata: Mapping[str, Any]) -> str:
    """What builds know a run's experiment by, whether or not it is here."""
    task = task_of_run(metadata)
    return str(metadata.get("experiment", "")) if task is None else headers_of(task).experiment


def contract_of_run(metadata: Mapping[str, Any]) -> str | None:
    """What builds know the contract of a run's policies by, for which boards can be built then."""
    task = task_of_run(metadata)
    if task is None:
        return None
    headers = headers_of(task)
    headers.write()
    return headers.contract
