"""What is to be trained, where and how: checked before firmware is built or anything is sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rltools_host.boards.description import Board, load_board
from rltools_host.build import experiments
from rltools_host.build.experiments import ExperimentDescription, Hyperparameter
from rltools_host.errors import UsageError
from rltools_host.hints import command_line, near_path
from rltools_host.runs.checkpoint import Checkpoint, load_checkpoint
from rltools_host.runs.folder import RunFolder, require_empty
from rltools_host.training.hyperparameters import Values, default_values, given_values

DEFAULT_BOARD = "qemu-cortex-m7"
# A resumed run may set these; the others decide what the bits of the run are.
SET_ON_RESUME = ("steps", "report_every")


@dataclass(frozen=True)
class TrainingRequest:
    """What a user asks for; None where the default, or the resumed run, decides."""

    experiment: str | None = None
    board: str | None = None
    seed: int | None = None
    steps: int | None = None
    settings: tuple[str, ...] = ()  # of --set, as typed: name=value
    out: Path | None = None
    resume: str | None = None
    port: str | None = None


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
        words = ["train", self.description.name, "--board", self.board.name]
        words += ["--port", self.port] if self.port else []
        return command_line(*words, "--resume", near_path(run))


def make_plan(request: TrainingRequest) -> Plan:
    """Checks all that can be checked before anything is built for the board or sent to it."""
    if request.resume is not None:
        return plan_resumption(request, request.resume)
    if request.experiment is None:
        listed = ", ".join(experiments.list_experiments())
        raise UsageError(f"name an experiment ({listed}), or a run with --resume")
    chosen = load_board(request.board or DEFAULT_BOARD)
    if request.out is not None:
        require_empty(request.out)
    description = experiments.describe(request.experiment, chosen)
    values = default_values(description)
    values["report_every"] = chosen.report_every
    values |= given_values(description, request.seed, request.steps, request.settings)
    return Plan(description, chosen, values, request.port, request.out)


def plan_resumption(request: TrainingRequest, run: str) -> Plan:
    """The run's own settings hold, from its checkpoint, whose hash covers them."""
    folder = RunFolder.open(run)
    if request.out is not None:
        raise UsageError("--out does not go with --resume: a resumed run stays in its folder")
    if request.seed is not None:
        raise UsageError("--seed does not go with --resume: a resumed run keeps its seed")
    chosen = load_board(request.board or str(folder.metadata.get("board")))
    description = experiments.describe(
        request.experiment or str(folder.metadata.get("experiment")), chosen
    )
    given = given_values(description, request.seed, request.steps, request.settings)
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
    return Plan(description, chosen, values, request.port, None, folder, checkpoint)
