"""The command line: help, exit codes, one sentence for each error, JSON as the last line."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rltools_host import errors
from rltools_host.commands import COMMANDS, cli
from rltools_host.commands import train as train_command
from rltools_host.errors import (
    DamagedFileError,
    DiskError,
    Interrupted,
    MissingToolError,
    RltError,
    UsageError,
)
from rltools_host.tree import TREE

ERRORS = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, RltError) and value is not RltError
]


def python(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A process of its own."""
    here = {"PYTHONPATH": str(TREE.root / "host"), "TERM": "dumb"}
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **here, **variables},
    )


def rlt(*words: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "rltools_host", *words)


def test_help_names_every_command() -> None:
    result = rlt("--help")
    assert result.returncode == 0
    for command in COMMANDS:
        assert re.search(rf"^  {command} +\S", result.stdout, re.MULTILINE), command
    assert rlt().stdout == result.stdout


HEAVY = {"numpy", "gymnasium", "matplotlib", "tensorboardX", "safetensors", "elftools", "rich"}


@pytest.mark.parametrize(
    ("program", "heavy"),
    [
        (
            "from rltools_host.commands import cli; cli.run(['train', '--help'])",
            HEAVY | {"serial", "rltools_dialect", "pymavlink"},
        ),
        ("import rltools_host.commands.train, rltools_host.boards.board_link", HEAVY),
    ],
)
def test_what_is_not_needed_is_not_loaded(program: str, heavy: set[str]) -> None:
    result = python("-c", f"import sys; {program}\nprint(sorted({heavy!r} & set(sys.modules)))")
    assert result.stdout.splitlines()[-1] == "[]"


# -- exit codes and sentences ----------------------------------------------------------------------


def test_each_kind_has_an_exit_code() -> None:
    kinds = [error for error in ERRORS if error.__base__ is RltError]
    assert {kind.__name__: kind.exit_code for kind in kinds} == {
        "UsageError": 2,
        "EnvironmentFaultError": 3,
        "BoardError": 4,
        "FileError": 5,
        "RefusedError": 6,
        "Interrupted": 130,
    }
    for error in set(ERRORS) - set(kinds):
        assert error.exit_code == error.__mro__[1].exit_code


def refusing(error: BaseException) -> Callable[..., Any]:
    def refuse(*_: Any) -> Any:
        raise error

    return refuse


