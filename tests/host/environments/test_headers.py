"""The headers that are compiled of a task: named after their content, with no text that could be
code."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import to_builtins
from msgspec.structs import force_setattr, replace

from gymnasium_points import Point, WidePoint
from rltools_host.boards.policy_session import PolicyTarget
from rltools_host.build import experiments
from rltools_host.documents import Unfit, typed
from rltools_host.environments.headers import float_literal, headers_of
from rltools_host.environments.task import TaskRequest, task_of
from rltools_host.errors import UsageError
from rltools_host.runs.contents import Run
from rltools_host.runs.task import Task
from rltools_host.tree import Project


def task(environment: Any = None, **options: Any) -> Task:
    request = TaskRequest(**{"source": "f", "name": "task", **options})
    return task_of(request, Point() if environment is None else environment)


def changed(task: Task, **values: Any) -> Task:
    """Also by what no task may have."""
    other = replace(task)
    for name, value in values.items():
        force_setattr(other, name, value)
    return other


@pytest.fixture(autouse=True)
def generated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(Project, "generated", tmp_path)
    return tmp_path


def test_a_task_is_the_same_from_a_run() -> None:
    found = task(hidden=(32, 16), channels={"observations": ["a", {"name": "b", "unit": "m"}]})
    document = json.loads(json.dumps({"gymnasium": to_builtins(found)}))
    run: Run = typed(document, Run)
    assert run.gymnasium == found
    assert headers_of(run.gymnasium) == headers_of(found)
    for key in ("source", "hidden", "actions"):
        damaged = {key_: value for key_, value in to_builtins(found).items() if key_ != key}
        with pytest.raises(Unfit, match=f"gymnasium: Object missing required field `{key}`"):
            typed({"gymnasium": damaged}, Run)
    with pytest.raises(Unfit, match=r"gymnasium\.experiment: "):
        typed({"gymnasium": {**to_builtins(found), "experiment": "../../etc"}}, Run)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0f"),
        (-0.5, "-0.5f"),
        (1e6, "1000000.0f"),
        (3e30, "2.99999989e+30f"),
        (0.1, "0.100000001f"),
    ],
)
def test_numbers_are_written_as_the_nearest_float(value: float, text: str) -> None:
    assert float_literal(value) == text
    assert np.float32(float(text[:-1])) == np.float32(value)


def test_two_tasks_of_one_name_have_headers_of_their_own(generated: Path) -> None:
    narrow, wide = task(), task(WidePoint())
    assert (narrow.experiment, narrow.contract) == (wide.experiment, wide.contract)
    headers = [headers_of(each) for each in (narrow, wide)]
    for each in headers:
        each.write()
    for each, end in zip(headers, ("1.5f", "150.0f"), strict=True):
        contract = experiments.generated_header(each.contract, experiments.CONTRACT).read_text()
        experiment = experiments.generated_header(each.experiment).read_text()
        assert f", {end}}}" in contract
        assert f'#include "../contracts/{each.contract.replace("-", "_")}.h"' in experiment
        assert 'kName = "gym-task-sac"' in experiment
        assert 'kContractName = "gym-task"' in contract
    assert headers[0].digest != headers[1].digest
    assert len(list(generated.rglob("*.h"))) == 4


@pytest.mark.parametrize(
    "changes",
    [
        {"episode_steps": 77},
        {"hidden": (64, 63)},
        {"solved_return": 3.0},
        {"step_interval_us": 12_345},
        {"algorithm": "td3"},
        {"normalizes": False},
        {"environment": "other"},
        {"sizes": {"batch_size": 128}},
        {"observations": "m"},
        {"actions": "N"},
    ],
)
def test_whatever_is_compiled_in_is_in_the_name(changes: dict[str, Any]) -> None:
    before = task()
    ((name, value),) = changes.items()
    if name == "sizes":
        value = replace(before.sizes, **value)
    elif name in ("observations", "actions"):
        first, *others = getattr(before, name)
        value = (dataclasses.replace(first, unit=value), *others)
    after = changed(before, **{name: value})
    assert headers_of(after).experiment != headers_of(before).experiment
    assert headers_of(after).digest != headers_of(before).digest


@pytest.mark.parametrize(
    ("algorithm", "name"),
    [
        ("sac", "gym-task-sac-de8aab3b4af24a46"),
        ("td3", "gym-task-td3-e2d9016c26608c83"),
        ("ppo", "gym-task-ppo-4a605b619683d280"),
    ],
)
def test_the_header_of_a_run_of_before_is_the_same_to_the_byte(algorithm: str, name: str) -> None:
    """As commit 54baf003 wrote it: without a normalizer, but for that of PPO's own. A task of now
    has one of SAC and of TD3."""
    now = task(algorithm=algorithm)
    stored = to_builtins(now)
    assert stored.pop("normalizes", False) == (algorithm != "ppo")
    before: Run = typed({"gymnasium": stored}, Run)
    assert before.gymnasium is not None
    assert headers_of(before.gymnasium).experiment == name
    text = headers_of(now).experiment_text
    assert ("kNormalized = true" in text) == ("WithNormObs" in text) == (algorithm != "ppo")


def test_xqc_has_no_normalizer_beside_its_own() -> None:
    now = task(algorithm="xqc")
    text = headers_of(now).experiment_text
    assert not now.normalizes
    assert "kNormalized" not in text
    assert "using Algorithm = Xqc;" in text
    assert "kBatchSize = 256;" in text
    assert '#include "rltools/rl/algorithms/xqc.h"' in text


@pytest.mark.parametrize(
    "changes",
    [
        {"experiment": "../../../tmp/x"},
        {"experiment": "gym-" + "a" * 400},
        {"experiment": 'gym-a";\nint z;'},
        {"experiment": "gym-a\\\nint z;"},
        {"environment": 'a"; int z; //'},
        {"environment": "a\nint z;"},
        {"environment": "ä?\\"},
    ],
)
def test_texts_of_a_foreign_run_are_no_code_and_no_path(
    generated: Path, changes: dict[str, Any]
) -> None:
    headers = headers_of(changed(task(), **changes))
    for name in (headers.contract, headers.experiment):
        assert experiments.GENERATED.fullmatch(name)
        assert len(name) < 64
    headers.write()
    assert len(list(generated.rglob("*.h"))) == 2
    for text in (headers.contract_text, headers.experiment_text):
        assert text.isascii() or "//" in text
        outside = re.sub(r'//[^\n]*|"(\\.|[^"\\\n])*"', "", text)
        assert "int z" not in outside
        assert not re.search(r"[\"\\?]", outside)


@pytest.mark.parametrize("unit", ['1",0,1}}; inline int e=system("id")', "a\nb", "a\\"])
def test_units_of_a_foreign_run_are_no_code(unit: str) -> None:
    before = task()
    channel = dataclasses.replace(before.actions[0], unit=unit)
    text = headers_of(changed(before, actions=(channel,))).contract_text
    (line,) = [line for line in text.splitlines() if '"action_0"' in line]
    assert re.fullmatch(r' *\{"action_0", "(\\[0-7]{3}|[^"\\])*", -0\.5f, 1\.5f\},', line)


def test_a_contract_is_found_by_the_name_that_boards_have() -> None:
    first, second = headers_of(task()), headers_of(task(WidePoint()))
    headers_of(task(name="task-two")).write()
    first.write()
    assert PolicyTarget("host", None, "gym-task").contract == first.contract
    second.write()
    with pytest.raises(UsageError, match="2 tasks have a contract gym-task: name one of them, gym"):
        PolicyTarget("host", None, "gym-task")
    for each in (first, second):
        assert PolicyTarget("host", None, each.contract).contract == each.contract
    assert PolicyTarget("host", None, "pendulum").contract == "pendulum"
