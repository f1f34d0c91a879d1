"""What is suggested after training: only what works for this run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rltools_host.build.experiments import evaluation_options
from rltools_host.gymnasium_tasks.task import is_task
from rltools_host.hints import command_line


def evaluation_line(document: Mapping[str, Any], run_path: Path) -> str:
    """What evaluates a run, or a group, as it must be typed; of a Python function, in Python."""
    task = document.get("task")
    if task is None:
        options = evaluation_options(document["experiment"], document["environment"])
        return command_line("evaluate", run_path, *options)
    if is_task(task):
        return command_line("evaluate", run_path)
    return f"rlt.evaluate_gymnasium(make_env, {str(run_path)!r})"
