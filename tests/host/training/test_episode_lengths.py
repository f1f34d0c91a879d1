"""How long episodes are, from what a board reports; what TensorBoard is told."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rltools_host.boards.messages import Evaluation, TrainingProgress, report_of
from rltools_host.build.cmake import load_dialect
from rltools_host.training.metrics_log import (
    RECENT,
    EpisodeLengths,
    Scalars,
    evaluation_of,
    last_evaluation,
    row_of,
)
from rltools_host.tree import TREE

EXTENSION = """      <extensions/>
      <field type="float" name="length_mean">"""
EVALUATED = {
    "counter": 7,
    "step": 400,
    "episodes": 10,
    "return_mean": -5.5,
    "return_std": 1.25,
    "return_min": -6.0,
    "return_max": -4.0,
}


def report(step: int, episodes: int, last: float = math.nan, *metrics: float) -> TrainingProgress:
    return TrainingProgress(0, step, 10**6, step // 2, episodes, last, last, metrics)


def test_mean_length_of_the_last_episodes() -> None:
    lengths = EpisodeLengths()
    assert math.isnan(lengths.take(report(100, 0)))
    assert lengths.take(report(200, 1)) == 200
    assert lengths.take(report(300, 1)) == 200
    assert lengths.take(report(400, 3)) == pytest.approx(400 / 3)
    for number in range(1, 2 * RECENT):
        length = lengths.take(report(400 + 50 * number, 3 + number))
    assert length == 50  # the first ones count no more


def test_a_run_that_goes_on_counts_from_its_first_report() -> None:
    lengths = EpisodeLengths(first_step=1001)
    assert math.isnan(lengths.take(report(1100, 40)))
    assert lengths.take(report(1300, 42)) == 100


def test_scalars_have_the_tags_of_stable_baselines3() -> None:
    scalars = Scalars(("actor_loss", "kl"))
    scalars.of(report(200, 1, -10.0, 0.5, 0.25), 200, 0.5)
    scalars.of(report(300, 1, -10.0, 0.5, 0.25), 200, 0.5)  # the same episode again
    assert scalars.of(report(400, 2, -4.0, 0.5, 0.25), 200, 0.5) == {
        "rollout/ep_rew_mean": -7.0,
        "rollout/ep_len_mean": 200,
        "time/fps": 800.0,
        "train/n_updates": 200,
        "train/actor_loss": 0.5,
        "train/approx_kl": 0.25,
    }
    evaluation = Evaluation(1, 400, 10, -5.0, 1.0, -6.0, -4.0, 150.5)
    assert scalars.of(evaluation, math.nan, 1.0) == {
        "eval/mean_reward": -5.0,
        "eval/std_reward": 1.0,
        "eval/mean_ep_length": 150.5,
    }


def test_firmware_that_states_no_length_of_evaluations() -> None:
    """Its message ends before the field, which then reads as 0."""
    dialect = load_dialect()
    sender = dialect.MAVLink(None)
    for length, expected in ((0.0, math.nan), (150.5, 150.5)):
        frame = dialect.MAVLink_rlt_evaluation_message(**EVALUATED, length_mean=length).pack(sender)
        assert frame[1] == (32 if length == 0 else 36), "the payload's bytes"
        (message,) = dialect.MAVLink(None).parse_buffer(frame)
        report = report_of(message)
        assert isinstance(report, Evaluation)
        assert report.length_mean == pytest.approx(expected, nan_ok=True)
        assert evaluation_of(row_of(report, ())).length_mean == pytest.approx(expected, nan_ok=True)


def test_rows_of_older_runs_state_no_length() -> None:
    row = {"kind": "evaluation", "time_s": 1.0, **EVALUATED}
    found = last_evaluation([row])
    assert found is not None
    assert math.isnan(found.length_mean)
    assert found.return_mean == -5.5


@pytest.mark.all  # the generator takes seconds
def test_a_host_without_the_field_reads_the_rest(tmp_path: Path) -> None:
    """The field is an extension: neither the order of the others nor CRC_EXTRA follows it."""
    text = (TREE.root / "lib/protocol/rltools.xml").read_text()
    begin = text.index(EXTENSION)
    end = text.index("\n", begin + len(EXTENSION)) + 1
    (tmp_path / "rltools.xml").write_text(text[:begin] + text[end:])
    generator = tmp_path / "generate.py"
    generator.write_text((TREE.root / "lib/protocol/generate.py").read_text())
    command = [sys.executable, "-I", str(generator), str(tmp_path / "old")]
    assert subprocess.run(command).returncode == 0
    path = tmp_path / "old" / "python" / "rltools_dialect.py"
    spec = importlib.util.spec_from_file_location("older_dialect", path)
    assert spec is not None
    assert spec.loader is not None
    older: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(older)
    newer = load_dialect()
    kinds = (older.MAVLink_rlt_evaluation_message, newer.MAVLink_rlt_evaluation_message)
    assert kinds[0].crc_extra == kinds[1].crc_extra
    assert "length_mean" not in kinds[0].fieldnames
    frame = kinds[1](**EVALUATED, length_mean=150.5).pack(newer.MAVLink(None))
    (message,) = older.MAVLink(None).parse_buffer(frame)
    assert {name: getattr(message, name) for name in EVALUATED} == EVALUATED
    frame = kinds[0](**EVALUATED).pack(older.MAVLink(None))
    (message,) = newer.MAVLink(None).parse_buffer(frame)
    assert message.length_mean == 0
    assert {name: getattr(message, name) for name in EVALUATED} == EVALUATED
