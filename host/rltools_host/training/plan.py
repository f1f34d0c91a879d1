"""The request of a training run, and its plan: checked before anything is built or sent."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import structs

from rltools_host.build import cmake, experiments
from rltools_host.build.boards import Board, list_boards, load_board
from rltools_host.build.description import ExperimentDescription, Parameter
from rltools_host.documents import LARGEST_U32
from rltools_host.environments.environment_server import EnvironmentServer
from rltools_host.environments.headers import headers_of
from rltools_host.environments.imports import playable
from rltools_host.environments.server_start import environments_of
from rltools_host.environments.task import MakeEnvironment, TaskRequest
from rltools_host.errors import BoardMismatchError, DamagedFileError, UsageError
from rltools_host.lines import aside
from rltools_host.runs.checkpoint import Checkpoint, load_checkpoint, require_size, require_values
from rltools_host.runs.contents import Fitted, Row, Run
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import require_empty
from rltools_host.runs.provenance import Sources
from rltools_host.runs.saves import CHECKPOINT_FILE, holds_save, is_whole, saves_to_resume
from rltools_host.runs.task import Task
from rltools_host.training.hyperparameters import (
    OPTION,
    SetFile,
    Values,
    default_values,
    given_values,
    of_experiment,
    with_sizes,
)
from rltools_host.tree import command_line, near_path

# This machine, and its board with threads: the default with --threads, and for an experiment that
# no microcontroller has room for.
DEFAULT_BOARD, THREADED_BOARD = "host", "host-threads"
# Evaluations of a run on a Gymnasium task, and of one that would end before its first one; no
# bit depends on them.
POINTS = 20
# Steps of training for each step of evaluations, at least, but for the last evaluation: a task's
# evaluations take a quarter of its run at most. Of steps and not of time, so that logs do not
# depend on the machine.
STEPS_FOR_EACH_EVALUATED = 3
STARTS = "learning_starts"
# A resumed run may set these, which change no bit of it.
SET_ON_RESUME = ("steps", "report_every")
# The learning rate falls over all steps to such a part of itself: evenly, or by its square root.
RATES_AT_END = ("lr_end_factor", "student_lr_end_factor")
# A run that a fault has stopped may also set these: sizes of steps, and bounds on them.
SET_AFTER_FAULT = (
    *("learning_rate", "student_learning_rate", "target_kl"),
    *("max_grad_norm", "clip_range", "adam_epsilon"),
)


@dataclass(frozen=True)
class Built:
    """A program and its description, built once for all runs of a group."""

    description: ExperimentDescription
    program: Path | None = None  # where the board is not flashed
    sources: Sources | None = None  # before it was built


@dataclass(frozen=True)
class TrainingRequest:
    """A training as a user asks for it, made by `rlt train`, rlt.train, a study and a tuning. None
    leaves a choice to the default, or to the resumed run."""

    experiment: str | None = None
    board: str | None = None
    seed: int | None = None
    steps: int | None = None
    settings: tuple[str, ...] = ()  # of --set, as typed: name=value
    set_file: SetFile | None = None
    out: Path | None = None
    resume: str | None = None
    port: str | None = None
    threads: int | None = None
    # A Gymnasium task instead of an experiment; a Task if a group has it complete.
    task: TaskRequest | Task | None = None
    make_env: MakeEnvironment | None = None  # of a Task that has no name
    built: Built | None = None
    restarts: bool = False  # `out` has a run without a save, which starts over
    wandb: str | None = None  # a project of Weights & Biases that also gets the scalars
    fitted: Fitted | None = None  # the flight whose log gave settings of a new run
    tensorboard: bool | None = None  # True, or as a resumed group began
    seeds: tuple[int, ...] = ()  # a run for each: a group
    jobs: int | None = None  # runs of a group at once
    ray: str | None = None  # the address of a cluster that trains the runs of a group
    verify: int | None = None  # runs that a GPU has trained are trained here as well


@dataclass
class Plan:
    """A checked request with its experiment, board and values; complete before anything is built or
    sent."""

    description: ExperimentDescription
    board: Board
    hyperparameters: Values
    request: TrainingRequest = field(default_factory=TrainingRequest)
    resumed: RunFolder | None = None
    checkpoint: Checkpoint | None = None
    save: Path | None = None  # the folder of the checkpoint
    program: Path | None = None
    sources: Sources | None = None  # before the program was built
    server: EnvironmentServer | None = None  # plays the episodes if the core does not
    changed: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # after a fault
    held_step: int | None = None  # of the resumed run's last report, if the board has it
    own_steps: int = 0  # of the resumed run, whatever --steps now says
    others: Mapping[str, Plan] = field(default_factory=dict)  # of a group, by their experiments
    subject: str = ""  # the name for builds; of a Gymnasium task it has a digest
    table: dict[str, Parameter] = field(init=False)

    def __post_init__(self) -> None:
        self.subject = self.subject or self.description.name
        self.table = {entry.name: entry for entry in self.description.hyperparameters}

    @property
    def seed(self) -> int:
        return int(self.hyperparameters["seed"])

    @property
    def steps(self) -> int:
        return int(self.hyperparameters["steps"])

    @property
    def searchable(self) -> dict[str, float | int | str]:
        """Return the entries of TensorBoard's table of hyperparameters."""
        names = {"algorithm": self.description.algorithm, "board": self.board.name}
        names |= {"environment": str(self.description.environment["name"])}
        return {**names, **self.hyperparameters}

    @property
    def first_step(self) -> int:
        if self.held_step is not None:
            return self.held_step
        return self.checkpoint.step if self.checkpoint else 0

    @property
    def is_lasting(self) -> bool:
        """Return True if the board outlives its link: it was not started for this run alone."""
        return self.server is None and (self.request.port is not None or self.board.is_flashed)

    def with_resumed_save(self, run: Run) -> Run:
        """Return run.json with the save that the run resumes from, which it may not name yet."""
        if self.checkpoint is None or self.resumed is None or self.save == self.resumed.save_path:
            return run
        assert self.save is not None
        return structs.replace(
            run,
            save=self.save.name,
            state_sha256=self.checkpoint.state_sha256,
            checkpoint_step=self.checkpoint.step,
        )

    @property
    def load_command(self) -> str:
        """Return a clause with the command that loads the experiment's firmware on the board."""
        board, experiment = self.board.name, self.description.name
        if self.board.flasher is not None:
            return f"run `{command_line('flash', board, experiment)}`"
        if self.board.emulator is not None:
            return f"start it with `{command_line('emulate', board, experiment)}`"
        command = command_line("train", experiment, "--board", board)
        return f"leave out --port, `{command}` then starts its own program"

    def resume_command(self, run: Path, changes: Mapping[str, float] | None = None) -> str:
        """Return the command that resumes the run, with these values instead of its own."""
        port, threads = self.request.port, self.request.threads
        options = ["--port", port] if port else []
        options += ["--threads", str(threads)] if threads else []
        for name, value in (changes or {}).items():
            options += ["--set", f"{name}={value:g}"]
        experiment, board = self.description.name, self.board.name
        if self.server is not None:
            if not self.server.task.is_named:
                more = f", settings={dict(changes)}" if changes else ""
                return f"rlt.train(make_env, resume={str(near_path(run))!r}{more})"
            return command_line("train", "--board", board, *options, "--resume", near_path(run))
        return command_line(
            "train", experiment, "--board", board, *options, "--resume", near_path(run)
        )


