"""What run.json and group.json hold, and what it must be to be read.

Everything of a run.json may be missing, as from runs of older tools; what a field is then is its
default. Fields of newer tools are left alone.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from rltools_host.build.catalogue import algorithms, listed
from rltools_host.build.description import Channel
from rltools_host.clock import LAST_US
from rltools_host.documents import (
    LARGEST_BOUND,
    LONGEST_TEXT,
    ONE_LINE,
    PRINTABLE,
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
    unfit,
)
from rltools_host.runs.policy_file import MOST_STEP_INTERVAL_US
from rltools_host.runs.policy_text import (
    LONGEST_CHANNEL_NAME,
    LONGEST_NAME,
    LONGEST_UNIT,
    SUBJECT_NAME,
    described,
    is_policy_text,
)

SAVE_NAME = r"^save-([0-9]{1,10})-[0-9a-f]{12}(-[0-9]+)?\Z"
MOST_ELEMENTS = 4096  # of an observation or an action
MOST_LAYERS, WIDEST_LAYER = 8, 4096
MOST_ENVIRONMENTS = 1024
LONGEST_SOURCE = 4500  # of a task: Linux's longest path, and a name

Fingerprint = Annotated[
    str, Meta(pattern=r"^[0-9a-f]{8}\Z", description="eight hexadecimal digits")
]
SaveName = Annotated[
    str,
    Meta(
        pattern=rf"^(?a:{SAVE_NAME})\Z", max_length=LONGEST_TEXT, description="the name of a save"
    ),
]
ArchiveName = Annotated[
    str, Meta(pattern=r"^sources-[0-9a-f]{12}\.tar\.gz\Z", description="the name of an archive")
]
SubjectPattern = rf"^{SUBJECT_NAME.pattern}\Z"
ExperimentName = Annotated[
    str,
    Meta(
        pattern=SubjectPattern,
        max_length=LONGEST_NAME,
        description="the name of an experiment, such as pendulum-td3",
    ),
]
ContractName = Annotated[
    str,
    Meta(
        pattern=SubjectPattern,
        max_length=LONGEST_NAME,
        description="the name of a contract, such as quadrotor",
    ),
]
TaskExperiment = Annotated[
    str,
    Meta(
        pattern=r"^gym(-[a-z0-9]+)+\Z",
        max_length=LONGEST_TEXT,
        description="the name of a task's experiment",
    ),
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


class Memory(Struct, frozen=True):
    """How much of a memory the program occupies."""

    name: Line
    use: Line
    used_bytes: Count
    bytes: Count


class StatedIdentity(Struct, frozen=True):
    """What a board said of itself: clients/messages.py."""

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


Size = Annotated[int, Meta(ge=1, le=10**7)]
Width = Annotated[int, Meta(ge=1, le=WIDEST_LAYER)]
Elements = Annotated[int, Meta(ge=1, le=MOST_ELEMENTS)]
Channels = Annotated[tuple[Channel, ...], Meta(min_length=1, max_length=MOST_ELEMENTS)]


class Sizes(Struct, frozen=True):
    """What is compiled in, beside the networks; environments: how many are stepped at once."""

    environments: Annotated[int, Meta(ge=1, le=MOST_ENVIRONMENTS)]
    batch_size: Size = 256
    replay_capacity: Size = 100_000  # where the algorithm has one
    rollout_steps: Size = 256  # likewise, of each environment


class TaskFields(Struct, frozen=True):
    """A task of Gymnasium's, whose channels are the elements of its shapes."""

    source: Annotated[  # gym:ID; or the name of a function that the user's own program has
        str, Meta(pattern=PRINTABLE + r"*\Z", max_length=LONGEST_SOURCE, description=ONE_LINE)
    ]
    environment: str  # name in policy images
    experiment: TaskExperiment
    algorithm: str
    hidden: Annotated[tuple[Width, ...], Meta(min_length=1, max_length=MOST_LAYERS)]
    sizes: Sizes
    episode_steps: Annotated[int, Meta(ge=1, le=2**31 - 1)]
    step_interval_us: Annotated[int, Meta(ge=1, le=MOST_STEP_INTERVAL_US)]
    observation_shape: tuple[Elements, ...]
    action_shape: tuple[Elements, ...]
    observations: Channels
    actions: Channels
    solved_return: End | None

    def __post_init__(self) -> None:
        if not is_policy_text(self.environment, LONGEST_NAME):
            raise unfit("environment", self.environment, described(LONGEST_NAME))
        if not re.search("[A-Za-z0-9]", self.environment):
            raise unfit("environment", self.environment, "a name")
        if self.algorithm not in list(algorithms()):
            raise unfit("algorithm", self.algorithm, listed())
        for kind, channels, shape in (
            ("observation", self.observations, self.observation_shape),
            ("action", self.actions, self.action_shape),
        ):
            for index, channel in enumerate(channels):
                check_channel(f"{kind}s[{index}]", channel)
            if math.prod(shape) != len(channels):
                raise Unfit(f"{kind}_shape is {[*shape]}, not that of {len(channels)} {kind}s")


