"""Policy images that this machine wrote, checked bit for bit on the emulated Cortex-M7."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from policy_samples import NETWORKS, patched, sample_images
from rltools_host import paths
from rltools_host.boards.description import load_board
from rltools_host.policies.image import REASONS
from rltools_host.toolchain import tools

BOARD = load_board("qemu-cortex-m7")
HERE = Path(__file__).parent
IMAGE_ADDRESS = 0x60000000
PENDULUM_PARAMETERS = 144 + 3 * 8 + 4 * 48


pytestmark = pytest.mark.device


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tools.require("arm-none-eabi-g++", "arm-none-eabi-libstdc++", "qemu-system-arm")
    flags = json.loads(paths.FIRMWARE_BUILD_FILE.read_text())["flags"]
    path = tmp_path_factory.mktemp("device") / "check_policy_image.elf"
    command = [
        *("arm-none-eabi-g++", *flags, *BOARD.flags, *BOARD.link_flags),
        f"-I{paths.REPOSITORY / 'lib' / 'rltools' / 'include'}",
        f"-T{HERE / 'check_policy_image.ld'}",
        *(str(HERE / "check_policy_image.cpp"), "-o", str(path)),
    ]
    subprocess.run(command, check=True, timeout=120)
    return path


def verdict_of_board(program: Path, image: bytes, folder: Path) -> tuple[str, str]:
    """The reason and its text."""
    assert BOARD.emulator is not None
    (folder / "policy.rltp").write_bytes(image)
    loader = f"loader,file={folder / 'policy.rltp'},addr={IMAGE_ADDRESS:#x},force-raw=on"
    command = [
        *(BOARD.emulator.program, *BOARD.emulator.arguments, "-serial", "none"),
        *("-semihosting-config", "enable=on,target=native", "-device", loader),
        *("-kernel", str(program)),
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert 0 <= result.returncode < len(REASONS), result.stderr
    return REASONS[result.returncode], (result.stdout + result.stderr).strip()


@pytest.mark.parametrize("name", ["pendulum", *NETWORKS])
def test_every_example_gives_the_same_bits(name: str, program: Path, tmp_path: Path) -> None:
    verdict = verdict_of_board(program, sample_images()[name], tmp_path)
    assert verdict == ("accepted", "accepted")


def test_other_bits_are_refused(program: Path, tmp_path: Path) -> None:
    original = sample_images()["pendulum"]
    (weight,) = struct.unpack_from("<f", original, PENDULUM_PARAMETERS)
    other = np.nextafter(np.float32(weight), np.float32(1))
    image = patched(original, PENDULUM_PARAMETERS, "f", other)
    reason, text = verdict_of_board(program, image, tmp_path)
    assert reason == "example_not_reproduced"
    assert text == "an example gives other bits here"


def test_a_damaged_image_is_refused(program: Path, tmp_path: Path) -> None:
    image = bytearray(sample_images()["pendulum"])
    image[9000] ^= 0x10
    assert verdict_of_board(program, bytes(image), tmp_path)[0] == "wrong_crc"
