"""Errors and remedies of a run that ends before its last step."""

from __future__ import annotations

from collections.abc import Mapping

from rltools_host.boards.messages import Result
from rltools_host.errors import (
    DiskError,
    EnvironmentLostError,
    Interrupted,
    LinkLostError,
    RltError,
    TrainingFaultError,
)
from rltools_host.runs.contents import RunDocument
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.saves import CHECKPOINT_FILE, saves_to_resume, step_of
from rltools_host.training.plan import Plan


def state_after(error: BaseException) -> str:
    """Return the state in run.json of a run that ended with this error."""
    if isinstance(error, LinkLostError):
        return "link lost"
    if isinstance(error, TrainingFaultError):
        return "fault"
    return "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"


def remedy(
    plan: Plan,
    folder: RunFolder,
    before: str,
    changes: Mapping[str, float] | None,
    *,
    has_begun: bool,
) -> str:
    """Return a clause with the command that resumes from the newest save, with these changes, or
    from the board's state; empty if there is neither."""
    command = plan.resume_command(folder.path)
    for save in saves_to_resume(folder.path, folder.content):
        if (save / CHECKPOINT_FILE).is_file():
            command = plan.resume_command(folder.path, changes)
            step = step_of(save)
            return f"{before}go on from step {step:,} with `{command}`"
    if plan.is_lasting and has_begun:
        return f"{before}as long as the board stays on, go on with `{command}`"
    return ""


def stopped_by_disk(plan: Plan, folder: RunFolder, error: DiskError, result: Result) -> DiskError:
    """Return the error of a run that is saved, but not all of its reports."""
    if result.finished:
        return DiskError(f"{error.cause}; the run has finished and is saved without its reports")
    command = plan.resume_command(folder.path)
    at = f"paused at step {result.step:,} of {plan.steps:,}, checkpoint saved"
    return error.then(f"go on with `{command}`", at)


def paused(
    plan: Plan, folder: RunFolder, result: Result, lost: str, document: RunDocument
) -> RltError:
    """Return the error of a paused run. `lost` says why its environment does not step any more, if
    that is why it was paused."""
    command = plan.resume_command(folder.path)
    kind = EnvironmentLostError if lost else Interrupted
    error = kind(
        f"{lost}{'; ' if lost else ''}paused at step {result.step:,} of {plan.steps:,}, "
        f"checkpoint saved; go on with `{command}`"
    )
    error.details = {**document, "state": "paused", "resume": command}
    return error
