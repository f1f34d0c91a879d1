"""What the benchmarks share: words of machines, tables and errors; what is typed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rltools_host.bench import harness
from rltools_host.errors import BuildError, MissingToolError, UnknownNameError, UsageError
from waiting import is_running, wait_for

MACHINE = {"machine": {"processor": "Z80", "cores": 3}, "load_average": 0.25}


def test_the_machine_in_words() -> None:
    assert harness.machine_text(MACHINE) == "Z80 (3 cores, load average 0.25)"
    assert harness.machine_text(MACHINE, "at dawn ") == "Z80 (3 cores, load average at dawn 0.25)"


def test_the_processor_is_the_first_that_the_system_names(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "processor : 0\nmodel name\t: Z80: the best\nmodel name\t: another\n"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: text)
    monkeypatch.setattr(harness.platform, "processor", lambda: "")
    monkeypatch.setattr(harness.platform, "machine", lambda: "m68k")
    assert harness.machine()["processor"] == "Z80: the best"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "")
    assert harness.machine()["processor"] == "m68k"
    monkeypatch.setattr(harness.os, "getloadavg", lambda: (1.239, 5.0, 9.0))
    assert harness.load_average() == 1.24


def test_a_table_names_below_it_who_failed() -> None:
    entries: list[dict[str, Any]] = [
        {"title": "one", "x": 1},
        {"title": "another", "error": "no luck"},
    ]
    assert harness.table(("name", "x", "twice"), entries, lambda e: (str(e["x"]), "2")) == [
        "name     x  twice",
        "one      1  2",
        "another  -  -",
        "another: no luck",
    ]
    assert harness.shown(None, "{:.1f}") == "-"
    assert harness.shown(0.0, "{:.1f} s") == "0.0 s"


def test_numbers_from_one_on() -> None:
    harness.require_positive(steps=1, emulated_steps=2)
    with pytest.raises(UsageError, match=r"^--emulated-steps 0: at least 1 is needed$"):
        harness.require_positive(steps=1, emulated_steps=0)


@pytest.mark.parametrize(
    ("text", "chosen"),
    [(None, ["a", "b", "c"]), ("c, a", ["c", "a"]), ("b,,b", ["b"]), ("", [])],
)
def test_tasks_as_they_are_typed(text: str | None, chosen: list[str]) -> None:
    assert harness.chosen_tasks(text, ("a", "b", "c")) == chosen
    with pytest.raises(UnknownNameError, match='unknown task "d"'):
        harness.chosen_tasks("a,d", ("a", "b", "c"))


@pytest.mark.parametrize(
    ("text", "line"),
    [("", "it said nothing"), (" \n\n", "it said nothing"), ("a\n  b c \n \n", "b c")],
)
def test_the_last_line_says_what_it_was(text: str, line: str) -> None:
    assert harness.last_line(text) == line


def test_a_row_has_all_that_was_asked_for() -> None:
    row = {"a": 1, "b": None}
    assert harness.complete("it", row, ("a", "b")) is row
    with pytest.raises(harness.MeasurementError, match=r"^it did not say its c$"):
        harness.complete("it", row, ("a", "c", "d"))


def test_one_thread_is_what_libraries_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("OWN", "kept")
    told = harness.one_thread_environment({"MKL_NUM_THREADS": "5"})
    names = ("OWN", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES")
    assert [told[name] for name in names] == ["kept", "1", "5", ""]


def ended(monkeypatch: pytest.MonkeyPatch, code: int, out: str = "", error: str = "") -> list[Any]:
    """What programs give without running; the arguments with which they are run."""
    asked: list[Any] = []

    def run_to_end(*arguments: Any) -> Any:
        asked.append(arguments)
        return SimpleNamespace(returncode=code, stdout=out, stderr=error)

    monkeypatch.setattr(harness, "run_to_end", run_to_end)
    monkeypatch.setattr(harness, "build_program", lambda name, board: Path(board) / name)
    return asked


def test_what_a_program_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ended(monkeypatch, 0, '{"a": 1}')
    found, _ = harness.run_program("p", 3, "x", board="host-blas")
    assert found == {"a": 1}
    assert asked == [("p", ["host-blas/p", "3", "x"], 600.0)]
    ended(monkeypatch, 0, "[1]")
    with pytest.raises(BuildError, match="p printed no object: build it again"):
        harness.run_program("p")
    ended(monkeypatch, 3, "", " why \n")
    with pytest.raises(BuildError, match=r"p ended with code 3: why; delete .*, it is made again"):
        harness.run_program("p")


@pytest.mark.parametrize(
    ("out", "found"),
    [
        ('{"a": 1}\n{"a": 2}\nthe end', {"a": 2}),
        ('{"a": 1}\n{"a": 2', None),  # what comes last is what counts
        ("[1]", None),
        ("", None),
    ],
)
def test_the_last_object_of_a_peer(
    out: str, found: dict[str, int] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python, script = tmp_path / "peer/bin/python", tmp_path / "run.py"
    python.parent.mkdir(parents=True)
    asked = ended(monkeypatch, 0, out)
    if found is None:
        with pytest.raises(harness.MeasurementError, match=r"^it printed no measurement$"):
            harness.measure("it", python, script, ["--seed", 1], 5.0)
    else:
        assert harness.measure("it", python, script, ["--seed", 1], 5.0) == found
    ((name, command, limit_s, environment, directory),) = asked
    assert (name, limit_s, directory) == ("it", 5.0, tmp_path / "peer/tmp")
    assert command == [str(python), str(script), "--seed", "1"]
    assert environment["PYTHONPATH"] == str(harness.PEERS_DIRECTORY)
    assert environment["TMPDIR"] == str(directory)
    ended(monkeypatch, 2, "", "a\nb\n")
    with pytest.raises(harness.MeasurementError, match=r"^it ended with code 2: b$"):
        harness.measure("it", python, script, [], 5.0)
    with pytest.raises(MissingToolError, match=r"^it cannot be installed: b$"):
        harness.install("it", ["pip"])


def test_a_peers_environment_is_made_where_its_pins_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[list[str]] = []
    monkeypatch.setattr(harness, "install", lambda _, command: made.append(list(command)))
    python, pins = tmp_path / "it/bin/python", tmp_path / "requirements.txt"
    python.parent.mkdir(parents=True)
    python.touch()
    stamp = tmp_path / "it/rlt-requirements.txt"
    for held in (stamp, pins):
        held.write_text("a==1\n")
    assert harness.python_of("it", pins, tmp_path) == python
    assert made == []
    monkeypatch.setattr(harness.shutil, "rmtree", lambda *_, **__: None)
    pins.write_text("a==2\n")
    assert harness.python_of("it", pins, tmp_path) == python
    assert [command[-2:] for command in made] == [
        ["venv", str(tmp_path / "it")],
        ["-r", str(pins)],
    ]
    assert stamp.read_text() == "a==2\n"
    python.unlink()
    harness.python_of("it", pins, tmp_path)
    assert len(made) == 4


def test_what_is_stored_ends_with_a_line(tmp_path: Path) -> None:
    harness.store({"a": [1]}, tmp_path / "x.json")
    text = (tmp_path / "x.json").read_text()
    assert json.loads(text) == {"a": [1]}
    assert text.startswith('{\n  "a"')
    assert text.endswith("}\n")


@pytest.mark.parametrize(("cores", "held"), [(1, [7]), (2, [4, 7]), (9, [1, 4, 7])])
def test_the_last_cores_are_held_and_given_back(
    cores: int, held: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, list[int]]] = []
    monkeypatch.setattr(harness.os, "sched_getaffinity", lambda _: {7, 1, 4}, raising=False)
    monkeypatch.setattr(
        *(harness.os, "sched_setaffinity", lambda who, set_to: asked.append((who, sorted(set_to)))),
        raising=False,
    )
    with harness.pinned(cores) as last:
        assert (last, asked) == (7, [(0, held)])
    assert asked[1:] == [(0, [1, 4, 7])]
    monkeypatch.delattr(harness.os, "sched_setaffinity")
    with harness.pinned() as last:
        assert last is None


IN_A_POOL = """
import multiprocessing, os, sys
from concurrent.futures import ProcessPoolExecutor
from rltools_host.bench.harness import run_to_end
from rltools_host.interruption import die_with
SLEEPS = "import os, time; print(os.getppid(), os.getpid(), file=open(sys.argv[1] + '.new', 'w'));"
SLEEPS = "import sys;" + SLEEPS + "os.rename(sys.argv[1] + '.new', sys.argv[1]); time.sleep(60)"
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, die_with, (os.getpid(),), max_tasks_per_child=1) as pool:
        pool.submit(run_to_end, "p", [sys.executable, "-c", SLEEPS, sys.argv[1]], 60.0).result()
"""


def test_who_is_killed_leaves_no_program_behind(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text(IN_A_POOL)
    said = tmp_path / "pids"
    command = [sys.executable, str(tmp_path / "bench.py"), str(said)]
    with subprocess.Popen(command) as bench:
        wait_for(said.exists)
        bench.kill()
    pids = [int(word) for word in said.read_text().split()]
    wait_for(lambda: not any(is_running(pid) for pid in pids), 30.0)


@pytest.mark.parametrize(
    ("output", "document"),
    [
        ("", {}),
        ('a line\n{"a": 1}\n', {"a": 1}),
        ('{"a": 1}\n{"a": 2}\nthe end', {"a": 2}),
        ('{"a": 1}\n{"a": ', {}),
        ("[1]", {}),
    ],
)
def test_the_document_is_on_the_last_line_that_has_one(
    output: str, document: dict[str, int]
) -> None:
    assert harness.last_document(output) == document
