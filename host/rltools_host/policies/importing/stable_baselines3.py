"""Stable-Baselines3's zip archives, and VecNormalize's pickle. Nothing is unpickled."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rltools_host.build.description import MAX_CHOICES
from rltools_host.documents import shown
from rltools_host.files import parse_json
from rltools_host.policies.activations import ACTIVATIONS
from rltools_host.policies.importing.layers import (
    Tensors,
    affine,
    dense,
    in_order,
    layers_under,
    only,
    perceptron,
    recurrent_under,
    tensors_of,
)
from rltools_host.policies.importing.network import (
    MAX_LAYERS,
    Activate,
    Clip,
    Dense,
    ForeignPolicy,
    Normalize,
    Stage,
    is_recurrent,
    widths,
)
from rltools_host.policies.importing.pickles import (
    Array,
    Call,
    Global,
    UnreadableError,
    array_of,
    read_pickle,
)
from rltools_host.policies.importing.state_dicts import NO_NORMALIZER, Given, root, standardized
from rltools_host.policies.importing.tensor_files import Archive, read_torch_and_pickle

LIBRARY, RECURRENT_PPO = "Stable-Baselines3", "sb3-contrib RecurrentPPO"
CLASSES = {each.torch_class: name for name, each in ACTIVATIONS.items()}  # of torch.nn
UNKNOWN_NORMALIZER = (
    f"{NO_NORMALIZER} (the archive does not say whether it was trained with VecNormalize), state "
    "it by --normalizer FILE"
)
UNKNOWN_CLASS = (
    "policy class MlpPolicy (the archive has no policy_class), state it by an archive of the "
    "library's own save()"
)
UNKNOWN_SAVED_CLASS = (
    "policy class MlpPolicy (policy.save() does not write it), state it by the .zip that "
    "model.save() wrote"
)
MODULES = ("stable_baselines3.", "sb3_contrib.")
# Keys of policy_kwargs on which deterministic actions do not depend: of the deviation, the critics,
# the optimizer and the initialization, and those that the tensors show.
HARMLESS = {
    *("net_arch", "ortho_init", "log_std_init", "full_std", "use_expln", "use_sde"),
    *("optimizer_class", "optimizer_kwargs", "share_features_extractor", "normalize_images"),
    *("n_critics", "n_quantiles", "lstm_hidden_size", "n_lstm_layers", "shared_lstm"),
    *("enable_critic_lstm", "lstm_kwargs"),
}
READ = {
    "PPO": {"activation_fn", "squash_output"},
    "SAC": {"activation_fn", "clip_mean"},
    "ARS": {"activation_fn", "squash_output", "with_bias"},
    "CrossQ": {
        *("activation_fn", "batch_norm", "batch_norm_eps", "batch_norm_momentum"),
        *("renorm_warmup_steps", "clip_mean"),  # of an exploration whose layers are refused
    },
}
EXTRACTORS = {"features_extractor_class", "features_extractor_kwargs"}
CHOOSING = ("PPO", "DQN", "QR-DQN", "ARS")  # kinds with discrete actions
ALGORITHMS = {"TD3": "td3", "SAC": "sac", "CrossQ": "sac", "DQN": "dqn", "QR-DQN": "dqn"}
CROSSQ_EPSILON = 1e-3  # batch_norm_eps of CrossQPolicy
SDE_CLIP = 2.0  # clip_mean of SACPolicy, in front of its tanh


def policy_in(archive: Archive) -> ForeignPolicy:
    """Return the policy of the archive's `data` and `policy.pth`."""
    data = parsed(archive.read("data"))
    tensors = tensors_of(
        read_torch_and_pickle(Archive(archive.read("policy.pth")))[0], "policy.pth"
    )
    name = class_named(data)
    refuse_images(data)
    keywords = keywords_of(data)
    choices = choices_of(data)
    if choices or name == "ARSLinearPolicy":
        keywords = {"squash_output": False, **keywords} if name.startswith("ARS") else keywords
    kind, stages, is_normalized = network_of(tensors, keywords, choices)
    require_known(keywords, kind)
    return replace(
        policy_of(kind, stages, is_normalized=is_normalized, choices=choices, data=data),
        step=count_of(data.get("num_timesteps")),
        seed=count_of(data.get("seed")),
        expected_return=mean_return(serialized(data, "ep_info_buffer")),
        lacks_normalizer=kind == "PPO" and normalizes(data),
        asks_for_masks=name.startswith("Maskable"),
        assumed=(
            *(() if name else (UNKNOWN_CLASS,)),
            *(() if kind == "PPO" else (UNKNOWN_NORMALIZER,)),
        ),
    )


