"""Gates as data: experiments/gates/<name>.json, a published test that a policy passes or not.

A file has `title`, `episodes`, `seed` of the held-out starts, the rule of success (`seconds`,
`last_seconds`, `radius_m`, `share`: outcome.Rule), `settings` by the names of
quadrotor/settings.h, and may have `about`, a sentence, and `executor`, limits of
policy/executor.h. `like` names another gate: what this one does not say, it takes from there.
docs/gate.md is for readers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from rltools_host.errors import DamagedFileError, RltError, UsageError, unknown_name
from rltools_host.files import parse_json
from rltools_host.flight.simulator import Array, ExecutorLimits, Rule, flight_library, fly
from rltools_host.policies.image import PolicyImage
from rltools_host.project import PROJECT
from rltools_host.runs import schema
from rltools_host.runs.schema import Unfit
from rltools_host.tree import TREE

MOST_EPISODES = 100_000
MOST_SECONDS = 600.0
LIMITS: schema.Keys = {
    field.name: schema.number(0) if field.name == "range_margin" else schema.whole()
    for field in fields(ExecutorLimits)
}
REQUIRED: schema.Keys = {
    "title": schema.text(r".+", "a text in one line"),
    "episodes": schema.whole(1, MOST_EPISODES),
    "seed": schema.whole(),
    **dict.fromkeys(("seconds", "last_seconds", "radius_m", "share"), schema.number(0)),
    "settings": schema.values_of(schema.number()),
}
OPTIONAL: schema.Keys = {
    "about": schema.text(),
    "executor": schema.record(LIMITS),
}
DEFINITION: schema.Keys = {**REQUIRED, **OPTIONAL}


@dataclass(frozen=True)
class Gate:
    """What a gate's file says."""

    name: str
    title: str
    about: str
    episodes: int
    seed: int
    rule: Rule
    settings: Mapping[str, float]
    limits: ExecutorLimits

    def with_starts(self, episodes: int | None, seed: int | None) -> Gate:
        """The same with fewer or other starts, where these are given."""
        changed = replace(
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
        """Its definition, as parse_gate() reads it."""
        return {
            "title": self.title,
            "about": self.about,
            "episodes": self.episodes,
            "seed": self.seed,
            **asdict(self.rule),
            "settings": dict(self.settings),
            "executor": asdict(self.limits),
        }

    def fly(self, image: PolicyImage) -> Array:
        """The outcome of each flight, on all processors that the process may use."""
        outcomes, _ = fly(
            image,
            self.rule,
            self.settings,
            self.seed,
            count=self.episodes,
            limits=self.limits,
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
            limits=self.limits,
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
        return parse_gate(name, document)
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}, column {error.colno}: {error.msg}"
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
    """The definition with what it takes from the gate that it is `like`, which is like no other."""
    known = gate_files()
    schema.text()("like", document["like"])
    if document["like"] not in known:
        raise unknown_name("gate", document["like"], known)
    base = parse_json(known[document["like"]].read_bytes())
    if not isinstance(base, dict) or "like" in base:
        raise Unfit(f"like is {document['like']}, which is no whole definition itself")
    whole = {**base, **{key: value for key, value in document.items() if key != "like"}}
    for key in ("settings", "executor"):
        inner = document.get(key, {})
        schema.values_of(schema.number())(key, inner)
        whole[key] = {**base.get(key, {}), **inner}
    return whole


def parse_gate(name: str, document: Mapping[str, Any]) -> Gate:
    """Unfit, or a UsageError, with the place where this is no definition."""
    if not isinstance(document, dict):
        raise Unfit("it is not one object")
    schema.known_keys(document, DEFINITION)
    schema.record(REQUIRED, required=True)("", document)
    schema.record(OPTIONAL)("", document)
    executor = document.get("executor", {})
    schema.known_keys(executor, LIMITS, "executor.")
    rule = Rule(*(float(document[field.name]) for field in fields(Rule)))
    check_rule(rule)
    flight_library().setting_bits(document["settings"])
    return Gate(
        name,
        document["title"],
        document.get("about", ""),
        document["episodes"],
        document["seed"],
        rule,
        document["settings"],
        ExecutorLimits(**executor),
    )


def check_rule(rule: Rule) -> None:
    tick_s = flight_library().tick_s
    if not tick_s <= rule.last_seconds <= rule.seconds <= MOST_SECONDS:
        raise Unfit(
            f"seconds is {rule.seconds:g} and last_seconds {rule.last_seconds:g}, not {tick_s:g} "
            f"<= last_seconds <= seconds <= {MOST_SECONDS:g}"
        )
    if not 0 < rule.share <= 1:
        raise Unfit(f"share is {rule.share:g}, not above 0 and 1 at most")
