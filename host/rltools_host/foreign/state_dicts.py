"""Policies in tables of tensors by their names: which library's they are, and what its formulas
make of them.

Names say which layers there are, and not what is between them: activations are the library's where
it has but one, and otherwise the user's to state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rltools_host.documents import shown
from rltools_host.foreign.network import (
    VALUES,
    Activate,
    Clip,
    Dense,
    ForeignPolicy,
    Normalise,
    Stage,
    widths,
)
from rltools_host.foreign.pickles import Array, UnreadableError

NUMBER = re.compile(r"(\d+)")
LAYER = re.compile(r"(.*)\.weight")
RL_GAMES_EPSILON, RL_GAMES_CLIP = 1e-5, 5.0
SKRL_EPSILON, SKRL_CLIP = 1e-8, 5.0
RSL_RL_EPSILON = 1e-2
UNSEEN = 0.011  # of a deviation of 1, which the libraries add 1e-8 to 1e-2 to


class Tensors(dict[str, Array]):
    """By their names; UnreadableError for one that is not there."""

    def __init__(self, tensors: Mapping[str, Array], what: str) -> None:
        super().__init__(tensors)
        self.what = what

    def __missing__(self, name: str) -> Array:
        raise UnreadableError(f"its {self.what} has no {shown(name)}")


@dataclass(frozen=True)
class Given:
    """What the user says of a network where its file does not."""

    activation: str | None = None
    output_activation: str | None = None

    def hidden(self, library: str, usual: str | None = None) -> str:
        """Of the hidden layers; UnreadableError where nobody says."""
        if self.activation is None and usual is None:
            raise UnreadableError(
                f"a {library} does not say what follows its layers: name it with --activation, "
                f"one of {', '.join(VALUES)}"
            )
        return self.activation or str(usual)

    def nothing(self, library: str) -> None:
        """UnreadableError where the user says what the file knows."""
        if self.activation is not None or self.output_activation is not None:
            raise UnreadableError(
                f"a {library} says what its activations are: leave --activation and "
                "--output-activation out"
            )


def in_order(name: str) -> list[tuple[int, str]]:
    """A key by which `net.10` comes behind `net.2`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in NUMBER.split(name)]


def dense(tensors: Tensors, name: str) -> Dense:
    """A torch.nn.Linear, whose weights are (out, in)."""
    weights = tensors[f"{name}.weight"]
    if weights.ndim != 2:
        raise UnreadableError(f"{shown(name)} is no dense layer: others are not taken")
    bias = tensors.get(f"{name}.bias")
    return Dense(weights.T, np.zeros(weights.shape[0]) if bias is None else bias)


def layers_under(tensors: Tensors, prefix: str) -> list[str]:
    """The names of the layers whose names begin so, in their order."""
    found = [
        match[1] for name in tensors if name.startswith(prefix) and (match := LAYER.fullmatch(name))
    ]
    return sorted(found, key=in_order)


def perceptron(
    tensors: Tensors, names: Sequence[str], activation: str, output: str = "identity"
) -> list[Stage]:
    """The layers with an activation behind each, the last one with another."""
    if not names:
        raise UnreadableError("it has no dense layer where its policy's are expected")
    stages: list[Stage] = []
    for name in names:
        stages += [dense(tensors, name), Activate(activation)]
    return [*stages[:-1], Activate(output)]


def only(tensors: Tensors, taken: Sequence[str], allowed: str, library: str) -> None:
    """UnreadableError for tensors of the policy that nothing here reads: they would be left out."""
    known = {f"{name}.{part}" for name in taken for part in ("weight", "bias")}
    strange = [name for name in tensors if name not in known and not re.fullmatch(allowed, name)]
    if strange:
        raise UnreadableError(
            f"it is a {library} with {shown(min(strange))}, which is not taken: dense layers "
            "alone are"
        )


