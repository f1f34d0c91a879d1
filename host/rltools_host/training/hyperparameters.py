"""Values of hyperparameters: defaults, --seed, --steps, --set and --set-file, checked; and what
words of other libraries for them mean here: Stable-Baselines3, CleanRL, skrl, RSL-RL and rl_games.
One that means the same is taken; one that means nearly the same, or is set elsewhere, gets a
sentence."""

from __future__ import annotations

import contextlib
import json
import math
import re
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msgspec import structs

from rltools_host.build.description import ExperimentDescription, Parameter
from rltools_host.build.experiments import GENERATED, header_of, sized, sizes_of_name
from rltools_host.build.sizes import CONSTANTS as OF_HEADERS
from rltools_host.documents import Line, Unfit, Value, shown, typed
from rltools_host.errors import DamagedFileError, RltError, UsageError
from rltools_host.files import parse_json
from rltools_host.gymnasium_tasks.task import (
    DEFAULT_HIDDEN,
    SIZES,
    TaskRequest,
    checked_steps,
    experiment_name,
)
from rltools_host.runs.task import Task
from rltools_host.tree import near_path

# A word elsewhere, and the hyperparameters here that may be meant: the first that there is.
SAME: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("lr", "policy_lr", "q_lr", "actor_lr"), ("learning_rate",)),
    **dict.fromkeys(
        ("total_timesteps", "n_timesteps", "timesteps", "total_steps", "num_timesteps"), ("steps",)
    ),
    **dict.fromkeys(("discount", "discount_factor"), ("gamma",)),
    **dict.fromkeys(("lam", "gae_lam"), ("gae_lambda",)),
    **dict.fromkeys(("clip_coef", "clip_param", "clip_ratio", "e_clip"), ("clip_range",)),
    **dict.fromkeys(
        ("n_epochs", "update_epochs", "num_learning_epochs", "mini_epochs"), ("epochs",)
    ),
    **dict.fromkeys(("vf_coef", "value_loss_coef", "value_loss_scale"), ("value_weight",)),
    **dict.fromkeys(("ent_coef", "entropy_coef", "entropy_loss_scale"), ("entropy_weight",)),
    **dict.fromkeys(("target_kl", "desired_kl", "kl_threshold"), ("kl_target",)),
    **dict.fromkeys(("log_std_init", "init_noise_std"), ("initial_log_std",)),
    **dict.fromkeys(("normalize_advantage", "norm_adv"), ("normalize_adv",)),
    **dict.fromkeys(("normalize_obs", "norm_obs", "normalize_observations"), ("normalize_obs",)),
    **dict.fromkeys(("polyak_tau", "soft_update_tau"), ("tau",)),
    **dict.fromkeys(("exploration_noise", "action_noise_std"), ("action_noise",)),
    "target_policy_noise": ("policy_noise",),
    "target_noise_clip": ("noise_clip",),
    **dict.fromkeys(("policy_frequency", "policy_freq"), ("policy_delay",)),
    **dict.fromkeys(("start_steps", "warmup_steps", "random_timesteps"), ("learning_starts",)),
    **dict.fromkeys(("init_alpha", "initial_alpha"), ("alpha",)),
    **dict.fromkeys(
        ("exploration_initial_eps", "start_e", "initial_exploration"), ("initial_epsilon",)
    ),
    **dict.fromkeys(("exploration_final_eps", "end_e", "final_exploration"), ("final_epsilon",)),
    "exploration_fraction": ("explore_fraction",),
    "train_frequency": ("train_freq",),
    "eval_freq": ("eval_every",),
    "n_eval_episodes": ("eval_episodes",),
    **dict.fromkeys(("beta1", "beta_1"), ("adam_beta1",)),
    **dict.fromkeys(("beta2", "beta_2"), ("adam_beta2",)),
    **dict.fromkeys(("eps", "adam_eps", "epsilon"), ("adam_epsilon",)),
}
SIZE_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("batch_size", "minibatch_size"), "batch_size"),
    **dict.fromkeys(("buffer_size", "replay_size", "memory_size"), "replay_capacity"),
    **dict.fromkeys(("n_steps", "num_steps", "rollouts", "horizon_length"), "rollout_steps"),
    **dict.fromkeys(("n_envs", "num_envs"), "environments"),
    **dict.fromkeys(("net_arch", "hidden_sizes", "hidden_dims", "hidden_layers"), "hidden"),
    **dict.fromkeys(("max_episode_steps", "episode_length"), "episode_steps"),
    **{name: name for name in (*SIZES, "environments", "hidden", "episode_steps")},
}
CONSTANTS = {**OF_HEADERS, "hidden": "Actor and Critic"}  # of an experiment's header
SENTENCES: Mapping[str, str] = {
    "polyak": "tau is 1 - polyak: set that, as in tau=0.005",
    "ent_coef": "this algorithm finds the entropy's weight itself, from alpha on and toward "
    "target_entropy: set these",
    "train_freq": "one update follows each step of the environments",
    "gradient_steps": "one update follows each step of the environments",
    "target_update_interval": "elsewhere it counts steps: target_every counts updates, and tau=1 "
    "copies the network",
    "target_network_frequency": "elsewhere it counts steps: target_every counts updates, and tau=1 "
    "copies the network",
    "n_minibatches": "give the rows of one: batch_size",
    "num_minibatches": "give the rows of one: batch_size",
    "num_mini_batches": "give the rows of one: batch_size",
    "anneal_lr": "the step size falls evenly to final_rate times its beginning: final_rate=0",
    "lr_schedule": "the step size falls evenly to final_rate times its beginning: final_rate=0",
    "activation_fn": "the experiment's header has the activations, of Actor and Critic",
    "device": "--board says where a run is trained",
    "verbose": "the screen shows what there is to say",
    "policy": "all policies are multi-layer perceptrons: hidden has their widths",
    "tensorboard_log": "the log lies in the run's folder; --no-tensorboard leaves it out",
}


