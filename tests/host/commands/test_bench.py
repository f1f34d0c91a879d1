"""`rlt bench …`: what is typed, and what is usual, reaches the benchmark under its own name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rltools_host import cli
from rltools_host.commands import bench


def asked(
    module: str, words: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Any], dict[str, Any]]:
    """With which arguments `run` is called, once."""
    calls: list[tuple[list[Any], dict[str, Any]]] = []

    def run(*arguments: Any, **fields: Any) -> dict[str, Any]:
        calls.append((list(arguments), fields))
        return {"found": 7}

    monkeypatch.setattr(getattr(bench, module), "run", run)
    assert cli.run(["bench", *words]) == 0
    (call,) = calls
    return call


@pytest.mark.parametrize(
    ("module", "words", "expected"),
    [
        (
            "training",
            "train --quick --peers a,b --steps 12 --chart c.svg --algorithm SAC",
            {"quick": True, "peers": "a,b", "repetitions": None, "steps": 12, "episodes": 100}
            | {"chart": Path("c.svg"), "algorithm": "sac"},
        ),
        (
            "training",
            "train",
            {"quick": False, "peers": None, "steps": 10_000, "chart": None, "algorithm": "td3"},
        ),
        ("training", "train --repetitions 5", {"repetitions": 5}),
        (
            "vertical",
            "vertical --devices a --steps 1 --emulated-steps 2 --repetitions 3 --chart c",
            {"devices": "a", "steps": 1, "emulated_steps": 2, "repetitions": 3, "chart": Path("c")},
        ),
        ("vertical", "vertical", {"devices": None, "steps": 10_000, "emulated_steps": 300}),
        (
            "ppo",
            "ppo --peers a --threads 1 --rounds 3 --turn-steps 4 --seed 5 --chart c",
            {"peers": "a", "threads": 1, "rounds": 3, "turn_steps": 4, "seed": 5}
            | {"to_return": False, "steps": 3_000_000, "chart": Path("c")},
        ),
        (
            "ppo",
            "ppo --to-return --steps 6",
            {"peers": None, "threads": 2, "rounds": 7, "turn_steps": 20480, "seed": 0}
            | {"to_return": True, "steps": 6, "chart": None},
        ),
        (
            "gymnasium_tasks",
            "gymnasium --tasks a --peers b --seeds 3 --jobs 4 --algorithm ppo --steps 6 "
            "--hidden 7,8 --set x=1 --set y=2",
            {"tasks": "a", "peers": "b", "seeds": "3", "jobs": 4, "algorithm": "ppo", "steps": 6}
            | {"hidden": "7,8", "settings": ["x=1", "y=2"]},
        ),
        (
            "gymnasium_tasks",
            "gymnasium",
            {"tasks": None, "peers": None, "jobs": 1, "algorithm": None, "steps": None}
            | {"hidden": None, "settings": ()},
        ),
        (
            "airframes",
            "any-airframe --run a --alone b --peers c --episodes 4 --set noise=0.5",
            {"run": "a", "alone": "b", "peers": "c", "episodes": 4, "settings": {"noise": 0.5}},
        ),
        (
            "airframes",
            "any-airframe",
            {"run": None, "alone": None, "peers": None, "episodes": None, "settings": {}},
        ),
    ],
)
def test_requests(
    module: str, words: str, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (request,), fields = asked(module, words.split(), monkeypatch)
    assert fields == {}
    given = vars(request)
    assert {name: given[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("module", "words", "expected"),
    [
        ("roofline", "roofline --steps 1 --repetitions 2 --buffer-mb 3", [1, 2, 3]),
        ("environments", "environments --tasks a --threads 3 --rounds 4", ["a", 3, 4]),
        ("build_times", "build x --repetitions 2", ["x", 2]),
        ("build_times", "build", ["pendulum-td3", 3]),
        ("board_forward", "inference --board x", ["x"]),
        ("inference", "inference --peers a --repetitions 3", ["a", 3]),
        ("inference", "inference", [None, 20]),
        ("layers", "layers --widths 16 --batches 1 --zeros 50 --repetitions 2", ["16", "1", 50, 2]),
        ("layers", "layers", ["64,128,256,512,1024", "100,256", 0, 7]),
        ("web", "web --memory 3", [3]),
        ("web", "web", [60]),
    ],
)
def test_arguments(
    module: str, words: str, expected: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(module, words.split(), monkeypatch) == (expected, {})


@pytest.mark.parametrize("as_json", [True, False])
def test_the_document_is_printed_where_it_is_asked_for(
    as_json: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked("layers", ["layers", *["--json"] * as_json], monkeypatch)
    out = capsys.readouterr().out
    assert out == (json.dumps({"found": 7}) + "\n" if as_json else "")
