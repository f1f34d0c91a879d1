"""`rlt report`: one self-contained HTML page about a run, with nothing to load and no script.

Everything on it comes from the run's folder, from episodes that are run here with its policy, and
from the experiment's description; what is unknown is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rltools_host.files import write_atomically
from rltools_host.policies.evaluation import Evaluation
from rltools_host.report.markup import document, duration, number, text, tile
from rltools_host.report.run_data import RunData, collect
from rltools_host.report.sections import SECTIONS
from rltools_host.runs.folder import REPORT_FILE, RunFolder
from rltools_host.runs.names import BEST, LAST


def write_report(
    run_name: str | Path | RunFolder, output: Path | None = None, which: str = LAST
) -> Path:
    """Write the report of a run, by default into its folder, and return the file's path."""
    folder = run_name if isinstance(run_name, RunFolder) else RunFolder.open(run_name)
    path = output or folder.report_path
    if path.is_dir():
        path = path / REPORT_FILE
    write_atomically(path, page(collect(folder, which)).encode())
    return path


def page(data: RunData) -> str:
    experiment = text(data.run.experiment or "unknown experiment")
    board = text(data.run.board or "unknown board")
    sections = [shown for section in SECTIONS if (shown := section(data)) is not None]
    kind = "Training" if data.run.imported is None else "Import"
    return document(
        title=f"{experiment} on {board}",
        kicker=f"{kind} report · {text(data.board_title)}",
        heading=f'{experiment} <span class="on">on {board}</span>',
        verdict=verdict(data),
        tiles="".join(tiles(data)),
        sections=sections,
        folder=data.folder.name,
    )


def verdict(data: RunData) -> str:
    """Return the result in one sentence, with what it is compared to."""
    steps = number(data.steps_done)
    imported = data.run.imported
    if data.evaluation is None and imported is not None:
        return f"A policy of {text(imported.library)}, imported and not evaluated here."
    if data.evaluation is None:
        state = text(data.run.state or "unfinished")
        return f"Training has done {steps} steps and is {state}; no policy has been fetched yet."
    evaluation = data.evaluation
    subject = f"After {steps} steps the policy"
    if imported is not None:
        subject = f"Imported from {text(imported.library)}, the policy"
    elif data.image is not None and data.which == BEST:
        step = number(data.image.step)
        subject = f"Of {steps} steps, the policy of step {step}, evaluated best in training,"
    sentence = (
        f"{subject} earns a mean return of "
        f"<strong>{number(evaluation.mean, 1)}</strong> over {evaluation.episodes} episodes in "
        f"{text(simulator_name(evaluation))}"
    )
    if evaluation.success_return is None:
        return sentence + "."
    solved = evaluation.is_solved
    relation = "at least" if solved else "below"
    return (
        f'{sentence}, <strong class="{"good" if solved else "bad"}">{relation} the '
        f"{threshold(evaluation.success_return)}</strong> from which on the environment counts as "
        "solved."
    )


def threshold(value: float) -> str:
    return number(value, 0 if value == round(value) else 2)


def simulator_name(evaluation: Evaluation) -> str:
    if evaluation.is_in_gymnasium:
        return f"gymnasium's {evaluation.environment}"
    return f"{evaluation.simulator} of {evaluation.environment}"


def tiles(data: RunData) -> Iterable[str]:
    evaluation = data.evaluation
    if evaluation is not None:
        yield tile(
            "return",
            f"{number(evaluation.mean, 1)} <small>± {number(evaluation.std, 1)}</small>",
            f"{evaluation.episodes} episodes, {text(evaluation.simulator)}",
        )
        if evaluation.success_rate is not None:
            yield tile(
                "solved",
                "yes" if evaluation.is_solved else "no",
                f"mean of at least {threshold(evaluation.success_return or 0.0)}, which "
                f"{number(100 * evaluation.success_rate)} % of the episodes have",
            )
    wanted = data.run.steps
    if wanted:
        note = "all of them" if data.steps_done >= wanted else f"of {text(number(wanted))}"
        yield tile("training steps", number(data.steps_done), f"{note}, seed {text(data.seed)}")
    train_s = data.run.train_s
    if train_s:
        where = "wall clock here, emulated" if data.is_emulated else "wall clock"
        yield tile("training time", text(duration(train_s)), where)
        learning_s = train_s - (data.run.evaluation_s or 0.0)
        if learning_s > 0:
            yield tile("steps per second", number(data.steps_done / learning_s), where)
    digest = data.run.state_sha256
    if digest:
        yield tile(
            "training state" if data.run.imported is None else "imported file",
            f'<span class="mono" title="{text(digest)}">{text(digest[:8])}</span>',
            "SHA-256, in full below",
        )
