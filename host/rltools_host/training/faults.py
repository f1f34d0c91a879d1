"""A run that a fault has stopped, as a loss was not finite: possible causes, and the
hyperparameters with which it may resume from its last save."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace

from rltools_host.errors import BrokenEnvironmentError, TrainingFaultError
from rltools_host.runs.checkpoint import Checkpoint
from rltools_host.training.plan import Plan
from rltools_host.tree import command_line

RATE = "learning_rate"


def checkpoint_to_put(plan: Plan) -> Checkpoint | None:
    """Return what goes to the board: PPO's state has a learning rate of its own, which changes as
    the hyperparameter does."""
    old, new = plan.changed.get(RATE, (1.0, 1.0))
    if plan.checkpoint is None or old in (0.0, new):
        return plan.checkpoint
    payload = bytearray(plan.checkpoint.payload)
    for tensor in plan.description.tensors:
        if tensor.name.rpartition("/")[2] == RATE:
            (present,) = struct.unpack_from("<f", payload, tensor.offset)
            struct.pack_into("<f", payload, tensor.offset, present * new / old)
    return replace(plan.checkpoint, payload=bytes(payload))


def note_of_resumption(plan: Plan) -> str:
    """Return the note on how a failed run resumes; empty for other runs."""
    run = plan.resumed
    if run is None or not run.content.has_failed:
        return ""
    faults = [session.fault for session in run.content.sessions if session.fault]
    why = faults[-1] if faults else "a fault"
    how = ", ".join(
        f"{name} {new:g} in place of {old:g}" for name, (old, new) in plan.changed.items()
    )
    if not how:
        how = "no hyperparameter changed, so the fault may occur again"
    return f"resumes from step {plan.first_step:,} after a fault ({why}), with {how}"


def smaller_steps(plan: Plan, error: BaseException, step: int) -> Mapping[str, float]:
    """Return smaller values of the hyperparameters with which a run that stopped at this step may
    resume; empty if none would help."""
    values = plan.hyperparameters
    if not isinstance(error, TrainingFaultError) or isinstance(error, BrokenEnvironmentError):
        return {}
    name = RATE
    if "student_learning_rate" in values and step > values["teacher_steps"]:
        name = "student_learning_rate"
    elif values.get("adaptive_lr"):
        name = "target_kl"
    return {name: float(f"{float(values[name]) / 2:.6g}")} if name in values else {}


def suspicion(plan: Plan, error: BaseException, outside: str) -> str:
    """Return a clause with what may be the cause, or the command that looks for it. `outside` is
    the first observation that was outside its range."""
    if not isinstance(error, TrainingFaultError):
        return ""
    earlier = plan.resumed.content.sessions[:-1] if plan.resumed else []
    ended_so = any(session.fault for session in earlier)
    again = "; a session of this run has ended so before" if ended_so else ""
    if plan.server is not None:
        before = f"; an observation was beyond its range before, look there first: {outside}"
        return again + (before if outside else "")
    command = command_line("check", plan.description.name)
    return f"{again}; `{command}` {error.what_a_check_says}"