@contextlib.contextmanager
def open_plan(request: TrainingRequest) -> Iterator[Plan]:
    """Yield the plan of a request; an environment of Gymnasium's is stepped until it is closed."""
    request = with_sizes_of_task(request)
    resumed, task, make_env = None, request.task, request.make_env
    if request.resume is not None:
        resumed = RunFolder.open(request.resume)
        if resumed.content.imported is not None:
            raise UsageError(
                f"run {resumed.name} was imported, and has no training state to go on from: train "
                "it where it was trained, and import it again"
            )
        task, make_env = task_of_resumed(request, resumed)
    with environments_of(task, make_env, is_built=request.built is not None) as server:
        yield make_plan(request, resumed, server)


def with_sizes_of_task(request: TrainingRequest) -> TrainingRequest:
    """Return the request of a new run with the sizes among its settings moved to its task, or to
    its experiment's name."""
    if request.resume is not None:
        return request
    if request.task is None and request.experiment is not None:
        experiment, settings = of_experiment(request.experiment, request.settings)
        return replace(request, experiment=experiment, settings=settings)
    if not isinstance(request.task, TaskRequest):
        return request
    task, settings = with_sizes(request.task, request.settings)
    return replace(request, task=task, settings=settings)


def task_of_resumed(
    request: TrainingRequest, run: RunFolder
) -> tuple[Task | None, MakeEnvironment | None]:
    """Return the task of the run, if it has one, and the function that makes its environments in
    this process."""
    asked = request.task
    task = run.content.gymnasium
    if task is None:
        if asked is not None:
            raise UsageError(f"run {run.name} was not trained on a Gymnasium task")
        return None, None
    make_env = asked.make_env if isinstance(asked, TaskRequest) else request.make_env
    if make_env is None and not task.is_named:
        raise UsageError(
            f"run {run.name} was trained on {task.source} of a Python program: go on "
            f"there with rlt.train(make_env, resume={run.name!r})"
        )
    if request.experiment not in (None, task.experiment):
        raise UsageError(
            f"run {run.name} is of {task.source}, not of {request.experiment}: "
            "leave the experiment out, the run names it"
        )
    if make_env is None:
        task = playable(task, None if asked is None else asked.source)
    return task, make_env


