"""Gates as data: experiments/gates/<name>.json, a published test that a policy passes or fails."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct, structs, to_builtins

from rltools_host.documents import Line, NotNegative, Title, Unfit, Value, Whole, shown, typed
from rltools_host.drones.flight.entry_box import EntryBox, starts_within
from rltools_host.drones.flight.simulator import (
    MAX_TILT,
    ActFunction,
    Array,
    Cause,
    ExecutorLimits,
    Rule,
    airframes,
    flight_library,
    fly,
)
from rltools_host.errors import DamagedFileError, RltError, UsageError, unknown_name
from rltools_host.files import load_json
from rltools_host.policies.image import Float32Array, PolicyImage
from rltools_host.system import processors
from rltools_host.tree import PROJECT, TREE

MAX_EPISODES = 100_000
MAX_SECONDS = 600.0
MAX_PARTS = 20
PartName = Annotated[str, Meta(pattern=r"^\w[\w -]{0,39}\Z")]
Settings = dict[Line, Value]  # by the names of quadrotor/settings.h


class Part(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a gate: the fields that some of its flights have in place of the gate's own."""

    seconds: NotNegative | None = None
    last_seconds: NotNegative | None = None
    radius_m: NotNegative | None = None
    share: NotNegative | None = None
    settings: Settings = {}


