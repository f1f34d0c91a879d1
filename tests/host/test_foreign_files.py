"""Files of a run that somebody sent, damaged and hostile: each command ends with a page, an outcome
or one sentence; nothing is executed, and nothing is written outside of the run's folder."""

from __future__ import annotations

import copy
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_experiment import fake_experiment
from foreign_runs import make_evil_file, make_foreign_group, make_foreign_run, places
from rltools_host.commands import cli
from rltools_host.drones.fitting.formats import bytes_of
from rltools_host.drones.flight.gate_result import read_result
from rltools_host.drones.vehicles.px4_result import read_flight
from rltools_host.errors import DamagedFileError, DiskError, UsageError
from rltools_host.files import open_plain
from rltools_host.lines import without_commands
from rltools_host.policies.acting import Policy
from rltools_host.policies.image import read_policy, read_run_policy
from rltools_host.policies.importing.reading import content_of
from rltools_host.report.markup import text
from rltools_host.runs.checkpoint import load_checkpoint
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.inventory import entries
from rltools_host.runs.saves import is_whole
from rltools_host.training.board import BestPolicy
from rltools_host.training.hyperparameters import load_set_file
from rltools_host.tree import Project

ATTEMPTS = 60  # of each file; `RLT_FOREIGN_ATTEMPTS` has more
HOSTILE: tuple[Any, ...] = (
    *(None, True, -1, 0, 1.5, 1e300, 10**400, [], {}, "", "a\nb", "\ud800", "\x1b]0;x\x07"),
    *('"};int e=system("id");//', "<script>alert(1)</script>", "$\\frac", "$x$", "../../../etc/x"),
    *("gym:{evil}:PendulumEnv", "gym:evil:Evil-v0", "save-1-000000000000", "-rf", "x" * 500),
)
PROGRESS = {
    "kind": "progress",
    "time_s": 1.0,
    "step": 10,
    "counter": 5,
    "steps": 10,
    "updates": 1,
    "episodes": 1,
    "last_return": -1.0,
    "best_return": -1.0,
    "loss": 0.5,
}
EVALUATION = {
    "kind": "evaluation",
    "time_s": 1.0,
    "step": 10,
    "counter": 5,
    "episodes": 3,
    "return_mean": -1.0,
    "return_std": 1.0,
    "return_min": -2.0,
    "return_max": 0.0,
}
EVENT = {"kind": "event", "time_s": 2.0, "step": 20, "severity": 4, "text": "an event"}
STATISTICS = {
    **dict.fromkeys(("minimum", "median", "p99", "p999", "maximum", "mean"), 5),
    "histogram": {"edges": [0, 1], "counts": [1]},
}
SESSION = {"started": "2026-01-01T00:00:00", "board": "host", "port": "p", "revision": "r"}


def disturbed(draw: random.Random, document: Any, evil: Path) -> str:
    """The document's text with one to three hostile values in it, or with other bytes."""
    document = copy.deepcopy(document)
    for _ in range(draw.randint(1, 3)):
        where = draw.choice(list(places(document)))
        target = document
        for key in where[:-1]:
            target = target[key]
        value = draw.choice(HOSTILE)
        target[where[-1]] = value.format(evil=evil) if "{evil}" in str(value) else value
    content = json.dumps(document)
    kind = draw.randrange(20)
    if kind == 0:
        return content[: draw.randrange(len(content))]
    if kind == 1:
        return "[" * 5000 + content
    return content


def hil_document(sha256: str) -> dict[str, Any]:
    parity = {"inputs": 5, "mismatches": 0, "ticks": 5, "failed": 0, "first": None, "holds": True}
    return {
        "board": "host",
        "implementation": "x",
        "parity": parity,
        "outputs_sha256": "0" * 64,
        "flash_bytes": 1,
        "ram_bytes": 2,
        "stack_bytes": 3,
        "policy_sha256": sha256,
        "samples": 5,
        "unit": "guest instructions",
        "cost": {"pass": STATISTICS},
    }


@pytest.fixture(autouse=True)
def nothing_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No code of the files is executed, and nothing but the run's folder is written."""
    folder = tmp_path / "elsewhere"
    evil = make_evil_file(folder)
    before = sorted(folder.iterdir())
    monkeypatch.setattr(Project, "named_tasks", tmp_path / "named")
    monkeypatch.setattr(Project, "generated", tmp_path / "generated")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(folder)
    yield
    assert sorted(folder.iterdir()) == before, evil
    assert {path.name for path in tmp_path.iterdir()} <= {"elsewhere", "run", "group", "generated"}


