"""PlatformIO builds without any download, and what CMake builds, byte for byte."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rltools_host.build import firmware, tools
from rltools_host.build.boards import load_board
from rltools_host.tree import PROJECT, TREE

pytestmark = pytest.mark.all  # another builder

BOARD = "qemu-cortex-m7"
EXPERIMENT = "pendulum-td3"
DIRECTORY = PROJECT.build / "platformio" / "build" / BOARD
NO_NETWORK = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")


@pytest.fixture(scope="module", autouse=True)
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No network, and no PlatformIO that this user has set up before."""
    tools.ensure_group("platformio")
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name, value in NO_NETWORK.items():
            monkeypatch.setenv(name, value)
            monkeypatch.setenv(name.lower(), value)
        monkeypatch.setenv("PLATFORMIO_CORE_DIR", str(tmp_path_factory.mktemp("core")))
        yield


def run_in_repository(*arguments: str) -> str:
    code, output = firmware.run_platformio(arguments, EXPERIMENT)
    assert code == 0, output
    return output


@pytest.fixture(scope="module")
def built_firmware(offline: None) -> Path:  # noqa: ARG001 - the order
    run_in_repository("run", "-e", BOARD)
    run_in_repository("run", "-e", BOARD, "-t", "compiledb")
    return DIRECTORY / "firmware.elf"


def test_build_without_a_download(built_firmware: Path) -> None:
    assert built_firmware.read_bytes()[:4] == b"\x7fELF"
    packages = {path.name for path in (TREE.root / "platforms/packages").iterdir()}
    assert "tool-scons" in packages
    output = run_in_repository("run", "-e", BOARD)
    assert "is up to date" in output


@pytest.mark.parametrize("section", [".text", ".data"])
def test_same_bytes_as_cmake(built_firmware: Path, tmp_path: Path, section: str) -> None:
    program = firmware.build_firmware(load_board(BOARD), EXPERIMENT)
    run_in_repository("run", "-e", BOARD)
    contents = []
    for elf in (program, built_firmware):
        output = tmp_path / "bytes"
        subprocess.run(
            ["arm-none-eabi-objcopy", "-O", "binary", "-j", section, elf, output], check=True
        )
        contents.append(output.read_bytes())
    assert contents[0] == contents[1]
    assert len(contents[0]) > 1000


def test_a_project_elsewhere_builds_its_own_experiment(tmp_path: Path) -> None:
    """By `pio run` in it, from the installed tree, which stays as it is; a project that was moved
    asks `rlt doctor`."""
    environment = {n: value for n, value in os.environ.items() if not n.startswith("RLT_")}
    environment |= {"PYTHONPATH": str(TREE.root / "host")}

    def call(folder: Path, *words: str) -> str:
        result = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert result.returncode == 0, result.stdout
        return result.stdout

    before = sorted(path for path in (TREE.root / "firmware").rglob("*") if path.is_file())
    call(tmp_path, "rltools_host", "new", "my-robot", "--project", "my robot", "--contract")
    project = tmp_path / "robot in a box"
    (tmp_path / "my robot").rename(project)
    call(project, "rltools_host", "doctor")
    settings = dict(json.loads(call(project, "platformio", "project", "config", "--json-output")))
    assert dict(settings["platformio"])["default_envs"] == ["teensy41"]
    for name in ("teensy41", "esp32", "esp32c3"):
        of_board = dict(settings[f"env:{name}"])
        assert of_board["framework"] == ["arduino"]
        assert re.fullmatch(r"platformio/\w+@\d+\.\d+\.\d+", of_board["platform"])
        assert of_board["custom_experiment"] == of_board["custom_contract"] == "my-robot"
    partitions = dict(settings["env:esp32"])["board_build.arduino.partitions"]
    assert (project / partitions).is_file()
    call(project, "platformio", "run", "-e", BOARD)
    built = project / "build" / "platformio" / "build" / BOARD / "firmware.elf"
    content = built.read_bytes()
    names = set(re.findall(rb"MyRobot|Pendulum|Mass", content))  # a text may be inlined
    assert names == {b"MyRobot"}
    assert before == sorted(path for path in (TREE.root / "firmware").rglob("*") if path.is_file())


def test_neither_telemetry_nor_searches_for_updates() -> None:
    script = (
        "from platformio import app;"
        "print(app.get_setting('enable_telemetry'), app.get_setting('check_platformio_interval'))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        env=firmware.platformio_environment(EXPERIMENT),
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split() == ["False", "9999"]
