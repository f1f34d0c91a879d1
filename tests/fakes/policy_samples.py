"""Policy images for the tests, written by the core (tests/lib/policy/write_policy_images.cpp)."""

from __future__ import annotations

import struct
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from programs import output_of
from rltools_host.build import cmake
from rltools_host.build.boards import load_board
from rltools_host.policies import export
from rltools_host.policies.contract import GATES, GRU, LSTM, Layer
from rltools_host.policies.image import PolicyImage, parse_policy
from rltools_host.policies.image_writing import Network, Origin, write_image
from rltools_host.runs.saves import (
    image_crc32,
)

PROGRAM = "write_policy_images"
NETWORKS = ("identity", "relu", "gelu", "tanh", "sigmoid", "softplus", "elu", "silu", "hardtanh")


@dataclass(frozen=True)
class CoreEvaluation:
    """What evaluate() of rl/training.h reports for ten episodes with seed 0."""

    mean: float
    smallest: float
    largest: float


@cache
def write_samples() -> tuple[dict[str, bytes], CoreEvaluation]:
    """Runs tests/lib/policy/write_policy_images.cpp."""
    program = cmake.build_targets(load_board("host"), [PROGRAM]) / PROGRAM
    with tempfile.TemporaryDirectory() as folder:
        output = output_of(program, folder)
        images = {path.stem: path.read_bytes() for path in Path(folder).glob("*.rltp")}
    images["lstm_quadrotor"] = lstm_image(images["recurrent_quadrotor"])
    return images, CoreEvaluation(*map(float, output.split()))


def lstm_image(like: bytes) -> bytes:
    """A policy with an LSTM of 12 units and, behind it, a GRU of 6, at the place of another."""
    image = parse_policy(like)
    draws = np.random.default_rng(11)

    def numbers(*shape: int) -> np.ndarray:
        return draws.uniform(-1, 1, shape).astype(np.float32) / np.float32(shape[0] ** 0.5)

    def recurrent(kind: int, taken: int, width: int) -> Layer:
        columns = GATES[kind] * width
        hidden = (numbers(width, columns), numbers(columns))
        return Layer("identity", numbers(taken, columns), numbers(columns), hidden)

    layers = [
        Layer("relu", numbers(len(image.observations), 16), numbers(16)),
        recurrent(LSTM, 16, 12),
        recurrent(GRU, 12, 6),
        Layer("tanh", numbers(6, len(image.actions)), numbers(len(image.actions))),
    ]
    assert image.recurrence is not None
    ticks = image.recurrence.trained_interval_us // image.step_interval_us
    origin = Origin("lstm", image.environment, image.step, image.seed, image.state_sha256)
    observations = np.array([example.observation for example in image.examples])
    return write_image(
        Network(image.normalizer, layers, ticks), image.contract, origin, observations
    )


def sample_images() -> dict[str, bytes]:
    """One image per activation, with a normalizer; "pendulum", an untrained pendulum policy, and
    "small_pendulum", a third as large; "remembering_*" of policies that see their last actions,
    "recurrent_*" of policies with a hidden state, and "lstm_quadrotor"."""
    return write_samples()[0]


def write_pendulum_header(folder: Path) -> None:
    """What the examples of other people's firmware include."""
    image = parse_policy(sample_images()["pendulum"])
    name = export.identifier(image.experiment).encode()
    header = export.encode_array(image).replace(name, b"pendulum_td3")
    (folder / "pendulum_td3_image.h").write_bytes(header)


def untrained_pendulum_evaluation() -> CoreEvaluation:
    """The core's own evaluation of the policy "pendulum"."""
    return write_samples()[1]


def patched(image: bytes, offset: int, record: str, *values: float | bytes) -> bytes:
    """The image with other bytes at an offset, and the checksum that goes with them."""
    changed = bytearray(image)
    struct.pack_into("<" + record, changed, offset, *values)
    return with_crc32(bytes(changed))


def with_crc32(image: bytes) -> bytes:
    return image[:12] + struct.pack("<I", image_crc32(image)) + image[16:]


def examples_here(image: PolicyImage) -> list[dict[str, Any]]:
    """The examples of an image for the page, with what they give on this machine."""
    return [
        {
            "observation": example.observation.tolist(),
            "layers": image.runner.layer_checksums(example.observation),
            "action": image.evaluate(example.observation).view(np.uint32).tolist(),
        }
        for example in image.examples
    ]
