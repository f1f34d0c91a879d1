"""sbx's zip archives: Stable-Baselines3's with networks of JAX in a pickle of their own.

Nothing is unpickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rltools_host.documents import shown
from rltools_host.policies.activations import ACTIVATIONS
from rltools_host.policies.importing.network import (
    MAX_LAYERS,
    Activate,
    Dense,
    ForeignPolicy,
    Stage,
)
from rltools_host.policies.importing.pickles import Array, Call, Global, UnreadableError, array_of
from rltools_host.policies.importing.stable_baselines3 import (
    UNKNOWN_NORMALIZER,
    bounds_of,
    class_of,
    count_of,
    mean_return,
    normalizes,
    parsed,
    refuse_images,
    serialized,
)
from rltools_host.policies.importing.state_dicts import Given
from rltools_host.policies.importing.tensor_files import Archive

# By the class of the actor: the algorithm, and how many dense layers are outputs.
ACTORS = {
    "Actor": ("PPO", 1),
    "SquashedGaussianActor": ("SAC", 2),  # mean and logarithm of the deviation
}


def sbx_policy_in(archive: Archive, given: Given) -> ForeignPolicy:
    """Return the policy of the archive's `data`, which has all of it."""
    data = parsed(archive.read("data"))
    refuse_images(data)
    state = state_of(serialized(data, "policy"), "policy")
    actor = state.get("actor")
    kind = class_of(actor) if isinstance(actor, Call) else "?"
    module = actor.name if isinstance(actor, Call) else ""
    if kind not in ACTORS or not module.startswith("sbx."):
        raise UnreadableError("its actor is none of sbx's PPO, SAC, TQC, TD3 or DDPG")
    algorithm, last = ACTORS[kind]
    is_td3 = kind == "Actor" and ".td3." in module
    if is_td3:
        algorithm = "TD3"
    usual = "tanh" if algorithm == "PPO" else "relu"
    activation, assumed = sbx_activation_of(actor, given, usual)
    output = "identity" if algorithm == "PPO" else "tanh"
    parameters = state_of(state.get("actor_state"), "actor_state").get("params")
    stages = jax_layers(parameters, activation, output, last)
    return ForeignPolicy(
        f"sbx {algorithm}",
        tuple(stages),
        is_normalized=algorithm != "PPO",
        observation_bounds=bounds_of(data, "observation_space"),
        action_bounds=bounds_of(data, "action_space"),
        step=count_of(data.get("num_timesteps")),
        seed=count_of(data.get("seed")),
        expected_return=mean_return(serialized(data, "ep_info_buffer")),
        algorithm=algorithm.lower(),
        lacks_normalizer=algorithm == "PPO" and normalizes(data),
        assumed=(*assumed, *(() if algorithm == "PPO" else (UNKNOWN_NORMALIZER,))),
    )


def state_of(call: Any, what: str) -> dict[str, Any]:
    """Return the fields of an object. Raise UnreadableError where it has none."""
    state = call.state if isinstance(call, Call) else None
    if not isinstance(state, dict):
        raise UnreadableError(f"it has no {what} that can be read")
    return state


def sbx_activation_of(actor: Any, given: Given, usual: str) -> tuple[str, tuple[str, ...]]:
    """Return the name of the actor's activation, and what is assumed: the user's word where the
    archive states none, or else the library's default."""
    if given.output_activation is not None:
        raise UnreadableError("an sbx archive says how it ends: leave --output-activation out")
    function = state_of(actor, "actor").get("activation_fn")
    if function is None:
        return given.hidden("sbx archive", usual), given.assumed("sbx", usual)
    name = function_name(function)
    if name == "gelu":
        raise UnreadableError(
            "its activation is JAX's gelu, which approximates GELU by tanh unless its approximate "
            "is False, and is not supported"
        )
    name = {"exact gelu": "gelu", "swish": "silu"}.get(name, name)
    if name not in ACTIVATIONS or name == "identity":
        raise UnreadableError(
            f"its activation is {shown(name)}, and of JAX's functions those taken are relu, elu, "
            "gelu with approximate=False, silu, sigmoid, softplus and tanh"
        )
    given.nothing("sbx archive")
    return name, ()


def function_name(function: Any) -> str:
    """Return the name of a function of JAX's, however it is pickled: by its name, compiled, with a
    derivative of its own, or with arguments. Return words for a message for another function."""
    if isinstance(function, Global):
        is_own = function.name.startswith(("jax.", "flax."))
        return function.name.rpartition(".")[2] if is_own else function.name
    if isinstance(function, Call) and isinstance(function.state, dict):
        state = function.state
        if function.name.endswith(".PjitFunction") and is_of_jax(state.get("fun")):
            return text_of(state, "function_name")
        if function.name.endswith(".custom_jvp"):
            is_own = text_of(state, "__module__").startswith(("jax.", "flax."))
            return text_of(state, "__name__") if is_own else "a function of the user's"
    if isinstance(function, Call) and function.name == "functools.partial":
        given = function.state if isinstance(function.state, tuple) else ()
        if given[1:3] == ((), {"approximate": False}) and function_name(given[0]) == "gelu":
            return "exact gelu"
    return "a function of the user's"


def text_of(state: Mapping[str, Any], key: str) -> str:
    """Return a text of an object's fields, an empty one for another value, which may be endless."""
    value = state.get(key)
    return value if isinstance(value, str) else ""


def is_of_jax(function: Any) -> bool:
    """Return whether a function that is pickled with its code is defined in a module of JAX's."""
    arguments = function.arguments if isinstance(function, Call) else None
    module = arguments[1] if isinstance(arguments, tuple) and len(arguments) > 1 else None
    name = module.get("__name__") if isinstance(module, dict) else None
    return isinstance(name, str) and name.startswith(("jax.", "flax."))


def jax_layers(parameters: Any, activation: str, output: str, last: int) -> list[Stage]:
    """Return the stages of Dense_0, Dense_1 ... The first of the `last` layers is the action's."""
    table = parameters.get("params") if isinstance(parameters, Mapping) else None
    if not isinstance(table, Mapping):
        raise UnreadableError("it has no parameters of its actor")
    names = [name for name in table if name != "log_std"]
    if set(names) != {f"Dense_{i}" for i in range(len(names))} or len(names) < last:
        raise UnreadableError("its actor has layers other than dense ones, which are not supported")
    stages: list[Stage] = []
    for index in range(min(len(names) - last + 1, MAX_LAYERS)):
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
    """Return an array of JAX's, which is pickled as the call that makes NumPy's, its arguments and
    its state."""
    if not isinstance(value, Call) or not value.name.endswith("._reconstruct_array"):
        return array_of(value)
    if not isinstance(value.arguments, tuple) or len(value.arguments) < 3:
        return None
    function, arguments, state = value.arguments[:3]
    return array_of(Call(function, arguments, state))