def standardised(mean: Array, std: Array, clip: float | None) -> list[Stage]:
    """(x - mean) / std, cut off at the clip."""
    mean, std = np.ravel(mean), np.ravel(std)
    if mean.shape != std.shape or not (std > 0).all():
        raise UnreadableError("its normaliser's mean and deviation do not fit together")
    if not mean.any() and np.abs(std - 1.0).max() <= UNSEEN:
        raise UnreadableError(
            "its normaliser has seen nothing, its means are 0 and its deviations 1: save the "
            "policy with the normaliser that it was trained with"
        )
    stages: list[Stage] = [Normalise(mean, 1.0 / std)]
    if clip is not None:
        stages.append(Clip(np.full(mean.shape, -clip), np.full(mean.shape, clip)))
    return stages


def root(variance: Array) -> Array:
    if not (variance >= 0).all():
        raise UnreadableError("its normaliser has a variance that is negative, or no number")
    return np.sqrt(variance)


def tensors_of(document: Any, what: str) -> Tensors:
    """The tensors of a table; UnreadableError where it is none."""
    if not isinstance(document, Mapping):
        raise UnreadableError(f"its {what} is no table of tensors")
    arrays = {
        name: value
        for name, value in document.items()
        if isinstance(name, str) and isinstance(value, np.ndarray)
    }
    return Tensors(arrays, what)


# -- the libraries ---------------------------------------------------------------------------------


def rl_games(document: Any, given: Given) -> ForeignPolicy:
    """rl_games: running_mean_std over sqrt(var + 1e-5), cut off at 5 (rl_games/algos_torch)."""
    tensors = tensors_of(document["model"], "model")
    names = [*layers_under(tensors, "a2c_network.actor_mlp."), "a2c_network.mu"]
    if any(name.startswith("a2c_network.rnn") for name in tensors):
        raise recurrent("rl_games checkpoint")
    ignored = r"a2c_network\.(critic|value|sigma|actor_cnn_none).*|(value|running)_mean_std.*"
    only(tensors, names, ignored, "rl_games checkpoint")
    activation = given.hidden("rl_games checkpoint")
    stages: list[Stage] = []
    if "running_mean_std.running_mean" in tensors:
        variance = tensors["running_mean_std.running_var"]
        deviation = root(variance + RL_GAMES_EPSILON)
        stages = standardised(tensors["running_mean_std.running_mean"], deviation, RL_GAMES_CLIP)
    output = given.output_activation or "identity"
    stages += perceptron(tensors, names, activation, output)
    return ForeignPolicy("rl_games", tuple(stages), algorithm="ppo", step=whole(document, "frame"))


def skrl(document: Any, given: Given) -> ForeignPolicy:
    """skrl: the preprocessor's sqrt(variance) + 1e-8, cut off at 5 (RunningStandardScaler)."""
    tensors = tensors_of(document["policy"], "policy")
    names = layers_under(tensors, "")
    only(
        tensors,
        names,
        r"log_std_parameter|.*(running_mean|running_variance|current_count)",
        "skrl agent",
    )
    stages: list[Stage] = []
    for key in ("observation_preprocessor", "state_preprocessor"):
        scaler = tensors_of(document.get(key) or {}, key)
        if {"running_mean", "running_variance"} <= scaler.keys():
            deviation = root(scaler["running_variance"]) + SKRL_EPSILON
            stages = standardised(scaler["running_mean"], deviation, SKRL_CLIP)
            break
    output = given.output_activation or "identity"
    stages += perceptron(tensors, names, given.hidden("skrl agent"), output)
    return ForeignPolicy("skrl", tuple(stages), algorithm="ppo")


def rsl_rl(document: Any, given: Given) -> ForeignPolicy:
    """RSL-RL from 4: the actor's own normaliser over std + 1e-2 (EmpiricalNormalization)."""
    tensors = tensors_of(document["actor_state_dict"], "actor_state_dict")
    return rsl_rl_actor(document, tensors, "mlp.", tensors, "obs_normalizer.", given)


