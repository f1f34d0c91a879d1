"""Who takes part: what a contender says of itself, and what is refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rltools_host.bench import contenders, harness
from rltools_host.bench.contenders import ENVPOOL, OURS, ROLLOUT, TRAIN, Setting
from rltools_host.bench.harness import MeasurementError

SETTING = Setting(2, 0, 100, False)
SAID: dict[str, Any] = {
    "observation_dim": 27,
    "action_dim": 8,
    "threads": {"simulator": 2, "learner": 2},
    "version": "1",
    "simulator": "MuJoCo",
    "settings": "own",
}


def require(setting: Setting = SETTING, **changes: Any) -> None:
    said = {key: value for key, value in {**SAID, **changes}.items() if value is not KeyError}
    contenders.require_the_task(SimpleNamespace(name="it", introduction=said), setting)  # type: ignore[arg-type]


def test_the_task_is_ant_with_as_many_threads() -> None:
    require()
    require(observation_dim=None)
    require(SETTING._replace(published=True), threads={"simulator": 1})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"observation_dim": 105}, "it has 105 observations and 8 actions, Ant-v4 27 and 8"),
        ({"action_dim": 9}, "it has 27 observations and 9 actions, Ant-v4 27 and 8"),
        (
            {"threads": {"simulator": 1, "learner": 2}},
            "it computes with other threads than 2: {'simulator': 1}",
        ),
        *(({key: KeyError}, "it did not identify itself") for key in SAID),
        ({"threads": 2}, "it did not identify itself"),
    ],
)
def test_another_task_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(MeasurementError) as caught:
        require(**changes)
    assert str(caught.value) == reason


def test_those_that_learn_have_their_turns_first(tmp_path: Path) -> None:
    names = [ENVPOOL, "rl_games", "pytorch"]
    known = contenders.starters(names, SETTING, tmp_path, tmp_path)
    assert list(known) == [OURS, TRAIN, "rl_games", "pytorch", ENVPOOL, ROLLOUT]


def test_a_command_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    results = [
        SimpleNamespace(returncode=0, stdout='x\n{"a": 1}', stderr="note"),
        SimpleNamespace(returncode=1, stdout='{"error": "no luck"}', stderr="x"),
        SimpleNamespace(returncode=1, stdout="", stderr="a\nb\n"),
    ]
    asked: list[Any] = []

    def run_to_end(*words: Any, **fields: Any) -> Any:
        asked.append((words, fields))
        return results.pop(0)

    monkeypatch.setattr(harness, "run_to_end", run_to_end)
    assert contenders.rlt(["train", "x"], {"OWN": "1"}, 9) == {"a": 1}
    ((name, command, limit_s, environment), fields) = asked[0]
    assert (name, limit_s, fields) == ("rlt train", 1800.0, {"error_stream": 9})
    assert command[1:] == ["-m", "rltools_host", "train", "x", "--json"]
    assert environment["OWN"] == "1"
    for reason in ("no luck", "b"):
        with pytest.raises(MeasurementError) as caught:
            contenders.rlt(["train"], {})
        assert str(caught.value) == f"rlt train: {reason}"


def test_a_peers_script_is_told_all_that_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "x/bin/python"
    python.parent.mkdir(parents=True)
    monkeypatch.setattr(harness, "python_of", lambda *_: python)
    made: list[Any] = []
    monkeypatch.setattr(contenders, "Contender", lambda *words: made.append(words))
    contenders.start_peer("x", Setting(3, 4, 5, True), tmp_path, tmp_path / "peers")
    contenders.start_peer("x", SETTING, tmp_path, tmp_path / "peers")
    (name, command, variables, log, _), other = made
    assert command[2:] == ["--threads", "3", "--seed", "4", "--steps", "5", "--published"]
    assert command[:2] == [str(python), str(tmp_path / "peers/x/run.py")]
    assert other[1][2:] == ["--threads", "2", "--seed", "0", "--steps", "100"]
    assert (name, log, variables["TMPDIR"]) == (
        *("x", tmp_path / "x/tmp/x.log"),
        str(tmp_path / "x/tmp"),
    )
