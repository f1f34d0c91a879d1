"""sbx's zip archives: those of Stable-Baselines3, with networks of JAX in a pickle of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rltools_host.foreign.archives import Archive
from rltools_host.foreign.arrays import Array, array_of
from rltools_host.foreign.network import VALUES, Activate, Dense, ForeignPolicy, Stage
from rltools_host.foreign.pickles import Made, UnreadableError
from rltools_host.foreign.stable_baselines3 import (
    UNKNOWN_NORMALISER,
    bounds_of,
    class_of,
    count_of,
    mean_return,
    normalises,
    parsed,
    serialized,
)
from rltools_host.foreign.state_dicts import Given

# The class of the actor: the algorithm, and what the last dense layers are.
ACTORS = {
    "Actor": ("PPO", 1),
    "SquashedGaussianActor": ("SAC", 2),  # mean and logarithm of the deviation
}
MOST_LAYERS = 32


def is_archive(archive: Archive) -> bool:
    return "data" in archive and "policy.pth" not in archive


def policy_in(archive: Archive, given: Given) -> ForeignPolicy:
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
    activation = activation_of(actor, given, "tanh" if algorithm == "PPO" else "relu")
    output = "identity" if algorithm == "PPO" else "tanh"
    parameters = state_of(state.get("actor_state"), "actor_state").get("params")
    stages = layers_of(parameters, activation, output, last)
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


def activation_of(actor: Any, given: Given, usual: str) -> str:
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


def layers_of(parameters: Any, activation: str, output: str, last: int) -> list[Stage]:
    """Dense_0, Dense_1 ...; of the last ones the first is the action's."""
    table = parameters.get("params") if isinstance(parameters, Mapping) else None
    if not isinstance(table, Mapping):
        raise UnreadableError("it has no parameters of its actor")
    names = [name for name in table if name != "log_std"]
    if sorted(names) != sorted(f"Dense_{i}" for i in range(len(names))) or len(names) < last:
        raise UnreadableError("its actor has other layers than dense ones, which are not taken")
    stages: list[Stage] = []
    for index in range(min(len(names) - last + 1, MOST_LAYERS)):
        stages += [dense(table[f"Dense_{index}"]), Activate(activation)]
    return [*stages[:-1], Activate(output)]


def dense(entry: Any) -> Dense:
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