def old_rsl_rl(document: Any, given: Given) -> ForeignPolicy:
    """RSL-RL before: actor and critic in one table, the normaliser beside it or in it."""
    tensors = tensors_of(document["model_state_dict"], "model_state_dict")
    if any(name.startswith("memory_a.") for name in tensors):
        raise recurrent("RSL-RL checkpoint")
    beside = tensors_of(document.get("obs_norm_state_dict") or {}, "obs_norm_state_dict")
    of_actor = {name: value for name, value in tensors.items() if not name.startswith("critic")}
    actor = Tensors(of_actor, tensors.what)
    if beside:
        return rsl_rl_actor(document, actor, "actor.", beside, "", given)
    return rsl_rl_actor(document, actor, "actor.", actor, "actor_obs_normalizer.", given)


def rsl_rl_actor(
    document: Any, tensors: Tensors, prefix: str, normaliser: Tensors, place: str, given: Given
) -> ForeignPolicy:
    if any(name.startswith("rnn.") for name in tensors):
        raise recurrent("RSL-RL checkpoint")
    names = layers_under(tensors, prefix)
    known = r"(actor_)?obs_normalizer\..*|distribution\.(log_)?std_param|(log_)?std"
    only(tensors, names, known, "RSL-RL checkpoint")
    stages: list[Stage] = []
    if f"{place}_mean" in normaliser:
        deviation = normaliser[f"{place}_std"] + RSL_RL_EPSILON
        stages = standardised(normaliser[f"{place}_mean"], deviation, None)
    output = given.output_activation or "identity"
    stages += perceptron(tensors, names, given.hidden("RSL-RL checkpoint", "elu"), output)
    return ForeignPolicy("RSL-RL", tuple(stages), algorithm="ppo", step=whole(document, "iter"))


def cleanrl_ppo(document: Any, given: Given) -> ForeignPolicy:
    given.nothing("CleanRL PPO agent")
    tensors = tensors_of(document, "agent")
    names = layers_under(tensors, "actor_mean.")
    only(tensors, names, r"critic\..*|actor_logstd", "CleanRL PPO agent")
    note = (
        "CleanRL does not save its observations' normaliser: if the policy was trained with "
        "NormalizeObservation, its numbers are lost"
    )
    stages = perceptron(tensors, names, "tanh")
    return ForeignPolicy("CleanRL PPO", tuple(stages), algorithm="ppo", notes=(note,))


def cleanrl_ppo_choices(document: Any, given: Given) -> ForeignPolicy:
    tensors = tensors_of(document, "agent")
    names = layers_under(tensors, "actor.")
    only(tensors, names, r"critic\..*", "CleanRL PPO agent")
    if given.output_activation is not None:
        raise UnreadableError("a CleanRL PPO agent ends in logits: leave --output-activation out")
    note = (
        "its names are those of CleanRL's PPO agent for choices, whose layers have tanh: name "
        "another activation with --activation"
    )
    stages = perceptron(tensors, names, given.hidden("CleanRL PPO agent", "tanh"))
    choices = (widths(stages)[1],)  # one action, as in ppo.py
    notes = () if given.activation else (note,)
    return ForeignPolicy("CleanRL PPO", tuple(stages), False, choices, algorithm="ppo", notes=notes)


def cleanrl_dqn(document: Any, given: Given) -> ForeignPolicy:
    given.nothing("CleanRL Q-network")
    tensors = tensors_of(document, "Q-network")
    names = layers_under(tensors, "network.")
    only(tensors, names, "", "CleanRL Q-network")
    stages = perceptron(tensors, names, "relu")
    choices = (widths(stages)[1],)
    return ForeignPolicy("CleanRL DQN", tuple(stages), False, choices, algorithm="dqn")