# Tensors by which the library's policies are known.
MARKS = (
    *("action_net.weight", "actor.latent_pi.0.weight", "actor.latent_pi.0.ra_mean"),
    *("critic.qf0.0.weight", "q_net.q_net.0.weight", "quantile_net.quantile_net.0.weight"),
)
SAVED = {"observation_space", "action_space"}  # in the entry `data` of what policy.save() wrote
# Arguments of a policy's class that policy.save() writes, and on which no action depends.
NO_KEYWORDS = {*SAVED, "lr_schedule", "use_sde", "dist_kwargs"}


def has_policy(document: Any) -> bool:
    """Return whether it is what `policy.save()` wrote, or the policy's state_dict()."""
    if not isinstance(document, Mapping):
        return False
    table = document.get("state_dict", document)
    if not isinstance(table, Mapping):
        return False
    data = document.get("data")
    is_saved = isinstance(data, Mapping) and data.keys() >= SAVED
    return is_saved or any(mark in table for mark in MARKS)


def policy_in_table(document: Any, given: Given, stated: Any = None) -> ForeignPolicy:
    """Return the policy of such a table.

    stated: the pickle of the document, in which what policy.save() wrote states the arguments of
    the policy's class. A state_dict() alone states none of them.
    """
    given.whole("policy of Stable-Baselines3")
    within = document.get("state_dict")
    tensors = tensors_of(within if isinstance(within, Mapping) else document, "policy")
    if given.output_activation is not None:
        raise UnreadableError(
            "a policy of Stable-Baselines3 says how it ends: leave --output-activation out"
        )
    data = stated.get("data") if isinstance(stated, Mapping) else None
    if isinstance(data, Mapping) and data.keys() >= SAVED:
        return saved_policy(tensors, data, given)
    name = given.activation and ACTIVATIONS[given.activation].torch_class
    keywords = {} if name is None else {"activation_fn": Global(f"torch.nn.{name}")}
    kind, stages, is_normalized = network_of(tensors, keywords, ())
    usual = "tanh" if kind == "PPO" else "relu"
    return ForeignPolicy(
        f"{LIBRARY} {kind}",
        tuple(stages),
        is_normalized=is_normalized,
        algorithm=ALGORITHMS.get(kind, "ppo"),
        assumed=(
            *given.assumed(f"Stable-Baselines3's {kind}", usual),
            *(f"{each} (the file does not say), {BY_ARCHIVE}" for each in UNSTATED.get(kind, ())),
            UNKNOWN_NORMALIZER,
        ),
    )


BY_ARCHIVE = "state it by the .zip that model.save() wrote"
# Arguments that change an action and that a state_dict() does not state, by the kind of policy.
UNSTATED = {
    "PPO": ("no tanh behind its actions (squash_output)",),
    "CrossQ": (f"batch_norm_eps {CROSSQ_EPSILON:g}",),
}


