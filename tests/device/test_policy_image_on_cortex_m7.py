"""Policy images that this machine wrote, checked bit for bit on the emulated Cortex-M7."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from policy_samples import NETWORKS, patched, sample_images
from rltools_host.build import tools
from rltools_host.build.boards import load_board
from rltools_host.policies.core import REASONS
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.tree import TREE
from training_calls import train_here

BOARD = load_board("qemu-cortex-m7")
HERE = Path(__file__).parent
IMAGE_ADDRESS = 0x60000000
PENDULUM_PARAMETERS = 144 + 3 * 8 + 4 * 48
ANT_PARAMETERS = 144 + 3 * 8 + 35 * 48  # the normalizer's means first


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tools.require("arm-none-eabi-g++", "arm-none-eabi-libstdc++", "qemu-system-arm")
    flags = json.loads(TREE.build_file.read_text())["flags"]
    path = tmp_path_factory.mktemp("device") / "check_policy_image.elf"
    command = [
        *("arm-none-eabi-g++", *flags, *BOARD.flags, *BOARD.link_flags),
        f"-I{TREE.include}",
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


@pytest.mark.parametrize("name", ["pendulum", "recurrent_quadrotor", *NETWORKS])
def test_every_example_gives_the_same_bits(name: str, program: Path, tmp_path: Path) -> None:
    verdict = verdict_of_board(program, sample_images()[name], tmp_path)
    assert verdict == ("accepted", "accepted")


@pytest.fixture(scope="module")
def ant_image(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Of two iterations: 27-256-256-8, with the observations' means and deviations so far."""
    tools.ensure_group("mujoco")
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    run = tmp_path_factory.mktemp("ant") / "run"
    settings = ["eval_freq=9000", "n_eval_episodes=1"]
    train_here("ant-ppo", "host", steps=8192, out=run, settings=settings, tensorboard=False)
    return read_run_policy(RunFolder.open(str(run))).data


@pytest.mark.all
@pytest.mark.slow  # a normalizer with --all: test_imported_policies.py
def test_an_ants_policy_gives_the_same_bits(
    ant_image: bytes, program: Path, tmp_path: Path
) -> None:
    assert verdict_of_board(program, ant_image, tmp_path) == ("accepted", "accepted")
    assert struct.unpack_from("<I", ant_image, 24) == (1,)  # there is a normalizer
    (mean,) = struct.unpack_from("<f", ant_image, ANT_PARAMETERS)
    assert 0.3 < mean < 0.75  # of the torso's height in m
    image = patched(ant_image, ANT_PARAMETERS, "f", mean + 0.001)
    assert verdict_of_board(program, image, tmp_path)[0] == "example_not_reproduced"


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