def own_names(description: ExperimentDescription, texts: Mapping[str, str]) -> dict[str, str]:
    """Texts by the names that the experiment has; each name once.

    UsageError with the place where a size, or what has no equal here, is set.
    """
    known = {entry.name for entry in description.hyperparameters}
    found: dict[str, str] = {}
    for word, text in texts.items():
        name = word
        if word not in known:
            name = next((same for same in SAME.get(word, ()) if same in known), word)
        if name not in known:
            refuse_word(description, word)
        if name in found:
            raise UsageError(f"{word} is {name}, which is given twice: give it once")
        found[name] = text
    return found


def refuse_word(description: ExperimentDescription, word: str) -> None:
    """UsageError for a word that is known and is no hyperparameter here."""
    if word in SIZE_WORDS:
        size = SIZE_WORDS[word]
        if GENERATED.fullmatch(description.name):
            raise UsageError(
                f"{word} is fixed when a run begins: start a new one with --set {size}=…"
            )
        base, _ = sizes_of_name(description.name) or (description.name, {})
        header = near_path(header_of(base))
        raise UsageError(
            f"{word} is compiled in, as boards do not allocate: start a new run with --set "
            f"{size}=…, or edit {CONSTANTS[size]} in {header}"
        )
    if word in SENTENCES:
        raise UsageError(
            f"{word} is not a hyperparameter of {description.algorithm} here: {SENTENCES[word]}"
        )


def with_sizes(task: TaskRequest, settings: Sequence[str]) -> tuple[TaskRequest, tuple[str, ...]]:
    """The task with the sizes that settings have, and the settings without them."""
    said = {name for name in ("environments", "episode_steps") if getattr(task, name) is not None}
    said |= {*task.sizes, *(("hidden",) if task.hidden != DEFAULT_HIDDEN else ())}
    hidden, sizes, rest = sizes_in(settings, said)
    environments = sizes.pop("environments", task.environments)
    steps = sizes.pop("episode_steps", task.episode_steps)
    own, widths = {**task.sizes, **sizes}, hidden or task.hidden
    sized = replace(task, hidden=widths, environments=environments, episode_steps=steps, sizes=own)
    return sized, rest


def sizes_in(
    settings: Sequence[str], said: Collection[str] = ()
) -> tuple[tuple[int, ...] | None, dict[str, int], tuple[str, ...]]:
    """The hidden layers that settings have, the other sizes, and the other settings; no size that
    was `said` before."""
    hidden: tuple[int, ...] | None = None
    sizes: dict[str, int] = {}
    rest: list[str] = []
    given = {*said}
    for setting in settings:
        word, equals, text = (part.strip() for part in setting.partition("="))
        size = SIZE_WORDS.get(word)
        if not equals or size is None:
            rest.append(setting)
            continue
        if size in given:
            raise UsageError(f"{size} is given twice: give it once")
        given.add(size)
        if size == "hidden":
            hidden = widths_of(word, text)
        else:
            sizes[size] = whole(word, text)
    return hidden, sizes, tuple(rest)


