"""Board descriptions: complete ones, wrong ones, and boards that are connected."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from serial.tools import list_ports

from rltools_host.build import firmware
from rltools_host.build.boards import POLICY_SLOT_BYTES, board_names, list_boards, load_board
from rltools_host.checks.memory import SCRATCH_FLOATS
from rltools_host.commands import firmware as firmware_command
from rltools_host.commands.firmware import emulate, flash
from rltools_host.errors import BuildError, LinkLostError, UsageError
from rltools_host.tree import TREE

NAMES = board_names()


def port(device: str, usb_id: str | None) -> SimpleNamespace:
    vid, pid = (int(part, 16) for part in usb_id.split(":")) if usb_id else (None, None)
    return SimpleNamespace(device=device, vid=vid, pid=pid, serial_number="1234567")


def connect(monkeypatch: pytest.MonkeyPatch, *ports: SimpleNamespace) -> None:
    monkeypatch.setattr(list_ports, "comports", lambda: list(ports))


def test_the_boards_of_the_repository_are_listed() -> None:
    assert {"host", "host-threads", "qemu-cortex-m7", "teensy41"} <= set(NAMES)
    assert [board.name for board in list_boards()] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_what_a_board_names_exists(name: str) -> None:
    board = load_board(name)
    include = TREE.include
    assert (include / board.device_header).is_file()
    assert board.linker_script is None or (TREE.root / board.linker_script).is_file()
    for pattern in board.sources:
        assert list(TREE.root.glob(pattern)), f"{pattern} matches no file"
    assert board.report_every > 0


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


@pytest.mark.parametrize("name", NAMES)
def test_platformio_environments_exist_for_what_it_builds(name: str) -> None:
    board = load_board(name)
    sections = (TREE.root / "platformio.ini").read_text()
    assert (f"[env:{name}]" in sections) != board.toolchain.native


def test_the_emulated_board_has_the_memory_of_a_teensy() -> None:
    emulated, real = load_board("qemu-cortex-m7"), load_board("teensy41")
    assert [(region.name, region.bytes) for region in emulated.memory] == [
        ("RAM1", 512 * 1024),
        ("RAM2", 512 * 1024),
    ]
    assert [region.bytes for region in real.memory] == [region.bytes for region in emulated.memory]
    assert emulated.device == real.device


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"device": None}, "'device' is missing"),
        ({"device": 7}, "device is 7, not a text"),
        ({"device": "Generic;"}, 'device "Generic;" is not the name of a struct'),
        ({"device_header": ["a.h"]}, r'device_header is \["a.h"\], not a text'),
        ({"title": {}}, r"title is \{\}, not a text"),
        ({"toolchain": 3}, "toolchain is 3, not a text"),
        ({"flags": "-O3"}, "flags is not a list of names"),
        ({"link_flags": [["-g"]]}, "link_flags is not a list of names"),
        ({"defines": [1]}, "defines is not a list of names"),
        ({"sources": {}}, "sources is not a list of names"),
        ({"provides": "mujoco"}, "provides is not a list of names"),
        ({"flasher": True}, "flasher is true, not a text"),
        ({"linker_script": 1}, "linker_script is 1, not a text"),
        ({"bootloader_usb_ids": "a:b"}, "bootloader_usb_ids is not a list of names"),
        ({"link": {"kind": 1}}, "kind is 1, not a text"),
        ({"link": {"kind": "pty", "usb_ids": [1]}}, "usb_ids is not a list of names"),
        ({"memory": [{"name": 1, "use": "all", "bytes": 1}]}, "name is 1, not a text"),
        ({"emulator": {"program": 1, "arguments": []}}, "program is 1, not a text"),
        ({"emulator": {"program": "q", "arguments": "-M"}}, "arguments is not a list of names"),
        ({"toolchain": "avr"}, 'unknown toolchain "avr"'),
        ({"link": {"kind": "radio"}}, 'link kind "radio" is none of'),
        (
            {"takes_threads": True, "link": {"kind": "serial"}},
            "takes_threads is for a board that is a process",
        ),
        ({"report_every": "often"}, "invalid literal"),
        ({"programs": "train"}, "programs is not a list of names"),
        ({"sources": ["../*.cpp"]}, r'"\.\./\*\.cpp" is not a path within the project'),
        ({"linker_script": "/x.ld"}, '"/x.ld" is not a path within the project'),
        ({"programs": [7]}, "programs is not a list of names"),
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


def test_description_that_is_no_json_is_named(project: Path) -> None:
    (project / "boards").mkdir()
    (project / "boards" / "mine.json").write_text("{")
    with pytest.raises(BuildError, match=r"mine\.json: not a board description"):
        load_board("mine")


def test_an_emulated_board_is_not_flashed() -> None:
    with pytest.raises(UsageError, match=r"--board qemu-cortex-m7.*flashed: esp32, .*teensy41"):
        flash("qemu-cortex-m7", "pendulum-td3")


class Built(Exception):
    """A firmware would be built of these."""


@pytest.mark.parametrize(
    ("program", "subject", "expected"),
    [
        ("train", None, "pendulum-td3"),
        ("train", "quadrotor-ppo", "quadrotor-ppo"),
        ("infer", None, "pendulum"),
        ("infer", "quadrotor", "quadrotor"),
    ],
)
def test_what_is_emulated(
    program: str, subject: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build_firmware(*of: object) -> None:
        raise Built(*of)

    monkeypatch.setattr(firmware, "build_firmware", build_firmware)
    with pytest.raises(Built) as caught:
        emulate("qemu-cortex-m7", subject, program=program)
    assert caught.value.args == (load_board("qemu-cortex-m7"), expected, program)
    for seconds in (0, -1):
        with pytest.raises(UsageError, match=f"--time-limit {seconds}: give a number of seconds"):
            emulate("qemu-cortex-m7", subject, time_limit_s=seconds)


class Emulated:
    """In place of the emulator; it ends, or the user ends it."""

    port, process_id = "/dev/pts/9", 7
    is_interrupted = True

    def __init__(self, *_: object) -> None: ...

    def __enter__(self) -> Emulated:
        return self

    def __exit__(self, *_: object) -> None: ...

    def wait(self) -> None:
        if self.is_interrupted:
            raise KeyboardInterrupt

    def ending(self) -> str:
        return "it was ended by SIGKILL"


def test_an_emulated_board_says_where_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    name, other, storage = "qemu-cortex-m7", "qemu-esp32c3", tmp_path / "flash"
    monkeypatch.setattr(firmware, "build_firmware", lambda *_: Path("program"))
    monkeypatch.setattr(firmware_command, "Emulator", Emulated)
    monkeypatch.setattr(firmware_command, "require_kept", lambda *_: None)
    assert emulate(name, time_limit_s=5) == 0
    first, then, *rest = capsys.readouterr().out.splitlines()
    assert first == f"{load_board(name).title}, with pendulum-td3, is on /dev/pts/9"
    assert then.startswith("  train there:  ")
    assert then.endswith(f"rlt train pendulum-td3 --board {name} --port /dev/pts/9")
    assert rest == ["  Ctrl-C ends it; so do 5 s"]
    assert emulate(other, program="infer", json_output=True, storage=storage) == 0
    assert storage.is_file()
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {
        "board": other,
        "experiment": "pendulum",
        "program": "infer",
        "port": "/dev/pts/9",
        "process_id": 7,
    }
    assert captured.err.splitlines()[1].endswith(f"rlt push RUN --board {other} --port /dev/pts/9")
    assert captured.err.splitlines()[2] == f"  confirmed policies stay in {storage}"
    monkeypatch.setattr(Emulated, "is_interrupted", False)
    with pytest.raises(LinkLostError, match=f"^{name} on /dev/pts/9 ended: it was ended by SIGK"):
        emulate(name)


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


@pytest.mark.parametrize(("name", "usb_id"), [("esp32", "10C4:EA60"), ("esp32c3", "303A:1001")])
def test_esp32_boards_are_flashed_with_infer(
    calls: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    usb_id: str,
) -> None:
    connect(monkeypatch, port("/dev/ttyUSB0", usb_id))
    assert flash(name, "pendulum", program="infer") == 0
    assert calls == [
        ["run", "-e", name, "pendulum", "infer", "False"],
        ["run", "-e", name, "-t", "upload", "pendulum", "infer", "True"],
    ]
    assert capsys.readouterr().out.endswith(f"push RUN --board {name}\n")
    with pytest.raises(UsageError, match=f"{name} is not built with the program train"):
        flash(name, "pendulum-td3")