class Definition(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file of a gate; docs/gate.md describes it for readers."""

    title: Title
    episodes: Annotated[int, Meta(ge=1, le=MAX_EPISODES)]
    seed: Whole  # of the held-out starts
    seconds: NotNegative  # these four are the Rule
    last_seconds: NotNegative
    radius_m: NotNegative
    share: NotNegative
    settings: Settings
    about: Line = ""  # a sentence
    most_tilt: NotNegative = MAX_TILT  # degrees; of the Rule as well
    entry: EntryBox | None = None  # in which the starts are drawn, in place of the settings'
    executor: ExecutorLimits = ExecutorLimits()
    parts: dict[PartName, Part] = {}  # each has all of the episodes, of the same airframes


class Likeness(Struct, frozen=True):
    """A gate's file that takes the rest from another one, which must be whole itself."""

    like: Line
    settings: dict[Line, Any] = {}
    executor: dict[Line, Any] = {}


class Gate(Definition, frozen=True, kw_only=True):
    """A gate's definition with its name."""

    name: str

    @property
    def rule(self) -> Rule:
        return Rule(self.seconds, self.last_seconds, self.radius_m, self.share, self.most_tilt)

    def with_starts(self, episodes: int | None, seed: int | None) -> Gate:
        """Return the gate with other starts, where a number of episodes or a seed is given."""
        changed: Gate = structs.replace(
            self,
            episodes=self.episodes if episodes is None else episodes,
            seed=self.seed if seed is None else seed,
        )
        if not 1 <= changed.episodes <= MAX_EPISODES:
            raise UsageError(f"--episodes {episodes}: choose 1 to {MAX_EPISODES:,} flights")
        if not 0 <= changed.seed < 2**32:
            raise UsageError(f"--seed {seed}: a seed lies between 0 and 4294967295")
        return changed

    def document(self) -> dict[str, object]:
        """Return the definition, as a gate's file has it."""
        stated = {name: getattr(self, name) for name in Definition.__struct_fields__}
        stated |= {"executor": to_builtins(self.executor), "parts": to_builtins(self.parts)}
        stated["entry"] = to_builtins(self.entry)
        usual: dict[str, object] = {"parts": {}, "entry": None, "most_tilt": MAX_TILT}
        return {key: value for key, value in stated.items() if value != usual.get(key, ...)}

    @property
    def kinds(self) -> dict[str, Gate]:
        """Return a gate without parts for each part, by its name and in order; a gate without parts
        returns itself."""
        if not self.parts:
            return {self.name: self}
        return {name: self._with(part) for name, part in self.parts.items()}

    def _with(self, part: Part) -> Gate:
        stated = {name: getattr(part, name) for name in Part.__struct_fields__}
        changed = {name: value for name, value in stated.items() if value is not None}
        settings = {**self.settings, **part.settings}
        return structs.replace(self, **{**changed, "settings": settings, "parts": {}})

    @property
    def flights(self) -> int:
        return self.episodes * len(self.kinds)

    @property
    def draws_airframes(self) -> bool:
        return any(kind.settings.get("table_share", 1) < 1 for kind in self.kinds.values())

    @property
    def change_s(self) -> float | None:
        """Return the time when the airframe changes; None where it does not."""
        if not any(self.settings.get(name) for name in ("payload", "rotor_loss")):
            return None
        return float(self.settings.get("change_s", flight_library().default("change_s")))

    def airframes(self) -> Array:
        """Return the records of Airframe of the episodes; the gate has no parts."""
        first = self.first_episode
        return airframes(self.settings, self.seed, range(first, first + self.episodes))

    def fly(self, policy: PolicyImage | ActFunction, excursions: Array | None = None) -> Array:
        """Fly all flights, on all processors that the process may use; return their outcomes, part
        after part. `excursions` receives how far each flight strayed; the gate then has no parts.
        """
        return np.concatenate([kind._fly(policy, excursions) for kind in self.kinds.values()])

    def is_flown_without_failure(self, policy: PolicyImage, first: int) -> bool:
        """Return whether each flight succeeds; fly the rest only where the `first` ones do. The
        gate has no parts."""
        return all(
            bool((self._fly(policy, episodes=episodes)["cause"] == Cause.SUCCESS).all())
            for episodes in (range(first), range(first, self.episodes))
        )

    def _fly(
        self,
        policy: PolicyImage | ActFunction,
        excursions: Array | None = None,
        episodes: range | None = None,
    ) -> Array:
        episodes = range(self.episodes) if episodes is None else episodes
        starts = self.starts()
        outcomes, _ = fly(
            policy,
            self.rule,
            self.settings,
            self.seed,
            first_episode=self.first_episode + episodes.start,
            count=len(episodes),
            limits=self.executor,
            threads=processors(),
            starts=None if starts is None else starts[episodes.start : episodes.stop],
            excursions=excursions,
        )
        return outcomes

    @property
    def first_episode(self) -> int:
        return 0 if self.entry is None else self.entry.first_episode

    def starts(self) -> Float32Array | None:
        """Return the states (episodes, 13) in which the flights begin; None where the settings draw
        them."""
        return None if self.entry is None else starts_within(self.entry, self.seed, self.episodes)

    def flight(self, number: int) -> tuple[str, Gate, int]:
        """Return the part of the flight with this number, that part as a gate, and the episode."""
        part, episode = divmod(number, self.episodes)
        name, kind = list(self.kinds.items())[part]
        return name, kind, episode

    def trace(self, image: PolicyImage, number: int) -> tuple[Any, Array]:
        """Fly one of the flights again; return its record of Outcome, and one of Sample for each
        tick."""
        _, kind, episode = self.flight(number)
        starts = kind.starts()
        (outcome,), (trace,) = fly(
            image,
            kind.rule,
            kind.settings,
            kind.seed,
            first_episode=kind.first_episode + episode,
            starts=None if starts is None else starts[episode : episode + 1],
            limits=kind.executor,
            traced=True,
        )
        return outcome, trace


def gate_files() -> dict[str, Path]:
    """Return the files by name: the project's, then the installed ones."""
    files = PROJECT.files("experiments/gates", "*.json", TREE.experiments / "gates")
    return {path.stem.replace("_", "-"): path for path in files}


def load_gate(name: str) -> Gate:
    """Load the gate with this name, or from a file whose name ends in .json."""
    if name.endswith(".json"):
        path = Path(name)
        name = path.stem.replace("_", "-")
    elif name not in gate_files():
        raise unknown_name("gate", name, gate_files())
    else:
        path = gate_files()[name]
    try:
        document = load_json(path)
        if isinstance(document, dict) and "like" in document:
            document = completed(document)
        return gate_of(name, typed(document, Definition))
    except (ValueError, RltError) as error:
        reason = str(error)
    except OSError as error:
        reason = error.strerror or str(error)
    raise DamagedFileError(f"{path} is not a gate: {reason}")


@cache
def hover_rule() -> Rule:
    """Return the rule for flights that name no gate."""
    return load_gate("hover").rule


def completed(document: Mapping[str, Any]) -> dict[str, object]:
    """Return the definition, completed from the gate that it is `like`."""
    likeness: Likeness = typed(document, Likeness)
    known = gate_files()
    if likeness.like not in known:
        raise unknown_name("gate", likeness.like, known)
    base = load_json(known[likeness.like])
    if not isinstance(base, dict):
        raise Unfit(f"like is {likeness.like}, which is no gate")
    if "like" in base:
        other = shown(base["like"])
        raise Unfit(f"like is {likeness.like}, which is like {other} itself: take that one")
    whole = {**base, **{key: value for key, value in document.items() if key != "like"}}
    for key in ("settings", "executor"):
        whole[key] = {**base.get(key, {}), **getattr(likeness, key)}
    return whole


def gate_of(name: str, stated: Definition) -> Gate:
    """Return the gate; raise Unfit or UsageError with the field that is wrong."""
    gate = Gate(name=name, **structs.asdict(stated))
    if len(gate.parts) > MAX_PARTS:
        raise Unfit(f"parts has {len(gate.parts)} entries, not {MAX_PARTS} at most")
    for kind in (gate, *gate.kinds.values()):
        check_rule(kind.rule)
        flight_library().setting_bits(kind.settings)
    return gate


def check_rule(rule: Rule) -> None:
    tick_s = flight_library().tick_s
    if not tick_s <= rule.last_seconds <= rule.seconds <= MAX_SECONDS:
        raise Unfit(
            f"seconds is {rule.seconds:g} and last_seconds {rule.last_seconds:g}, not {tick_s:g} "
            f"<= last_seconds <= seconds <= {MAX_SECONDS:g}"
        )
    if not 0 < rule.share <= 1:
        raise Unfit(f"share is {rule.share:g}, not above 0 and 1 at most")
