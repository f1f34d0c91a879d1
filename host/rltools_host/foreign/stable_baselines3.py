"""Stable-Baselines3's zip archives, and VecNormalize's pickle; and sbx's archives, which are the
same with networks of JAX in a pickle of their own. Nothing is unpickled."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import numpy as np

from rltools_host.build.description import MOST_CHOICES
from rltools_host.documents import shown
from rltools_host.files import parse_json
from rltools_host.foreign.layers import (
    Tensors,
    layers_under,
    only,
    perceptron,
    recurrent_under,
    tensors_of,
)
from rltools_host.foreign.network import (
    MOST_LAYERS,
    VALUES,
    Activate,
    Clip,
    Dense,
    ForeignPolicy,
    Stage,
    is_recurrent,
    widths,
)
from rltools_host.foreign.pickles import Array, Made, Named, UnreadableError, array_of, read_pickle
from rltools_host.foreign.state_dicts import Given, root, standardised
from rltools_host.foreign.tensor_files import Archive, read_torch

LIBRARY, RECURRENT_PPO = "Stable-Baselines3", "sb3-contrib RecurrentPPO"
MEMBERS = ("data", "policy.pth")
# torch.nn's classes, with the numbers that they have where nobody gives others.
ACTIVATIONS = {
    "ReLU": "relu",
    "Tanh": "tanh",
    "ELU": "elu",
    "SiLU": "silu",
    "GELU": "gelu",
    "Sigmoid": "sigmoid",
    "Softplus": "softplus",
    "Identity": "identity",
}
UNKNOWN_NORMALISER = (
    "the archive does not say whether it was trained with VecNormalize: if it was, give what that "
    "saved with --normaliser"
)
CHOOSING = ("PPO", "DQN")  # kinds whose actions may be choices
SDE_CLIP = 2.0  # clip_mean of SACPolicy, in front of its tanh


def is_archive(archive: Archive) -> bool:
    return all(name in archive for name in MEMBERS)


def policy_in(archive: Archive) -> ForeignPolicy:
    """What the archive's `data` and `policy.pth` say."""
    data = parsed(archive.read("data"))
    tensors = tensors_of(read_torch(Archive(archive.read("policy.pth"))), "policy.pth")
    keywords = serialized(data, "policy_kwargs")
    keywords = keywords if isinstance(keywords, dict) else {}
    kind, stages, is_normalised = network_of(tensors, keywords)
    algorithm = {"TD3": "td3", "SAC": "sac", "DQN": "dqn"}.get(kind, "ppo")
    choices = choices_of(data)
    if choices and (kind not in CHOOSING or is_normalised or sum(choices) != widths(stages)[1]):
        raise UnreadableError("its action space and its network contradict each other")
    seed = data.get("seed")
    return ForeignPolicy(
        RECURRENT_PPO if is_recurrent(stages) else f"{LIBRARY} {kind}",
        tuple(stages),
        is_normalised=is_normalised,
        choices=choices,
        observation_bounds=bounds_of(data, "observation_space"),
        action_bounds=None if choices else bounds_of(data, "action_space"),
        step=count_of(data.get("num_timesteps")),
        seed=count_of(seed),
        expected_return=mean_return(serialized(data, "ep_info_buffer")),
        algorithm=algorithm,
        lacks_normaliser=kind == "PPO" and normalises(data),
        notes=() if kind == "PPO" else (UNKNOWN_NORMALISER,),
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
    """What a pickle within the JSON describes; None where there is none."""
    entry = data.get(key)
    text = entry.get(":serialized:") if isinstance(entry, dict) else None
    if not isinstance(text, str):
        return None
    try:
        return read_pickle(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        raise UnreadableError(f"its {key} is not a pickle") from None


def count_of(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 2**32 else 0


def normalises(data: Mapping[str, Any]) -> bool:
    """Whether the environment was a VecNormalize: PPO keeps what that saw."""
    return isinstance(data.get("_last_original_obs"), dict)


def bounds_of(data: Mapping[str, Any], key: str) -> tuple[Array, Array] | None:
    """Of a gymnasium.spaces.Box; UnreadableError for another space."""
    space = serialized(data, key)
    if not isinstance(space, Made):
        return None
    name = class_of(space)
    if name != "Box" or not isinstance(space.state, dict):
        raise UnreadableError(
            f"its {key.replace('_', ' ')} is a {shown(name)}: vectors of numbers, a Box, are taken"
        )
    low, high = (array_of(space.state.get(end)) for end in ("low", "high"))
    if low is None or high is None or low.shape != high.shape:
        return None
    return low.ravel(), high.ravel()


def choices_of(data: Mapping[str, Any]) -> tuple[int, ...]:
    """How many each action of a Discrete or a MultiDiscrete chooses from; empty: it is neither."""
    space = serialized(data, "action_space")
    if not isinstance(space, Made) or class_of(space) not in ("Discrete", "MultiDiscrete"):
        return ()
    state = space.state if isinstance(space.state, dict) else {}
    counts = array_of(state.get("n" if class_of(space) == "Discrete" else "nvec"))
    if counts is None or not counts.size or not all(2 <= n <= MOST_CHOICES for n in counts.ravel()):
        raise UnreadableError(
            f"its action space has no counts of choices from 2 to {MOST_CHOICES} in it"
        )
    return tuple(int(n) for n in counts.ravel())


def class_of(made: Made) -> str:
    """What is made, also by copyreg's function, which protocols before 2 call."""
    first = made.arguments[0] if isinstance(made.arguments, tuple) and made.arguments else None
    by_copyreg = made.name.startswith("copyreg.") and isinstance(first, Named)
    return (first.name if by_copyreg and isinstance(first, Named) else made.name).rpartition(".")[2]


def mean_return(buffer: Any) -> float | None:
    """Of the last episodes of training, which Monitor told the algorithm of."""
    if not isinstance(buffer, Made):
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
    name = stated.name.rpartition(".")[2] if isinstance(stated, Named) else "?"
    if name not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise UnreadableError(f"its activation is {shown(name)}, and those taken are {known}")
    return ACTIVATIONS[name]


def network_of(tensors: Tensors, keywords: Mapping[Any, Any]) -> tuple[str, list[Stage], bool]:
    """The algorithm, or its kind; the stages; whether their output is an action in [-1, 1]."""
    features = [name for name in tensors if "features_extractor." in name]
    if features:
        raise UnreadableError(
            f"it has a features extractor, {shown(features[0])}: dense layers "
            "that take the observation itself are taken"
        )
    if "action_net.weight" in tensors:
        inner = layers_under(tensors, "mlp_extractor.policy_net.")
        names = [*recurrent_under(tensors, "lstm_actor."), *inner, "action_net"]
        critic = r"mlp_extractor\.value_net\..*|value_net\..*|lstm_critic\..*|critic\..*|log_std"
        only(tensors, names, critic, "PPO or A2C policy")
        squashes = bool(keywords.get("squash_output"))
        output = "tanh" if squashes else "identity"
        stages = perceptron(tensors, names, activation_of(keywords, "tanh"), output)
        return "PPO", stages, squashes
    if "q_net.q_net.0.weight" in tensors:
        names = layers_under(tensors, "q_net.q_net.")
        only(tensors, names, r"q_net_target\..*", "DQN policy")
        return "DQN", perceptron(tensors, names, activation_of(keywords, "relu")), False
    critics = r"critic.*|actor_target\..*|actor\.log_std.*|log_ent_coef"
    activation = activation_of(keywords, "relu")
    if "actor.latent_pi.0.weight" in tensors:
        last = "actor.mu" if "actor.mu.weight" in tensors else "actor.mu.0"
        names = [*layers_under(tensors, "actor.latent_pi."), last]
        only(tensors, names, critics, "SAC policy")
        stages = perceptron(tensors, names, activation, "tanh")
        if last == "actor.mu.0":  # generalised state-dependent exploration
            limit = keywords.get("clip_mean", SDE_CLIP)
            if not isinstance(limit, int | float) or not 0 < limit < 1e6:
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
        "its policy is none of PPO, A2C, DQN, SAC, TQC, TD3 or DDPG: others are not taken"
    )


def vec_normalize(content: bytes) -> list[Stage]:
    """What VecNormalize.save() wrote: sqrt(var + epsilon), cut off at clip_obs."""
    made = read_pickle(content)
    state = made.state if isinstance(made, Made) else None
    name = class_of(made) if isinstance(made, Made) else ""
    if not isinstance(state, dict) or name != "VecNormalize":
        raise UnreadableError("it is not a VecNormalize pickle")
    if not state.get("norm_obs", True):
        return []
    statistics = state.get("obs_rms")
    numbers = statistics.state if isinstance(statistics, Made) else None
    if not isinstance(numbers, dict):
        raise UnreadableError("it has no statistics of one vector of observations")
    mean, variance = (array_of(numbers.get(key)) for key in ("mean", "var"))
    epsilon, clip = (array_of(state.get(key)) for key in ("epsilon", "clip_obs"))
    if mean is None or variance is None or epsilon is None or clip is None or clip.size != 1:
        raise UnreadableError("it has no mean, variance, epsilon or clip_obs")
    return standardised(mean, root(variance + epsilon), float(clip.item()))


# -- sbx -------------------------------------------------------------------------------------------

# The class of the actor: the algorithm, and what the last dense layers are.
ACTORS = {
    "Actor": ("PPO", 1),
    "SquashedGaussianActor": ("SAC", 2),  # mean and logarithm of the deviation
}


def is_sbx_archive(archive: Archive) -> bool:
    return "data" in archive and "policy.pth" not in archive


def sbx_policy_in(archive: Archive, given: Given) -> ForeignPolicy:
    """What the archive's `data` says, which has all of it."""
    data = parsed(archive.read("data"))
    state = state_of(serialized(data, "policy"), "policy")
    actor = state.get("actor")
    kind = class_of(actor) if isinstance(actor, Made) else "?"
    module = actor.name if isinstance(actor, Made) else ""
    if kind not in ACTORS:
        raise UnreadableError("its actor is none of sbx's PPO, SAC, TQC, TD3 or DDPG")
    algorithm, last = ACTORS[kind]
    is_td3 = kind == "Actor" and ".td3." in module
    if is_td3:
        algorithm = "TD3"
    activation = sbx_activation_of(actor, given, "tanh" if algorithm == "PPO" else "relu")
    output = "identity" if algorithm == "PPO" else "tanh"
    parameters = state_of(state.get("actor_state"), "actor_state").get("params")
    stages = jax_layers(parameters, activation, output, last)
    return ForeignPolicy(
        f"sbx {algorithm}",
        tuple(stages),
        is_normalised=algorithm != "PPO",
        observation_bounds=bounds_of(data, "observation_space"),
        action_bounds=bounds_of(data, "action_space"),
        step=count_of(data.get("num_timesteps")),
        seed=count_of(data.get("seed")),
        expected_return=mean_return(serialized(data, "ep_info_buffer")),
        algorithm=algorithm.lower(),
        lacks_normaliser=algorithm == "PPO" and normalises(data),
        notes=() if algorithm == "PPO" else (UNKNOWN_NORMALISER,),
    )


def state_of(made: Any, what: str) -> dict[str, Any]:
    """The fields of an object; those of a dataclass lie behind its slots'."""
    state = made.state if isinstance(made, Made) else None
    if not isinstance(state, dict):
        raise UnreadableError(f"it has no {what} that is read")
    return state


def sbx_activation_of(actor: Any, given: Given, usual: str) -> str:
    """The name of the function that JAX compiled; the user's word where it states none."""
    if given.output_activation is not None:
        raise UnreadableError("an sbx archive says how it ends: leave --output-activation out")
    function = state_of(actor, "actor").get("activation_fn")
    stated = None
    if isinstance(function, Made) and isinstance(function.state, dict):
        stated = function.state.get("function_name")
    if stated is None:
        return given.hidden("sbx archive", usual)
    if stated not in VALUES:
        raise UnreadableError("its activation is none that is taken")
    given.nothing("sbx archive")
    return str(stated)


def jax_layers(parameters: Any, activation: str, output: str, last: int) -> list[Stage]:
    """Dense_0, Dense_1 ...; of the last ones the first is the action's."""
    table = parameters.get("params") if isinstance(parameters, Mapping) else None
    if not isinstance(table, Mapping):
        raise UnreadableError("it has no parameters of its actor")
    names = [name for name in table if name != "log_std"]
    if sorted(names) != sorted(f"Dense_{i}" for i in range(len(names))) or len(names) < last:
        raise UnreadableError("its actor has other layers than dense ones, which are not taken")
    stages: list[Stage] = []
    for index in range(min(len(names) - last + 1, MOST_LAYERS)):
        stages += [jax_dense(table[f"Dense_{index}"]), Activate(activation)]
    return [*stages[:-1], Activate(output)]


def jax_dense(entry: Any) -> Dense:
    kernel, bias = (
        (jax_array(entry.get(name)) for name in ("kernel", "bias"))
        if isinstance(entry, Mapping)
        else (None, None)
    )
    if kernel is None or bias is None:
        raise UnreadableError("a dense layer of its actor has no kernel or bias")
    return Dense(kernel, bias)


def jax_array(value: Any) -> Array | None:
    """An array of JAX's is pickled as the call that makes NumPy's, its arguments and its state."""
    if not isinstance(value, Made) or not value.name.endswith("._reconstruct_array"):
        return array_of(value)
    if not isinstance(value.arguments, tuple) or len(value.arguments) < 3:
        return None
    maker, arguments, state = value.arguments[:3]
    return array_of(Made(maker, arguments, state))
