"""The command line: help, exit codes, one sentence for each error, JSON as the last line."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from rltools_host import __version__, cli, errors
from rltools_host.commands import boards
from rltools_host.commands import train as train_command
from rltools_host.errors import (
    DamagedFileError,
    DiskError,
    Interrupted,
    MissingToolError,
    PortError,
    PythonVersionError,
    RltError,
    UnknownNameError,
    UsageError,
)
from rltools_host.runs import provenance
from rltools_host.training.plan import TrainingRequest
from rltools_host.tree import TREE

COMMANDS = (
    "demo",
    "test",
    "doctor",
    "boards",
    "train",
    "study",
    "fit",
    "evaluate",
    "export",
    "push",
    "policies",
    "confirm",
    "rollback",
    "hil",
    "fly",
    "flash",
    "emulate",
    "report",
)
ERRORS = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, RltError) and value is not RltError
]


def rlt(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rltools_host", *words],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(TREE.root / "host"), "TERM": "dumb"},
        **options,
    )


def test_help_names_every_command() -> None:
    result = rlt("--help")
    assert result.returncode == 0
    for command in COMMANDS:
        assert re.search(rf"^  {command} +\S", result.stdout, re.MULTILINE), command
    assert rlt().stdout == result.stdout


def test_version_names_the_revision() -> None:
    result = rlt("--version")
    assert (result.returncode, result.stderr) == (0, "")
    in_git = provenance.git_revision()["git_revision"]
    expected = rf", revision {in_git}( with changes)?" if in_git else ""
    assert re.fullmatch(rf"rlt {re.escape(__version__)}{expected}\n", result.stdout)


def test_version_outside_of_git(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = {"git_revision": None, "git_dirty": None}
    monkeypatch.setattr(provenance, "git_revision", lambda: nothing)
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out == f"rlt {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_has_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert re.search(rf"^  Example: .*rlt {command}", out, re.MULTILINE)
    assert "..." not in out, "a sentence of the help is cut off"


def test_example_of_train_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[Any, ...]] = []
    monkeypatch.setattr(train_command, "run", lambda *arguments: called.append(arguments))
    assert (
        cli.run(
            [
                "train",
                "pendulum-td3",
                "--board",
                "host",
                "--seed",
                "1",
                "--set",
                "learning_rate=5e-4",
            ]
        )
        == 0
    )
    request = TrainingRequest("pendulum-td3", "host", 1, settings=("learning_rate=5e-4",))
    assert called == [(request, None, False)]


def test_every_option_of_train_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[Any, ...]] = []
    monkeypatch.setattr(train_command, "run", lambda *arguments: called.append(arguments))
    words = (
        "train --steps 5 --set a=1 --set b=2 --out d --resume r --port p --no-tensorboard --json"
    )
    assert cli.run(words.split()) == 0
    request = TrainingRequest(steps=5, settings=("a=1", "b=2"), out=Path("d"), resume="r", port="p")
    assert called == [(request, False, True)]


def test_several_seeds_are_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[Any, ...]] = []
    monkeypatch.setattr(train_command, "run_seeds", lambda *arguments: called.append(arguments))
    assert cli.run(["train", "e", "--seeds", "0-3,7", "--jobs", "2", "--steps", "5", "--json"]) == 0
    assert called == [(TrainingRequest("e", steps=5), "0-3,7", 2, None, True)]


def test_help_loads_little() -> None:
    heavy = [
        "numpy",
        "gymnasium",
        "matplotlib",
        "tensorboardX",
        "rich",
        "serial",
        "rltools_dialect",
        "pymavlink",
    ]
    program = (
        "import sys; from rltools_host import cli; cli.run(['train', '--help'])\n"
        f"loaded = sorted(set({heavy!r}) & set(sys.modules))\n"
        "print('loaded', loaded)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TREE.root / "host")},
    )
    assert result.stdout.splitlines()[-1] == "loaded []"


def test_training_does_not_load_what_it_does_not_need() -> None:
    program = (
        "import sys; import rltools_host.commands.train, rltools_host.boards.emulator\n"
        "heavy = {'numpy', 'gymnasium', 'matplotlib', 'tensorboardX', 'safetensors', 'rich'}\n"
        "print('loaded', sorted(heavy & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(TREE.root / "host")}
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert result.stdout == "loaded []\n"


# -- exit codes and sentences ----------------------------------------------------------------------


def test_exit_codes_are_distinct() -> None:
    codes = {error.__name__: error.exit_code for error in ERRORS}
    assert codes == {
        "UsageError": 2,
        "UnknownNameError": 3,
        "MissingToolError": 4,
        "PortError": 5,
        "BoardMismatchError": 6,
        "DamagedFileError": 7,
        "DiskError": 8,
        "BuildError": 9,
        "LinkLostError": 10,
        "TrainingFaultError": 11,
        "VerificationError": 12,
        "PythonVersionError": 13,
        "RefusedError": 14,
        "EnvironmentLostError": 15,
        "FlightError": 16,
        "GateError": 17,
        "Interrupted": 130,
    }


@pytest.mark.parametrize("kind", ERRORS)
def test_each_error_is_one_line_and_its_exit_code(
    kind: type[RltError], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> None:
        raise kind("the disk is full: free some space")

    monkeypatch.setattr(train_command, "run", fail)
    assert cli.run(["train", "x"]) == kind.exit_code
    captured = capsys.readouterr()
    prefix = "" if kind is Interrupted else "error: "
    assert (captured.out, captured.err) == ("", f"{prefix}the disk is full: free some space\n")
    assert cli.run(["train", "x", "--json"]) == kind.exit_code
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {
        "error": "the disk is full: free some space",
        "exit_code": kind.exit_code,
    }
    assert captured.err == f"{prefix}the disk is full: free some space\n"


def test_details_of_a_pause_are_in_the_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def pause(*_: Any) -> None:
        error = Interrupted("paused")
        error.details = {"run": "runs/x", "step": 5}
        raise error

    monkeypatch.setattr(train_command, "run", pause)
    assert cli.run(["train", "x", "--json"]) == 130
    assert json.loads(capsys.readouterr().out) == {
        "error": "paused",
        "exit_code": 130,
        "run": "runs/x",
        "step": 5,
    }


def test_interrupt_before_training(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(train_command, "run", interrupt)
    assert cli.run(["train", "x"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_internal_error_is_one_line_that_names_a_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("not foreseen")

    monkeypatch.setattr(train_command, "run", fail)
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


def test_a_package_that_cannot_be_imported_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As NumPy with a shared library that is cut off: it explains itself in thirty lines."""
    (tmp_path / "cut_off.py").write_text(
        "try:\n    import no_such_library\nexcept ImportError as e:\n"
        "    raise ImportError('\\n\\nPLEASE READ\\n\\nTHIS') from e\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(train_command, "run", lambda *_: import_module("cut_off"))
    assert cli.run(["train", "x"]) == MissingToolError.exit_code
    assert re.fullmatch(
        rf"error: {re.escape(sys.prefix)} is damaged \(No module named 'no_such_library'\): "
        r"delete it, \S*rlt sets it up again\n",
        capsys.readouterr().err,
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["trian"], "error: no such command 'trian'.* see `.*rlt --help`"),
        (["train", "--foo"], "error: no such option: --foo.*; see `.*rlt train --help`"),
        (
            ["train", "x", "--seed", "one"],
            "error: invalid value for '--seed'.*see `.*rlt train -",
        ),
        (["evaluate"], "error: missing argument 'RUN'; see `.*rlt evaluate --help`"),
        (["bench", "train", "--foo"], "error: no such option: --foo.*; see `.*rlt bench train -"),
    ],
)
def test_wrong_command_lines(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([*words, "--json"]) == 2
    captured = capsys.readouterr()
    assert re.match(sentence, captured.err)
    assert captured.err.count("\n") == 1
    assert json.loads(captured.out.splitlines()[-1])["exit_code"] == 2


# -- whole commands, as a user types them ----------------------------------------------------------


def fails(exit_code: int, sentence: str, *words: str, **options: Any) -> None:
    """Asserts exit code, the sentence alone on the error stream, and the JSON."""
    result = rlt(*words, "--json", **options)
    assert result.returncode == exit_code, result.stderr
    assert re.search(sentence, result.stderr.splitlines()[-1])
    assert "Traceback" not in result.stderr
    document = json.loads(result.stdout.splitlines()[-1])
    assert document["exit_code"] == exit_code
    assert result.stderr.splitlines()[-1] == f"error: {document['error']}"


def test_unknown_names() -> None:
    code = UnknownNameError.exit_code
    fails(
        code,
        'unknown experiment "pendulum-td4": did you mean pendulum-td3',
        "train",
        "pendulum-td4",
    )
    fails(
        code, 'unknown board "hots": did you mean host', "train", "pendulum-td3", "--board", "hots"
    )
    words = ["train", "pendulum-td3", "--board", "host", "--set", "taau=1"]
    fails(code, 'unknown hyperparameter "taau": did you mean tau', *words)
    fails(code, 'unknown run "nothing"', "evaluate", "nothing")
    fails(code, 'unknown run "nothing"', "train", "--resume", "nothing")


def test_values_and_ports() -> None:
    words = ["train", "pendulum-td3", "--board", "host"]
    fails(UsageError.exit_code, "choose a number from 0 to 1 ", *words, "--set", "gamma=1.5")
    port = "/dev/ttyUSB77"
    fails(PortError.exit_code, f"there is no port {port}", *words, "--port", port)
    fails(PortError.exit_code, "cannot connect to socket", *words, "--port", "socket://localhost:1")


def test_board_that_cannot_be_emulated() -> None:
    fails(UsageError.exit_code, "teensy41 is not emulated: take an emulated", "emulate", "teensy41")
    fails(UsageError.exit_code, "host is not emulated: train there directly", "emulate", "host")


def test_missing_emulator(tmp_path: Path) -> None:
    """A PATH with what building needs, but without QEMU and without apt-get."""
    from rltools_host.boards.description import load_board
    from rltools_host.build import firmware

    program = firmware.build_firmware(load_board("host"), "pendulum-td3")
    assert program.exists()
    code = (
        "import sys; from rltools_host import cli; from rltools_host.build import firmware\n"
        "from pathlib import Path\n"
        "firmware.build_firmware = lambda *_: Path('firmware.elf')\n"
        "sys.exit(cli.run(['emulate', 'qemu-cortex-m7']))"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(TREE.root / "host"),
        "PATH": str(tmp_path),
    }
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert result.returncode == MissingToolError.exit_code
    assert re.fullmatch(r"error: qemu-system-arm not found: .*\n", result.stderr)


def test_full_disk_and_read_only_places() -> None:
    words = ["train", "pendulum-td3", "--board", "host", "--steps", "10"]
    fails(DiskError.exit_code, "cannot write /proc/run", *words, "--out", "/proc/run")


def test_damaged_run(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    fails(DamagedFileError.exit_code, "run.json is damaged", "train", "--resume", str(tmp_path))


def test_train_with_json_prints_lines_beside_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = [
        "train",
        "pendulum-td3",
        "--board",
        "host",
        "--steps",
        "200",
        "--out",
        str(run),
        "--json",
    ]
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


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_pipe_that_is_closed(unbuffered: str) -> None:
    """`rlt boards | true`, where the reader has ended before anything is written: at the end, or,
    without a buffer, at the first line."""
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        [sys.executable, "-m", "rltools_host", "boards"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": str(TREE.root / "host"),
            "PYTHONUNBUFFERED": unbuffered,
        },
        timeout=60,
    )
    os.close(writer)
    assert (result.returncode, result.stderr) == (1, "")


@pytest.mark.parametrize("version", ["3.9.2", "3.8.10"])
def test_python_too_old(version: str, tmp_path: Path) -> None:
    """The launcher's check, with a Python that says it is old."""
    fake = tmp_path / "python3"
    fake.write_text(f'#!/bin/sh\n[ "$1" = -V ] && echo "Python {version}"\nexit 1\n')
    fake.chmod(0o755)
    tree = tmp_path / "tree"
    (tree / "host" / "requirements").mkdir(parents=True)
    launcher = tree / "rlt"
    launcher.write_bytes((TREE.root / "rlt").read_bytes())
    launcher.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    result = subprocess.run([launcher], capture_output=True, text=True, env=environment)
    assert result.returncode == PythonVersionError.exit_code
    assert f"Python {version}, but 3.11 or newer is needed" in result.stderr


def test_full_disk_is_not_the_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever writes a file and lets the error through has no name for it."""

    def refuse(_: bool) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(boards, "run", refuse)
    assert cli.run(["boards"]) == DiskError.exit_code
    assert capsys.readouterr().err == (
        "error: cannot write a file: No space left on device; free some space, then run the "
        "command again\n"
    )
