"""A Gymnasium task, as run.json and group.json have it: environment, observations, actions and
algorithm."""

from __future__ import annotations

import hashlib
import math
import re
from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from rltools_host.build.catalog import algorithms, listed
from rltools_host.build.description import (
    LONGEST_CHANNEL_NAME,
    LONGEST_NAME,
    LONGEST_UNIT,
    MAX_CHOICES,
    MAX_STEP_INTERVAL_US,
    Channel,
    Shape,
    described,
    is_policy_text,
    unsafe,
    usual_safe_value,
)
from rltools_host.build.picture import picture_of
from rltools_host.documents import (
    LARGEST_BOUND,
    LONGEST_TEXT,
    PRINTABLE,
    End,
    Unfit,
    unfit,
)

PREFIX = "gym:"  # of a task's name on the command line
MAX_ELEMENTS = 4096  # of an observation or an action
MAX_LAYERS, WIDEST_LAYER = 8, 4096
MAX_ENVIRONMENTS = 1024
LONGEST_SOURCE = 4500  # of a task: Linux's longest path, and a name

TaskExperiment = Annotated[str, Meta(pattern=r"^gym(-[a-z0-9]+)+\Z", max_length=LONGEST_TEXT)]
Size = Annotated[int, Meta(ge=1, le=10**7)]
Width = Annotated[int, Meta(ge=1, le=WIDEST_LAYER)]
Elements = Annotated[int, Meta(ge=1, le=MAX_ELEMENTS)]
Channels = Annotated[tuple[Channel, ...], Meta(min_length=1, max_length=MAX_ELEMENTS)]


# The source of a task's step_interval_us.
IntervalSource = Literal["", "channels", "dt", "render_fps", "default"]
INTERVAL_SOURCES: dict[IntervalSource, str] = {  # where nobody states it
    "": "which nobody is known to have stated",
    "default": "as the task has no dt, and its metadata no render_fps",
    "dt": "the environment's dt",
    "render_fps": "a frame of the environment's pictures",
}


class Sizes(Struct, frozen=True):
    """Sizes that are compiled in, beside the networks; `environments` are stepped at once."""

    environments: Annotated[int, Meta(ge=1, le=MAX_ENVIRONMENTS)]
    batch_size: Size
    buffer_size: Size
    n_steps: Size