def make_plan(
    request: TrainingRequest,
    resumed: RunFolder | None = None,
    server: EnvironmentServer | None = None,
) -> Plan:
    """Check a request as far as possible before anything is built or sent to a board."""
    if resumed is not None:
        request = for_resumption(request, resumed)
    experiment = request.experiment if server is None else server.task.experiment
    if experiment is None:
        listed = ", ".join(experiments.list_experiments())
        raise UsageError(f"name an experiment ({listed}), or a run with --resume")
    require_player(request, experiment, server)
    subject = experiment if server is None else headers_of(server.task).experiment
    board = load_board(default_board(request, subject) if request.board is None else request.board)
    if request.out is not None and not request.restarts:
        require_empty(request.out)
    require_threads(request, board)
    if board.is_gpu:
        require_gpu(request, server)
    cmake.require_program(board)
    built = request.built
    description = (
        built.description
        if built is not None and built.description.name == experiment
        else experiments.describe(subject, board)
    )
    require_size(experiment, description.tensors)
    values = default_values(description)
    given = given_values(
        description, request.seed, request.steps, request.settings, request.set_file
    )
    plan = Plan(
        description,
        board,
        values,
        request,
        server=server,
        subject=subject,
    )
    if built is not None:
        plan.program, plan.sources = built.program, built.sources
    if resumed is not None:
        take_checkpoint(plan, resumed, given)
        return plan
    values["report_every"] = report_interval(description, board)
    values |= given
    is_free = "eval_freq" not in given
    if is_free:
        values["eval_freq"] = evaluation_interval(values, None if server is None else server.task)
    if built is None:
        note = "" if server is None or not is_free else note_of_interval(values)
        aside(*(f"note: {text}" for text in (note, note_of_start(values)) if text))
    return plan


