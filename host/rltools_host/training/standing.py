"""How the runs of a group stand, by their folders."""

from __future__ import annotations

from collections.abc import Sequence

from rltools_host.errors import DamagedFileError
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import RUN_FILE, is_run
from rltools_host.runs.saves import CHECKPOINT_FILE, holds_save, is_whole, saves_to_resume
from rltools_host.training.group_view import FAILED, FINISHED, PAUSED, WAITING, Member


def counted(states: Sequence[str]) -> str:
    """`paused: 3 of 10 runs have finished, 2 are saved on their way, 5 have not begun`."""
    parts = [f"{states.count(FINISHED)} of {len(states)} runs have finished"]
    saved, begun, failed = states.count(PAUSED), states.count(WAITING), states.count(FAILED)
    parts += [f"{saved} saved on the way"] if saved else []
    parts += [f"{begun} not begun"] if begun else []
    parts += [f"{failed} failed"] if failed else []
    return f"paused: {', '.join(parts)}"


def stand(member: Member, steps: int | None) -> None:
    """Looks into its folder. A run without a checkpoint is begun anew, and has the same bits.

    `steps` is what was asked for, where anything was: a run that has finished may have to go on.
    """
    member.state = WAITING
    if not is_run(member.path):
        if holds_save(member.path):
            missing = DamagedFileError(
                f"{member.path} holds a save and no {RUN_FILE}: restore that, or move the save away"
            )
            member.state, member.error, member.exit_code = FAILED, str(missing), missing.exit_code
        return
    try:
        folder = RunFolder.open(member.path)
    except DamagedFileError as error:
        member.state, member.error, member.exit_code = FAILED, str(error), error.exit_code
        return
    metadata = folder.metadata
    saves = saves_to_resume(folder.path, metadata)
    if not any((save / CHECKPOINT_FILE).is_file() for save in saves):
        return
    whole = is_whole(folder.save_path, str(metadata.get("state_sha256")))
    member.take({"step": 0, "steps": member.steps, **metadata})
    finished = metadata.get("state") == "finished" and whole and member.step >= (steps or 0)
    member.state = FINISHED if finished else PAUSED
    member.steps = max(member.steps, steps or 0)
    member.state_sha256 = str(metadata.get("state_sha256") or "")
    member.environment_faults = folder.environment_faults
    member.observations_outside = folder.observations_outside
