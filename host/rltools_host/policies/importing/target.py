"""The target of an import: the contract by which the policy is to act, or the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from rltools_host.build import experiments
from rltools_host.build.catalog import NAMESPACE, algorithms, list_environments
from rltools_host.build.description import LONGEST_NAME, Channel, channels
from rltools_host.environments.imports import (
    agree,
    install_what_it_needs,
    make_first,
    maker_of,
    whole_source,
)
from rltools_host.environments.library import load_library
from rltools_host.environments.spaces import action_kind
from rltools_host.environments.task import TaskRequest, is_task, task_of
from rltools_host.errors import DamagedFileError, UsageError
from rltools_host.policies.contract import Contract, contract_of
from rltools_host.policies.episodes import close_all
from rltools_host.policies.importing.network import (
    Dense,
    ForeignPolicy,
    Recurrent,
    ends_of,
)
from rltools_host.policies.importing.pickles import UnreadableError
from rltools_host.runs.task import MAX_LAYERS, PREFIX, WIDEST_LAYER, Task, short, slug

NO_CHANNELS: Mapping[str, object] = {}
ANY_ENVIRONMENT = "any"  # of a policy for a contract alone


@dataclass(frozen=True)
class Target:
    """A contract, and the task that plays its episodes, if there is one.

    contract_name: that of a contract of this tree; None: a file describes the contract.
    """

    contract: Contract
    task: Task | None = None
    contract_name: str | None = None

    @property
    def environment(self) -> str:
        return ANY_ENVIRONMENT if self.task is None else self.task.environment

    @property
    def name(self) -> str:
        """Return the name for a message."""
        if self.task is not None:
            return self.task.environment
        if self.contract_name is None:
            return "the contract of its description"
        return f"the contract {self.contract_name}"

    def experiment(self, stem: str) -> str:
        """Return the name of the policy's experiment: the task's, or `imported-` and that of the
        file."""
        if self.task is not None:
            return self.task.experiment
        return short(f"imported-{slug(stem) or 'policy'}", LONGEST_NAME)


def target_of_contract(name: str) -> Target:
    """Return the target of a contract of this tree. Raise UsageError for another name."""
    stated = experiments.describe_contract(name)
    contract = Contract(
        channels(stated["observations"]), channels(stated["actions"]), stated["step_interval_us"]
    )
    contract = contract.with_safe_action(tuple(stated["safe_action"]))
    return Target(contract, contract_name=name)


def target_of_description(path: Path, policy: ForeignPolicy, rate_hz: float | None) -> Target:
    """Return the target of the contract that the file states.

    Raise UsageError, which names what it does not state.
    """
    stated = policy.stated
    assert stated is not None
    missing = stated.missing(rate_hz)
    if missing or rate_hz is None:
        raise UsageError(
            f"{path} does not state {'; '.join(missing)}: write that into it (docs/import.md), or "
            "name where the policy is to act, by one of --contract NAME and --environment NAME"
        )
    try:
        return Target(stated.contract(rate_hz).with_safe_action(()))
    except UnreadableError as error:
        raise DamagedFileError(f"{path} cannot be imported: {error}") from None


def target_of_environment(
    name: str, policy: ForeignPolicy, table: Mapping[str, object] = NO_CHANNELS
) -> Target:
    """Return the target of gym:ID, gym:FILE.py:NAME, or an environment of the core's by its name.
    table: names, units and ranges of its channels, as --channels states them.

    The user names it: a Python file is imported.
    """
    source = task_source(name)
    agree(source)
    install_what_it_needs(source)
    environment = make_first(maker_of(source), source)
    try:
        return target_in(environment, source, policy, table)
    finally:
        close_all([environment])


def target_in(
    environment: Any, source: str, policy: ForeignPolicy, table: Mapping[str, object]
) -> Target:
    known = algorithms().get(policy.algorithm)
    learns = known is not None and action_kind(environment.action_space) in known.actions
    algorithm = policy.algorithm if learns else "ppo"  # which supports all
    request = TaskRequest(
        source,
        algorithm=algorithm,
        hidden=hidden_widths(policy),
        channels={**own_channels(source), **table},
    )
    task = task_of(request, environment)
    return Target(contract_of(task), task)


def task_source(name: str) -> str:
    """Return gym:rlt/Quadrotor for Quadrotor or rlt/Quadrotor. Other names are Gymnasium's."""
    if is_task(name):
        return whole_source(name)
    own = {environment.name for environment in list_environments()}
    return PREFIX + (NAMESPACE + name if name in own else name)


def hidden_widths(policy: ForeignPolicy) -> tuple[int, ...]:
    """Return the hidden widths within the limits of a task."""
    layers = [stage for stage in policy.stages if isinstance(stage, Dense | Recurrent)]
    inner = [min(ends_of(layer)[1], WIDEST_LAYER) for layer in layers[:-1]]
    return tuple(inner[:MAX_LAYERS]) or (1,)


def own_channels(source: str) -> dict[str, object]:
    """Return the names, units and rate of an environment of the core's, which Gymnasium's spaces
    lack."""
    name = source.removeprefix(PREFIX)
    if not name.startswith(NAMESPACE):
        return {}
    library = load_library(name)

    def table(of: tuple[Channel, ...], *, has_range: bool) -> list[dict[str, object]]:
        keys = ("name", "unit", "minimum", "maximum") if has_range else ("name", "unit")
        return [{key: msgspec.to_builtins(getattr(channel, key)) for key in keys} for channel in of]

    actions = table(library.actions, has_range=False)
    safe: list[float | None] = [*library.safe_action] or [None] * len(actions)
    return {
        "observations": table(library.observations, has_range=True),
        "actions": [{**entry, "safe": value} for entry, value in zip(actions, safe, strict=True)],
        "step_interval_us": library.step_interval_us,
    }
