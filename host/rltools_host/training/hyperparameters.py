"""Values of hyperparameters: defaults, --seed, --steps, --set and --set-file, checked."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msgspec import structs

from rltools_host.build.description import ExperimentDescription, Parameter
from rltools_host.build.experiments import GENERATED, header_of, sized, sizes_of_name
from rltools_host.build.sizes import CONSTANTS as OF_HEADERS
from rltools_host.documents import Line, Unfit, Value, shown, typed
from rltools_host.environments.spaces import as_float32
from rltools_host.environments.task import (
    DEFAULT_HIDDEN,
    SIZES,
    TaskRequest,
    checked_steps,
    experiment_name,
    request_of,
)
from rltools_host.errors import DamagedFileError, RltError, UsageError
from rltools_host.files import parse_json, read_limited
from rltools_host.runs.task import Task
from rltools_host.tree import near_path

SIZE_NAMES = (*SIZES, "environments", "hidden", "episode_steps")
CONSTANTS = {**OF_HEADERS, "hidden": "Actor and Critic"}  # of an experiment's header
# Hyperparameters and sizes by the names that they had until format 3 of run.json.
FORMER: Mapping[str, str] = {
    "value_weight": "vf_coef",
    "entropy_weight": "ent_coef",
    "epochs": "n_epochs",
    "kl_target": "target_kl",
    "initial_log_std": "log_std_init",
    "normalise_obs": "norm_obs",
    "normalise_adv": "normalize_advantage",
    "recompute_adv": "recompute_advantage",
    "target_every": "target_update_interval",
    "explore_fraction": "exploration_fraction",
    "initial_epsilon": "exploration_initial_eps",
    "final_epsilon": "exploration_final_eps",
    "final_rate": "lr_end_factor",
    "adapt_rate": "adaptive_lr",
    "policy_noise": "target_policy_noise",
    "noise_clip": "target_noise_clip",
    "student_rate": "student_learning_rate",
    "student_end": "student_lr_end_factor",
    "eval_every": "eval_freq",
    "eval_episodes": "n_eval_episodes",
    "replay_capacity": "buffer_size",
    "rollout_steps": "n_steps",
}


def require_names(description: ExperimentDescription, names: Collection[str]) -> None:
    """Raise UsageError where a name is a size, which is set elsewhere, or one of before."""
    known = {entry.name for entry in description.hyperparameters}
    for name in names:
        if name in FORMER and name not in known:
            raise UsageError(f"{name} is called {FORMER[name]} now: set that")
        if name not in SIZE_NAMES:
            continue
        if GENERATED.fullmatch(description.name):
            raise UsageError(
                f"{name} is fixed when a run begins: start a new one with --set {name}=…"
            )
        base, _ = sizes_of_name(description.name) or (description.name, {})
        raise UsageError(
            f"{name} is compiled in, as boards do not allocate: start a new run with --set "
            f"{name}=…, or edit {CONSTANTS[name]} in {near_path(header_of(base))}"
        )


def with_sizes(task: TaskRequest, settings: Sequence[str]) -> tuple[TaskRequest, tuple[str, ...]]:
    """Return the task with the sizes among the settings, and the other settings."""
    taken = {name for name in ("environments", "episode_steps") if getattr(task, name) is not None}
    taken |= {*task.sizes, *(("hidden",) if task.hidden != DEFAULT_HIDDEN else ())}
    hidden, sizes, rest = sizes_in(settings, taken)
    environments = sizes.pop("environments", task.environments)
    steps = sizes.pop("episode_steps", task.episode_steps)
    own, widths = {**task.sizes, **sizes}, hidden or task.hidden
    sized = replace(task, hidden=widths, environments=environments, episode_steps=steps, sizes=own)
    return sized, rest


def sizes_in(
    settings: Sequence[str], taken: Collection[str] = ()
) -> tuple[tuple[int, ...] | None, dict[str, int], tuple[str, ...]]:
    """Return the hidden layers and the other sizes among the settings, and the other settings;
    UsageError for a size that was `given` before."""
    hidden: tuple[int, ...] | None = None
    sizes: dict[str, int] = {}
    rest: list[str] = []
    given = {*taken}
    for setting in settings:
        size, equals, text = (part.strip() for part in setting.partition("="))
        if not equals or size not in SIZE_NAMES:
            rest.append(setting)
            continue
        if size in given:
            raise UsageError(f"{size} is given twice: give it once")
        given.add(size)
        if size == "hidden":
            hidden = widths_of(size, text)
        else:
            sizes[size] = whole(size, text)
    return hidden, sizes, tuple(rest)


def of_experiment(name: str, settings: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the experiment's name with the sizes among the settings, and the other settings."""
    hidden, sizes, rest = sizes_in(settings)
    given = {"hidden": hidden} if hidden else {}
    given |= {size: (value,) for size, value in sizes.items()}
    return sized(name, given) if given else name, rest


