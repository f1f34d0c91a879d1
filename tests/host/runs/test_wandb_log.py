"""The scalars that Weights & Biases gets, read from the file that it keeps while it is offline."""

from __future__ import annotations

import importlib.util
import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rltools_host.runs.scalar_logs import WandbLog
from rltools_host.tree import VARIABLE

BLOCK, HEADER = 32 * 1024, 7  # of LevelDB's log format, which begins with a header of the same size
FULL, LAST = 1, 4  # of a record's parts


def records(path: Path) -> Iterator[bytes]:
    """Of a file `run-*.wandb`."""
    content = path.read_bytes()
    assert content[:4] == b":W&B"
    place, parts = HEADER, b""
    while place + HEADER <= len(content):
        if BLOCK - place % BLOCK < HEADER:
            place += BLOCK - place % BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", content, place)
        parts += content[place + HEADER : place + HEADER + length]
        place += HEADER + length
        if kind in (FULL, LAST):
            yield parts
            parts = b""


@pytest.mark.all
@pytest.mark.skipif(importlib.util.find_spec("wandb") is None, reason="wandb is not installed")
def test_a_run_offline_has_its_scalars(tmp_path: Path) -> None:
    """As TensorBoard has them, and hyperparameters; without an account and without a network."""
    from wandb.proto import wandb_internal_pb2

    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    environment |= {"WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path)}
    words = ["train", "pendulum-td3", "--board", "host", "--steps", "600", "--wandb", "my-project"]
    command = [sys.executable, "-m", "rltools_host", *words, "--out", str(tmp_path / "first")]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert result.returncode == 0, result.stderr
    (path,) = (tmp_path / "wandb").glob("offline-run-*/run-*.wandb")
    rows: list[dict[str, Any]] = []
    config: dict[str, Any] = {}
    for content in records(path):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(content)
        if record.HasField("run"):
            assert (record.run.project, record.run.display_name) == ("my-project", "first")
            config |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
        if record.HasField("history"):
            items = record.history.item
            rows.append({i.key or i.nested_key[0]: json.loads(i.value_json) for i in items})
    assert config["algorithm"] == "TD3"
    assert config["steps"] == 600
    lines = (tmp_path / "first" / "metrics.jsonl").read_text().splitlines()
    written = list(map(json.loads, lines))
    evaluations = {
        row["step"]: row["return_mean"] for row in written if row["kind"] == "evaluation"
    }
    logged = {row["_step"]: row["eval/mean_reward"] for row in rows if "eval/mean_reward" in row}
    assert evaluations
    assert logged == pytest.approx(evaluations)
    assert {"train/critic_1_loss", "train/n_updates", "time/fps"} <= {
        n for row in rows for n in row
    }


class Service:
    """In the place of the package: notes what it is given."""

    def __init__(self) -> None:
        self.is_failing = True
        self.rows: list[tuple[int, dict[str, float]]] = []

    Settings = SimpleNamespace

    def init(self, **_: Any) -> Service:
        return self

    def log(self, values: dict[str, float], step: int) -> None:
        if self.is_failing:
            raise RuntimeError("it has gone")
        self.rows.append((step, values))

    def finish(self) -> None: ...


def test_what_the_service_does_not_take_ends_no_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    service = Service()
    monkeypatch.setitem(sys.modules, "wandb", service)  # type: ignore[arg-type]
    log = WandbLog("servo", tmp_path, "12", {"gamma": 0.99})
    log.add(1, {"a": 1.0})
    service.is_failing = False
    log.add(2, {"a": 1.0})
    log.close()
    assert service.rows == []
