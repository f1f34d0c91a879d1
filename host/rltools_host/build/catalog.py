"""The algorithms and environments that there are, found by kName in the headers.

Headers are those of rl/algorithms and rl/environments, and of folders in these, those of the
project's environments/, and those of its experiments/ that define `struct
<Experiment>Environment`. cmake/host.cmake looks for the same line. All else is stated by their
compiled code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rltools_host.build.experiments import requirements_of, struct_of
from rltools_host.documents import text
from rltools_host.errors import unknown_name
from rltools_host.tree import PROJECT, TREE

STRUCT = re.compile(
    r"^struct (\w+) : (\w+) {\n  static constexpr const char\* kName = ", re.MULTILINE
)


ON_POLICY, TWIN_CRITICS = "OnPolicy", "TwinCritics"  # structs that algorithms derive from
NUMBERS, CHOICE, CHOICES = "numbers", "choice", "choices"
ACTIONS = re.compile(r"^// Actions: (.+)$", re.MULTILINE)
OBSERVATIONS, REWARDS = "observations", "rewards"
NORMALIZES = re.compile(r"^// Normalizes: (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Algorithm:
    """An algorithm, as far as it is known before it is compiled."""

    name: str  # of the header, and on the command line
    include: str  # the header, as C++ includes it
    struct: str
    has_rollouts: bool  # it is on-policy: no replay buffer
    takes_normalizer: bool  # as an option, kNormalized; one with rollouts has its own
    actions: tuple[str, ...]  # what it learns of a task: NUMBERS, one CHOICE, several CHOICES
    normalizes: tuple[str, ...]  # OBSERVATIONS, REWARDS: always, and not as an option

    @property
    def environments(self) -> int:
        """Return how many environments a Gymnasium task steps at once by default."""
        return 8 if self.has_rollouts else 1

    @property
    def batch_size(self) -> int:
        """Return how many samples an update of a Gymnasium task has by default."""
        return 64 if self.has_rollouts else 256

    @property
    def has_normalizer(self) -> bool:
        """Return True if its policies have a normalizer of their own."""
        return self.has_rollouts or OBSERVATIONS in self.normalizes


@cache
def algorithms() -> Mapping[str, Algorithm]:
    """Return all algorithms by their names."""
    folder = TREE.include / "rltools" / "rl" / "algorithms"
    headers = sorted([*folder.glob("*.h"), *folder.glob("*/*.h")])
    contents = {header: header.read_text(encoding="utf-8") for header in headers}
    stated = {header: STRUCT.search(content) for header, content in contents.items()}
    bases = {found[1]: found[2] for found in stated.values() if found}
    return {
        header.stem: Algorithm(
            name=header.stem,
            include=header.relative_to(TREE.include).as_posix(),
            struct=found[1],
            has_rollouts=derives_from(ON_POLICY, found[1], bases),
            takes_normalizer=derives_from(TWIN_CRITICS, found[1], bases),
            actions=words_of(ACTIONS, contents[header]) or (NUMBERS,),
            normalizes=words_of(NORMALIZES, contents[header]),
        )
        for header, found in stated.items()
        if found
    }


def words_of(line: re.Pattern[str], content: str) -> tuple[str, ...]:
    """Return the words of the header's line, none where it has no such line."""
    found = line.search(content)
    return tuple(found[1].split()) if found else ()


def by_struct_name(name: str) -> Algorithm | None:
    """Return the algorithm whose kName this is, as descriptions have it; None of another tree's."""
    return algorithms().get(name.lower())


def derives_from(base: str, struct: str, bases: Mapping[str, str]) -> bool:
    return struct == base or (struct in bases and derives_from(base, bases[struct], bases))


def listed() -> str:
    """Return the names of the algorithms that learn a Gymnasium task, for a sentence."""
    kinds = {NUMBERS, CHOICE, CHOICES}
    *first, last = (one.name for one in algorithms().values() if kinds.intersection(one.actions))
    return f"{', '.join(first)} or {last}"


NAMESPACE = "rlt/"  # before the names in Gymnasium
NAME = re.compile(r'^ *static constexpr const char\* kName = "([^"]+)";', re.MULTILINE)
EPISODE_STEPS = re.compile(r"^ *static constexpr int kEpisodeSteps = (\d+);", re.MULTILINE)


@dataclass(frozen=True)
class Environment:
    """An environment, as far as it is known before it is compiled."""

    name: str  # kName, for example Pendulum-v1
    header: Path
    episode_steps: int | None  # after which an episode is truncated; None: not stated

    @property
    def library(self) -> str:
        """Return the target that builds the library.

        environment-half-cheetah for half_cheetah.h, environment-balance-environment for
        BalanceEnvironment of experiments/balance.h.
        """
        beside = "-environment" if self.header.parent.name == "experiments" else ""
        return f"environment-{self.header.stem.replace('_', '-')}{beside}"

    @property
    def requirements(self) -> tuple[str, ...]:
        return requirements_of(self.header)

    @property
    def gymnasium_id(self) -> str:
        return NAMESPACE + self.name


def list_environments() -> tuple[Environment, ...]:
    """Return all environments by their names; the project's replace installed ones."""
    folders = (TREE.environments, PROJECT.root / "environments")
    return environments_in(PROJECT.root / "experiments", *folders)


@cache
def environments_in(experiments: Path, *folders: Path) -> tuple[Environment, ...]:
    """Return the environments of these folders.

    One replaces those of an earlier folder with the same name of file or environment; one beside an
    experiment replaces any other.
    """
    files = {
        header.name: header
        for folder in folders
        for header in (*folder.glob("*.h"), *folder.glob("*/*.h"))
    }
    found = {}
    for header in (*sorted(files.values(), key=PROJECT.owns), *sorted(experiments.glob("*.h"))):
        content = header.read_text(encoding="utf-8")
        if header.parent == experiments:
            content = content[beside_experiment(header, content) :]
        if name := NAME.search(content):
            steps = EPISODE_STEPS.search(content)
            found[name[1]] = Environment(name[1], header, int(steps[1]) if steps else None)
    return tuple(found[name] for name in sorted(found))


def beside_experiment(header: Path, content: str) -> int:
    """Return where an experiment's header defines its environment, or the header's length.

    balance.h defines BalanceEnvironment.
    """
    found = re.search(rf"^struct {struct_of(header)}Environment\b", content, re.MULTILINE)
    return found.start() if found else len(content)


def find_environment(name: str) -> Environment:
    """Return the environment of this name, or of this name in Gymnasium; raise UsageError."""
    short = text("name", name).removeprefix(NAMESPACE)
    for environment in list_environments():
        if environment.name == short:
            return environment
    raise unknown_name("environment", name, [known.name for known in list_environments()])
