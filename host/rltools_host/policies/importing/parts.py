"""Tables of tensors that a user's own program wrote: names without what wrappers put in front,
tables within tables as one, and the network among several that is the policy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rltools_host.documents import shown
from rltools_host.policies.importing.layers import (
    Tensors,
    any_layer,
    follow_on,
    in_chain,
    listed,
)
from rltools_host.policies.importing.pickles import UnreadableError

WRAPPERS = {"_orig_mod", "module"}  # of torch.compile and of DistributedDataParallel
POLICIES = {  # names of a policy among other networks
    *("actor", "actor_net", "actor_network", "actor_mean", "pi", "pi_net"),
    *("policy", "policy_net", "policy_network"),
}
NORMALIZER = re.compile(r"(?i).*(running_|obs_rms|obs_norm|normali[sz]er|(?<!\w)rms(?!\w)).*")
RIVAL = re.compile(
    r"(?i)(target|value|critic|vf?|qf?)(_?(layer|head|net|network|out|fn|linear|\d))*"
)
DEVIATION = re.compile(r"(?i)(fc_?)?(log_?)?(std|sigma|var|scale)(_?(layer|head|net|out|linear))?")


@dataclass(frozen=True)
class Part:
    """A network of a table: the names of its layers in their order, and what is left out."""

    tensors: Tensors
    layers: tuple[str, ...]
    left: tuple[str, ...]
    assumed: tuple[str, ...]


def unwrapped(document: Any) -> Any:
    """Return tables whose names lack what torch.compile and DistributedDataParallel add to them."""
    if not isinstance(document, Mapping):
        return document
    found = {without_wrappers(name): unwrapped(value) for name, value in document.items()}
    if len(found) < len(document):  # two names would be one
        return {name: unwrapped(value) for name, value in document.items()}
    return found


def without_wrappers(name: Any) -> Any:
    if not isinstance(name, str):
        return name
    return ".".join(part for part in name.split(".") if part not in WRAPPERS) or name


def flat(document: Mapping[Any, Any], prefix: str = "") -> dict[str, Any]:
    """Return the tensors of all tables by their names, with those of the tables in front."""
    found: dict[str, Any] = {}
    for name, value in document.items():
        if not isinstance(name, str):
            continue
        if isinstance(value, Mapping):
            found.update(flat(value, f"{prefix}{name}."))
        elif isinstance(value, np.ndarray):
            found[prefix + name] = value
    return found


def part_of(document: Mapping[Any, Any], asked: str | None, *, keeps_order: bool) -> Part:
    """Return the network that is asked for, the only one, or the only one with a policy's name.

    Raise UnreadableError, which lists the networks, where nothing says which it is.
    """
    tensors = Tensors(flat(document), "file")
    if not any(map(any_layer, tensors)):
        raise UnreadableError("it has no dense layer where its policy's are expected")
    found = networks(tensors, "", keeps_order=keeps_order)
    name, assumed = chosen(found, asked, tensors)
    inside = under(tensors, name)
    others = [each for each in tensors if each not in inside]
    normalizer = next(filter(NORMALIZER.fullmatch, others), None)
    if normalizer is not None:
        raise UnreadableError(
            f"it has {shown(normalizer)} beside its network, a normalizer whose formula no table "
            "of tensors says: export normalizer and network together to ONNX"
        )
    layers, left = layers_of(inside, keeps_order=keeps_order)
    assumed = (*assumed, *left_out(left))
    return Part(inside, tuple(layers), tuple(left), assumed)


def left_out(layers: Sequence[str]) -> tuple[str, ...]:
    """Return the assumption where layers are left out."""
    if not layers:
        return ()
    return (
        f"{listed(layers)} left out, as no part of the action (by the name), state it by "
        "--recorded FILE",
    )


def under(tensors: Tensors, prefix: str) -> Tensors:
    start = f"{prefix}." if prefix else ""
    return Tensors({name: x for name, x in tensors.items() if name.startswith(start)}, tensors.what)


def networks(tensors: Tensors, prefix: str, *, keeps_order: bool) -> list[str]:
    """Return the prefixes of the networks: tables that have layers of their own, or whose tables
    follow on each other and are not an actor beside a critic."""
    inside = under(tensors, prefix)
    start = f"{prefix}." if prefix else ""
    modules = modules_of(inside)
    heads = dict.fromkeys(name.removeprefix(start).partition(".")[0] for name in modules)
    if any(f"{start}{head}" in modules or head.isdecimal() for head in heads):
        return [prefix]
    has_rivals = bool(POLICIES & heads.keys()) and any(map(RIVAL.fullmatch, heads))
    if len(heads) > 1 and not has_rivals and follows(inside, keeps_order=keeps_order):
        return [prefix]
    parts = (networks(tensors, f"{start}{head}", keeps_order=keeps_order) for head in heads)
    found = [name for names in parts for name in names]
    # What a policy has besides, such as a deviation, lies beside its layers.
    return [prefix] if len(found) == 1 and prefix.rpartition(".")[2] in POLICIES else found


def follows(tensors: Tensors, *, keeps_order: bool) -> bool:
    """Return whether the layers follow on each other in the order that is taken."""
    try:
        return bool(follow_on(tensors, [layers_of(tensors, keeps_order=keeps_order)[0]]))
    except UnreadableError:  # of a layer that is refused where it is read
        return False


def layers_of(tensors: Tensors, *, keeps_order: bool) -> tuple[list[str], list[str]]:
    """Return the layers of the action in their order, and those that are left out: of a deviation,
    and of a value where the others alone follow on each other."""
    modules = modules_of(tensors)
    left = [name for name in modules if any(map(DEVIATION.fullmatch, name.split(".")))]
    values = [name for name in modules if any(map(RIVAL.fullmatch, name.split(".")))]
    if values and len(values) + len(left) < len(modules):
        fewer = without(tensors, [*left, *values])
        order = in_chain(fewer, keeps_order=keeps_order)
        whole = without(tensors, left)
        if follow_on(fewer, [order]) and not is_chain(whole, keeps_order=keeps_order):
            return order, [*left, *values]
    return in_chain(without(tensors, left), keeps_order=keeps_order), left


def is_chain(tensors: Tensors, *, keeps_order: bool) -> bool:
    try:
        return bool(follow_on(tensors, [in_chain(tensors, keeps_order=keeps_order)]))
    except UnreadableError:
        return False


def modules_of(tensors: Tensors) -> list[str]:
    """Return the names of the layers in the table's order."""
    return list(dict.fromkeys(match[1] or "" for name in tensors if (match := any_layer(name))))