def check_channel(name: str, channel: Channel) -> None:
    """Its texts go into headers and pages, and its ends into divisions."""
    for field, longest in (("name", LONGEST_CHANNEL_NAME), ("unit", LONGEST_UNIT)):
        if not is_policy_text(text := getattr(channel, field), longest):
            raise unfit(f"{name}.{field}", text, described(longest))
    for field in ("minimum", "maximum"):
        if not abs(end := getattr(channel, field)) <= LARGEST_BOUND:
            expected = f"a number from {-LARGEST_BOUND:g} to {LARGEST_BOUND:g}"
            raise unfit(f"{name}.{field}", end, expected)
    if not channel.minimum < channel.maximum:
        raise Unfit(f"{name} has no range: its minimum is not below its maximum")


class Run(Struct, frozen=True):
    """run.json."""

    format: FromOne = 1
    experiment: ExperimentName = ""
    environment: str | UnsetType = UNSET  # where it is stated, it has a name
    contract: ContractName | None = None
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
    identity: StatedIdentity | None = None
    host: dict[Line, Scalar] = {}
    versions: dict[Line, Line] = {}
    memory: list[Memory] = []
    sessions: list[Session] = []
    gymnasium: TaskFields | None = None
    save: SaveName | None = None  # none of format 1, which has its files beside run.json
    state_sha256: Digest | None = None
    checkpoint_step: Whole = 0
    checkpoint_train_s: NotNegative | None = None
    train_s: NotNegative | None = None
    evaluation_s: NotNegative | None = None
    steps_per_s: NotNegative | None = None
    messages_lost: Count = 0
    guest_instructions: Count | None = None
    return_mean: Number | None = None
    return_std: Number | None = None

    def __post_init__(self) -> None:
        if self.environment is not UNSET and not is_policy_text(self.environment, LONGEST_NAME):
            raise unfit("environment", self.environment, described(LONGEST_NAME))


# -- a group ---------------------------------------------------------------------------------------


class Variant(Struct, frozen=True):
    """Settings with which each seed is trained; without a name where there is but one."""

    name: Annotated[
        str,
        Meta(
            pattern=r"^([a-z0-9][a-z0-9-]{0,59})?\Z",
            description="a name of small letters, digits and hyphens",
        ),
    ]
    label: Line
    settings: list[Line]  # name=value


class Group(Struct, frozen=True):
    """group.json. How its runs stand is for people, and not read."""

    format: FromOne
    experiment: ExperimentName
    kind: Line
    title: Line
    board: Line
    state: Line
    seeds: Annotated[list[Whole], Meta(min_length=1, max_length=1_000_000)]
    settings: list[Line]
    variants: Annotated[list[Variant], Meta(min_length=1, max_length=10_000)]
    x_axis: Line
    y_axis: Line
    tensorboard: bool
    gymnasium: TaskFields | None = None
    study: Line = ""
    port: Line | None = None
    steps: FromOne | None = None
    threads: FromOne | None = None
    jobs: FromOne | None = None
    started: Line = ""
    ended: Line = ""
    begun_us: BegunUs | None = None

    def __post_init__(self) -> None:
        if (task := self.gymnasium) is None:
            return
        if not re.match("gym:.", task.source):
            expected = "a task's name such as gym:Hopper-v5"
            raise unfit("gymnasium.source", task.source, expected)
        if task.experiment != self.experiment:
            expected = f"the experiment {self.experiment}"
            raise unfit("gymnasium.experiment", task.experiment, expected)
