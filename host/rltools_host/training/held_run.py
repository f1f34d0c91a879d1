"""The state of a run on a board that trained on, or finished, while its link was lost."""

from __future__ import annotations

from collections.abc import Sequence

from rltools_host.boards.framing import SEVERITY_WARNING
from rltools_host.boards.messages import Evaluation, Identity, Result, State, StatusText
from rltools_host.boards.session import BoardSession, value_bits
from rltools_host.errors import UsageError
from rltools_host.runs.contents import Row
from rltools_host.runs.saves import CHECKPOINT_FILE
from rltools_host.training.plan import SET_ON_RESUME, Plan
from rltools_host.tree import command_line, near_path

LASTING = (State.TRAINING, State.PAUSED, State.FINISHED)


def held_step(session: BoardSession, identity: Identity, plan: Plan) -> int | None:
    """Return the last step that the run has reports of, if the board has its state of that step or
    a later one; None if the run resumes from its save.

    Raise UsageError if neither has a state. The same experiment with the same settings comes to the
    same states, so these say whose state it is; run.json or the reports say that the board was
    started.
    """
    if plan.resumed is None or not plan.is_lasting:
        return None
    why = why_not_held(session, identity, plan)
    if not why:
        steps = [int(row["step"]) for row in plan.resumed.read_metrics()]
        return max([plan.first_step, *steps])
    if plan.checkpoint is None:
        run = near_path(plan.resumed.path)
        raise UsageError(
            f"{run} holds no {CHECKPOINT_FILE}, and the board on {session.description} {why}: "
            f"start a new run with `{command_line('train', plan.description.name)}`"
        )
    return None


def why_not_held(session: BoardSession, identity: Identity, plan: Plan) -> str:
    """Return a clause on why the board does not have the run's state; empty if it has."""
    run = plan.resumed
    assert run is not None
    if identity.state not in LASTING:
        return f"is {State.NAMES[identity.state]}, and has no training state"
    sessions = run.content.sessions
    if not (sessions and sessions[-1].training_began) and not run.read_metrics():
        return "was not seen to start it"
    stated = session.parameters.read(plan.table)
    for name, value in plan.hyperparameters.items():
        if name not in SET_ON_RESUME and stated[name] != value_bits(plan.table[name].type, value):
            return f"holds the state of another run, of another {name}"
    if identity.state != State.TRAINING and session.training.result().step <= plan.first_step:
        return "holds no later state"
    return ""


def unheard(
    session: BoardSession, result: Result, rows: Sequence[Row]
) -> list[Evaluation | StatusText]:
    """Return the evaluations that the board states and that are not in `rows`, those of the run; a
    warning if it states none."""
    heard = {row["step"] for row in rows if row["kind"] == "evaluation"}
    last = max([0, *(row["step"] for row in rows)])
    stated = {kept.step: kept for kept in session.training.kept_evaluations()}
    if not stated and result.step > last:
        text = f"the board states no evaluation: what it reported from step {last} on is lost"
        return [StatusText(SEVERITY_WARNING, text)]
    return [kept for step, kept in stated.items() if step >= last and step not in heard]
