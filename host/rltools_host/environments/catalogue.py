"""Which environments there are: the headers of rl/environments that define kName (environment.h).

A new header appears by itself; cmake/host.cmake looks for the same line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rltools_host.arguments import text
from rltools_host.build.subjects import requirements_of
from rltools_host.errors import unknown_name
from rltools_host.tree import TREE

FOLDER = TREE.include / "rltools" / "rl" / "environments"
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
        """The target that builds its library: environment-half-cheetah for half_cheetah.h."""
        return f"environment-{self.header.stem.replace('_', '-')}"

    @property
    def requirements(self) -> tuple[str, ...]:
        return requirements_of(self.header)

    @property
    def gymnasium_id(self) -> str:
        return NAMESPACE + self.name


@cache
def list_environments(folder: Path = FOLDER) -> tuple[Environment, ...]:
    """All of them, by their names."""
    found = []
    for header in (*folder.glob("*.h"), *folder.glob("*/*.h")):
        content = header.read_text(encoding="utf-8")
        if name := NAME.search(content):
            steps = EPISODE_STEPS.search(content)
            found.append(Environment(name[1], header, int(steps[1]) if steps else None))
    return tuple(sorted(found, key=lambda environment: environment.name))


def find_environment(name: str) -> Environment:
    """By its name, or by its name in Gymnasium; UnknownNameError when there is none."""
    short = text("name", name).removeprefix(NAMESPACE)
    for environment in list_environments():
        if environment.name == short:
            return environment
    raise unknown_name("environment", name, [known.name for known in list_environments()])
