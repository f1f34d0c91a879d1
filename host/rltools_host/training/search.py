"""What a tuning searches: values of hyperparameters and sizes, by the one list of hyperparameters.

A name has a range or choices. Those that usually matter are searched where nobody names any; a
range of positive numbers over a factor of 30 or more is drawn by its logarithm.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rltools_host.build.description import ExperimentDescription, Parameter
from rltools_host.errors import RltError, UsageError
from rltools_host.runs.task import Task
from rltools_host.training.hyperparameters import parse_value, plain_number, setting_texts
from rltools_host.training.words import SIZE_WORDS, of_experiment, own_names, resized

LOGARITHMIC_FROM = 30.0  # the highest over the lowest
MOST_CHOICES = 100
MOST_SHAPES = 1000  # that sizes make together
FIXED = ("seed", "steps", "eval_every", "eval_episodes", "report_every")  # or runs do not compare
# What is searched unless somebody says, with what is usual.
USUAL: Mapping[str, str] = {
    "learning_rate": "1e-5..1e-2",
    "gamma": "0.9,0.95,0.98,0.99,0.995,0.999",
    "tau": "0.001..0.05",
    "gae_lambda": "0.8,0.9,0.92,0.95,0.98,0.99,1",
    "clip_range": "0.1,0.2,0.3,0.4",
    "epochs": "1,5,10,20",
    "entropy_weight": "1e-8..0.1",
    "action_noise": "0.02..0.5",
}
USUAL_SIZES: Mapping[str, str] = {"hidden": "64x64,128x128,256x256", "batch_size": "64,128,256"}
RANGE = re.compile(r"(.+?)\.\.(.+)")
WIDTHS = re.compile(r"[0-9]+(x[0-9]+)*")


@dataclass(frozen=True)
class Dimension:
    """One name, with a range of numbers or with choices, which are texts as --set takes them."""

    name: str
    low: float | int = 0
    high: float | int = 0
    choices: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        return isinstance(self.low, int)

    @property
    def is_logarithmic(self) -> bool:
        return self.low > 0 and self.high / self.low >= LOGARITHMIC_FROM

    @property
    def is_size(self) -> bool:
        return self.name in SIZE_WORDS.values()

    def text(self) -> str:
        """As --search takes it."""
        if not self.choices:
            return f"{self.name}={self.low}..{self.high}"
        return f"{self.name}={','.join(choice.replace(',', 'x') for choice in self.choices)}"

    def setting(self, value: float | int | str) -> str:
        """As --set takes it: a number of a range with four digits."""
        if isinstance(value, float):
            value = min(max(float(f"{value:.4g}"), self.low), self.high)
        return f"{self.name}={value}"


def space_of(
    description: ExperimentDescription,
    task: Task | None,
    searched: Sequence[str],
    settings: Sequence[str],
) -> list[Dimension]:
    """What is searched: what `searched` has, as of --search, or what is usual of the experiment.

    `settings` are fixed. UsageError says which text is wrong, and why.
    """
    texts = {}
    for text in searched:
        name, equals, values = (part.strip() for part in text.partition("="))
        if name in texts:
            raise UsageError(f"--search {name} is given twice: give it once")
        texts[name] = values if equals else ""
    fixed = own_names(description, setting_texts(of_hyperparameters(settings)))
    sizes = {size for setting in settings if (size := size_of(setting.partition("=")[0]))}
    if not texts:
        known = {entry.name for entry in description.hyperparameters}
        texts = {name: "" for name in USUAL if name in known and name not in fixed}
        texts |= {name: "" for name in USUAL_SIZES if task is not None and name not in sizes}
    space = [dimension(description, name, values) for name, values in texts.items()]
    for found in space:
        if found.name in fixed or found.name in sizes:
            raise UsageError(f"{found.name} is searched, and is set: give --search or --set")
        if [other.name for other in space].count(found.name) > 1:
            raise UsageError(f"--search has {found.name} twice, by two words: give it once")
    if not space:
        raise UsageError(
            f"{description.name} has nothing that is searched unless it is named: name it with "
            "--search NAME=LOW..HIGH"
        )
    require_shapes(description.name, task, space)
    return space


def of_hyperparameters(settings: Sequence[str]) -> list[str]:
    return [setting for setting in settings if not size_of(setting.partition("=")[0])]


def size_of(word: str) -> str | None:
    return SIZE_WORDS.get(word.strip())


def dimension(description: ExperimentDescription, word: str, values: str) -> Dimension:
    is_own = any(entry.name == word for entry in description.hyperparameters)
    if not is_own and (size := size_of(word)):
        return size_dimension(size, word, values or USUAL_SIZES.get(size, ""))
    (name,) = own_names(description, {word: ""})
    entry = description.hyperparameter(name)
    if name in FIXED:
        raise UsageError(
            f"--search {word}: all trials have the same {name}, or they do not compare"
        )
    if not values and name not in USUAL:
        raise UsageError(f"--search {word}: give a range or values: --search {word}=LOW..HIGH")
    try:
        return hyperparameter_dimension(entry, values or USUAL[name])
    except RltError as error:
        raise UsageError(f"--search {word}: {error}") from None


def hyperparameter_dimension(entry: Parameter, text: str) -> Dimension:
    if found := RANGE.fullmatch(text):
        low, high = (parse_value(entry, end.strip()) for end in found.groups())
        if low >= high:
            raise UsageError(f"the range {text} has no width: write LOW..HIGH")
        return Dimension(entry.name, low, high)
    values = [parse_value(entry, part.strip()) for part in text.split(",")]
    return Dimension(entry.name, choices=distinct(text, [plain_number(entry, v) for v in values]))


def distinct(text: str, choices: Sequence[str]) -> tuple[str, ...]:
    if len(set(choices)) < len(choices):
        raise UsageError(f"{text} has a value twice: give each once")
    if not 2 <= len(choices) <= MOST_CHOICES:
        raise UsageError(f"{text}: write two values at least, A,B, or a range, LOW..HIGH")
    return tuple(choices)


def size_dimension(size: str, word: str, text: str) -> Dimension:
    """Choices alone: each is compiled."""
    parts = [part.strip() for part in text.split(",")]
    form = WIDTHS if size == "hidden" else re.compile("[0-9]+")
    if not all(form.fullmatch(part) for part in parts):
        example = "hidden=64x64,256x256" if size == "hidden" else f"{word}=64,256"
        raise UsageError(
            f"--search {word}={text}: sizes are compiled in: list them, as in --search {example}"
        )
    try:
        return Dimension(size, choices=distinct(text, [part.replace("x", ",") for part in parts]))
    except UsageError as error:
        raise UsageError(f"--search {word}={error}") from None


def require_shapes(experiment: str, task: Task | None, space: Sequence[Dimension]) -> None:
    """That all sizes together can be compiled."""
    sizes = [found for found in space if found.is_size]
    if not sizes:
        return
    count = math.prod(len(found.choices) for found in sizes)
    if count > MOST_SHAPES:
        raise UsageError(
            f"--search: the sizes make {count:,} programs; {MOST_SHAPES:,} are allowed"
        )
    for values in itertools.product(*(found.choices for found in sizes)):
        shape = [f"{found.name}={value}" for found, value in zip(sizes, values, strict=True)]
        try:
            of_experiment(experiment, shape) if task is None else resized(task, shape)
        except RltError as error:
            raise UsageError(f"--search {' '.join(shape)}: {error}") from None
