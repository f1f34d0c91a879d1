"""Which algorithms and environments there are: the headers of rl/algorithms, of rl/environments and
of the project's folder environments/ that define kName, and those of its experiments/ that define
an environment beside the experiment, `struct <Experiment>Environment`.

A new header appears by itself; cmake/host.cmake looks for the same line. What follows from it, its
compiled code states.
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


NUMBERS, CHOICE, CHOICES = "numbers", "choice", "choices"
ACTIONS = re.compile(r"^// Actions: (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Algorithm:
    """What the tools know of an algorithm before it is compiled."""

    name: str  # of its header, and on the command line
    struct: str
    has_rollouts: bool  # it learns from what several environments did together, not from a replay
    actions: tuple[str, ...]  # what it learns of a task: NUMBERS, one CHOICE, several CHOICES

    @property
    def environments(self) -> int:
        """How many a task of Gymnasium's steps at once, where nobody says."""
        return 8 if self.has_rollouts else 1

    @property
    def batch_size(self) -> int:
        """Samples of an update of a task of Gymnasium's, where nobody says."""
        return 64 if self.has_rollouts else 256


@cache
def algorithms() -> Mapping[str, Algorithm]:
    """All of them, by their names."""
    found = {}
    bases = {"OnPolicy": ""}
    for header in sorted((TREE.include / "rltools" / "rl" / "algorithms").glob("*.h")):
        content = header.read_text(encoding="utf-8")
        if stated := STRUCT.search(content):
            learnt = ACTIONS.search(content)
            found[header.stem] = stated[1], tuple(learnt[1].split()) if learnt else (NUMBERS,)
            bases[stated[1]] = stated[2]
    return {
        name: Algorithm(name, struct, is_on_policy(struct, bases), actions)
        for name, (struct, actions) in found.items()
    }


def is_on_policy(struct: str, bases: Mapping[str, str]) -> bool:
    return struct == "OnPolicy" or (struct in bases and is_on_policy(bases[struct], bases))


def listed() -> str:
    """The names of those that learn a task of Gymnasium's, in words."""
    kinds = {NUMBERS, CHOICE, CHOICES}
    *first, last = (one.name for one in algorithms().values() if kinds.intersection(one.actions))
    return f"{', '.join(first)} or {last}"


NAMESPACE = "rlt/"  # of their names in Gymnasium
NAME = re.compile(r'^ *static constexpr const char\* kName = "([^"]+)";', re.MULTILINE)
EPISODE_STEPS = re.compile(r"^ *static constexpr int kEpisodeSteps = (\d+);", re.MULTILINE)


@dataclass(frozen=True)
class Environment:
    """What the tools know of an environment before it is compiled."""

    name: str  # kName, for example Pendulum-v1
    header: Path
    episode_steps: int | None  # after which an episode is cut off; None: it says nothing

    @property
    def library(self) -> str:
        """The target that builds its library: environment-half-cheetah for half_cheetah.h,
        environment-balance-environment for BalanceEnvironment of experiments/balance.h."""
        beside = "-environment" if self.header.parent.name == "experiments" else ""
        return f"environment-{self.header.stem.replace('_', '-')}{beside}"

    @property
    def requirements(self) -> tuple[str, ...]:
        return requirements_of(self.header)

    @property
    def gymnasium_id(self) -> str:
        return NAMESPACE + self.name


def list_environments() -> tuple[Environment, ...]:
    """All of them, by their names: of a name that both have, the project's."""
    folders = (TREE.environments, PROJECT.root / "environments")
    return environments_in(PROJECT.root / "experiments", *folders)


@cache
def environments_in(experiments: Path, *folders: Path) -> tuple[Environment, ...]:
    """A later folder's are in the place of an earlier one's of the same file's or own name, and
    one beside an experiment in the place of any other."""
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
    """Where an experiment's header defines its environment: balance.h BalanceEnvironment; its end
    where it does not."""
    found = re.search(rf"^struct {struct_of(header)}Environment\b", content, re.MULTILINE)
    return found.start() if found else len(content)


def find_environment(name: str) -> Environment:
    """By its name, or by its name in Gymnasium; UsageError when there is none."""
    short = text("name", name).removeprefix(NAMESPACE)
    for environment in list_environments():
        if environment.name == short:
            return environment
    raise unknown_name("environment", name, [known.name for known in list_environments()])
