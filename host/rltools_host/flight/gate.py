"""Gates as data: experiments/gates/<name>.json, a published test that a policy passes or not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from rltools_host.documents import Line, NotNegative, Title, Unfit, Value, Whole, typed
from rltools_host.errors import DamagedFileError, RltError, UsageError, unknown_name
from rltools_host.files import parse_json
from rltools_host.flight.simulator import Array, ExecutorLimits, Rule, flight_library, fly
from rltools_host.policies.image import PolicyImage
from rltools_host.project import PROJECT
from rltools_host.tree import TREE

MOST_EPISODES = 100_000
MOST_SECONDS = 600.0
Settings = dict[Line, Value]  # by the names of quadrotor/settings.h


class Definition(Struct, frozen=True, forbid_unknown_fields=True):
    """A gate's file, whole: docs/gate.md is for readers."""

    title: Title
    episodes: Annotated[int, Meta(ge=1, le=MOST_EPISODES)]
    seed: Whole  # of the held-out starts
    seconds: NotNegative  # these four are the Rule
    last_seconds: NotNegative
    radius_m: NotNegative
    share: NotNegative
    settings: Settings
    about: Line = ""  # a sentence
    executor: ExecutorLimits = ExecutorLimits()


class Likeness(Struct, frozen=True):
    """A gate's file that takes from another, which is like no other, what it does not say."""

    like: Line
    settings: dict[Line, Any] = {}
    executor: dict[Line, Any] = {}


class Gate(Definition, frozen=True, kw_only=True):
    """What a gate's file says, by its name."""

    name: str

    @property
    def rule(self) -> Rule:
        return Rule(self.seconds, self.last_seconds, self.radius_m, self.share)

    def with_starts(self, episodes: int | None, seed: int | None) -> Gate:
        """The same with fewer or other starts, where these are given."""
        changed: Gate = structs.replace(
            self,
            episodes=self.episodes if episodes is None else episodes,
            seed=self.seed if seed is None else seed,
        )
        if not 1 <= changed.episodes <= MOST_EPISODES:
            raise UsageError(f"--episodes {episodes}: choose 1 to {MOST_EPISODES:,} flights")
        if not 0 <= changed.seed < 2**32:
            raise UsageError(f"--seed {seed}: a seed lies between 0 and 4294967295")
        return changed

    def document(self) -> dict[str, Any]:
        """Its definition, as a gate's file has it."""
        stated = {name: getattr(self, name) for name in Definition.__struct_fields__}
        return {**stated, "executor": structs.asdict(self.executor)}

    def fly(self, image: PolicyImage) -> Array:
        """The outcome of each flight, on all processors that the process may use."""
        outcomes, _ = fly(
            image,
            self.rule,
            self.settings,
            self.seed,
            count=self.episodes,
            limits=self.executor,
            threads=len(os.sched_getaffinity(0)),
        )
        return outcomes

    def trace(self, image: PolicyImage, episode: int) -> tuple[Any, Array]:
        """One of the flights again: its record of Outcome, and one of Sample for each tick."""
        (outcome,), (trace,) = fly(
            image,
            self.rule,
            self.settings,
            self.seed,
            first_episode=episode,
            limits=self.executor,
            traced=True,
        )
        return outcome, trace


def gate_files() -> dict[str, Path]:
    """By their names: the project's, then those that are installed."""
    files = PROJECT.files("experiments/gates", "*.json", TREE.experiments / "gates")
    return {path.stem.replace("_", "-"): path for path in files}


def gate_names() -> list[str]:
    return list(gate_files())


def load_gate(name: str) -> Gate:
    """The gate of a name, or of a file of one's own, whose name ends in .json."""
    if name.endswith(".json"):
        path = Path(name)
        name = path.stem.replace("_", "-")
    elif name not in gate_files():
        raise unknown_name("gate", name, gate_names())
    else:
        path = gate_files()[name]
    try:
        document = parse_json(path.read_bytes())
        if isinstance(document, dict) and "like" in document:
            document = completed(document)
        return gate_of(name, typed(document, Definition))
    except (ValueError, RltError) as error:
        reason = str(error)
    except OSError as error:
        reason = error.strerror or str(error)
    raise DamagedFileError(f"{path} is no gate: {reason}")


@cache
def hover_rule() -> Rule:
    """What counts as a success where a flight names no gate."""
    return load_gate("hover").rule


def completed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The definition with what it takes from the gate that it is `like`."""
    likeness: Likeness = typed(document, Likeness)
    known = gate_files()
    if likeness.like not in known:
        raise unknown_name("gate", likeness.like, known)
    base = parse_json(known[likeness.like].read_bytes())
    if not isinstance(base, dict) or "like" in base:
        raise Unfit(f"like is {likeness.like}, which is no whole definition itself")
    whole = {**base, **{key: value for key, value in document.items() if key != "like"}}
    for key in ("settings", "executor"):
        whole[key] = {**base.get(key, {}), **getattr(likeness, key)}
    return whole


def gate_of(name: str, stated: Definition) -> Gate:
    """Unfit, or a UsageError, with the place where it makes no sense."""
    gate = Gate(name=name, **structs.asdict(stated))
    check_rule(gate.rule)
    flight_library().setting_bits(gate.settings)
    return gate


def check_rule(rule: Rule) -> None:
    tick_s = flight_library().tick_s
    if not tick_s <= rule.last_seconds <= rule.seconds <= MOST_SECONDS:
        raise Unfit(
            f"seconds is {rule.seconds:g} and last_seconds {rule.last_seconds:g}, not {tick_s:g} "
            f"<= last_seconds <= seconds <= {MOST_SECONDS:g}"
        )
    if not 0 < rule.share <= 1:
        raise Unfit(f"share is {rule.share:g}, not above 0 and 1 at most")
