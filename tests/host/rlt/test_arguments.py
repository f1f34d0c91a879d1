"""What a Python program gives and makes no sense: one sentence, before anything is begun."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rlt
from gymnasium_points import Point

CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: rlt.make("Pendulum-v1", 1.5), "num_envs=1.5: .* from 1 to 1048576$"),  # type: ignore[arg-type]
    (lambda: rlt.train(3), "task=3: give the name of an experiment"),  # type: ignore[arg-type]
    (
        lambda: rlt.train("pendulum-td3", hidden=(8,)),
        "hidden goes with a new run of a Gymnasium task",
    ),
    (lambda: rlt.train(Point, sizes={"batch": 3}), 'unknown size "batch": did you mean'),
]


@pytest.mark.parametrize(("call", "sentence"), CALLS, ids=[sentence for _, sentence in CALLS])
def test_what_makes_no_sense_is_one_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(rlt.RltError, match=sentence) as raised:
        call()
    assert "\n" not in str(raised.value)
