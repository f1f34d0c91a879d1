"""The evaluation of a run's policy, and what must be known of it."""

from __future__ import annotations

from rltools_host.build import experiments
from rltools_host.errors import RltError, UsageError
from rltools_host.gymnasium_tasks.imports import playable
from rltools_host.gymnasium_tasks.player import flat_maker
from rltools_host.gymnasium_tasks.task import subject_of_run, task_of_run
from rltools_host.policies.evaluation import CORE, GYMNASIUM, Evaluation, evaluate_policy
from rltools_host.policies.image import PolicyImage, read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.learning import difference


def evaluated(
    folder: RunFolder, episodes: int, seed: int, simulator: str | None, named: str | None = None
) -> tuple[Evaluation, list[str]]:
    """The evaluation of a run's policy, and what must be known to read it.

    simulator: CORE or GYMNASIUM; None: the core's, or Gymnasium where that plays the task.
    named: the run's task, as the user names it; None: as the run does, where that may be imported.
    """
    image = read_run_policy(folder)
    image.verify()
    task = task_of_run(folder.metadata)
    if simulator is None:
        simulator = CORE if task is None else GYMNASIUM
    elif simulator == CORE and task is not None:
        raise UsageError(
            f"--in core: {task.environment} is played by Gymnasium, and the core has no simulator "
            "of it: leave --in out"
        )
    if task is None and named is not None:
        raise UsageError(f"--task: run {folder.name} was trained on no task of Gymnasium's")
    make = (
        flat_maker(playable(task, named)) if task is not None and simulator == GYMNASIUM else None
    )
    values = folder.metadata.get("hyperparameters") or {}
    evaluation = evaluate_policy(image, str(folder.path), episodes, seed, simulator, make, values)
    return evaluation.of_task(task), notes_on(folder, image, simulator)


def notes_on(folder: RunFolder, image: PolicyImage, simulator: str) -> list[str]:
    """What must be known of the policy to read the figures: unfinished, or of other sources."""
    notes = []
    steps = int(folder.metadata.get("steps", 0))
    if image.step < steps:
        notes.append(
            f"the policy is of step {image.step:,} of {steps:,}, at which the run was last saved"
        )
    try:
        present = experiments.describe(subject_of_run(folder.metadata))
    except RltError:  # which matters to the core's simulator only, and that has said so
        return notes
    if present.fingerprint != image.fingerprint:
        what = difference(folder.metadata.get("learning", {}), present.learning)
        what = what or f"fingerprint {image.fingerprint:08x}, here {present.fingerprint:08x}"
        where = ", and so does the simulator" if simulator == CORE else ""
        notes.append(f"the run's {image.experiment} differs from this tree's{where}: {what}")
    return notes
