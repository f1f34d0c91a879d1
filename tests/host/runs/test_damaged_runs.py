"""Damaged run folders, hundreds each time: one is read as it is or refused in one sentence."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoint_files import split_header, with_header
from foreign_runs import places
from rltools_host.errors import RltError
from rltools_host.policies.image import parse_policy, read_run_policy
from rltools_host.runs.contents import StatedIdentity
from rltools_host.runs.folder import RunFolder
from rltools_host.training.board import origin_now, run_at_start, run_in_state, train_s_before
from rltools_host.training.metrics_log import last_evaluation
from rltools_host.training.plan import TrainingRequest, make_plan
from rltools_host.training.progress import TrainingView
from run_folders import change
from training_bench import Bench, installed_bench

MANY = settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

NUMBERS = st.one_of(
    st.integers(),
    st.integers(-2, 2),
    st.integers(2**31, 2**65),
    st.just(10**400),
    st.floats(allow_nan=True, allow_infinity=True),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=8), st.just("\ud800")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@st.composite
def damaged(draw: st.DrawFn, document: Any) -> Any:
    """The document with one to three things replaced, removed or added."""
    result = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        # Not within what is nested 900 deep: twice that is more than json.dumps and printing take.
        found = [place for place in places(result) if len(place) < 40]
        if not found:
            break
        *path, last = draw(st.sampled_from(found))
        inner = result
        for key in path:
            inner = inner[key]
        what = draw(st.sampled_from(["replace", "replace", "remove", "text", "nest", "rename"]))
        if what == "remove":
            del inner[last]
        elif what == "text":
            inner[last] = str(inner[last])
        elif what == "nest":
            inner[last] = nested(draw(st.sampled_from([1, 30, 900])))
        elif what == "rename" and isinstance(inner, dict):
            inner[draw(st.text(max_size=5))] = inner.pop(last)
        else:
            inner[last] = draw(VALUES)
    return result


@st.composite
def damaged_bytes(draw: st.DrawFn, data: bytes) -> bytes:
    """The data with some bytes replaced, removed or put in."""
    begin = draw(st.integers(0, len(data)))
    end = draw(st.integers(begin, min(len(data), begin + 30)))
    middle = draw(
        st.one_of(st.binary(max_size=10), st.sampled_from([b"[" * 99_999, b'{"a":' * 999]))
    )
    return data[:begin] + middle + data[end:]


def text_of(document: Any) -> bytes:
    """With NaN and infinity, as Python's JSON has them, and halves of surrogate pairs."""
    return json.dumps(document).encode()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A paused run of the fake board, with rows of each kind."""
    monkeypatch = pytest.MonkeyPatch()
    path = tmp_path_factory.mktemp("runs") / "run"
    bench = installed_bench(monkeypatch)
    bench.train(path, "report_every=20", steps=120, tensorboard=False)
    bench.close()
    monkeypatch.undo()
    folder = RunFolder.open(path)
    event = {"kind": "event", "time_s": 1.0, "step": 60, "severity": 6, "text": "hello"}
    folder.append_metrics([event])
    change(folder, state="paused", learning={"gravity": 9.81}, git_dirty=True)
    folder.close()
    return path


def is_one_sentence(act: Callable[[], Any]) -> bool:
    """Acts; whether it was refused, which must be in one line that can be printed."""
    try:
        act()
    except RltError as error:
        text = str(error)
        text.encode()
        assert "\n" not in text
        assert len(text) < 700, "a sentence that nobody reads"
        return True
    return False


def go_on(path: Path) -> None:
    """What --resume does with the folder before and after training."""
    plan = make_plan(TrainingRequest(steps=200), RunFolder.open(str(path)))
    assert plan.resumed is not None
    folder = plan.resumed
    rows = folder.truncate_metrics(plan.first_step)
    names = [metric.name for metric in plan.description.metrics]
    first = plan.first_step
    view = TrainingView("a", "b", plan.seed, plan.steps, path, first, metric_names=names)
    for row in rows:
        view.take_row(row)
    evaluation = last_evaluation(rows)
    before = train_s_before(folder.content, plan.first_step, rows)
    name, now = "sources-0123456789ab.tar.gz", origin_now()
    begun = run_at_start(plan, StatedIdentity(), "a port", name, folder.content, now)
    folder.write(plan.with_resumed_save(begun))
    session = folder.content.sessions[-1]
    folder.write(run_in_state(folder.content, "paused", 150, before + 1.0, evaluation, session))
    assert RunFolder.open(path).content.state == "paused"
    folder.close()


def read_all(path: Path) -> None:
    """What evaluate, export and report read."""
    folder = RunFolder.open(path)
    folder.read_metrics()
    if folder.policy_path.is_file():
        parse_policy(folder.policy_path.read_bytes())
    read_run_policy(folder)


def check(template: Path, tmp_path: Path, name: str, content: bytes) -> None:
    """Puts the content in place of a file of the run, and reads the run in all ways."""
    path = tmp_path / "run"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(template, path)
    save = RunFolder.open(path).save_path
    target = save / name if (save / name).exists() else path / name
    target.write_bytes(content)
    is_one_sentence(lambda: read_all(path))
    is_one_sentence(lambda: go_on(path))


@pytest.mark.usefixtures("bench")
@MANY
@given(st.data())
def test_damaged_run_file(template: Path, tmp_path: Path, data: st.DataObject) -> None:
    document = json.loads((template / "run.json").read_bytes())
    check(template, tmp_path, "run.json", text_of(data.draw(damaged(document))))


@pytest.mark.parametrize("name", ["run.json", "metrics.jsonl"])
@pytest.mark.usefixtures("bench")
@MANY
@given(st.data())
def test_damaged_bytes(template: Path, tmp_path: Path, name: str, data: st.DataObject) -> None:
    content = (template / name).read_bytes()
    check(template, tmp_path, name, data.draw(damaged_bytes(content)))


@pytest.mark.usefixtures("bench")
@MANY
@given(st.data())
def test_damaged_metrics(template: Path, tmp_path: Path, data: st.DataObject) -> None:
    rows = [json.loads(line) for line in (template / "metrics.jsonl").read_bytes().splitlines()]
    lines = [text_of(row) for row in data.draw(damaged(rows))]
    check(template, tmp_path, "metrics.jsonl", b"".join(line + b"\n" for line in lines))


@pytest.mark.usefixtures("bench")
@MANY
@given(st.data())
def test_damaged_checkpoint_header(template: Path, tmp_path: Path, data: st.DataObject) -> None:
    """Also of the JSON texts within it; the header's hash is right, as a faulty writer has it."""
    header, payload = split_header(RunFolder.open(template).checkpoint_path.read_bytes())
    metadata = header["__metadata__"]
    inner = data.draw(st.sampled_from([None, "hyperparameters", "versions", "learning"]))
    if inner is None:
        header = data.draw(damaged(header))
    else:
        metadata[inner] = text_of(data.draw(damaged({"a": json.loads(metadata[inner])}))).decode()
        metadata[inner] = json.dumps(json.loads(metadata[inner]).get("a"))
    check(template, tmp_path, "checkpoint.safetensors", with_header(header, payload))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"steps": "10"}, r"steps: Expected `int`, got `str`"),
        ({"save": "../other"}, r"save: Expected `str` matching"),
        ({"save": "save-1-0123456789ab/../.."}, r"save: Expected `str` matching"),
        ({"format": 3, "steps": "many"}, r"run.json has format 3, this host reads 4: use the"),
    ],
)
def test_sentences_name_the_key(
    change: dict[str, Any], sentence: str, template: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    shutil.copytree(template, path)
    document = json.loads((path / "run.json").read_bytes())
    (path / "run.json").write_bytes(text_of({**document, **change}))
    with pytest.raises(RltError, match=sentence):
        RunFolder.open(path)


def test_missing_keys_are_named(template: Path, tmp_path: Path, bench: Bench) -> None:
    path = tmp_path / "run"
    shutil.copytree(template, path)
    document = json.loads((path / "run.json").read_bytes())
    for key in ("board", "experiment"):
        kept = {name: value for name, value in document.items() if name != key}
        (path / "run.json").write_bytes(text_of(kept))
        with pytest.raises(RltError, match=f"run.json is damaged: {key} is missing"):
            make_plan(TrainingRequest(steps=200), RunFolder.open(str(path)))
    assert bench.boards == []
