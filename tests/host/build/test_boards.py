"""Board descriptions: complete ones, wrong ones, and boards that are connected."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from serial.tools import list_ports

from rltools_host.build import firmware
from rltools_host.build.boards import (
    POLICY_SLOT_BYTES,
    Address,
    board_names,
    list_boards,
    load_board,
)
from rltools_host.checks.memory import SCRATCH_FLOATS
from rltools_host.commands.firmware import flash
from rltools_host.errors import BuildError
from rltools_host.tree import TREE

NAMES = board_names()


def port(device: str, usb_id: str | None) -> SimpleNamespace:
    vid, pid = (int(part, 16) for part in usb_id.split(":")) if usb_id else (None, None)
    return SimpleNamespace(device=device, vid=vid, pid=pid, serial_number="1234567")


def connect(monkeypatch: pytest.MonkeyPatch, *ports: SimpleNamespace) -> None:
    monkeypatch.setattr(list_ports, "comports", lambda: list(ports))


@pytest.mark.parametrize("name", NAMES)
def test_what_a_board_names_exists(name: str) -> None:
    board = load_board(name)
    include = TREE.include
    assert (include / board.device_header).is_file()
    assert board.linker_script is None or (TREE.root / board.linker_script).is_file()
    for pattern in board.sources:
        assert list(TREE.root.glob(pattern)), f"{pattern} matches no file"
    assert board.report_every > 0


def test_sources_know_the_boards_address() -> None:
    board = replace(load_board("host"), address=Address(3, 4))
    assert board.definitions[-2:] == ("RLT_SYSTEM=3", "RLT_COMPONENT=4")


def test_slots_of_policies_are_those_of_the_storage() -> None:
    """Of boards that no test can ask; others in tests/device/test_imported_policies.py."""
    flash = (TREE.root / "firmware/processors/sector_flash.h").read_text()
    kilobytes, erase = (
        int(re.search(rf"\b{name} = (\d+)\b", flash)[1])  # type: ignore[index]
        for name in ("kBytes", "kEraseBytes")
    )
    slot = (kilobytes * 1024 // erase - 2) // 2 * erase  # two blocks are for the records
    for board in list_boards():
        if "RLT_STORAGE=SectorFlash" in board.defines:
            assert board.policy_slot_bytes == slot
        elif not any(define.startswith("RLT_STORAGE=") for define in board.defines):
            assert board.policy_slot_bytes == POLICY_SLOT_BYTES
    program = (TREE.root / "firmware/app/infer/program.h").read_text()
    assert f"#define RLT_POLICY_SLOT_BYTES {POLICY_SLOT_BYTES}\n" in program
    assert f"#define RLT_POLICY_SCRATCH_FLOATS {SCRATCH_FLOATS}\n" in program


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"device": None}, "'device' is missing"),
        ({"sources": ["../*.cpp"]}, r'"\.\./\*\.cpp" is not a path within the project'),
    ],
)
def test_wrong_description_is_named(project: Path, change: dict[str, object], reason: str) -> None:
    document = json.loads((TREE.boards / "host.json").read_text())
    document["rltools"].update(change)
    document["rltools"] = {
        key: value for key, value in document["rltools"].items() if value is not None
    }
    (project / "boards").mkdir()
    (project / "boards" / "mine.json").write_text(json.dumps(document))
    with pytest.raises(BuildError, match=reason) as error:
        load_board("mine")
    assert "mine.json" in str(error.value)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What PlatformIO is called with, which does nothing: its arguments, subject, program, show."""
    made: list[list[str]] = []

    def run_platformio(
        arguments: list[str], subject: str, program: str, *, show: bool = False
    ) -> tuple[int, str]:
        made.append([*arguments, subject, program, str(show)])
        return 0, ""

    monkeypatch.setattr(firmware, "run_platformio", run_platformio)
    return made


def test_flashing_builds_uploads_and_waits_for_the_port(
    calls: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    connect(monkeypatch, port("/dev/ttyACM0", "16C0:0483"))
    assert flash("teensy41", "pendulum-td3", json_output=True) == 0
    assert flash("teensy41", "pendulum", program="infer") == 0
    assert calls == [
        ["run", "-e", "teensy41", "pendulum-td3", "train", "False"],
        ["run", "-e", "teensy41", "-t", "upload", "pendulum-td3", "train", "True"],
        ["run", "-e", "teensy41", "pendulum", "infer", "False"],
        ["run", "-e", "teensy41", "-t", "upload", "pendulum", "infer", "True"],
    ]
    lines = capsys.readouterr().out.splitlines()
    assert json.loads(lines[1])["port"] == "/dev/ttyACM0"
    assert lines[0].endswith("train pendulum-td3 --board teensy41")
    assert lines[2].endswith("push RUN --board teensy41")