def evaluation_interval(values: Values, task: Task | None) -> int:
    """Return the number of steps between two evaluations, where nobody says it."""
    usual, part = int(values["eval_freq"]), max(1, int(values["steps"]) // POINTS)
    if task is None:
        return usual if values["steps"] >= usual else part
    longest = int(values["n_eval_episodes"]) * task.episode_steps
    return min(max(part, STEPS_FOR_EACH_EVALUATED * longest), LARGEST_U32)


def note_of_interval(values: Values) -> str:
    """Return the note on a task that is evaluated more seldom than others; empty otherwise."""
    interval, steps = int(values["eval_freq"]), int(values["steps"])
    if interval == max(1, steps // POINTS):
        return ""
    often = "at the end alone" if interval >= steps else f"every {interval:,} steps"
    return (
        f"it is evaluated {often}, as evaluations take at most a quarter of the steps: "
        "--set eval_freq=N or n_eval_episodes=N changes that"
    )


def note_of_start(values: Values) -> str:
    """Return the note on a run whose steps all come before its first update; empty otherwise."""
    starts, steps = int(values.get(STARTS, 0)), int(values["steps"])
    if steps > starts:
        return ""
    return (
        f"nothing is learned in {steps:,} steps, as the first update comes after "
        f"{STARTS}={starts}: give more --steps, or --set {STARTS}={max(1, steps // 10)}"
    )


def for_resumption(request: TrainingRequest, run: RunFolder) -> TrainingRequest:
    """Return the request with the board and the experiment of the run; UsageError for what a
    resumed run keeps."""
    refused = {
        "--out": (request.out, "stays in its folder"),
        "--seed": (request.seed, "keeps its seed"),
        OPTION: (request.set_file, "keeps its settings"),
    }
    for option, (given, why) in refused.items():
        if given is not None:
            raise UsageError(f"{option} does not go with --resume: a resumed run {why}")
    return replace(
        request,
        board=run.required("board") if request.board is None else request.board,
        experiment=run.required("experiment") if request.experiment is None else request.experiment,
    )


def take_checkpoint(plan: Plan, folder: RunFolder, given: Values) -> None:
    """Set the plan's values to those of the run's checkpoint, whose hash covers them. A run that a
    fault has stopped may change SET_AFTER_FAULT."""
    may_be_set = SET_ON_RESUME + (SET_AFTER_FAULT if folder.content.has_failed else ())
    if fixed := [name for name in given if name not in may_be_set]:
        raise UsageError(
            f"a resumed run keeps its {fixed[0]}: only {', '.join(may_be_set[:-1])} and "
            f"{may_be_set[-1]} may be set with --resume, for other values start a new run"
        )
    values = plan.hyperparameters
    plan.resumed = folder
    if plan.is_lasting and not holds_save(folder.path):
        # The board may have the state.
        values |= settings_of_run(folder, plan.description)
        values |= given
        return
    save, checkpoint = checkpoint_to_resume(folder, plan.description)
    plan.save, plan.checkpoint = save, checkpoint
    values |= dict(checkpoint.hyperparameters)
    plan.changed = {
        name: (float(values[name]), float(given[name]))
        for name in SET_AFTER_FAULT
        if name in given and given[name] != values[name]
    }
    own_steps = plan.own_steps = max(int(values["steps"]), folder.content.steps)
    values["steps"] = own_steps
    if plan.board.name != folder.content.board:
        values["report_every"] = report_interval(plan.description, plan.board)
    values |= given
    steps, done = int(values["steps"]), checkpoint.step
    whole = folder.content.state == "finished" and is_whole(save, checkpoint.state_sha256)
    # A run may be past its own total and not at its end: many environments step at once, and an
    # algorithm may have to learn from them yet.
    if steps < min(done, own_steps) or (steps <= done and whole):
        raise UsageError(
            f"run {folder.name} has done its {done:,} steps: give a larger total with --steps"
        )


def lacks_evaluation(plan: Plan, rows: Sequence[Row]) -> bool:
    """Return whether the run was paused within the evaluation of its checkpoint's policy: it was
    due, and metrics.jsonl, whose rows up to there are `rows`, does not have it."""
    if plan.checkpoint is None:
        return False
    step, interval = plan.checkpoint.step, int(plan.hyperparameters["eval_freq"])
    before = step - plan.description.environments
    is_due = step >= plan.own_steps or (step > 0 and step // interval != before // interval)
    return is_due and not any(row["kind"] == "evaluation" and row["step"] == step for row in rows)


def note_of_rate(plan: Plan) -> str:
    """Return the note on a learning rate that rises again, as it falls over all steps and there are
    more of them now; empty if there is none."""
    for name in RATES_AT_END:
        factor = float(plan.hyperparameters.get(name, 1.0))
        if factor == 1.0 or plan.steps <= plan.own_steps:
            continue
        return (
            f"the learning rate falls over all steps to {name}={factor:g} of its start: with "
            f"{plan.steps:,} steps in place of {plan.own_steps:,} it rises again"
        )
    return ""


def settings_of_run(folder: RunFolder, experiment: ExperimentDescription) -> Values:
    """Return the hyperparameters of run.json; BoardMismatchError if the run is of another version
    of the experiment."""
    path, run = folder.run_path, folder.content
    if run.fingerprint != f"{experiment.fingerprint:08x}":
        raise BoardMismatchError(
            f"{path} is of another version of {experiment.name}: "
            "check out the sources it was made with"
        )
    require_values(path, run.hyperparameters, experiment)
    return dict(run.hyperparameters)


def checkpoint_to_resume(
    folder: RunFolder, description: ExperimentDescription
) -> tuple[Path, Checkpoint]:
    """Return the newest save and its checkpoint; also a save that was whole when its process was
    killed."""
    *uncommitted, committed = saves_to_resume(folder.path, folder.content)
    for save in uncommitted:
        with contextlib.suppress(DamagedFileError):
            return save, load_checkpoint(save / CHECKPOINT_FILE, description, folder.path)
    return committed, load_checkpoint(committed / CHECKPOINT_FILE, description, folder.path)


def require_player(
    request: TrainingRequest, experiment: str, server: EnvironmentServer | None
) -> None:
    """Raise UsageError if nobody steps the environments of a task, or if its board is on a port."""
    if server is None:
        if experiments.GENERATED.fullmatch(experiment):
            raise UsageError(
                f"{experiment} was compiled for a Gymnasium task: name the task, as in "
                f"`{command_line('train', 'gym:HalfCheetah-v5')}`"
            )
    elif request.port is not None:
        raise UsageError(
            "--port does not go with a Gymnasium task: its program is started here, beside "
            "the environment"
        )


def require_gpu(request: TrainingRequest, server: EnvironmentServer | None) -> None:
    """Raise UsageError if a GPU cannot train this."""
    if request.port is not None:
        raise UsageError("--port does not go with --board cuda, which is a GPU of this machine")
    if server is not None:
        raise UsageError(
            "a Gymnasium task is played in Python, which a GPU does not run: train it with "
            f"--board {DEFAULT_BOARD}"
        )


def require_many(plan: Plan) -> None:
    """Raise UsageError for a single run on a GPU."""
    if plan.board.is_gpu:
        raise UsageError(
            f"--board {plan.board.name} trains many runs at once, and one alone is faster with "
            f"--board {DEFAULT_BOARD}: give --seeds 0-999"
        )


def default_board(request: TrainingRequest, subject: str) -> str:
    """Return the name of the board where it is trained unless somebody says."""
    is_known = subject in experiments.list_experiments() or experiments.is_generated(subject)
    is_large = is_known and bool(experiments.requirements(subject))
    return THREADED_BOARD if is_large or request.threads is not None else DEFAULT_BOARD


def report_interval(description: ExperimentDescription, board: Board) -> int:
    """Return the default number of steps between two progress messages."""
    return board.report_every * description.environments


def require_threads(request: TrainingRequest, board: Board) -> None:
    """Raise UsageError if the number of threads cannot be set on this board."""
    if request.threads is None:
        return
    if not board.takes_threads:
        taking = " or ".join(known.name for known in list_boards() if known.takes_threads)
        one = f"board {board.name}, which computes with one thread"
        raise UsageError(f"--threads does not go with {one}: take --board {taking}")
    if request.port is not None:
        begun = "the program there was started with its threads"
        raise UsageError(f"--threads does not go with --port: {begun}")
    if request.threads < 1:
        raise UsageError(f"--threads {request.threads}: at least 1 is needed")