def without(tensors: Tensors, modules: Sequence[str]) -> Tensors:
    kept = {
        name: x
        for name, x in tensors.items()
        if not ((match := any_layer(name)) and (match[1] or "") in modules)
    }
    return Tensors(kept, tensors.what)


def chosen(
    found: Sequence[str], asked: str | None, tensors: Tensors
) -> tuple[str, tuple[str, ...]]:
    """Return the name of the policy's network, and what is assumed."""
    if asked is not None:
        if any(map(any_layer, under(tensors, asked))):
            return asked, ()
        inner = [name for name in found if name.endswith(f".{asked}")]  # as its program calls it
        if len(inner) != 1:
            where = f": its networks are {listed(found)}" if found != [""] else ""
            raise UnreadableError(f"it has no network {shown(asked)}{where}")
        return inner[0], ()
    if len(found) == 1:
        return found[0], ()
    called = [name for name in found if name.rpartition(".")[2] in POLICIES]
    if len(called) != 1:
        raise UnreadableError(
            f"it has several networks, {listed(found)}: name the one that is the policy by "
            "--part NAME"
        )
    others = listed([name for name in found if name != called[0]])
    return called[0], (
        f"its network {shown(called[0])} is the policy (by its name), and left out is {others}, "
        "state it by --part NAME",
    )
