"""Policies in tables of tensors by their names: the library that wrote a table, and its formulas.

Names say which layers there are, and not what is between them. Activations are the library's where
it has but one, and otherwise the user's to state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rltools_host.documents import shown
from rltools_host.policies.activations import ACTIVATIONS
from rltools_host.policies.importing.layers import (
    UNKNOWN_BEHIND,
    Tensors,
    follow_on,
    layers_under,
    only,
    perceptron,
    recurrent_under,
    tensors_of,
)
from rltools_host.policies.importing.network import (
    Clip,
    ForeignPolicy,
    Normalize,
    Stage,
    is_recurrent,
    widths,
)
from rltools_host.policies.importing.parts import layers_of, left_out, part_of, unwrapped
from rltools_host.policies.importing.pickles import Array, UnreadableError

RL_GAMES_EPSILON, RL_GAMES_CLIP = 1e-5, 5.0
SKRL_EPSILON, SKRL_CLIP = 1e-8, 5.0
SCALER_DEFAULTS = (
    f"epsilon {SKRL_EPSILON:g} and clip_threshold {SKRL_CLIP:g} of its RunningStandardScaler "
    f"(skrl's defaults; the file does not state them), state it by --recorded FILE"
)
RSL_RL_EPSILON = 1e-2
NO_NORMALIZER = "no normalizer of observations"  # the beginning of an assumption
UNSEEN = 0.011  # from a deviation of 1, to which libraries add 1e-8 to 1e-2


Assumed = tuple[str, ...]


def usually(library: str) -> str:
    return f"{library}'s default; the file does not state it"


@dataclass(frozen=True)
class Given:
    """Statements of the user on a network whose file lacks them."""

    activation: str | None = None
    output_activation: str | None = None
    output_name: str | None = None  # of a model of ONNX with several
    part: str | None = None  # of a table of tensors with several networks

    def hidden(self, library: str, usual: str | None = None) -> str:
        """Return the activation of the hidden layers.

        Raise UnreadableError where nobody states it.
        """
        if self.activation is None and usual is None:
            raise UnreadableError(
                f"a {library} does not say what follows its layers: name it with --activation, "
                f"one of {', '.join(ACTIVATIONS)}"
            )
        return self.activation or str(usual)

    def behind(self, names: Sequence[str], tensors: Tensors, library: str) -> str:
        """Return the same where a dense layer is hidden. Nothing follows recurrent layers."""
        is_asked = any(f"{name}.weight" in tensors for name in names[:-1] or names)
        return self.hidden(library) if is_asked else self.activation or "identity"

    def output(self) -> str:
        """Return the activation behind the last layer."""
        return self.output_activation or "identity"

    def assumed(self, library: str, hidden: str | None, output: str | None = None) -> Assumed:
        """Return what is assumed of a library because neither its file nor the user states it.

        hidden, output: the library's defaults for the hidden layers and behind the last one; None:
        not assumed.
        """
        found = []
        if hidden is not None and self.activation is None:
            found.append(f"activation {hidden} ({usually(library)}), state it by --activation NAME")
        if output is not None and self.output_activation is None:
            found.append(
                f"output activation {output} ({usually(library)}), state it by "
                "--output-activation NAME"
            )
        return tuple(found)

    def nothing(self, library: str) -> None:
        """Raise UnreadableError where the user states what the file knows."""
        if self.activation is not None or self.output_activation is not None:
            raise UnreadableError(
                f"a {library} says what its activations are: leave --activation and "
                "--output-activation out"
            )
        self.whole(library)

    def whole(self, library: str) -> None:
        """Raise UnreadableError where the user names a part of what has one policy."""
        if self.part is not None:
            raise UnreadableError(f"a {library} has one policy: leave --part out")


def standardized(mean: Array, std: Array, clip: float | None) -> list[Stage]:
    """Return the stages (x - mean) / std, clipped."""
    mean, std = np.ravel(mean), np.ravel(std)
    if mean.shape != std.shape or not (std > 0).all():
        raise UnreadableError("its normalizer's mean and deviation do not fit together")
    if not mean.any() and np.abs(std - 1.0).max() <= UNSEEN:
        raise UnreadableError(
            "its normalizer has seen nothing, its means are 0 and its deviations 1: save the "
            "policy with the normalizer that it was trained with"
        )
    stages: list[Stage] = [Normalize(mean, 1.0 / std)]
    if clip is not None:
        stages.append(Clip(np.full(mean.shape, -clip), np.full(mean.shape, clip)))
    return stages


def root(variance: Array) -> Array:
    if not (variance >= 0).all():
        raise UnreadableError("its normalizer has a variance that is negative, or no number")
    return np.sqrt(variance)


# -- the libraries ---------------------------------------------------------------------------------


def rl_games(document: Any, given: Given) -> ForeignPolicy:
    """Return the policy of rl_games: running_mean_std over sqrt(var + 1e-5), clipped at 5
    (rl_games/algos_torch)."""
    tensors = tensors_of(document["model"], "model")
    inner = layers_under(tensors, "a2c_network.actor_mlp.")
    memory = recurrent_under(tensors, "a2c_network.rnn.")
    last = "a2c_network.mu"
    names = [*inner, *memory, last]
    if inner and memory:
        found = follow_on(tensors, [names, [*memory, *inner, last]])
        if len(found) != 1:
            raise UnreadableError(
                "its rl_games checkpoint does not say in which order its dense and recurrent "
                "layers are: only layers whose widths allow one order are supported"
            )
        names = found[0]
    ignored = r"a2c_network\.(critic|value|sigma|actor_cnn_none).*|(value|running)_mean_std.*"
    only(tensors, names, ignored, "rl_games checkpoint")
    activation = given.behind(names, tensors, "rl_games checkpoint")
    stages: list[Stage] = []
    if "running_mean_std.running_mean" in tensors:
        variance = tensors["running_mean_std.running_var"]
        deviation = root(variance + RL_GAMES_EPSILON)
        stages = standardized(tensors["running_mean_std.running_mean"], deviation, RL_GAMES_CLIP)
    stages += perceptron(tensors, names, activation, given.output())
    assumed = given.assumed("rl_games", None, "identity")
    step = whole(document, "frame")
    return ForeignPolicy("rl_games", tuple(stages), algorithm="ppo", step=step, assumed=assumed)


def skrl(document: Any, given: Given) -> ForeignPolicy:
    """Return the policy of skrl: the preprocessor's sqrt(variance) + 1e-8, clipped at 5
    (RunningStandardScaler)."""
    tensors = tensors_of(document["policy"], "policy")
    names, left = layers_of(tensors, keeps_order=True)  # of a model that both share, without value
    only(
        tensors,
        [*names, *left],
        r"log_std_parameter|.*(running_mean|running_variance|current_count)",
        "skrl agent",
    )
    stages: list[Stage] = []
    scaling: Assumed = ()
    for key in ("observation_preprocessor", "state_preprocessor"):
        scaler = tensors_of(document.get(key) or {}, key)
        if {"running_mean", "running_variance"} <= scaler.keys():
            deviation = root(scaler["running_variance"]) + SKRL_EPSILON
            stages = standardized(scaler["running_mean"], deviation, SKRL_CLIP)
            scaling = (SCALER_DEFAULTS,)
            break
    activation = given.behind(names, tensors, "skrl agent")
    stages += perceptron(tensors, names, activation, given.output())
    assumed = (
        *scaling,
        *given.assumed("skrl", None, "identity"),
        *left_out(left),
        *in_order_of(names, stages),
    )
    return ForeignPolicy("skrl", tuple(stages), algorithm="ppo", assumed=assumed)


def rsl_rl(document: Any, given: Given) -> ForeignPolicy:
    """Return the policy of RSL-RL from 4: the actor's own normalizer over std + 1e-2
    (EmpiricalNormalization)."""
    tensors = tensors_of(document["actor_state_dict"], "actor_state_dict")
    return rsl_rl_actor(document, tensors, ("rnn.", "mlp."), tensors, "obs_normalizer.", given)


def old_rsl_rl(document: Any, given: Given) -> ForeignPolicy:
    """Return the policy of RSL-RL before 4: actor and critic in one table, the normalizer beside it
    or in it."""
    tensors = tensors_of(document["model_state_dict"], "model_state_dict")
    beside = tensors_of(document.get("obs_norm_state_dict") or {}, "obs_norm_state_dict")
    of_critic = ("critic", "memory_c.")
    of_actor = {name: value for name, value in tensors.items() if not name.startswith(of_critic)}
    actor = Tensors(of_actor, tensors.what)
    prefixes = ("memory_a.", "actor.")
    if beside:
        return rsl_rl_actor(document, actor, prefixes, beside, "", given)
    return rsl_rl_actor(document, actor, prefixes, actor, "actor_obs_normalizer.", given)


def rsl_rl_actor(
    document: Any,
    tensors: Tensors,
    prefixes: tuple[str, str],
    normalizer: Tensors,
    normalizer_prefix: str,
    given: Given,
) -> ForeignPolicy:
    """Return the actor's policy.

    prefixes: of the names of the recurrent layers, if there are any, and of the dense ones behind
    them.
    """
    names = [*recurrent_under(tensors, prefixes[0]), *layers_under(tensors, prefixes[1])]
    known = r"(actor_)?obs_normalizer\..*|distribution\.(log_)?std_param|(log_)?std"
    only(tensors, names, known, "RSL-RL checkpoint")
    stages: list[Stage] = []
    if f"{normalizer_prefix}_mean" in normalizer:
        deviation = normalizer[f"{normalizer_prefix}_std"] + RSL_RL_EPSILON
        stages = standardized(normalizer[f"{normalizer_prefix}_mean"], deviation, None)
    stages += perceptron(tensors, names, given.hidden("RSL-RL checkpoint", "elu"), given.output())
    assumed = given.assumed("RSL-RL", "elu", "identity")
    step = whole(document, "iter")
    return ForeignPolicy("RSL-RL", tuple(stages), algorithm="ppo", step=step, assumed=assumed)


UNSAVED_NORMALIZER = (
    f"{NO_NORMALIZER} (CleanRL does not save that of NormalizeObservation), state it by "
    "--normalizer FILE, as VecNormalize.save() writes it"
)


def cleanrl_ppo(document: Any, given: Given) -> ForeignPolicy:
    tensors = tensors_of(document, "agent")
    names = layers_under(tensors, "actor_mean.")
    only(tensors, names, r"critic\..*|actor_logstd", "CleanRL PPO agent")
    hidden = given.hidden("CleanRL PPO agent", "tanh")
    stages = perceptron(tensors, names, hidden, given.output())
    assumed = (*given.assumed("CleanRL's PPO", "tanh", "identity"), UNSAVED_NORMALIZER)
    return ForeignPolicy("CleanRL PPO", tuple(stages), algorithm="ppo", assumed=assumed)


def cleanrl_ppo_choices(document: Any, given: Given) -> ForeignPolicy:
    return cleanrl_choices(document, given, "PPO", ("PPO agent", "actor.", r"critic\..*", "tanh"))


def cleanrl_dqn(document: Any, given: Given) -> ForeignPolicy:
    return cleanrl_choices(document, given, "DQN", ("Q-network", "network.", "", "relu"))


def cleanrl_choices(
    document: Any, given: Given, algorithm: str, of: tuple[str, str, str, str]
) -> ForeignPolicy:
    """Return a policy with discrete actions.

    of: what is saved, the prefix of its layers, what else may be there, and the default activation.
    """
    what, prefix, ignored, usual = of
    tensors = tensors_of(document, what)
    names = layers_under(tensors, prefix)
    only(tensors, names, ignored, f"CleanRL {what}")
    if given.output_activation is not None:
        raise UnreadableError(
            f"a CleanRL {what} ends in numbers of which the largest is chosen: leave "
            "--output-activation out"
        )
    stages = perceptron(tensors, names, given.hidden(f"CleanRL {what}", usual))
    choices = (widths(stages)[1],)  # one action, as in ppo.py and dqn.py
    assumed = (*given.assumed(f"CleanRL's {algorithm}", usual), UNSAVED_NORMALIZER)
    library, name = f"CleanRL {algorithm}", algorithm.lower()
    return ForeignPolicy(library, tuple(stages), False, choices, algorithm=name, assumed=assumed)


def cleanrl_squashed(algorithm: str, last: str, document: Any, given: Given) -> ForeignPolicy:
    """Return a policy of SAC or TD3, whose last layer has this name."""
    library = f"CleanRL {algorithm}"
    if given.output_activation is not None:
        raise UnreadableError(f"a {library} actor ends in tanh: leave --output-activation out")
    tensors = tensors_of(document, "actor")
    names = [*sorted(n for n in layers_under(tensors, "fc") if re.fullmatch(r"fc\d+", n)), last]
    only(tensors, names, r"action_scale|action_bias|fc_logstd\..*", f"{library} actor")
    scale, bias = np.ravel(tensors["action_scale"]), np.ravel(tensors["action_bias"])
    stages = perceptron(tensors, names, given.hidden(f"{library} actor", "relu"), "tanh")
    return ForeignPolicy(
        library,
        tuple(stages),
        action_bounds=(bias - scale, bias + scale),
        is_normalized=True,
        algorithm=algorithm.lower(),
        assumed=(*given.assumed(f"CleanRL's {algorithm}", "relu"), UNSAVED_NORMALIZER),
    )


def plain(document: Any, given: Given, *, keeps_order: bool) -> ForeignPolicy:
    """Return the policy of one chain of dense and recurrent layers in what a user's own program
    wrote."""
    part = part_of(document, given.part, keeps_order=keeps_order)
    tensors, names = part.tensors, part.layers
    only(tensors, [*names, *part.left], DEVIATION_PARAMETER, "table of tensors")
    activation = given.behind(names, tensors, "table of tensors")
    if given.output_activation is None:
        raise UnreadableError(
            "a table of tensors does not say what follows its last layer: name it with "
            "--output-activation, identity or tanh"
        )
    stages = perceptron(tensors, names, activation, given.output_activation)
    ends_in_tanh = given.output_activation == "tanh"
    return ForeignPolicy(
        "PyTorch",
        tuple(stages),
        is_normalized=True if ends_in_tanh else None,
        is_scaling_assumed=ends_in_tanh,
        may_have_deviations=True,
        assumed=(*part.assumed, *in_order_of(names, stages), PLAIN_NORMALIZER),
    )


DEVIATION_PARAMETER = r"(.*\.)?(\w*_)?(log_?std|std|log_?sigma|sigma)(_\w+)?"
PLAIN_NORMALIZER = (
    f"{NO_NORMALIZER} (the file has none), state it by --normalizer FILE, as VecNormalize.save() "
    "writes it"
)


def in_order_of(names: Sequence[str], stages: Sequence[Stage]) -> Assumed:
    """Return what is assumed of a module that a user wrote: its table says which layers there are,
    not how they are used."""
    chain = " > ".join(name or "the first" for name in names)
    order = (
        f"its layers one behind the other, {shown(chain)}, each used once and none past another "
        "(a table of tensors does not say), state it by a model of ONNX or by --recorded FILE"
    )
    behind = (UNKNOWN_BEHIND,) if is_recurrent(stages) else ()
    return (order, *behind) if len(names) > 1 else behind


def whole(document: Any, key: str) -> int:
    """Return a count of the document, 0 where it has none."""
    value = document.get(key)
    number = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    is_count = isinstance(number, int | float) and 0 <= number < 2**32
    return int(number) if is_count else 0


def has(*names: str) -> Callable[[Any], bool]:
    return lambda document: all(name in document for name in names)


def has_names(table: str, pattern: str) -> Callable[[Any], bool]:
    """Return a test for a table within the document that has such a name."""

    def fits(document: Any) -> bool:
        within = document.get(table)
        return isinstance(within, Mapping) and any(
            isinstance(name, str) and re.fullmatch(pattern, name) for name in within
        )

    return fits


def has_tables(*names: str) -> Callable[[Any], bool]:
    return lambda document: all(isinstance(document.get(name), Mapping) for name in names)


# Tests of a table, and its reader. The first that fits counts.
LIBRARIES: tuple[tuple[Callable[[Any], bool], Callable[[Any, Given], ForeignPolicy]], ...] = (
    (has_names("actor_state_dict", r"mlp\..*|rnn\..*"), rsl_rl),
    (has_names("model_state_dict", r"std|log_std|memory_a\..*"), old_rsl_rl),
    (has_names("model", r"(a2c_network|running_mean_std)\..*"), rl_games),
    (has_names("policy", r"log_std_parameter"), skrl),
    (has_tables("policy", "observation_preprocessor"), skrl),
    (has_tables("policy", "state_preprocessor"), skrl),
    (has("actor_mean.0.weight", "actor_logstd"), cleanrl_ppo),
    (has("actor.0.weight", "critic.0.weight"), cleanrl_ppo_choices),
    (
        has("fc_mean.weight", "fc_logstd.weight", "action_scale"),
        partial(cleanrl_squashed, "SAC", "fc_mean"),
    ),
    (has("fc_mu.weight", "action_scale"), partial(cleanrl_squashed, "TD3", "fc_mu")),
)


def policy_in(
    document: Any, given: Given, *, is_cleanrl: bool = False, keeps_order: bool = True
) -> ForeignPolicy:
    """Return the policy of what torch.save or safetensors wrote.

    is_cleanrl: the file's name says so. keeps_order: its tensors come in the order in which their
    module made them.
    """
    is_list = isinstance(document, list) and bool(document)
    if is_list:  # CleanRL's TD3 and DDPG: actor and critics, one by one
        document = document[0]
    if not isinstance(document, Mapping):
        raise UnreadableError("it has no table of tensors: save the policy's state_dict()")
    document = unwrapped(document)
    if is_cleanrl and "network.0.weight" in document:
        return cleanrl_dqn(document, given)
    # A part that is named, or the end of what CleanRL would take for numbers of choices, is that of
    # a program of the user's own.
    is_own = given.part is not None
    for fits, read in LIBRARIES:
        has_choices = read is cleanrl_ppo_choices and (is_cleanrl or not given.output_activation)
        if not is_own and fits(document) and (has_choices or read is not cleanrl_ppo_choices):
            return read(document, given)
    if is_list:
        raise UnreadableError("it is a list of tables: save the state_dict() of the actor alone")
    return plain(document, given, keeps_order=keeps_order)
