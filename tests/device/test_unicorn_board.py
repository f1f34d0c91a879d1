"""The Cortex-M7 in Unicorn: this machine's bits, by the firmware of the one in QEMU; its ends."""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from boards_under_test import SHORT_RUN, Connect, train
from policy_run import make_policy_run
from rltools_host.boards.board_link import EmulatedLink, Emulator
from rltools_host.boards.hil import HilRequest, check_board, require_parity
from rltools_host.boards.hil_result import lines
from rltools_host.boards.policy_session import PolicyTarget
from rltools_host.boards.session import BoardSession
from rltools_host.build import firmware, tools
from rltools_host.build.boards import load_board
from rltools_host.build.description import ExperimentDescription
from rltools_host.errors import LinkLostError
from rltools_host.tree import MARKER, PROJECT
from training_calls import train_here

BOARD = load_board("unicorn-cortex-m7")
SETTINGS = [f"{name}={SHORT_RUN[name]}" for name in ("learning_starts", "report_every")]


@pytest.fixture(scope="module", autouse=True)
def unicorn() -> None:
    if not tools.group_is_installed("unicorn"):
        pytest.skip("unicorn not found: `rlt test --all` installs it")


@pytest.fixture(scope="module")
def program() -> Path:
    return firmware.build_firmware(BOARD, "pendulum-td3")


def read_forever(link: EmulatedLink) -> None:
    while True:
        link.read(20.0)


def program_of(folder: Path, code: bytes) -> Path:
    """An ELF whose code follows the stack's top and the reset vector at 0."""
    content = struct.pack("<II", 0x20008000, 8 | 1) + code
    header = bytearray(52)
    header[:7] = b"\x7fELF\x01\x01\x01"
    struct.pack_into("<I", header, 28, len(header))
    struct.pack_into("<HHH", header, 42, 32, 1, 40)
    size = len(content)
    segment = struct.pack("<8I", 1, len(header) + 32, 0, 0, size, size, 5, 4)
    program = folder / "program.elf"
    program.write_bytes(header + segment + content)
    return program


@pytest.mark.usefixtures("program")
def test_steps_with_updates_have_this_machines_bits(tmp_path: Path) -> None:
    settings = [*SETTINGS, "eval_freq=1000"]
    documents = [
        train_here("pendulum-td3", board, seed=7, steps=26, settings=settings, out=tmp_path / board)
        for board in ("host", BOARD.name)
    ]
    assert documents[0]["state_sha256"] == documents[1]["state_sha256"]
    assert documents[1]["guest_instructions"] is None


@pytest.mark.all
@pytest.mark.timeout(600)
def test_two_boards_at_once_with_firmware_by_zig_have_the_bits_too(
    tmp_path: Path,
    connect: Connect,
    description: ExperimentDescription,
    dialect: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a folder with a space, and with the use of the memories."""
    tools.ensure_group("zig")
    expected, _ = train(connect("host"), description, **SHORT_RUN)
    root = tmp_path / "a project"
    root.mkdir()
    (root / MARKER).touch()
    monkeypatch.setattr(PROJECT, "root", root)
    monkeypatch.setenv("RLT_CXX", "zig")
    program = firmware.build_firmware(BOARD, "pendulum-td3")
    assert program.is_relative_to(root)
    used = [entry["used_bytes"] / entry["bytes"] for entry in firmware.memory_usage(BOARD, program)]
    assert used == pytest.approx([0.82, 0.44], abs=0.02)
    links = [EmulatedLink(Emulator(BOARD, program, 200.0), BOARD.name) for _ in range(2)]
    sessions = [BoardSession.connect(link, dialect)[0] for link in links]
    with ThreadPoolExecutor(2) as workers:
        results = workers.map(lambda each: train(each, description, **SHORT_RUN)[0], sessions)
        found = [result.state_sha256 for result in results]
    for session in sessions:
        session.close()
    assert found == [expected.state_sha256] * 2


@pytest.mark.all
def test_a_policy_gives_this_machines_bits_and_no_cost(tmp_path: Path) -> None:
    run = make_policy_run(tmp_path / "a run")
    request = HilRequest(PolicyTarget(BOARD.name), str(run), None, 20)
    result = check_board(request, lambda *_: None)
    require_parity(result)
    found = result.found
    assert found.costs == []
    assert found.samples == 0
    assert lines([found])[-1] == (
        "unicorn-cortex-m7: its emulator counts no instructions, so no cost is measured"
    )


FAULTS = {
    "store below the stack": (
        struct.pack("<HHI", 0x4800, 0x6001, 0x1FFFFFFC),  # ldr r0, [pc]; str r1, [r0]
        r"failed at 0x0000000a: it may not access 0x1ffffffc, or there is no memory",
    ),
    "store to code": (
        struct.pack("<HHI", 0x4800, 0x6001, 0x00000100),
        r"failed at 0x0000000a: it may not access 0x00000100, or there is no memory",
    ),
    "undefined instruction": (b"\x00\xde", r"failed at 0x0000000\w: .+"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_programs_fault_is_one_sentence(tmp_path: Path, fault: str) -> None:
    code, sentence = FAULTS[fault]
    emulator = Emulator(BOARD, program_of(tmp_path, code), 20.0)
    emulator.wait()
    ending = f'it ended with exit code 1 and wrote "the program {sentence}"'
    with pytest.raises(LinkLostError, match=ending):
        read_forever(EmulatedLink(emulator, BOARD.name))


def test_what_is_no_program_is_named(tmp_path: Path) -> None:
    (tmp_path / "text.elf").write_text("no ELF")
    emulator = Emulator(BOARD, tmp_path / "text.elf", 20.0)
    emulator.wait()
    with pytest.raises(LinkLostError, match=r'wrote "cannot load .*text\.elf: '):
        read_forever(EmulatedLink(emulator, BOARD.name))