def resized(task: Task, settings: Sequence[str]) -> tuple[Task, tuple[str, ...]]:
    """Return a complete task with the sizes among the settings, and the other settings."""
    hidden, sizes, rest = sizes_in(settings)
    if len(rest) == len(settings):
        return task, rest
    episode_steps = sizes.pop("episode_steps", task.episode_steps)
    sizes = structs.asdict(task.sizes) | sizes
    environments = sizes.pop("environments")
    request = replace(
        request_of(task), hidden=hidden or task.hidden, environments=environments, sizes=sizes
    )
    checked = request.checked_sizes()
    sized = structs.replace(
        task,
        hidden=request.hidden,
        sizes=checked,
        episode_steps=checked_steps(episode_steps),
        experiment=experiment_name(
            request, task.algorithm, checked, episode_steps, task.episode_steps
        ),
    )
    return sized, rest


def whole(word: str, text: str) -> int:
    """Return the whole number of a text such as 1e5, 1_000_000 or 256."""
    try:
        value = float(text)
        if value == int(value):
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise UsageError(f"{word}={text}: give a whole number")


def widths_of(word: str, text: str) -> tuple[int, ...]:
    """Return the widths of `64,64`, `[64, 64]` or `64 64`."""
    inner = re.fullmatch(r"[\[(]?\s*(\d+(?:[\s,]+\d+)*)[\s,]*[\])]?", text)
    if inner is None:
        raise UsageError(f"{word}={text}: write the widths of the hidden layers, such as 64,64")
    return tuple(int(width) for width in re.findall(r"\d+", inner[1]))


OPTION, AIRFRAME = "--set-file", "--airframe"
WHAT = {OPTION: "hyperparameters", AIRFRAME: "airframe"}
LARGEST = 1_000_000  # bytes


@dataclass(frozen=True)
class SetFile:
    """Values by name, as text like those of --set."""

    path: Path
    texts: Mapping[str, str]


