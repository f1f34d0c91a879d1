"""Runs as somebody may send them: a folder in which every text is the sender's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from policy_run import GROUP, make_policy_run
from rltools_host.build.description import Channel
from rltools_host.environments.task import sizes_of
from rltools_host.runs.task import Task

EVIL = """import pathlib
pathlib.Path(__file__).with_name("executed").touch()
import gymnasium
from gymnasium.envs.classic_control import PendulumEnv
if "Evil-v0" not in gymnasium.registry:
    gymnasium.register("Evil-v0", PendulumEnv)
"""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths at which something can be replaced or removed."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def pendulum_task(source: str) -> Task:
    """A task with the pendulum's observations and actions, for which there are policies."""
    observations = [("cos_theta", "1", 1.0), ("sin_theta", "1", 1.0), ("theta_dot", "rad/s", 8.0)]
    return Task(
        source=source,
        environment="Pendulum-v1",
        experiment="gym-pendulum-v1-sac",
        algorithm="sac",
        hidden=(64, 64),
        sizes=sizes_of("sac", 1),
        episode_steps=20,
        step_interval_us=50_000,
        observation_shape=(3,),
        action_shape=(1,),
        observations=tuple(Channel(n, unit, -m, m) for n, unit, m in observations),
        actions=(Channel("torque", "N*m", -2.0, 2.0),),
        solved_return=None,
    )


def make_foreign_run(
    path: Path, source: str | None, changes: Mapping[str, Any] | None = None
) -> Path:
    """A run with a policy; `source`: what it says that its task is imported from."""
    make_policy_run(path)
    document = json.loads((path / "run.json").read_text())
    document |= {"experiment": "pendulum-td3", "board": "host", "seed": 0, "steps": 100}
    if source is not None:
        task = pendulum_task(source)
        document |= {"experiment": task.experiment, "gymnasium": to_builtins(task)}
    (path / "run.json").write_text(json.dumps({**document, **(changes or {})}))
    return path


def make_evil_file(folder: Path, name: str = "evil.py") -> Path:
    """A task's file that leaves `executed` beside itself where it is imported."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(EVIL)
    return path


def make_foreign_group(path: Path, source: str) -> Path:
    """A group of one such run, which says of itself the same."""
    task = pendulum_task(source)
    make_foreign_run(path / "s0", source)
    stated = {"experiment": task.experiment, "seeds": [0], "gymnasium": to_builtins(task)}
    document = {"format": 3, **GROUP, **stated}
    (path / "group.json").write_text(json.dumps(document))
    return path
