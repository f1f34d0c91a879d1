"""What is to be trained, where and how: checked before firmware is built or anything is sent."""

from __future__ import annotations

import contextlib
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rltools_host import boards, build, paths
from rltools_host.boards import Board
from rltools_host.build import ExperimentDescription, Hyperparameter
from rltools_host.checkpoint import Checkpoint, load_checkpoint
from rltools_host.errors import UsageError
from rltools_host.hyperparameters import Values, default_values, given_values
from rltools_host.run_folder import RunFolder, require_empty

DEFAULT_BOARD = "qemu-cortex-m7"
# A resumed run may set these; the others decide what the bits of the run are.
SET_ON_RESUME = ("steps", "report_every")


@dataclass
class Plan:
    """What is to be trained, where and how; complete before anything is built or sent."""

    description: ExperimentDescription
    board: Board
    hyperparameters: Values
    port: str | None = None
    out: Path | None = None
    resumed: RunFolder | None = None
    checkpoint: Checkpoint | None = None
    program: Path | None = None
    table: dict[str, Hyperparameter] = field(init=False)

    def __post_init__(self) -> None:
        self.table = {entry.name: entry for entry in self.description.hyperparameters}

    @property
    def seed(self) -> int:
        return int(self.hyperparameters["seed"])

    @property
    def steps(self) -> int:
        return int(self.hyperparameters["steps"])

    @property
    def first_step(self) -> int:
        return self.checkpoint.step if self.checkpoint else 0

    @property
    def load_command(self) -> str:
        """What puts the experiment's present firmware on the board."""
        where = f"{self.board.name} {self.description.name}"
        if self.board.flasher is not None:
            return f"run `rlt flash {where}`"
        if self.board.emulator is not None:
            return f"start it with `rlt emulate {where}`"
        return f"leave out --port, `rlt train {self.description.name}` then starts its own program"

    def resume_command(self, run: Path) -> str:
        """What goes on with the run, as it must be typed."""
        words = [launcher(), "train", self.description.name, "--board", self.board.name]
        words += ["--port", self.port] if self.port else []
        return shlex.join([*words, "--resume", str(near_path(run))])


def make_plan(
    experiment: str | None,
    board: str | None,
    seed: int | None,
    steps: int | None,
    settings: Sequence[str],
    out: Path | None,
    resume: str | None,
    port: str | None,
) -> Plan:
    """Checks all that can be checked before anything is built for the board or sent to it."""
    if resume is not None:
        return plan_resumption(experiment, board, seed, steps, settings, out, resume, port)
    if experiment is None:
        listed = ", ".join(build.list_experiments())
        raise UsageError(f"name an experiment ({listed}), or a run with --resume")
    chosen = boards.load_board(board or DEFAULT_BOARD)
    if out is not None:
        require_empty(out)
    description = build.describe(experiment, chosen)
    values = default_values(description)
    values["report_every"] = chosen.report_every
    values |= given_values(description, seed, steps, settings)
    return Plan(description, chosen, values, port, out)


def plan_resumption(
    experiment: str | None,
    board: str | None,
    seed: int | None,
    steps: int | None,
    settings: Sequence[str],
    out: Path | None,
    resume: str,
    port: str | None,
) -> Plan:
    """The run's own settings hold, from its checkpoint, whose hash covers them."""
    folder = RunFolder.open(resume)
    if out is not None:
        raise UsageError("--out does not go with --resume: a resumed run stays in its folder")
    if seed is not None:
        raise UsageError("--seed does not go with --resume: a resumed run keeps its seed")
    chosen = boards.load_board(board or str(folder.metadata.get("board")))
    description = build.describe(experiment or str(folder.metadata.get("experiment")), chosen)
    given = given_values(description, None, steps, settings)
    if fixed := [name for name in given if name not in SET_ON_RESUME]:
        raise UsageError(
            f"a resumed run keeps its {fixed[0]}: only {' and '.join(SET_ON_RESUME)} may be set "
            "with --resume, for other values start a new run"
        )
    checkpoint = load_checkpoint(folder.checkpoint_path, description)
    values = default_values(description) | dict(checkpoint.hyperparameters)
    values["report_every"] = chosen.report_every
    values |= given
    if int(values["steps"]) <= checkpoint.step:
        raise UsageError(
            f"run {folder.name} has done its {checkpoint.step:,} steps: "
            f"give a larger total with --steps"
        )
    return Plan(description, chosen, values, port, None, folder, checkpoint)


def launcher() -> str:
    """How this user calls the launcher: by its name where the PATH finds it, or with its place."""
    found = shutil.which("rlt")
    if found is not None and Path(found).resolve() == paths.REPOSITORY / "rlt":
        return "rlt"
    path = near_path(paths.REPOSITORY / "rlt")
    return str(path) if path.is_absolute() else f"./{path}"


def near_path(path: Path) -> Path:
    """Relative to the present folder where it lies below that, as a person would type it."""
    with contextlib.suppress(ValueError):
        return path.relative_to(Path.cwd())
    return path