def saved_policy(tensors: Tensors, data: Mapping[str, Any], given: Given) -> ForeignPolicy:
    """Return the policy that policy.save() wrote, with what it states of itself."""
    given.nothing("policy that policy.save() wrote")
    refuse_images(data)
    choices = choices_of(data)
    keywords = {
        key: value
        for key, value in data.items()
        if key not in NO_KEYWORDS and value is not None  # None: the default
    }
    ends = {"squash_output": False} if choices else {}
    kind, stages, is_normalized = network_of(tensors, {**keywords, **ends}, choices)
    if kind == "ARS" and not choices:
        raise UnreadableError(
            "a policy of ARS does not say whether its actions end in tanh: import the .zip that "
            "model.save() wrote"
        )
    require_known(keywords, kind)
    return replace(
        policy_of(kind, stages, is_normalized=is_normalized, choices=choices, data=data),
        asks_for_masks=kind == "PPO" and "use_sde" not in data,  # only MaskablePPO's has none
        assumed=(UNKNOWN_SAVED_CLASS, UNKNOWN_NORMALIZER),
    )


def policy_of(
    kind: str,
    stages: Sequence[Stage],
    *,
    is_normalized: bool,
    choices: Sequence[int],
    data: Mapping[str, Any],
) -> ForeignPolicy:
    """Return the policy of a network and of the spaces that `data` states."""
    if choices and (kind not in CHOOSING or is_normalized or sum(choices) != widths(stages)[1]):
        raise UnreadableError("its action space and its network contradict each other")
    return ForeignPolicy(
        RECURRENT_PPO if is_recurrent(stages) else f"{LIBRARY} {kind}",
        tuple(stages),
        is_normalized=is_normalized,
        choices=tuple(choices),
        observation_bounds=bounds_of(data, "observation_space"),
        action_bounds=None if choices else bounds_of(data, "action_space"),
        algorithm=ALGORITHMS.get(kind, "ppo"),
    )


def class_named(data: Mapping[str, Any]) -> str:
    """Return the name of the policy's class, or an empty text where the archive does not state it.

    Raise UnreadableError for a user's own class, which may do more than its layers.
    """
    if data.get("policy_class") is None:
        return ""
    stated = serialized(data, "policy_class")
    if not isinstance(stated, Global) or not stated.name.startswith(MODULES):
        name = stated.name if isinstance(stated, Global) else "one of the user's own"
        raise UnreadableError(
            f"its policy_class is {shown(name)}, and only the library's own are known: save the "
            "state_dict() of its actor"
        )
    return class_name(stated, MODULES)


