"""`rlt flash`: builds firmware and writes it to a board with the board's own tool, PlatformIO."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rltools_host import boards, build, paths, toolchain
from rltools_host.boards import Board
from rltools_host.errors import BuildError, MissingToolError, PortError, UsageError

UNREACHABLE_REGISTRY = (
    "InternetConnectionError",
    "HTTPClientError",
    "Could not install package",
    "UnknownPackageError",
    "Could not find the package",
    "You are not connected to the Internet",
)
PORT_WAIT_S = 15.0


def platformio_environment(experiment: str) -> dict[str, str]:
    """PlatformIO's settings: which experiment, and neither telemetry nor searches for updates."""
    return {
        **os.environ,
        "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "No",
        "PLATFORMIO_SETTING_CHECK_PLATFORMIO_INTERVAL": "9999",
        "PLATFORMIO_SETTING_CHECK_PRUNE_SYSTEM_THRESHOLD": "0",
        "PLATFORMIO_NO_ANSI": "true",
        "RLT_EXPERIMENT": experiment,
    }


def run_platformio(
    arguments: Sequence[str], experiment: str, *, show: bool = False, timeout_s: float | None = None
) -> tuple[int, str]:
    """Runs `pio ARGUMENTS` in the repository; returns its exit code and output."""
    toolchain.ensure_group("platformio")
    process = subprocess.Popen(
        [sys.executable, "-m", "platformio", *arguments],
        cwd=paths.REPOSITORY,
        env=platformio_environment(experiment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    output = []
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            output.append(line)
            if show:
                sys.stderr.write(line)
        process.wait(timeout_s)
    return process.returncode, "".join(output)


def platformio_failure(board: Board, what: str, output: str) -> Exception:
    log = paths.board_build_directory(board.name) / "rlt-build.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(output, encoding="utf-8")
    if any(sign in output for sign in UNREACHABLE_REGISTRY):
        return MissingToolError(
            f"PlatformIO could not download what it needs for {board.name} from its registry: "
            f"connect to the Internet and try again (its messages are in {log})"
        )
    return BuildError(f"{what} failed: see PlatformIO's messages above; they are also in {log}")


def build_with_platformio(board: Board, experiment: str) -> Path:
    """The firmware that PlatformIO builds for a board that CMake does not build."""
    build.require_experiment(experiment)
    print(f"Building {experiment} for {board.name} with PlatformIO", file=sys.stderr, flush=True)
    code, output = run_platformio(["run", "-e", board.name], experiment)
    if code != 0:
        sys.stderr.write(output)
        raise platformio_failure(board, f"building {experiment} for {board.name}", output)
    return paths.BUILD_DIRECTORY / "platformio" / "build" / board.name / "firmware.elf"


def usb_ids_present(devices: Path = Path("/sys/bus/usb/devices")) -> set[str] | None:
    """USB ids of all connected devices, also without a port; None where there is no list."""
    if not devices.is_dir():
        return None
    ids = set()
    for device in devices.iterdir():
        try:
            vendor = (device / "idVendor").read_text().strip()
            product = (device / "idProduct").read_text().strip()
        except OSError:
            continue
        ids.add(f"{vendor}:{product}".upper())
    return ids


def require_connected(board: Board) -> None:
    """Fails early without the board; in its bootloader a board has a USB id but no port."""
    if boards.find_connected(board):
        return
    present = usb_ids_present()
    flashable = {*board.link.usb_ids, *board.bootloader_usb_ids}
    if present is None or present & flashable:
        return
    raise PortError(
        f"no {board.name} found on USB (ids {', '.join(sorted(flashable))}): "
        "plug it in with a cable that carries data, or press its program button"
    )


def wait_for_port(board: Board, timeout_s: float = PORT_WAIT_S) -> str | None:
    """The serial port on which a freshly flashed board comes up."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        ports = boards.find_connected(board)
        if ports:
            return ports[0]
        time.sleep(0.2)
    return None


def run(board_name: str, experiment: str, json_output: bool = False) -> int:
    """Builds the experiment's firmware, flashes it and waits for the board to come back."""
    board = boards.load_board(board_name)
    build.require_experiment(experiment)
    if board.flasher != "platformio":
        flashable = [known.name for known in boards.list_boards() if known.flasher]
        raise UsageError(
            f"{board.name} is not flashed: train there directly with --board {board.name}; "
            f"boards that are flashed: {', '.join(flashable)}"
        )
    require_connected(board)
    build_with_platformio(board, experiment)
    print(f"Flashing {board.name}", file=sys.stderr, flush=True)
    code, output = run_platformio(["run", "-e", board.name, "-t", "upload"], experiment, show=True)
    if code != 0:
        raise platformio_failure(board, f"flashing {board.name}", output)
    port = wait_for_port(board)
    if port is None:
        raise PortError(
            f"{board.name} was flashed, but its serial port did not appear: "
            "unplug it and plug it in again"
        )
    print(f"{board.title} on {port} is ready: rlt train {experiment} --board {board.name}")
    if json_output:
        print(json.dumps({"board": board.name, "experiment": experiment, "port": port}))
    return 0