def of_experiment(name: str, settings: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The experiment with the sizes that settings have, and the settings without them."""
    hidden, sizes, rest = sizes_in(settings)
    given = {"hidden": hidden} if hidden else {}
    given |= {size: (value,) for size, value in sizes.items()}
    return sized(name, given) if given else name, rest


def resized(task: Task, settings: Sequence[str]) -> tuple[Task, tuple[str, ...]]:
    """A task that is complete with the sizes that settings have, and the settings without them."""
    hidden, sizes, rest = sizes_in(settings)
    if len(rest) == len(settings):
        return task, rest
    episode_steps = sizes.pop("episode_steps", task.episode_steps)
    sizes = structs.asdict(task.sizes) | sizes
    environments = sizes.pop("environments")
    request = TaskRequest(
        task.source,
        name=task.environment,
        algorithm=task.algorithm,
        hidden=hidden or task.hidden,
        environments=environments,
        sizes=sizes,
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
    """1e5, 1_000_000 and 256 are whole numbers."""
    try:
        value = float(text)
        if value == int(value):
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise UsageError(f"{word}={text}: give a whole number")


def widths_of(word: str, text: str) -> tuple[int, ...]:
    """`64,64`, `[64, 64]` or `64 64`."""
    inner = re.fullmatch(r"[\[(]?\s*(\d+(?:[\s,]+\d+)*)[\s,]*[\])]?", text)
    if inner is None:
        raise UsageError(f"{word}={text}: write the widths of the layers between, such as 64,64")
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
    """What an option's file says; one sentence names it where that is not what it must be."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"cannot read {option} {path}: {error.strerror or error}") from None
    try:
        if len(data) > LARGEST:
            raise Unfit(f"it has more than {LARGEST} bytes")
        document = parse_json(data)
        if not isinstance(document, dict):
            raise Unfit('it is not one object, such as {"learning_rate": 0.001}')
        json.loads(data, object_pairs_hook=each_once)
        settings: dict[str, int | float] = typed(document, dict[Line, Value])
    except ValueError as error:
        reason = str(error)
    else:
        return SetFile(path, {name: str(value) for name, value in settings.items()})
    raise DamagedFileError(f"{option} {path} has no {WHAT[option]}: {reason}")


def each_once(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if twice := [name for index, name in enumerate(names) if name in names[:index]]:
        raise Unfit(f"{shown(twice[0])} is there twice")


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
    """The values of --seed, --steps and --set, each name once; they win over those of the file."""
    given = {"seed": seed, "steps": steps}
    texts = {name: str(value) for name, value in given.items() if value is not None}
    texts = own_names(description, setting_texts(settings, texts))
    of_file = {} if set_file is None else file_values(description, set_file)
    return of_file | {
        name: parse_value(description.hyperparameter(name), text) for name, text in texts.items()
    }


def setting_texts(
    settings: Sequence[str], given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Of --set, as typed: name=value; each name once, also beside those that are given already."""
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
    """Of --set, as typed; names and bounds are looked at where they are used."""
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
    """All of a file's values, also those that something else wins over."""
    try:
        return {
            name: parse_value(description.hyperparameter(name), text)
            for name, text in own_names(description, set_file.texts).items()
        }
    except RltError as error:
        raise type(error)(f"{OPTION} {set_file.path}: {error}") from None


def parse_value(entry: Parameter, text: str) -> float | int:
    """A value within the bounds, as the board will hold it."""
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


def as_float32(value: float) -> float:
    """The nearest float of 32 bits; OverflowError where there is none."""
    result: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return result


def shortest(value: float) -> float:
    """The number with the fewest digits that is the same float of 32 bits, such as 0.001."""
    for digits in range(1, 9):
        candidate = float(f"{value:.{digits}g}")
        with contextlib.suppress(OverflowError):  # rounded up beyond the largest float
            if as_float32(candidate) == as_float32(value):
                return candidate
    return value


def plain_number(entry: Parameter, bound: float) -> str:
    """A bound as it can be typed: it is accepted, and nothing beyond it is."""
    if bound == int(bound):
        return f"{int(bound)}"
    text = repr(bound) if entry.is_whole else f"{shortest(bound):.9g}"
    return text if as_float32(float(text)) == as_float32(bound) else repr(bound)
