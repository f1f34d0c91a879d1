"""`--set-file`: hyperparameters from a file."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rltools_host.build.boards import load_board
from rltools_host.errors import DamagedFileError, UsageError
from rltools_host.runs.folder import RunFolder
from rltools_host.training.group_plan import as_stored
from rltools_host.training.hyperparameters import AIRFRAME, SetFile, given_values, load_set_file
from rltools_host.training.plan import Plan, TrainingRequest
from run_folders import document_of
from training_bench import EXPERIMENT, Bench


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "values.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_values_are_recorded_and_the_command_line_wins(bench: Bench, tmp_path: Path) -> None:
    values = {"learning_rate": 0.25, "adam_beta": 0.125, "eval_freq": 1e2, "seed": 9, "steps": 60}
    file = load_set_file(written(tmp_path, json.dumps(values)))
    bench.train(tmp_path / "run", "adam_beta=0.75", seed=3, set_file=file)
    recorded = document_of(RunFolder.open(tmp_path / "run"))["hyperparameters"]
    assert recorded["learning_rate"] == 0.25  # the file's
    assert (recorded["eval_freq"], recorded["steps"]) == (100, 60)
    assert isinstance(recorded["eval_freq"], int)
    assert (recorded["adam_beta"], recorded["seed"]) == (0.75, 3)  # the command line's
    assert recorded["adam_epsilon"] == 1e-8  # the default


def test_what_does_not_fit_the_experiment_names_the_file(bench: Bench, tmp_path: Path) -> None:
    path = written(tmp_path, '{"learning_rate": 2}')
    with pytest.raises(UsageError) as caught:  # also where the command line wins over it
        bench.train(tmp_path / "run", "eval_freq=5", set_file=load_set_file(path))
    assert str(caught.value).startswith(f"--set-file {path}: ")
    assert "learning_rate=2 is out of bounds: choose a number" in str(caught.value)
    assert bench.built == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1,\n "b": }', "line 2, column 7: Expecting value"),
        ('{"b": 1, "a": "1"}', "a: Expected `int | float`, got `str`"),
        ('{"a": 1, "a": 2}', '"a" occurs twice'),
        ('{"a": 1' + "0" * 5000 + "}", "has no hyperparameters: "),
        (b"\xff\xfe\xff", "has no hyperparameters: "),
        (" " * 1_000_001, "more than 1,000,000 bytes"),
    ],
)
def test_damaged_files(tmp_path: Path, text: str | bytes, reason: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(DamagedFileError) as caught:
        load_set_file(path)
    assert str(caught.value).startswith(f"--set-file {path} has no hyperparameters: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(DamagedFileError, match=f"^--airframe {path} has no airframe: "):
        load_set_file(path, AIRFRAME)


@settings(max_examples=40)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_a_file_or_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = written(tmp_path_factory.getbasetemp(), data)
    with contextlib.suppress(DamagedFileError):
        assert all(math.isfinite(float(text)) for text in load_set_file(path).texts.values())


def test_a_group_keeps_the_values_and_not_the_file(tmp_path: Path) -> None:
    texts = {"learning_rate": "0.25", "adam_beta": "0.125", "seed": "9", "steps": "60"}
    request = TrainingRequest(
        settings=("adam_beta = 0.75",), set_file=SetFile(tmp_path / "gone", texts)
    )
    values = given_values(EXPERIMENT, 1, None, request.settings, request.set_file)
    plan = Plan(EXPERIMENT, load_board("host"), values)
    kept = as_stored(request, plan)
    assert (kept.set_file, kept.steps) == (None, 60)
    assert kept.settings == ("adam_beta=0.75", "learning_rate=0.25")
    assert given_values(EXPERIMENT, 1, kept.steps, kept.settings) == values
    with_steps = as_stored(TrainingRequest(steps=5, set_file=request.set_file), plan)
    assert with_steps.settings == ("learning_rate=0.25", "adam_beta=0.125")
    assert (with_steps.steps, as_stored(kept, plan)) == (5, kept)
