"""The types of run.json, group.json and the rows of metrics.jsonl.

Every field of run.json may be missing, and has its default then. Other fields are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, TypedDict

from msgspec import UNSET, Meta, Struct, UnsetType

from rltools_host.build.description import (
    LONGEST_NAME,
    SUBJECT_NAME,
    described,
    is_policy_text,
)
from rltools_host.documents import (
    LONGEST_TEXT,
    Count,
    Digest,
    End,
    FromOne,
    Line,
    NotNegative,
    Number,
    Scalar,
    Unfit,
    Value,
    Whole,
    typed,
    unfit,
)
from rltools_host.runs.names import LAST_US
from rltools_host.runs.task import PREFIX, Task

SAVE_NAME = r"^save-([0-9]{1,10})-[0-9a-f]{12}(-[0-9]+)?\Z"

Fingerprint = Annotated[str, Meta(pattern=r"^[0-9a-f]{8}\Z")]
SaveName = Annotated[str, Meta(pattern=rf"^(?a:{SAVE_NAME})\Z", max_length=LONGEST_TEXT)]
ArchiveName = Annotated[str, Meta(pattern=r"^sources-[0-9a-f]{12}\.tar\.gz\Z")]
SubjectName = Annotated[str, Meta(pattern=rf"^{SUBJECT_NAME.pattern}\Z", max_length=LONGEST_NAME)]
OptionalSubject = Annotated[
    str, Meta(pattern=rf"^({SUBJECT_NAME.pattern})?\Z", max_length=LONGEST_NAME)
]
BegunUs = Annotated[int, Meta(ge=0, le=LAST_US)]
Hyperparameters = dict[Line, Value]


class Session(Struct, frozen=True):
    """One session of training a run."""

    started: Line = ""
    training_began: Line = ""
    ended: Line = ""
    board: Line = ""
    port: str = ""
    revision: str = ""
    sources: ArchiveName | None = None
    threads: FromOne | None = None
    environment_faults: Whole = 0
    observations_outside: Count = 0
    first_step: Whole = 0
    last_step: Whole = 0
    train_s: NotNegative = 0.0
    evaluation_s: NotNegative = 0.0
    host_cpu_s: NotNegative = 0.0
    messages_lost: Count = 0
    bytes_skipped: Count = 0
    guest_instructions: Count | None = None
    fault: str = ""  # that ended it: the value that was not finite
    changed: dict[Line, tuple[Number, Number]] = {}  # after a fault: hyperparameters, from and to


class Memory(Struct, frozen=True):
    """The use of a memory by the program."""

    name: Line
    use: Line
    used_bytes: Count
    bytes: Count


class StatedIdentity(Struct, frozen=True):
    """The identity that a board stated: boards/messages.py."""

    experiment: str = ""
    board: str = ""
    device: str = ""
    revision: str = ""
    unique_id: str = ""
    fingerprint: Whole = 0
    protocol_version: Whole = 0
    state: Whole = 0
    learner_bytes: Whole = 0
    replay_bytes: Whole = 0
    scratch_bytes: Whole = 0
    counts_instructions: bool = False
    has_counter: bool = True
    program: str = ""


class Best(Struct, frozen=True):
    """The best evaluation in training whose policy was kept, in the save."""

    step: Whole
    state_sha256: Digest
    return_mean: Number
    return_std: Number | None = None


class Imported(Struct, frozen=True):
    """The origin of an imported policy, and its difference from the numbers of its file."""

    library: Line
    file: Line
    sha256: Digest
    proof: Line  # what the image was compared with
    observations: Whole = 0  # that were compared
    difference: NotNegative = 0.0  # the largest, of actions in [-1, 1]
    corrections: list[Line] = []
    expected_return: Number | None = None  # of the last episodes of training, where it is stated


class Fitted(Struct, frozen=True):
    """The flight whose log gave the airframe's settings, and their confidence intervals."""

    log: Line  # the file's name
    sha256: Digest
    rows: Count
    duration_s: NotNegative
    intervals: dict[Line, tuple[Number, Number]]  # of 95 %, by the settings' names


RUN_FORMAT = 4  # of run.json; up to 3 hyperparameters had other names


class Run(Struct, frozen=True, kw_only=True):
    """run.json."""

    format: FromOne | UnsetType = UNSET  # always written
    experiment: OptionalSubject = ""  # "": an imported policy of none that is here
    environment: str | UnsetType = UNSET  # where it is stated, it has a name
    contract: SubjectName | None = None
    algorithm: Line = ""
    board: Line = ""
    state: Line = ""
    started: Line = ""
    ended: Line = ""
    begun_us: BegunUs | None = None
    fingerprint: Fingerprint | None = None
    seed: Whole | None = None
    steps: Whole = 0
    step: Whole = 0
    hyperparameters: Hyperparameters = {}
    learning: dict[Line, Any] = {}
    git_revision: Line | None = None
    git_dirty: bool | None = None
    identity: StatedIdentity = StatedIdentity()
    host: dict[Line, Scalar] = {}
    versions: dict[Line, Line] = {}
    memory: list[Memory] = []
    sessions: list[Session] = []
    gymnasium: Task | None = None
    # Of an experiment, as a task has its own.
    safe_action: list[End | None] = []
    best: Best | None = None
    imported: Imported | None = None
    fitted: Fitted | None = None
    save: SaveName | None = None  # none before the first
    state_sha256: Digest | None = None
    checkpoint_step: Whole | None = None
    checkpoint_train_s: NotNegative | None = None
    train_s: NotNegative | None = None
    evaluation_s: NotNegative | None = None
    steps_per_s: NotNegative | None = None
    messages_lost: Count = 0
    guest_instructions: Count | None = None
    return_mean: Number | None = None
    return_std: Number | None = None
    length_mean: NotNegative | None = None  # steps of the last evaluation's episodes

    @property
    def has_failed(self) -> bool:
        """Return True if a fault has stopped the run, now or in an earlier session."""
        return self.state == "fault" or any(session.fault for session in self.sessions)

    @property
    def environment_faults(self) -> int | None:
        """Return how often an environment in Python failed; None if the core plays the episodes."""
        if self.gymnasium is None:
            return None
        return sum(session.environment_faults for session in self.sessions)

    @property
    def observations_outside(self) -> int | None:
        """Return the number of observations outside their ranges; None as above."""
        if self.gymnasium is None:
            return None
        return sum(session.observations_outside for session in self.sessions)

    def __post_init__(self) -> None:
        if self.environment is not UNSET and not is_policy_text(self.environment, LONGEST_NAME):
            raise unfit("environment", self.environment, described(LONGEST_NAME))