def cleanrl_sac(document: Any, given: Given) -> ForeignPolicy:
    return cleanrl_squashed(
        document, given, "SAC", "fc_mean", ("fc_logstd.weight", "fc_logstd.bias")
    )


def cleanrl_td3(document: Any, given: Given) -> ForeignPolicy:
    return cleanrl_squashed(document, given, "TD3", "fc_mu", ())


def cleanrl_squashed(
    document: Any, given: Given, algorithm: str, last: str, more: Sequence[str]
) -> ForeignPolicy:
    library = f"CleanRL {algorithm}"
    given.nothing(f"{library} actor")
    tensors = tensors_of(document, "actor")
    names = [*sorted(n for n in layers_under(tensors, "fc") if re.fullmatch(r"fc\d+", n)), last]
    only(
        tensors,
        names,
        "action_scale|action_bias|" + "|".join(map(re.escape, more)),
        f"{library} actor",
    )
    scale, bias = np.ravel(tensors["action_scale"]), np.ravel(tensors["action_bias"])
    stages = perceptron(tensors, names, "relu", "tanh")
    return ForeignPolicy(
        library,
        tuple(stages),
        action_bounds=(bias - scale, bias + scale),
        is_normalised=True,
        algorithm=algorithm.lower(),
    )


def plain(document: Any, given: Given) -> ForeignPolicy:
    """One chain of dense layers, by the order of their names."""
    tensors = tensors_of(document, "file")
    names = layers_under(tensors, "")
    only(tensors, names, "", "table of tensors")
    activation = given.hidden("table of tensors")
    if given.output_activation is None:
        raise UnreadableError(
            "a table of tensors does not say what follows its last layer: name it with "
            "--output-activation, identity or tanh"
        )
    stages = perceptron(tensors, names, activation, given.output_activation)
    is_normalised = True if given.output_activation == "tanh" else None
    return ForeignPolicy("PyTorch", tuple(stages), is_normalised=is_normalised)


def recurrent(library: str) -> UnreadableError:
    return UnreadableError(f"it is a {library} with a recurrent network, which is not taken")


def whole(document: Any, key: str) -> int:
    """A count of the document; 0 where it has none."""
    value = document.get(key)
    number = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    is_count = isinstance(number, int | float) and 0 <= number < 2**32
    return int(number) if is_count else 0


def has(*names: str) -> Callable[[Any], bool]:
    return lambda document: all(name in document for name in names)


def has_tables(*names: str) -> Callable[[Any], bool]:
    return lambda document: all(isinstance(document.get(name), Mapping) for name in names)


# What a table has, and who wrote it then; the first that fits.
LIBRARIES: tuple[tuple[Callable[[Any], bool], Callable[[Any, Given], ForeignPolicy]], ...] = (
    (has_tables("actor_state_dict"), rsl_rl),
    (has_tables("model_state_dict"), old_rsl_rl),
    (has_tables("model"), rl_games),
    (has_tables("policy"), skrl),
    (has("actor_mean.0.weight", "actor_logstd"), cleanrl_ppo),
    (has("actor.0.weight", "critic.0.weight"), cleanrl_ppo_choices),
    (has("fc_mean.weight", "fc_logstd.weight", "action_scale"), cleanrl_sac),
    (has("fc_mu.weight", "action_scale"), cleanrl_td3),
    (lambda _: True, plain),
)


def policy_in(document: Any, given: Given, *, is_cleanrl: bool = False) -> ForeignPolicy:
    """The policy of what torch.save or safetensors wrote; is_cleanrl: its name says so."""
    if isinstance(document, list) and document:  # CleanRL's TD3: actor and critics, one by one
        document = document[0]
    if not isinstance(document, Mapping):
        raise UnreadableError("it has no table of tensors: save the policy's state_dict()")
    if is_cleanrl and "network.0.weight" in document:
        return cleanrl_dqn(document, given)
    for fits, read in LIBRARIES:
        if fits(document):
            return read(document, given)
    raise AssertionError
