"""Words that other libraries use for hyperparameters and sizes: what is meant by them here.

Those of Stable-Baselines3, CleanRL, skrl, RSL-RL and rl_games. A word that means the same is taken;
one that means nearly the same, or is set elsewhere, is answered with a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from rltools_host.build.description import ExperimentDescription
from rltools_host.build.experiments import GENERATED, header_of, sized, sizes_of_name
from rltools_host.build.sizes import CONSTANTS as OF_HEADERS
from rltools_host.errors import UsageError
from rltools_host.gymnasium_tasks.task import (
    DEFAULT_HIDDEN,
    SIZES,
    TaskRequest,
    checked_steps,
    experiment_name,
)
from rltools_host.hints import near_path
from rltools_host.runs.task import Task

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
    **dict.fromkeys(("normalize_advantage", "norm_adv"), ("normalise_adv",)),
    **dict.fromkeys(("normalize_obs", "norm_obs", "normalize_observations"), ("normalise_obs",)),
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
    "ent_coef": "this algorithm finds the entropy's weight itself, from alpha on and towards "
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


def of_hyperparameters(settings: Sequence[str]) -> list[str]:
    """Of --set, without the sizes."""
    return [setting for setting in settings if not size_of(setting.partition("=")[0])]


def size_of(word: str) -> str | None:
    return SIZE_WORDS.get(word.strip())


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
    rest: list[str] = []
    sizes = dict(task.sizes)
    changes: dict[str, object] = {}
    given = {name for name in ("environments", "episode_steps") if getattr(task, name) is not None}
    given |= {*sizes, *(("hidden",) if task.hidden != DEFAULT_HIDDEN else ())}
    for size, word, text in each_size(settings, given, rest):
        if size == "hidden":
            changes[size] = widths_of(word, text)
        elif size in SIZES:
            sizes[size] = whole(word, text)
        else:
            changes[size] = whole(word, text)
    return replace(task, sizes=sizes, **changes), tuple(rest)  # type: ignore[arg-type]


def each_size(
    settings: Sequence[str], given: set[str], rest: list[str]
) -> Iterator[tuple[str, str, str]]:
    """Each size that settings have, with its word and text; the other settings go to `rest`.
    `given` are those that were said before."""
    for setting in settings:
        word, equals, text = (part.strip() for part in setting.partition("="))
        size = SIZE_WORDS.get(word)
        if not equals or size is None:
            rest.append(setting)
            continue
        if size in given:
            raise UsageError(f"{size} is given twice: give it once")
        given.add(size)
        yield size, word, text


def of_experiment(name: str, settings: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The experiment with the sizes that settings have, and the settings without them."""
    rest: list[str] = []
    given = {
        size: widths_of(word, text) if size == "hidden" else (whole(word, text),)
        for size, word, text in each_size(settings, set(), rest)
    }
    return sized(name, given) if given else name, tuple(rest)


def resized(task: Task, settings: Sequence[str]) -> tuple[Task, tuple[str, ...]]:
    """A task that is complete with the sizes that settings have, and the settings without them."""
    rest: list[str] = []
    sizes = structs.asdict(task.sizes)
    hidden, episode_steps = task.hidden, task.episode_steps
    for setting in settings:
        word, _, text = (part.strip() for part in setting.partition("="))
        size = SIZE_WORDS.get(word)
        if size is None:
            rest.append(setting)
        elif size == "hidden":
            hidden = widths_of(word, text)
        elif size == "episode_steps":
            episode_steps = whole(word, text)
        else:
            sizes[size] = whole(word, text)
    if len(rest) == len(settings):
        return task, tuple(rest)
    environments = sizes.pop("environments")
    request = TaskRequest(
        task.source,
        name=task.environment,
        algorithm=task.algorithm,
        hidden=hidden,
        environments=environments,
        sizes=sizes,
    )
    checked = request.checked_sizes()
    sized = structs.replace(
        task,
        hidden=hidden,
        sizes=checked,
        episode_steps=checked_steps(episode_steps),
        experiment=experiment_name(
            request, task.algorithm, checked, episode_steps, task.episode_steps
        ),
    )
    return sized, tuple(rest)


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