def keywords_of(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the policy_kwargs: plain JSON, or a pickle where there are classes among them."""
    stated = data.get("policy_kwargs")
    if isinstance(stated, dict) and ":serialized:" in stated:
        stated = serialized(data, "policy_kwargs")
    if not isinstance(stated, dict) or not all(isinstance(key, str) for key in stated):
        raise UnreadableError("its entry `data` has no policy_kwargs that are a table")
    return stated


def require_known(keywords: Mapping[str, Any], kind: str) -> None:
    """Raise UnreadableError for policy_kwargs that could change an action and are not read."""
    extractor = keywords.get("features_extractor_class")
    name = class_name(extractor, MODULES) if isinstance(extractor, Global) else ""
    is_flat = extractor is None or name == "FlattenExtractor"
    if not is_flat or keywords.get("features_extractor_kwargs"):
        raise UnreadableError(
            "its policy_kwargs have a features extractor of its own: dense layers that take the "
            "observation itself are supported"
        )
    known = HARMLESS | EXTRACTORS | READ.get(kind, {"activation_fn"})
    strange = sorted(keywords.keys() - known)
    if strange:
        raise UnreadableError(
            f"its policy_kwargs have {shown(strange[0])}, which is not supported for a {kind} "
            "policy"
        )


def class_name(stated: Global, modules: tuple[str, ...]) -> str:
    """Return the name of a library's own class, or an empty text."""
    return stated.name.rpartition(".")[2] if stated.name.startswith(modules) else ""


def refuse_images(data: Mapping[str, Any]) -> None:
    """Raise UnreadableError where the library takes observations for images."""
    space = serialized(data, "observation_space")
    state = space.state if isinstance(space, Call) and isinstance(space.state, dict) else {}
    shape, dtype = state.get("_shape"), state.get("dtype")
    kind = dtype.arguments[0] if isinstance(dtype, Call) and dtype.arguments else None
    if isinstance(shape, tuple) and len(shape) == 3 and kind in ("u1", "uint8"):
        raise UnreadableError(
            "its observations are images, bytes in three dimensions, whose channels the library "
            "puts first, and which it may divide by 255: only vectors of numbers are supported"
        )


def parsed(content: bytes) -> Mapping[str, Any]:
    try:
        document = parse_json(content)
    except ValueError:
        raise UnreadableError("its entry `data` is not JSON") from None
    if not isinstance(document, dict):
        raise UnreadableError("its entry `data` is not a table")
    return document


def serialized(data: Mapping[str, Any], key: str) -> Any:
    """Return what a pickle within the JSON describes, or None where there is none.

    A pickle's own table, as policy.save() writes it, has it there.
    """
    entry = data.get(key)
    if isinstance(entry, Call | Global):
        return entry
    text = entry.get(":serialized:") if isinstance(entry, dict) else None
    if not isinstance(text, str):
        return None
    try:
        return read_pickle(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        raise UnreadableError(f"its {key} is not a pickle") from None


def count_of(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 2**32 else 0


def normalizes(data: Mapping[str, Any]) -> bool:
    """Return whether the environment was a VecNormalize: PPO keeps the original observation."""
    return isinstance(data.get("_last_original_obs"), dict)


def bounds_of(data: Mapping[str, Any], key: str) -> tuple[Array, Array] | None:
    """Return the bounds of a gymnasium.spaces.Box. Raise UnreadableError for another space."""
    space = serialized(data, key)
    if not isinstance(space, Call):
        return None
    name = class_of(space)
    if name != "Box" or not isinstance(space.state, dict):
        raise UnreadableError(
            f"its {key.replace('_', ' ')} is a {shown(name)}: only a Box, a vector of numbers, is "
            "supported"
        )
    low, high = (array_of(space.state.get(end)) for end in ("low", "high"))
    if low is None or high is None or low.shape != high.shape:
        return None
    return low.ravel(), high.ravel()


def choices_of(data: Mapping[str, Any]) -> tuple[int, ...]:
    """Return how many choices each action of a Discrete or a MultiDiscrete has; none for another
    space."""
    space = serialized(data, "action_space")
    if not isinstance(space, Call) or class_of(space) not in ("Discrete", "MultiDiscrete"):
        return ()
    state = space.state if isinstance(space.state, dict) else {}
    counts = array_of(state.get("n" if class_of(space) == "Discrete" else "nvec"))
    if counts is None or not counts.size or not all(2 <= n <= MAX_CHOICES for n in counts.ravel()):
        raise UnreadableError(
            f"its action space has no counts of choices from 2 to {MAX_CHOICES} in it"
        )
    return tuple(int(n) for n in counts.ravel())


def class_of(call: Call) -> str:
    """Return the class of what is made, also by copyreg's function, which protocols before 2
    call."""
    first = call.arguments[0] if isinstance(call.arguments, tuple) and call.arguments else None
    is_by_copyreg = call.name.startswith("copyreg.")
    name = first.name if is_by_copyreg and isinstance(first, Global) else call.name
    return name.rpartition(".")[2]


def mean_return(buffer: Any) -> float | None:
    """Return the mean of the last training episodes that Monitor reported."""
    if not isinstance(buffer, Call):
        return None
    returns = []
    for entry in buffer.values:
        value = array_of(entry.get("r")) if isinstance(entry, dict) else None
        if value is not None and value.size == 1 and np.isfinite(value).all():
            returns.append(float(value.item()))
    return float(np.mean(returns)) if returns else None


def activation_of(keywords: Mapping[Any, Any], usual: str) -> str:
    stated = keywords.get("activation_fn")
    if stated is None:
        return usual
    name = class_name(stated, ("torch.nn.",)) if isinstance(stated, Global) else ""
    name = name or (stated.name if isinstance(stated, Global) else "a function of the user's")
    if name not in CLASSES:
        known = ", ".join(CLASSES)
        raise UnreadableError(f"its activation is {shown(name)}, and those taken are {known}")
    return CLASSES[name]


def squashes(keywords: Mapping[Any, Any], *, usual: bool) -> bool:
    stated = keywords.get("squash_output", usual)
    if not isinstance(stated, bool):
        raise UnreadableError("its squash_output is neither true nor false")
    return stated


def network_of(
    tensors: Tensors, keywords: Mapping[Any, Any], choices: Sequence[int]
) -> tuple[str, list[Stage], bool]:
    """Return the algorithm, the stages, and whether their output is an action in [-1, 1]."""
    features = [name for name in tensors if "features_extractor." in name]
    if features:
        raise UnreadableError(
            f"it has a features extractor, {shown(features[0])}: dense layers "
            "that take the observation itself are supported"
        )
    if "action_net.weight" in tensors:
        shared = layers_under(tensors, "mlp_extractor.shared_net.")
        inner = [*shared, *layers_under(tensors, "mlp_extractor.policy_net.")]
        names = [*recurrent_under(tensors, "lstm_actor."), *inner, "action_net"]
        critic = r"mlp_extractor\.value_net\..*|value_net\..*|lstm_critic\..*|critic\..*|log_std"
        only(tensors, names, critic, "PPO or A2C policy")
        squashed = squashes(keywords, usual=False)
        output = "tanh" if squashed else "identity"
        stages = perceptron(tensors, names, activation_of(keywords, "tanh"), output)
        return "PPO", stages, squashed
    if "action_net.0.weight" in tensors:
        names = layers_under(tensors, "action_net.")
        only(tensors, names, "", "ARS policy")
        squashed = squashes(keywords, usual=True)
        output = "tanh" if squashed else "identity"
        return "ARS", perceptron(tensors, names, activation_of(keywords, "relu"), output), squashed
    if "q_net.q_net.0.weight" in tensors:
        names = layers_under(tensors, "q_net.q_net.")
        only(tensors, names, r"q_net_target\..*", "DQN policy")
        return "DQN", perceptron(tensors, names, activation_of(keywords, "relu")), False
    if "quantile_net.quantile_net.0.weight" in tensors:
        names = layers_under(tensors, "quantile_net.quantile_net.")
        only(tensors, names, r"quantile_net_target\..*", "QR-DQN policy")
        stages = perceptron(tensors, names, activation_of(keywords, "relu"))
        return "QR-DQN", [*stages[:-1], mean_of_quantiles(stages[-2], choices)], False
    critics = r"critic.*|actor_target\..*|actor\.log_std.*|log_ent_coef"
    activation = activation_of(keywords, "relu")
    if "actor.latent_pi.0.ra_mean" in tensors:
        return "CrossQ", crossq(tensors, keywords, critics), True
    if "actor.latent_pi.0.weight" in tensors or "actor.mu.weight" in tensors:
        last = "actor.mu" if "actor.mu.weight" in tensors else "actor.mu.0"
        names = [*layers_under(tensors, "actor.latent_pi."), last]
        only(tensors, names, critics, "SAC policy")
        stages = perceptron(tensors, names, activation, "tanh")
        if last == "actor.mu.0":  # generalized state-dependent exploration
            limit = keywords.get("clip_mean", SDE_CLIP)
            is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
            if not is_number or not 0 < limit < 1e6:
                raise UnreadableError("its clip_mean is not a number above 0")
            dense = stages[-2]
            assert isinstance(dense, Dense)
            ends = np.full(dense.bias.shape, float(limit))
            stages = [*stages[:-1], Clip(-ends, ends), Activate("tanh")]
        return "SAC", stages, True
    if "actor.mu.0.weight" in tensors:
        names = layers_under(tensors, "actor.mu.")
        only(tensors, names, critics, "TD3 or DDPG policy")
        return "TD3", perceptron(tensors, names, activation, "tanh"), True
    raise UnreadableError(
        "its policy is none of PPO, A2C, TRPO, ARS, DQN, QR-DQN, SAC, TQC, CrossQ, TD3 or DDPG: "
        "export its deterministic action to ONNX"
    )


def mean_of_quantiles(last: Stage, choices: Sequence[int]) -> Dense:
    """Return the layer that averages the quantiles, each of which has all choices."""
    assert isinstance(last, Dense)
    width = last.bias.size
    if len(choices) != 1 or width % choices[0]:
        raise UnreadableError("its quantiles are not a number for each of its choices")
    count = width // choices[0]
    return Dense(np.tile(np.eye(choices[0]), (count, 1)) / count, np.zeros(choices[0]))


def crossq(tensors: Tensors, keywords: Mapping[Any, Any], critics: str) -> list[Stage]:
    """Return CrossQ's actor: its batch renormalization acts by its running mean and variance."""
    epsilon = keywords.get("batch_norm_eps", CROSSQ_EPSILON)
    if not isinstance(epsilon, float) or not 0 < epsilon < 1:
        raise UnreadableError("its batch_norm_eps is not a number between 0 and 1")
    prefix = "actor.latent_pi."
    dense_names = layers_under(tensors, prefix)
    renormed = {name.rpartition(".")[0] for name in tensors if name.endswith(".ra_mean")}
    modules = sorted({*dense_names, *(x for x in renormed if x.startswith(prefix))}, key=in_order)
    parts = r"\.(scale|bias|ra_mean|ra_var|steps)"
    only(tensors, [*dense_names, "actor.mu"], rf"actor\.latent_pi\.\d+{parts}|{critics}", "CrossQ")
    activation = activation_of(keywords, "relu")
    stages: list[Stage] = []
    for name in modules[: 2 * MAX_LAYERS]:
        if name in renormed:
            mean, variance, scale, bias = (
                np.ravel(tensors[f"{name}.{part}"])
                for part in ("ra_mean", "ra_var", "scale", "bias")
            )
            if len({each.size for each in (mean, variance, scale, bias)}) > 1:
                raise UnreadableError("its batch renormalization has parts of several sizes")
            stages += [Normalize(mean, 1.0 / root(variance + epsilon)), affine(scale, bias)]
        else:
            stages += [dense(tensors, name), Activate(activation)]
    return [*stages, dense(tensors, "actor.mu"), Activate("tanh")]


def vec_normalize(content: bytes) -> list[Stage]:
    """Return the stages of VecNormalize.save(): division by sqrt(var + epsilon), clipped at
    clip_obs."""
    call = read_pickle(content)
    state = call.state if isinstance(call, Call) else None
    name = class_of(call) if isinstance(call, Call) else ""
    if not isinstance(state, dict) or name != "VecNormalize":
        raise UnreadableError("it is not a VecNormalize pickle")
    if not isinstance(state.get("norm_obs"), bool):
        raise UnreadableError("it does not say whether observations are normalized, in norm_obs")
    if not state["norm_obs"]:
        return []
    statistics = state.get("obs_rms")
    numbers = statistics.state if isinstance(statistics, Call) else None
    if not isinstance(numbers, dict):
        raise UnreadableError("it has no statistics of one vector of observations")
    mean, variance = (array_of(numbers.get(key)) for key in ("mean", "var"))
    epsilon, clip = (array_of(state.get(key)) for key in ("epsilon", "clip_obs"))
    if mean is None or variance is None or epsilon is None or clip is None or clip.size != 1:
        raise UnreadableError("it has no mean, variance, epsilon or clip_obs")
    return standardized(mean, root(variance + epsilon), float(clip.item()))
