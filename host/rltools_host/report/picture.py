"""The moving picture that an environment may have.

It is a module of pictures/ with the environment's name, or with that of its family in Gymnasium
(mujoco is that of Ant-v4).

A module has one function, draw(image, episode), which returns None for a policy with other
channels than those that it knows.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from pathlib import Path

from rltools_host.policies.evaluation import Episode, name_in_gymnasium
from rltools_host.policies.image import PolicyImage
from rltools_host.report.plot import Panel

PICTURES = Path(__file__).with_name("pictures")


@dataclass(frozen=True)
class Picture:
    """An episode as a moving picture, and the quantities that it shows better than the channels."""

    figure: str  # HTML
    style: str  # CSS
    wide: bool = False  # above the panels instead of beside them
    panels: tuple[Panel, ...] = ()
    replaced: tuple[str, ...] = ()  # observations that the panels stand for


def picture_of(image: PolicyImage, episode: Episode) -> Picture | None:
    environment = name_in_gymnasium(image.environment)
    for name in (module_name(environment), family_of(environment)):
        if name and (PICTURES / f"{name}.py").is_file():
            module = importlib.import_module(f"rltools_host.report.pictures.{name}")
            picture: Picture | None = module.draw(image, episode)
            return picture
    return None


def family_of(environment: str) -> str:
    """The folder in Gymnasium that has the environment; empty for what it does not have."""
    import gymnasium

    specification = gymnasium.registry.get(environment)
    entry = str(specification.entry_point) if specification else ""
    found = re.match(r"gymnasium\.envs\.(\w+)", entry)
    return found[1] if found else ""


def module_name(environment: str) -> str:
    """CarRacing-v3 is car_racing; empty for what names no module."""
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", re.sub(r"-v\d+$", "", environment))
    is_name = re.fullmatch(r"[A-Za-z]\w*(-v\d+)?", environment)
    return "_".join(word.lower() for word in words) if is_name else ""