def load_set_file(path: Path, option: str = OPTION) -> SetFile:
    """Load the file of --set-file; UsageError names the file if it is not one."""
    try:
        data = read_limited(path, LARGEST)
        document = parse_json(data)
        if not isinstance(document, dict):
            raise Unfit('it is not a JSON object such as {"learning_rate": 0.001}')
        json.loads(data, object_pairs_hook=each_once)
        settings: dict[str, int | float] = {
            typed(name, Line, "a name"): typed(value, Value, name)
            for name, value in document.items()
        }
    except OSError as error:
        raise UsageError(f"cannot read {option} {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise DamagedFileError(f"{option} {path} has no {WHAT[option]}: {error}") from None
    return SetFile(path, {name: str(value) for name, value in settings.items()})


def each_once(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if twice := [name for index, name in enumerate(names) if name in names[:index]]:
        raise Unfit(f"{shown(twice[0])} occurs twice")


SMALLEST_POSITIVE = 2.0**-149  # float of 32 bits

Values = dict[str, float | int]


def default_values(description: ExperimentDescription) -> Values:
    return {
        entry.name: int(entry.default) if entry.is_whole else shortest(entry.default)
        for entry in description.hyperparameters
    }


def given_values(
    description: ExperimentDescription,
    seed: int | None,
    steps: int | None,
    settings: Sequence[str],
    set_file: SetFile | None = None,
) -> Values:
    """Return the values of --seed, --steps and --set, each name once; they win over those of the
    file."""
    given = {"seed": seed, "steps": steps}
    texts = {name: str(value) for name, value in given.items() if value is not None}
    texts = setting_texts(settings, texts)
    require_names(description, texts)
    of_file = {} if set_file is None else file_values(description, set_file)
    return of_file | {
        name: parse_value(description.hyperparameter(name), text) for name, text in texts.items()
    }


def setting_texts(
    settings: Sequence[str], given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the texts of --set by name; UsageError for a name that occurs twice or is `given`
    elsewhere."""
    texts = dict(given or {})
    for setting in settings:
        name, equals, text = (part.strip() for part in setting.partition("="))
        if not equals:
            raise UsageError(f'--set "{setting}" has no value: write --set name=value')
        if name in texts:
            raise UsageError(f"{name} is given twice: give it once")
        texts[name] = text
    return texts


def given_numbers(texts: Sequence[str]) -> dict[str, float]:
    """Return the numbers of --set by name; names and bounds are checked where they are used."""
    found: dict[str, float] = {}
    for name, text in setting_texts(texts).items():
        try:
            found[name] = float(text)
        except ValueError:
            found[name] = math.nan
        if not math.isfinite(found[name]):
            raise UsageError(f"--set {name}={text}: {text or 'nothing'} is not a number")
    return found


def file_values(description: ExperimentDescription, set_file: SetFile) -> Values:
    """Return all values of a file, also those that an option wins over."""
    try:
        require_names(description, set_file.texts)
        return {
            name: parse_value(description.hyperparameter(name), text)
            for name, text in set_file.texts.items()
        }
    except RltError as error:
        raise type(error)(f"{OPTION} {set_file.path}: {error}") from None


def parse_value(entry: Parameter, text: str) -> float | int:
    """Return a value within its bounds, as the board holds it."""
    try:
        given = float(text)
        if entry.is_whole:
            given = int(text) if text.lstrip("+-").replace("_", "").isdigit() else given
            value: float | int = int(given) if given == int(given) else math.nan
        else:
            value = as_float32(given)
    except (ValueError, OverflowError):
        given = value = math.nan
    if value == 0 and given != 0:
        raise UsageError(
            f"{entry.name}={text} is 0 in a float of 32 bits: give 0, or at least "
            f"{shortest(SMALLEST_POSITIVE):g}"
        )
    if not entry.minimum <= value <= entry.maximum:
        bounds = f"{plain_number(entry, entry.minimum)} to {plain_number(entry, entry.maximum)}"
        kind = "whole number" if entry.is_whole else "number"
        unit = f" {entry.unit}" if entry.unit else ""
        raise UsageError(
            f"{entry.name}={text} is out of bounds: choose a {kind} from {bounds}{unit} "
            f"({entry.description.rstrip('.')})"
        )
    return value if entry.is_whole else shortest(value)


def shortest(value: float) -> float:
    """Return the number with the fewest digits that is the same float of 32 bits, such as 0.001."""
    for digits in range(1, 9):
        candidate = float(f"{value:.{digits}g}")
        with contextlib.suppress(OverflowError):  # rounded up beyond the largest float
            if as_float32(candidate) == as_float32(value):
                return candidate
    return value


def plain_number(entry: Parameter, bound: float) -> str:
    """Return a bound as it can be typed: it is accepted, and nothing beyond it is."""
    if bound == int(bound):
        return f"{int(bound)}"
    text = repr(bound) if entry.is_whole else f"{shortest(bound):.9g}"
    return text if as_float32(float(text)) == as_float32(bound) else repr(bound)