# -- a group ---------------------------------------------------------------------------------------


Figures = dict[str, str | int | float | None]


class Variant(Struct, frozen=True):
    """Settings with which each seed is trained; without a name if it is the only variant."""

    name: Annotated[str, Meta(pattern=r"^([a-z0-9][a-z0-9-]{0,59})?\Z")] = ""
    label: Line = ""
    settings: tuple[Line, ...] = ()  # name=value
    experiment: SubjectName | None = None  # its own, where that is not the group's


MAX_VARIANTS = 10_000


class Tune(Struct, frozen=True):
    """The request of a tuning. Its trials are the group's variants, and in the storage."""

    mark: Annotated[str, Meta(pattern=r"^[0-9a-f]{16}\Z")]
    study: Line  # its name in the storage
    search: list[Line]  # as --search takes it
    trials: FromOne  # in all
    prunes: bool = True
    storage: Line | None = None  # without a password; None: a file in the group's folder


class Group(Struct, frozen=True, kw_only=True):
    """group.json."""

    format: FromOne
    experiment: SubjectName
    kind: Line
    title: Line
    board: Line
    state: Line
    seeds: Annotated[list[Whole], Meta(min_length=1, max_length=1_000_000)]
    settings: list[Line]
    variants: Annotated[list[Variant], Meta(max_length=MAX_VARIANTS)]
    x_axis: Line
    y_axis: Line
    tensorboard: bool
    gymnasium: Task | None = None
    study: Line = ""
    port: Line | None = None
    steps: FromOne | None = None
    threads: FromOne | None = None
    jobs: FromOne | None = None
    started: Line = ""
    ended: Line = ""
    begun_us: BegunUs | None = None
    tune: Tune | None = None
    runs: list[Figures] = []  # their states; the folders of the runs count
    summary: list[Figures] = []  # of the returns of each variant

    def __post_init__(self) -> None:
        if not self.variants and self.tune is None:
            raise Unfit("variants has 0 entries, not 1 to 10000")
        if (task := self.gymnasium) is None:
            return
        if task.source in ("", PREFIX):
            expected = "a task's name such as gym:Hopper-v5"
            raise unfit("gymnasium.source", task.source, expected)
        if task.experiment != self.experiment:
            expected = f"the experiment {self.experiment}"
            raise unfit("gymnasium.experiment", task.experiment, expected)


KIND = "kind"  # of a row of metrics.jsonl


class ProgressRow(Struct, frozen=True, tag_field=KIND, tag="progress"):
    """A report of the board; the row also has the metrics of the algorithm."""

    time_s: NotNegative
    step: Whole
    counter: Count
    steps: Whole
    updates: Whole
    episodes: Whole
    last_return: Number | None
    best_return: Number | None
    episodes_ended: Count = 0  # of those that ended since the last report, as what follows
    episode_return: Number | None = None
    episode_length: Number | None = None


class EvaluationRow(Struct, frozen=True, tag_field=KIND, tag="evaluation"):
    time_s: NotNegative
    step: Whole
    counter: Count
    episodes: Whole
    return_mean: Number | None
    return_std: Number | None
    return_min: Number | None
    return_max: Number | None
    length_mean: Number | None = None


class EventRow(Struct, frozen=True, tag_field=KIND, tag="event"):
    time_s: NotNegative
    step: Whole
    severity: Annotated[int, Meta(ge=0, le=255)]
    text: str


Row = Mapping[str, Any]  # of metrics.jsonl; a progress row also has the metrics of its algorithm


def metric_names(row: Row) -> list[str]:
    """Return the algorithm's metrics in a progress row."""
    return [name for name in row if name not in (KIND, *ProgressRow.__struct_fields__)]


def check_row(row: Any) -> None:
    """Raise Unfit unless this is a row of metrics.jsonl."""
    if isinstance(typed(row, ProgressRow | EvaluationRow | EventRow), ProgressRow):
        for name in metric_names(row):
            typed(name, Line, "a metric's name")
            typed(row[name], Number | None, name)


class RunDocument(TypedDict):
    """The object of `rlt train --json` for a run; the last five keys are of Gymnasium's tasks."""

    run: str
    experiment: str
    environment: str
    board: str
    seed: int
    steps: int
    step: int
    updates: int  # of this run in all, as the board reports them
    train_s: float | None
    evaluation_s: float | None
    steps_per_s: float | None
    return_mean: float | None
    return_std: float | None
    best: dict[str, int | float | str] | None
    state_sha256: str
    guest_instructions: int | None
    messages_lost: int
    host_cpu_s: float
    task: NotRequired[str]
    environment_faults: NotRequired[int]
    environment_fault: NotRequired[str]
    observations_outside: NotRequired[int]
    observation_outside: NotRequired[str]
