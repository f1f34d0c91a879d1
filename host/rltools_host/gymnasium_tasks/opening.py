"""Opens what plays a task's episodes, for a new run or for one that goes on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rltools_host.errors import UsageError
from rltools_host.gymnasium_tasks.environment_server import EnvironmentServer
from rltools_host.gymnasium_tasks.header import write_headers
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
    install_what_it_needs(request.source)
    return ServerProcess(with_whole_path(request))


def open_again(task: Task, make_env: MakeEnvironment | None = None) -> EnvironmentServer:
    """For a run that goes on, or one of a group: what is compiled is as it was. A task that has no
    name needs the function."""
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
    """gym:FILE.py:NAME as it is found from any folder."""
    file, colon, attribute = request.source.removeprefix(PREFIX).rpartition(":")
    if not colon or not file.endswith(".py"):
        return request
    return dataclasses.replace(request, source=f"{PREFIX}{Path(file).resolve()}:{attribute}")


def task_of_run(metadata: Mapping[str, Any]) -> Task | None:
    """The task of a run, from its run.json; None where it learnt a compiled experiment."""
    document = metadata.get("gymnasium")
    return None if document is None else Task.of_document(document)


def contract_of_run(metadata: Mapping[str, Any]) -> str | None:
    """The name of the contract of a run's policies, for which boards can be built then."""
    task = task_of_run(metadata)
    if task is None:
        return None
    write_headers(task)
    return task.contract
