"""The example of a Teensy that drives a motor: compiled for it, and run on the host."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from policy_samples import sample_images, write_pendulum_header
from programs import output_of
from rltools_host.build.boards import load_board
from rltools_host.build.tools import missing_tools
from rltools_host.policies.image import parse_policy
from rltools_host.tree import TREE

EXAMPLE = TREE.root / "examples/teensy_pwm"
INTERFACE = TREE.root / "tests/firmware/teensy41/interface"
BENCH = TREE.root / "tests/examples/teensy_pwm_bench.cpp"
# As PlatformIO's platform teensy calls the compiler, with our warnings.
FLAGS = (
    *("-std=gnu++17", "-O2", "-ffp-contract=off", "-fno-exceptions", "-fno-rtti"),
    *("-Wall", "-Wextra", "-Wcast-align", "-Wshadow", "-Wdouble-promotion", "-Werror"),
)
LOWEST, TURN, FULL_DUTY = 205, 3686, 4095
STEP_S = 0.05


def includes(folder: Path) -> list[str]:
    write_pendulum_header(folder)
    return [f"-I{folder}", f"-I{EXAMPLE}", "-isystem", str(INTERFACE), f"-I{TREE.include}"]


def test_it_compiles_for_the_teensy(tmp_path: Path) -> None:
    board = load_board("qemu-cortex-m7")
    if missing_tools((board.toolchain.compiler,)):
        pytest.skip(f"{board.toolchain.compiler} is not installed")
    command = [board.toolchain.compiler, *FLAGS, *board.flags, *includes(tmp_path)]
    output_of(*command, "-c", EXAMPLE / "teensy_pwm.cpp", "-o", tmp_path / "sketch.o")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("teensy_pwm")
    program = folder / "bench"
    sources = (EXAMPLE / "teensy_pwm.cpp", BENCH)
    output_of("g++", *FLAGS, "-march=native", *includes(folder), *sources, "-o", program)
    return program


def run(program: Path, turns: int, broken_from: int, broken_to: int) -> list[list[float]]:
    """What setup() left; then for each period reading, time, enable, reverse, duty, updates."""
    output = output_of(program, turns, broken_from, broken_to)
    return [[float(word) for word in line.split()] for line in output.splitlines()]


def test_pins_are_set_up_with_the_motor_off(program: Path) -> None:
    assert run(program, 0, 0, 0) == [[12, 12, 20000, 1, 1, 0]]


def test_the_motor_gets_what_the_policy_computes(program: Path) -> None:
    policy = parse_policy(sample_images()["pendulum"])
    _, *rows = run(program, 300, 300, 300)
    angles = np.array([(row[0] - LOWEST) * 2 * np.pi / TURN - np.pi for row in rows])
    turned = np.diff(angles)
    turned = np.remainder(turned + np.pi, 2 * np.pi) - np.pi
    assert rows[0][2:] == [0, 0, 0, 1]  # one reading tells no velocity
    duties = []
    for angle, velocity, (*_, enable, reverse, duty, updates) in zip(
        angles[1:], np.clip(turned / STEP_S, -8, 8), rows[1:], strict=True
    ):
        assert (enable, updates) == (1, 1)  # the contract's rate, however often loop() is called
        observation = np.array([np.cos(angle), np.sin(angle), velocity], np.float32)
        torque = float(policy.evaluate(observation)[0])
        duties.append(duty * (-1 if reverse else 1))
        assert duties[-1] == pytest.approx(np.clip(torque / 2, -1, 1) * FULL_DUTY, abs=2)
    assert len(set(duties)) > 100
    assert min(duties) < 0 < max(duties)


def test_a_broken_wire_turns_the_motor_off_at_once(program: Path) -> None:
    _, *rows = run(program, 40, 10, 20)
    for turn, (*_, enable, _, duty, updates) in enumerate(rows):
        is_off = turn == 0 or 10 <= turn <= 20  # the first reading after it tells no velocity
        assert updates == 1
        assert enable == (not is_off), turn
        if is_off:
            assert duty == 0