@pytest.mark.parametrize("kind", [DiskError, Interrupted])
def test_each_error_is_one_line_and_its_exit_code(
    kind: type[RltError], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = kind("the disk is full: free some space")
    error.details = {"run": "runs/x", "step": 5}
    monkeypatch.setattr(train_command, "run", refusing(error))
    assert cli.run(["train", "x"]) == kind.exit_code
    captured = capsys.readouterr()
    prefix = "" if kind is Interrupted else "error: "
    assert (captured.out, captured.err) == ("", f"{prefix}{error}\n")
    assert cli.run(["train", "x", "--json"]) == kind.exit_code
    captured = capsys.readouterr()
    document = {"error": str(error), "exit_code": kind.exit_code, **error.details}
    assert json.loads(captured.out) == document
    assert captured.err == f"{prefix}{error}\n"


def test_interrupt_before_training(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(train_command, "run", refusing(KeyboardInterrupt()))
    assert cli.run(["train", "x"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_internal_error_is_one_line_that_names_a_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(train_command, "run", refusing(KeyError("not foreseen")))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert cli.run(["train", "x", "--json"]) == 70
    captured = capsys.readouterr()
    match = re.fullmatch(
        r"error: internal error \(KeyError: 'not foreseen'\): please report it with (\S+)\n",
        captured.err,
    )
    assert match is not None
    assert "Traceback" in Path(match.group(1)).read_text()
    assert json.loads(captured.out)["exit_code"] == 70


def test_a_file_that_the_system_refuses_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Whatever command meets it, and wherever: no internal error."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    error = PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "x"))
    monkeypatch.setattr(train_command, "run", refusing(error))
    assert cli.run(["train", "x"]) == DiskError.exit_code
    said = capsys.readouterr().err
    assert said.startswith(f"error: {tmp_path}/x cannot be used: Permission denied; ")
    (log,) = tmp_path.glob("*.log")
    assert str(log) in said


def test_a_folder_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    program = (
        f"import os; os.mkdir({str(tmp_path / 'x')!r}); os.chdir({str(tmp_path / 'x')!r}); "
        f"os.rmdir({str(tmp_path / 'x')!r}); from rltools_host.commands import cli; "
        "cli.main(['runs'])"
    )
    ended = python("-c", program)
    assert (ended.returncode, ended.stderr) == (
        2,
        "error: the current folder is gone: change to one that is there\n",
    )


def test_an_option_that_is_a_setting_leads_to_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["train", "pendulum-td3", "--hidden", "32"]) == 2
    said = capsys.readouterr().err
    assert "--set hidden=VALUE; see `" in said
    assert said.rstrip().endswith("train --help`")


def test_wrong_command_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["trian", "--json"]) == 2
    captured = capsys.readouterr()
    assert re.match('error: unknown command "trian": did you mean train.*--help`', captured.err)
    assert captured.err.count("\n") == 1
    assert json.loads(captured.out.splitlines()[-1])["exit_code"] == 2


# -- whole commands, as a user types them ----------------------------------------------------------


TRAIN = "train pendulum-td3 --board host"


@pytest.mark.parametrize(
    ("words", "kind", "sentence"),
    [
        ("train pendulum-td4", UsageError, '"pendulum-td4": did you mean pendulum-td3'),
        ("emulate teensy41", UsageError, "teensy41 is not emulated: take an emulated"),
        (f"{TRAIN} --steps 10 --out /proc/run", DiskError, "cannot write /proc/run"),
        ("train --resume {damaged}", DamagedFileError, "run.json is damaged"),
    ],
)
def test_what_cannot_be(
    words: str,
    kind: type[RltError],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "run.json").write_text("{")
    code = cli.run([*words.format(damaged=tmp_path).split(), "--json"])
    captured = capsys.readouterr()
    document = json.loads(captured.out.splitlines()[-1])
    assert code == document["exit_code"] == kind.exit_code
    assert sentence in document["error"]
    assert captured.err.splitlines()[-1] == f"error: {document['error']}"


def test_missing_emulator(tmp_path: Path) -> None:
    """A PATH without QEMU and without apt-get; the firmware is built."""
    code = (
        "import sys; from rltools_host.commands import cli\n"
        "from rltools_host.build import firmware\n"
        "from pathlib import Path\n"
        "firmware.build_firmware = lambda *_: Path('firmware.elf')\n"
        "sys.exit(cli.run(['emulate', 'qemu-cortex-m7']))"
    )
    result = python("-c", code, PATH=str(tmp_path))
    assert result.returncode == MissingToolError.exit_code
    assert re.fullmatch(r"error: qemu-system-arm not found: .*\n", result.stderr)


def test_train_with_json_prints_lines_beside_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = [*TRAIN.split(), "--steps", "200", "--out", str(run), "--json"]
    result = rlt(*words)
    assert result.returncode == 0, result.stderr
    (line,) = result.stdout.splitlines()
    document = json.loads(line)
    promised = (
        "run experiment board seed steps train_s steps_per_s return_mean return_std state_sha256"
    )
    assert set(promised.split()) <= set(document)
    assert document["run"] == str(run)
    assert "finished 200 steps" in result.stderr
    assert "\x1b" not in result.stderr
    again = rlt(*words)
    assert again.returncode == UsageError.exit_code
    assert json.loads(again.stdout)["error"].startswith(f"{run} is not empty")


def test_pipe_that_is_closed() -> None:
    """`rlt --help | true`, where the reader has ended before anything is written."""
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        [sys.executable, "-m", "rltools_host", "--help"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TREE.root / "host")},
        timeout=60,
    )
    os.close(writer)
    assert (result.returncode, result.stderr) == (1, "")