class Task(Struct, frozen=True, omit_defaults=True):
    """A complete task: all that is compiled follows from it. Channels are its shapes' elements."""

    source: Annotated[  # gym:ID; or the name of a function that the user's own program has
        str, Meta(pattern=PRINTABLE + r"*\Z", max_length=LONGEST_SOURCE)
    ]
    environment: str  # name in policy images
    experiment: TaskExperiment
    algorithm: str
    hidden: Annotated[tuple[Width, ...], Meta(min_length=1, max_length=MAX_LAYERS)]
    sizes: Sizes
    episode_steps: Annotated[int, Meta(ge=1, le=2**31 - 1)]
    step_interval_us: Annotated[int, Meta(ge=1, le=MAX_STEP_INTERVAL_US)]
    observation_shape: tuple[Elements, ...]
    action_shape: tuple[Elements, ...]
    observations: Channels
    actions: Channels
    solved_return: End | None
    picture: tuple[Shape, ...] = ()
    # True if the environment returns info["action_mask"], which are the last observations then.
    has_masks: bool = False
    # What a board does where something is wrong, of each action, null where nobody states it; empty
    # where nobody states any.
    safe_action: tuple[End | None, ...] = ()
    step_interval_from: IntervalSource = ""
    unbounded: tuple[str, ...] = ()  # observations whose range nobody states
    # True if TD3 or SAC have a normalizer, for norm_obs=1: not in a run from before there was one.
    normalizes: bool = False

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
            masks = self.mask_count if kind == "observation" else 0
            if math.prod(shape) + masks != len(channels):
                raise Unfit(f"{kind}_shape is {[*shape]}, not that of {len(channels)} {kind}s")
        if self.safe_action and len(self.safe_action) != len(self.actions):
            count = len(self.safe_action)
            raise Unfit(
                f"safe_action has {count} numbers, and there are {len(self.actions)} actions"
            )
        for channel, value in zip(self.actions, self.safe_action, strict=False):
            if value is not None and (wrong := unsafe(channel, value)):
                raise Unfit(f"safe_action of {channel.name}: {wrong}")
        picture_of(self.picture, (*self.observations, *self.actions))

    @property
    def mask_count(self) -> int:
        """Return how many observations are masks: one for each choice, or none."""
        return sum(len(action.choices) for action in self.actions) if self.has_masks else 0

    @property
    def safe_values(self) -> tuple[float, ...]:
        """Return the safe value of each action, stated or assumed."""
        stated = self.safe_action or (None,) * len(self.actions)
        return tuple(
            usual_safe_value(channel) if value is None else float(value)
            for channel, value in zip(self.actions, stated, strict=True)
        )

    @property
    def own_observations(self) -> Channels:
        """Return the observations of the environment's space, without the masks."""
        return self.observations[: len(self.observations) - self.mask_count]

    @property
    def states_interval(self) -> bool:
        """Return True if somebody stated the length of a step."""
        return self.step_interval_from == "channels"

    @property
    def is_named(self) -> bool:
        """Return True if Gymnasium, or a file, makes the environment by name."""
        return self.source.startswith(PREFIX)

    @property
    def contract(self) -> str:
        """Return the name of the contract of boards that run its policies: gym-servo."""
        return short(f"gym-{slug(self.environment)}", LONGEST_NAME)

    @property
    def has_channels(self) -> bool:
        """Return True if a table named some of the channels."""
        groups = (("observation", self.own_observations), ("action", self.actions))
        return any(
            channel.name != f"{group}_{index}" or not has_plain_unit(channel)
            for group, channels in groups
            for index, channel in enumerate(channels)
        )

    @property
    def words(self) -> list[str]:
        """Return the arguments of `rlt train` for this task, without its channels."""
        sizes = structs.asdict(self.sizes)
        return [
            self.source,
            *("--algorithm", self.algorithm),
            *("--set", f"hidden={','.join(map(str, self.hidden))}"),
            *("--set", f"episode_steps={self.episode_steps}"),
            *(word for name, value in sizes.items() for word in ("--set", f"{name}={value}")),
        ]


def has_plain_unit(channel: Channel) -> bool:
    """Return True if no table gave a unit, or names of choices other than their numbers."""
    names = channel.choices
    if not names or not names[0].lstrip("-").isdigit():
        return channel.unit == "1"
    return list(names) == [str(int(names[0]) + number) for number in range(len(names))]


def slug(text: str) -> str:
    """Return the text in lower case, its words joined by hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def short(text: str, length: int) -> str:
    """Return the text, or its beginning and a hash if it is longer."""
    if len(text) <= length:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:6]
    return f"{text[: length - 7].rstrip('-')}-{digest}"


def check_channel(name: str, channel: Channel) -> None:
    """Raise Unfit unless texts and ranges of a channel may go into headers, pages and divisions."""
    texts = [("name", channel.name, LONGEST_CHANNEL_NAME)]
    if name.startswith("action") and channel.choices:
        texts += [("unit", choice, LONGEST_CHANNEL_NAME) for choice in channel.choices]
        last = len(channel.choices) - 1
        if (channel.minimum, channel.maximum) != (0, last) or last >= MAX_CHOICES:
            raise Unfit(f"{name} chooses from {last + 1}, and its range is not that of a choice")
    else:
        texts += [("unit", channel.unit, LONGEST_UNIT)]
    for field, text, longest in texts:
        if not is_policy_text(text, longest):
            raise unfit(f"{name}.{field}", text, described(longest))
        if field == "unit" and "|" in text:
            raise Unfit(f"{name}.unit has a bar, which only choices have")
    for field in ("minimum", "maximum"):
        if not abs(end := getattr(channel, field)) <= LARGEST_BOUND:
            expected = f"a number from {-LARGEST_BOUND:g} to {LARGEST_BOUND:g}"
            raise unfit(f"{name}.{field}", end, expected)
    if not channel.minimum < channel.maximum:
        raise Unfit(f"{name} has no range: its minimum is not below its maximum")