def attempt(
    words: list[str], content: str, capfd: pytest.CaptureFixture[str], allowed: Path
) -> None:
    code = cli.run(words)
    errors = capfd.readouterr().err
    sentences = [line for line in errors.splitlines() if line.startswith("error: ")]
    assert "internal error" not in errors, (words, content)
    assert len(sentences) == (code != 0), (words, content, errors)
    assert "\x1b" not in errors
    page = allowed / "report.html"
    if words[0] == "report" and code == 0:
        assert "<script>alert" not in page.read_text(encoding="utf-8")


def attempts() -> int:
    return int(os.environ.get("RLT_FOREIGN_ATTEMPTS", ATTEMPTS))


@pytest.mark.parametrize("words", ["report {run}", "export {run} --to c --output {run}/out.h"])
def test_run_files(tmp_path: Path, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    evil = tmp_path / "elsewhere" / "evil.py"
    run = make_foreign_run(tmp_path / "run", f"gym:{evil}:PendulumEnv")
    document = json.loads((run / "run.json").read_text())
    document |= {"sessions": [SESSION], "hyperparameters": {"gamma": 0.99}, "state": "paused"}
    document |= {"environment": "Pendulum-v1", "algorithm": "sac", "versions": {"numpy": "1"}}
    draw = random.Random(1)
    for _ in range(attempts()):
        content = disturbed(draw, document, evil)
        (run / "run.json").write_text(content)
        attempt(words.format(run=run).split(), content, capfd, run)


def test_rows_of_metrics(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    evil = tmp_path / "elsewhere" / "evil.py"
    run = make_foreign_run(tmp_path / "run", f"gym:{evil}:PendulumEnv")
    draw = random.Random(2)
    for _ in range(attempts() // 3):
        rows = [disturbed(draw, row, evil) for row in (PROGRESS, EVALUATION, EVENT)]
        kept = [json.dumps(row) for row in (PROGRESS, EVALUATION, EVENT)]
        kept[draw.randrange(3)] = draw.choice(rows)
        content = "".join(f"{line}\n" for line in kept)
        (run / "metrics.jsonl").write_text(content)
        attempt(["report", str(run)], content, capfd, run)


def test_results_of_boards(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    evil = tmp_path / "elsewhere" / "evil.py"
    run = make_foreign_run(tmp_path / "run", f"gym:{evil}:PendulumEnv")
    document = hil_document(read_run_policy(run).sha256)
    draw = random.Random(3)
    for index in range(attempts() // 3):
        content = disturbed(draw, document, evil)
        (run / f"hil-{index % 3}.json").write_text(content)
        (run / f"flight-{index % 3}.json").write_text(content)
        (run / f"gate-{index % 3}.json").write_text(content)
        attempt(["report", str(run)], content, capfd, run)


@pytest.mark.parametrize("words", ["report {group}", "evaluate {group}", "train --resume {group}"])
def test_group_files(tmp_path: Path, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    evil = tmp_path / "elsewhere" / "evil.py"
    group = make_foreign_group(tmp_path / "group", f"gym:{evil}:PendulumEnv")
    document = json.loads((group / "group.json").read_text())
    draw = random.Random(4)
    is_report = words.startswith("report")
    for _ in range(attempts() // (1 if is_report else 3)):
        content = disturbed(draw, document, evil)
        if not is_report and "Pendulum-v1" not in content:
            continue  # the task is Gymnasium's own, and would be played
        (group / "group.json").write_text(content)
        attempt(words.format(group=group).split(), content, capfd, group)


@pytest.mark.parametrize("key", ["seeds", "variants"])
def test_a_group_of_nothing(tmp_path: Path, key: str, capfd: pytest.CaptureFixture[str]) -> None:
    group = make_foreign_group(tmp_path / "group", "gym:Pendulum-v1")
    document = json.loads((group / "group.json").read_text())
    (group / "group.json").write_text(json.dumps({**document, key: []}))
    for words in (["report"], ["evaluate"], ["train", "--resume"]):
        assert cli.run([*words, str(group)]) == DamagedFileError.exit_code
        assert f"is damaged ({key}" in capfd.readouterr().err


def replaced(path: Path, kind: str) -> str:
    """Put something else in a file's place; return what the sentence says of it."""
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "link":
        path.symlink_to(Path(sys.executable))
    else:
        with path.open("wb") as file:
            file.truncate(16 << 30)
    return {"pipe": "it is not a file", "long": "bytes"}.get(kind, "a link leads out of ")


@pytest.mark.parametrize("kind", ["pipe", "device", "link", "long"])
def test_files_of_a_run_are_plain_ones(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A pipe was waited for, a device and 16 GB of nothing filled the memory."""
    run = make_foreign_run(tmp_path / "run", None)
    folder, policy = RunFolder.open(run), run / "policy.rltp"
    said = replaced(policy, kind)
    for words in (["report"], ["evaluate"], ["export", "--to", "c"]):
        assert cli.run([*words, str(run)]) == DamagedFileError.exit_code
        assert said in capfd.readouterr().err
    with pytest.raises(DamagedFileError, match=said):
        Policy.load(run)
    assert not is_whole(run, "0" * 64)
    said = replaced(run / "best.rltp", kind)
    with pytest.raises(DamagedFileError, match=said):
        BestPolicy().restore(run, [])
    said = replaced(run / "metrics.jsonl", kind)
    with pytest.raises(DamagedFileError, match=said):
        folder.read_metrics()
    said = replaced(run / "checkpoint.safetensors", kind).replace("bytes", "it is cut off")
    with pytest.raises(DamagedFileError, match=said):
        load_checkpoint(run / "checkpoint.safetensors", fake_experiment(), run)
    for name, read in (("gate-entry.json", read_result), ("flight-px4.json", read_flight)):
        said = replaced(run / name, kind)
        with pytest.raises((OSError, ValueError), match=said):
            read(run / name)
    said = replaced(run / "run.json", kind).replace("bytes", "is damaged")
    with pytest.raises(DamagedFileError, match=said):
        RunFolder.open(run)
    (entry,) = entries(tmp_path)
    assert said in entry.problem


@pytest.mark.parametrize("kind", ["pipe", "device", "long"])
def test_what_a_user_names_is_a_plain_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "run"  # the one name beside `elsewhere`
    said = "it is not a file" if replaced(path, kind) != "bytes" else "bytes|MB"
    for read in (bytes_of, load_set_file, content_of, read_policy):
        with pytest.raises((DamagedFileError, UsageError), match=said):
            read(path)


def test_a_row_without_an_end_is_not_read_whole(tmp_path: Path) -> None:
    folder = RunFolder.open(make_foreign_run(tmp_path / "run", None))
    folder.append_metrics([EVENT])
    with folder.metrics_path.open("ab") as file:
        file.truncate(500 << 20)
    with pytest.raises(DamagedFileError, match="damaged in line 2: remove that line"):
        folder.read_metrics()


def test_a_link_leads_nothing_out_of_the_folder(tmp_path: Path) -> None:
    """A run's metrics grow, and may be a link to a file of the user's."""
    run = make_foreign_run(tmp_path / "run", None)
    (run / "target").write_text("mine\n")
    (run / "metrics.jsonl").symlink_to(run / "target")
    folder = RunFolder.open(run)
    with pytest.raises(DiskError, match="it is a link to another file"):
        folder.append_metrics([EVENT])
    assert (run / "target").read_text() == "mine\n"
    elsewhere = tmp_path / "elsewhere"
    (run / "save").symlink_to(elsewhere)
    with pytest.raises(OSError, match="a link leads out of"):
        open_plain(run / "save" / next(elsewhere.iterdir()).name, run)


def test_paths_of_any_bytes(tmp_path: Path) -> None:
    """They are not UTF-8 everywhere, and are printed as escape sequences."""
    place = Path(os.fsdecode(os.fsencode(tmp_path / "run") + b"/a\xff"))
    run = make_foreign_run(place / "r", None)
    for words, code, said in (
        (["export", run, "--output", place / "out"], 0, b"a\\udcff/out"),
        (["report", place / "none"], 2, b"a\\udcff/none"),
    ):
        result = subprocess.run(
            [sys.executable, "-I", "-m", "rltools_host", *map(str, words)],
            capture_output=True,
            env={**os.environ, "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": ""},
            timeout=200,
        )
        assert result.returncode == code, result.stderr
        assert said in result.stdout + result.stderr


def test_what_is_shown() -> None:
    assert text("a\udcffb<\ud800") == "a?b&lt;?"
    assert without_commands("a\x1b[2J\u202e\ud800\udcffb\n") == "a?[2J??\udcffb\n"
