"""The emulated Cortex-M7 behind its connection: start and end, training, losing it, resuming."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rltools_host.boards.board_link import EmulatedLink, Emulator
from rltools_host.build import firmware
from rltools_host.build.boards import load_board
from rltools_host.commands import train as train_command
from rltools_host.errors import BoardMismatchError, Interrupted, LinkLostError, PortError
from rltools_host.runs.folder import RunFolder
from rltools_host.tree import TREE
from run_folders import document_of
from training_bench import interrupt_at
from training_calls import train_here
from waiting import is_running, wait_for

BOARD = load_board("qemu-cortex-m7")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(TREE.root / "host")}


@pytest.fixture(scope="module")
def program() -> Path:
    return firmware.build_firmware(BOARD, "pendulum-td3")


@pytest.fixture
def emulator(program: Path) -> Iterator[Emulator]:
    with Emulator(BOARD, program, 120.0) as emulator:
        yield emulator


def wait_until_ended(process_id: int) -> None:
    wait_for(lambda: not is_running(process_id), 20)


def test_killed_emulator_is_named(emulator: Emulator) -> None:
    link = EmulatedLink(emulator, BOARD.name)
    os.kill(emulator.process_id, signal.SIGKILL)
    sentence = r"lost qemu-cortex-m7 \(emulated\): it was ended by SIGKILL"
    with pytest.raises(LinkLostError, match=sentence):
        read_forever(link)
    link.close()
    wait_until_ended(emulator.process_id)


def test_emulator_ends_with_its_link(emulator: Emulator) -> None:
    assert is_running(emulator.process_id)
    EmulatedLink(emulator, BOARD.name).close()
    wait_until_ended(emulator.process_id)


def read_forever(link: EmulatedLink) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        link.read(1.0)


def test_emulator_that_does_not_start_is_told_with_its_last_line(program: Path) -> None:
    assert BOARD.emulator is not None
    emulator = replace(BOARD.emulator, arguments=("-M", "none-such"))
    sentence = "emulator of qemu-cortex-m7 did not start: .*-machine help.*; see `"
    with pytest.raises(PortError, match=sentence):
        Emulator(replace(BOARD, emulator=emulator), program)


def test_time_limit_ends_the_emulator(program: Path) -> None:
    with Emulator(BOARD, program, 3.0) as emulator:
        link = EmulatedLink(emulator, BOARD.name)
        with pytest.raises(LinkLostError, match="its time limit of 3 s was reached"):
            read_forever(link)
        link.close()
    emulator.close()  # again
    wait_until_ended(emulator.process_id)


def test_emulator_that_cannot_load_its_program(tmp_path: Path) -> None:
    emulator = Emulator(BOARD, tmp_path / "nothing.elf", 20.0)
    emulator.wait()
    link = EmulatedLink(emulator, BOARD.name)
    with pytest.raises(LinkLostError, match=r"it ended with exit code 1 and wrote .*nothing\.elf"):
        read_forever(link)
    link.close()


@pytest.mark.all
@pytest.mark.usefixtures("program")
def test_emulate_command_prints_a_port_that_train_uses(tmp_path: Path) -> None:
    options: dict[str, Any] = {"seed": 5, "steps": 20, "settings": ["report_every=5"]}
    host = train_here("pendulum-td3", "host", out=tmp_path / "host", **options)
    command = [sys.executable, "-m", "rltools_host", "emulate", "qemu-cortex-m7"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        assert process.stdout is not None
        found = (re.search(r"socket://[\d.:]+", line) for line in process.stdout)
        port = next(match.group() for match in found if match)
        run = tmp_path / "run"
        document = train_here("pendulum-td3", "qemu-cortex-m7", port=port, out=run, **options)
        # What the board holds now is what the next run starts from: it must not matter.
        again = train_here(
            "pendulum-td3", "qemu-cortex-m7", port=port, out=tmp_path / "2", **options
        )
        with pytest.raises(BoardMismatchError, match='is a "qemu-cortex-m7", not a "host": give'):
            train_here("pendulum-td3", "host", port=port, out=tmp_path / "3", **options)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]
    assert document["state_sha256"] == again["state_sha256"] == host["state_sha256"]
    assert document["guest_instructions"] > 1_000_000


@pytest.mark.usefixtures("program")
def test_emulator_dies_with_a_command_that_is_killed() -> None:
    command = [sys.executable, "-m", "rltools_host", "emulate", "qemu-cortex-m7", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        emulator_id = int(re.findall(r'"process_id": (\d+)', line)[0])
        assert is_running(emulator_id)
        process.kill()
    wait_until_ended(emulator_id)


@pytest.mark.usefixtures("program")
def test_run_paused_on_the_emulated_board_goes_on_here_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C behind the warm-up, so that optimizer moments and replay buffer travel too. The best
    policy is one that the board, which has no memory for two, has rested for."""
    run = tmp_path / "run"
    settings = ["report_every=5", "eval_freq=100"]
    with monkeypatch.context() as patch:
        patch.setattr(train_command, "make_screen", interrupt_at(120))
        with pytest.raises(Interrupted, match="checkpoint saved"):
            train_here(
                "pendulum-td3", "qemu-cortex-m7", seed=3, steps=300, settings=settings, out=run
            )
    paused = document_of(RunFolder.open(run))
    assert 120 <= paused["checkpoint_step"] < 300
    assert paused["guest_instructions"] > 1_000_000
    assert [memory["name"] for memory in paused["memory"]] == ["RAM1", "RAM2"]
    resumed = train_here(board="host", resume=str(run))
    options = {"seed": 3, "steps": 300, "settings": settings, "out": tmp_path / "whole"}
    whole = train_here("pendulum-td3", "host", **options)
    assert resumed["state_sha256"] == whole["state_sha256"]
    assert resumed["best"] == whole["best"]
    assert whole["best"]["step"] == 100
    check_same_best(run, tmp_path / "whole")


def check_same_best(run: Path, other: Path) -> None:
    first, second = (RunFolder.open(path).best_path.read_bytes() for path in (run, other))
    assert first == second
