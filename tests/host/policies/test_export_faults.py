"""Exported policies where there is no finite action: they do what the library's runner does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from policy_samples import NETWORKS, sample_images
from programs import output_of
from rltools_host.policies import export, folders
from rltools_host.policies.image import PolicyImage, parse_policy
from rltools_host.tree import TREE

SOURCE = Path(__file__).with_name("header_beside_runner.cpp")
QUADROTORS = ("remembering_quadrotor_4", "remembering_quadrotor_7")
LARGEST = np.finfo(np.float32).max
NOT_FINITE = (np.nan, np.inf, -np.inf)


def build(image: PolicyImage, folder: Path) -> Path:
    (folder / "policy.h").write_text(export.c_header(image))
    (folder / "image.h").write_bytes(export.encode_array(image))
    name = export.identifier(image.experiment)
    is_quadrotor = image.actions[0].name.startswith("thrust")
    safe = "rlt::contracts::Quadrotor::kSafeAction" if is_quadrotor else "nullptr"
    program = folder / "program"
    command = [
        *("g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off"),
        *(f"-I{folder}", f"-I{TREE.include}"),
        *(f"-DHEADER={name}_policy", f"-DIMAGE={name}_image", f"-DSAFE_ACTION={safe}"),
        *(f"-DPAST_ACTIONS={len(image.added_inputs)}", str(SOURCE), "-o", str(program)),
    ]
    output_of(*command)
    return program


def rows_of(
    program: Path, image: PolicyImage, inputs: np.ndarray, *options: str
) -> tuple[list[bool], np.ndarray]:
    """Whether the policy acted, and the actions; the header has done just the same."""
    data = inputs.astype("<f4").tobytes()
    result = subprocess.run([program, *options], input=data, capture_output=True, timeout=60)
    assert result.returncode == 0, "the header's action or its result is another"
    rows = np.frombuffer(result.stdout, [("acts", "u1"), ("action", "<f4", len(image.actions))])
    assert len(rows) == len(inputs)
    return [bool(acts) for acts in rows["acts"]], rows["action"]


def drawn(image: PolicyImage, count: int) -> np.ndarray:
    low = np.array([channel.minimum for channel in image.observations])
    high = np.array([channel.maximum for channel in image.observations])
    return np.random.default_rng(9).uniform(low, high, (count, len(low))).astype(np.float32)


# An activation has no part in it.
OTHERS = [pytest.param(name, marks=pytest.mark.all) for name in NETWORKS]


@pytest.mark.parametrize("name", ["pendulum", QUADROTORS[0], *OTHERS])
def test_the_header_acts_safely_where_the_runner_does(name: str, tmp_path: Path) -> None:
    image = parse_policy(sample_images()[name])
    program = build(image, tmp_path)
    good = drawn(image, 40)
    width = good.shape[1]
    broken = np.repeat(good[:1], len(NOT_FINITE) * width, axis=0)
    for row in range(len(broken)):
        broken[row, row % width] = NOT_FINITE[row // width]
    signs = np.where(np.random.default_rng(3).random((400, width)) < 0.5, -1, 1)
    huge = (LARGEST * signs).astype(np.float32)  # finite, and sums of them are not
    acts, actions = rows_of(program, image, np.concatenate([good, broken, huge]))
    assert acts[:40] == [True] * 40
    assert actions[:40].tobytes() == image.evaluate(good).tobytes()
    assert acts[40 : 40 + len(broken)] == [False] * len(broken)
    saturating = ("tanh", "sigmoid", "hardtanh")  # of an infinite sum, too
    saturates = image.layers[0].activation in saturating
    assert saturates or False in acts[40 + len(broken) :], "nothing overflows inside the network"
    safe = image.runner.safe_action()[0]
    for did, action in zip(acts, actions, strict=True):
        assert did or action.tobytes() == safe.tobytes()
    assert np.isfinite(actions).all()


@pytest.mark.parametrize("name", ["pendulum", "remembering_pendulum", QUADROTORS[0]])
def test_the_headers_past_actions_are_the_executors_after_a_fault(
    name: str, tmp_path: Path
) -> None:
    image = parse_policy(sample_images()[name])
    program = build(image, tmp_path)
    inputs = drawn(image, 60)
    faults = (0, 7, 20, 21, 22, 23, 24, 40)
    for fault in faults:
        inputs[fault, fault % len(image.contract.observations)] = NOT_FINITE[fault % 3]
    acts, _ = rows_of(program, image, inputs, "in time")
    assert acts == [tick not in faults for tick in range(60)]


def test_the_safe_action_is_that_of_the_images_contract() -> None:
    """A quadrotor's rotors stand still; the middle of their ranges would be half its thrust."""
    for name in QUADROTORS:
        action, output = parse_policy(sample_images()[name]).runner.safe_action()
        assert (action.tolist(), output.tolist()) == ([0.0] * 4, [-1.0] * 4)
    action, output = parse_policy(sample_images()["relu"]).runner.safe_action()
    assert (action.tolist(), output.tolist()) == ([0.5, 0.25], [0.0, 0.0])


def test_folders_state_the_contracts_safe_action() -> None:
    image = parse_policy(sample_images()[QUADROTORS[0]])
    _, files = folders.arduino_library(image)
    zeros = "{0.0f, 0.0f, 0.0f, 0.0f}"
    (data,) = (text.decode() for path, text in files.items() if path.endswith("_data.h"))
    assert f"constexpr float kSafeAction[] = {zeros};" in data
    header = folders.policy_header(image)
    assert f"static const float remembering_safe_action[] = {zeros};" in header
