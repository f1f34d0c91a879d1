"""Which wrappers are found, by the names of their classes."""

from __future__ import annotations

from typing import Any

import pytest

from rltools_host.checks import findings
from rltools_host.checks.findings import ADVICE, FAULT


class Plain:
    """An environment, or a wrapper that nobody knows."""


def wrapped(*names: str, **fields: Any) -> Any:
    """The last of them is the innermost; `fields` are of the outermost."""
    environment: Any = Plain()
    for name in reversed(names):
        inner, environment = environment, type(name, (Plain,), {})()
        environment.env = inner
    vars(environment).update(fields)
    return environment


def test_each_is_named_from_the_outside_in_but_for_the_harmless() -> None:
    names = ("Own", "FrameStack", "ClipAction", "NormalizeReward", "Autoreset")
    environment = wrapped(*names)
    chain = findings.chain(environment)
    assert [type(each).__name__ for each in chain] == [*names, "Plain"]
    found = findings.findings(environment, 200)
    assert [(each.check, each.what.split()[0], each.level) for each in found] == [
        ("wrapper", "FrameStack", FAULT),
        ("wrapper", "NormalizeReward", ADVICE),
        ("wrapper", "Autoreset", FAULT),
    ]
    assert found[0].what == (
        "FrameStack wraps the environment: a policy elsewhere does not get the past observations "
        "that it adds"
    )
    assert found[2].remedy == "take it away: training resets"
    assert findings.findings(Plain(), 200) == []


def test_an_own_class_is_judged_by_what_it_derives_from() -> None:
    base = type("ObservationWrapper", (), {})
    environment: Any = type("Mine", (base,), {})()
    environment.env = Plain()
    (found,) = findings.findings(environment, 1)
    assert found.what.startswith("Mine wraps the environment: a policy observes what it makes")
    harmless = type("ClipAction", (base,), {})
    environment.__class__ = type("Mine", (harmless,), {})
    assert findings.findings(environment, 1) == []


def test_a_ring_of_wrappers_has_an_end() -> None:
    environment = wrapped("A")
    environment.env = environment
    assert len(findings.chain(environment)) == findings.MOST_WRAPPERS + 1


@pytest.mark.parametrize(
    ("limit", "steps", "said"), [(200, 200, None), (1200, 200, 200), (50, 1200, 50)]
)
def test_another_time_limit_is_told(limit: int, steps: int, said: int | None) -> None:
    found = findings.findings(wrapped("TimeLimit", _max_episode_steps=limit), steps)
    if said is None:
        assert found == []
        return
    assert found[0].what == (
        f"a TimeLimit of {limit:,} steps is inside, and episodes are to last {steps:,}"
    )
    assert found[0].remedy.startswith(f"say --episode-steps {said}, ")
    assert found[0].level == ADVICE


def test_what_is_no_number_is_no_limit() -> None:
    assert findings.time_limit(wrapped("TimeLimit", _max_episode_steps=None)) is None
    assert findings.time_limit(wrapped("TimeLimit")) is None
    assert findings.time_limit(wrapped("Other", _max_episode_steps=7)) is None
    assert findings.time_limit(wrapped("TimeLimit", _max_episode_steps=7)) == 7
