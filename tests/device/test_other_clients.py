"""Clients of the file transfer protocol that are not ours get and put files of a board."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from boards_under_test import EMULATED, LIMIT_S, SHORT_RUN, Programs, train
from rltools_host.boards.messages import State
from rltools_host.boards.session import BoardSession
from rltools_host.boards.transport import open_link
from rltools_host.build.boards import load_board
from rltools_host.build.description import ExperimentDescription
from rltools_host.tree import PROJECT
from tcp_board import TcpBoard

ADDRESS = load_board(EMULATED).address
MAVPROXY = PROJECT.build / "mavproxy"
MAVPROXY_LIMIT_S = 120.0


@pytest.fixture
def port(programs: Programs) -> Iterator[str]:
    """A running board behind a TCP port, on which programs come and go."""
    with TcpBoard(programs["host"], {}) as board:
        yield board.port


def trained(port: str, description: ExperimentDescription, dialect: ModuleType) -> bytes:
    """Trains the board for a short while; its checkpoint."""
    session, _ = BoardSession.connect(open_link(port), dialect)
    with session:
        train(session, description, **SHORT_RUN)
        return session.files.download("/checkpoint.rltc")


def check_restored(port: str, checkpoint: bytes, dialect: ModuleType) -> None:
    """The board has taken the checkpoint, and our own client finds the server free."""
    session, identity = BoardSession.connect(open_link(port), dialect)
    with session:
        assert identity.state == State.PAUSED
        assert session.files.download("/checkpoint.rltc") == checkpoint


def other_name(port: str) -> str:
    """The port as pymavlink has it."""
    return port.replace("socket://", "tcp:")


def pymavlink_client(port: str) -> Any:
    os.environ["MAVLINK20"] = "1"  # read when mavutil is imported
    from pymavlink import mavftp, mavutil

    link = mavutil.mavlink_connection(other_name(port), source_system=255, source_component=230)
    return mavftp.MAVFTP(link, ADDRESS.system, ADDRESS.component)


def test_pymavlink_gets_and_puts(
    port: str, description: ExperimentDescription, dialect: ModuleType, tmp_path: Path
) -> None:
    checkpoint = trained(port, description, dialect)
    client = pymavlink_client(port)
    listed = client.cmd_list(["/"])
    assert {(entry.name, entry.size_b) for entry in listed.directory_listing} >= {
        ("checkpoint.rltc", len(checkpoint))
    }
    file = tmp_path / "checkpoint.rltc"
    client.cmd_get(["/checkpoint.rltc", str(file)])
    assert client.process_ftp_reply("get", timeout=LIMIT_S).error_code == 0
    assert file.read_bytes() == checkpoint
    client.cmd_put([str(file), "/checkpoint.rltc"])
    assert client.process_ftp_reply("put", timeout=LIMIT_S).error_code == 0
    client.master.close()
    check_restored(port, checkpoint, dialect)


def test_a_client_that_is_ended_does_not_lock_the_server(
    port: str, description: ExperimentDescription, dialect: ModuleType, tmp_path: Path
) -> None:
    checkpoint = trained(port, description, dialect)
    client = pymavlink_client(port)
    client.cmd_get(["/checkpoint.rltc", str(tmp_path / "file")])
    client.master.recv_match(type="FILE_TRANSFER_PROTOCOL", blocking=True, timeout=5)
    client.master.close()  # its session is open
    session, _ = BoardSession.connect(open_link(port), dialect)
    with session:
        assert session.files.download("/checkpoint.rltc") == checkpoint


@pytest.fixture(scope="session")
def mavproxy() -> list[str]:
    """The command that starts MAVProxy, which is installed beside .venv."""
    requirements = Path(__file__).with_name("mavproxy.txt")
    stamp = MAVPROXY / "requirements.txt"
    if not stamp.is_file() or stamp.read_bytes() != requirements.read_bytes():
        pip = [sys.executable, "-I", "-m", "pip", "install", "--quiet", "--no-deps"]
        options = ["--require-hashes", "--upgrade", "--target", str(MAVPROXY)]
        subprocess.run([*pip, *options, "-r", str(requirements)], check=True, timeout=200)
        stamp.write_bytes(requirements.read_bytes())
    return [sys.executable, "-m", "MAVProxy.mavproxy"]


class MavProxy:
    """A running MAVProxy with its module for files."""

    def __init__(self, command: list[str], port: str, folder: Path) -> None:
        options = [
            *(
                f"--master={other_name(port)}",
                "--baudrate=115200",
                "--default-modules=ftp",
                "--streamrate=-1",
            ),
            *(f"--target-system={ADDRESS.system}", f"--target-component={ADDRESS.component}"),
            f"--state-basedir={folder}",
        ]
        environment = {**os.environ, "PYTHONPATH": str(MAVPROXY), "HOME": str(folder)}
        self._process = subprocess.Popen(
            [*command, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
        )

    def do(self, command: str, sign: bytes) -> None:
        """Types a command, and waits for what it prints at its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(command.encode() + b"\n")
        self._process.stdin.flush()
        self.wait_for(sign)

    def wait_for(self, sign: bytes) -> None:
        assert self._process.stdout is not None
        printed = b""
        deadline = time.monotonic() + MAVPROXY_LIMIT_S
        while sign not in printed:
            ready, _, _ = select.select([self._process.stdout], [], [], 1.0)
            if ready:
                printed += os.read(self._process.stdout.fileno(), 4096)
            assert time.monotonic() < deadline, printed.decode(errors="replace")

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.mark.slow
def test_mavproxy_gets_and_puts(
    port: str,
    description: ExperimentDescription,
    dialect: ModuleType,
    mavproxy: list[str],
    tmp_path: Path,
) -> None:
    checkpoint = trained(port, description, dialect)
    program = MavProxy(mavproxy, port, tmp_path)
    try:
        program.wait_for(b"Detected vehicle")
        program.do("ftp list", b"Total size")
        program.do("ftp get /checkpoint.rltc first", b"Wrote")
        program.do("ftp get /policy.rltp second", b"Wrote")  # the server is free again
        assert (tmp_path / "first").read_bytes() == checkpoint
        program.do("ftp put first /checkpoint.rltc", b"Sent file")
        program.do("ftp list", b"Total size")  # behind its request to close the session
    finally:
        program.close()
    check_restored(port, checkpoint, dialect)
