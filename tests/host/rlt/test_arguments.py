"""What a Python program gives and makes no sense: one sentence, before anything is begun."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rlt
from gymnasium_points import Point
from rltools_host.documents import repr_of


def act(observation: Any) -> Any:
    return -observation[2:]


CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: rlt.make(3), "name=3: give a text"),  # type: ignore[arg-type]
    (lambda: rlt.make("Pendulum-v1", 1.5), "num_envs=1.5: .* from 1 to 1048576$"),  # type: ignore[arg-type]
    (lambda: rlt.make("Pendulum-v1", threads=1.5), "threads=1.5: .* from 1 to 64$"),  # type: ignore[arg-type]
    (
        lambda: rlt.make("Pendulum-v1", max_episode_steps=1.5),
        "max_episode_steps=.* 1 to 4294967294$",
    ),  # type: ignore[arg-type]
    (lambda: rlt.make("Pendulum-v1", settings=[1]), r"settings=\[1\]: give a dictionary"),  # type: ignore[arg-type]
    (lambda: rlt.make("Quadrotor", settings={"airframe": "2"}), "airframe='2': give a number"),  # type: ignore[dict-item]
    (lambda: rlt.make("Pendulum-v1", autoreset_mode=3), "autoreset_mode 3: choose"),  # type: ignore[arg-type]
    (lambda: rlt.evaluate(act, "Pendulum-v1", 1.5), "episodes=1.5: .* from 1 to 1000000$"),  # type: ignore[arg-type]
    (
        lambda: rlt.evaluate(act, "Pendulum-v1", 1, -1),
        "seed=-1: give a whole number from 0 to 4294967295",
    ),
    (lambda: rlt.evaluate(act, "Pendulm-v1"), "did you mean Pendulum-v1"),
    (lambda: rlt.evaluate(act, 3), "env=3: give an environment"),  # type: ignore[arg-type]
    (lambda: rlt.evaluate(3, "Pendulum-v1"), "policy=3: give a function"),  # type: ignore[arg-type]
    (lambda: rlt.evaluate("no-such-run", Point), 'unknown run "no-such-run"'),
    (lambda: rlt.Policy.load(3), "run=3: give a path"),  # type: ignore[arg-type]
    (lambda: rlt.Policy.load(None), "run=None: give a run"),  # type: ignore[arg-type]
    (
        lambda: rlt.Policy.load(__file__, "best"),
        "which=.*: .* is one policy; give the run's folder",
    ),
    (lambda: rlt.train(3), "task=3: give the name of an experiment"),  # type: ignore[arg-type]
    (lambda: rlt.train("pendulum-td3", board=3), "board=3: give a text"),  # type: ignore[arg-type]
    (lambda: rlt.train("pendulum-td3", board="host", seed=1.5), "seed=1.5 is out of"),  # type: ignore[arg-type]
    (lambda: rlt.train("pendulum-td3", board="host", out=3), "out=3: give a path"),  # type: ignore[arg-type]
    (lambda: rlt.train(resume=3), "resume=3: give a path"),  # type: ignore[arg-type]
    (lambda: rlt.train("pendulum-td3", port=3), "port=3: give a text"),  # type: ignore[arg-type]
    (lambda: rlt.train("pendulum-td3", threads=1.5), "threads=1.5: .* from 1 to 1024$"),  # type: ignore[arg-type]
    (lambda: rlt.train("pendulum-td3", settings=["a"]), "settings=.*: give a dictionary"),  # type: ignore[arg-type]
    (lambda: rlt.train("pendulum-td3", hidden=(8,)), "hidden goes with a new run of a task"),
    (lambda: rlt.train(Point, hidden=(8,), resume="r"), "hidden goes with a new run of a task"),
    (lambda: rlt.train(Point, algorithm=3), "algorithm=3: give a text"),  # type: ignore[arg-type]
    (lambda: rlt.train(Point, hidden=64), "hidden=64: give the widths"),  # type: ignore[arg-type]
    (lambda: rlt.train(Point, hidden=(64, 1.5)), "hidden=1.5: .* from 1 to 4096$"),  # type: ignore[arg-type]
    (lambda: rlt.train(Point, environments=1.5), "environments=1.5: .* from 1 to 1024$"),  # type: ignore[arg-type]
    (lambda: rlt.train(Point, episode_steps=1.5), "episode_steps=.* 1 to 2147483647$"),  # type: ignore[arg-type]
    (lambda: rlt.train(Point, threads=1.5), "threads=1.5: .* from 1 to 1024$"),  # type: ignore[arg-type]
    (lambda: rlt.train(Point, name=3), "name=3: give a text"),  # type: ignore[arg-type]
    (lambda: rlt.train(Point, channels=[3]), "channels=.*: give a dictionary"),  # type: ignore[arg-type]
    (lambda: rlt.train(Point, sizes={"batch": 3}), 'unknown size "batch": did you mean'),
    (lambda: rlt.train(Point, sizes={"batch_size": 1.5}), "batch_size=.* 1 to 10000000$"),  # type: ignore[dict-item]
    (lambda: rlt.train(Point, out=b"x"), "out=b'x': give a path"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "sentence"), CALLS, ids=[sentence for _, sentence in CALLS])
def test_what_makes_no_sense_is_one_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(rlt.RltError, match=sentence) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_paths_may_be_objects(tmp_path: Path) -> None:
    with pytest.raises(rlt.RltError, match="unknown run"):
        rlt.Policy.load(tmp_path / "none")


def test_what_is_long_is_shown_in_part() -> None:
    assert repr_of("a" * 58) == repr("a" * 58)
    assert repr_of("a" * 59) == f"'{'a' * 59}…"
