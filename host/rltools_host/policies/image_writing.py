"""Writes a policy image (docs/policy_image.md) of layers that were not trained here; its examples'
numbers are those of the code that boards run."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rltools_host.build.ranges import ranges_of
from rltools_host.policies.contract import (
    CHOICE,
    Contract,
    channel_record,
    choices_of,
    output_dim,
)
from rltools_host.policies.core_source import activations
from rltools_host.policies.image import HAS_CHOICES, HAS_NORMALISER, Layer, parse_policy
from rltools_host.policies.runner import LAYER
from rltools_host.runs.policy_file import CRC32_PLACE, HEADER, MAGIC, VERSION, image_crc32

EXAMPLES = 8  # as the core writes


@dataclass(frozen=True)
class Origin:
    """Where a policy comes from: everything of an image but network and contract."""

    experiment: str
    environment: str
    step: int
    seed: int
    state_sha256: str
    fingerprint: int = 0


@dataclass(frozen=True, eq=False)
class Network:
    """What an image computes; normaliser: mean and inverse standard deviation, or None."""

    normaliser: tuple[ArrayLike, ArrayLike] | None
    layers: Sequence[Layer]


def write_image(
    network: Network, contract: Contract, origin: Origin, observations: NDArray[np.float32]
) -> bytes:
    """The image, with an example for each of the observations, (count, observation_dim).

    DamagedPolicyError: a board would refuse it, for example as a number is not finite.
    """
    results = output_dim(contract.actions) + len(contract.actions)
    empty = b"".join(
        (row.tobytes() + bytes(4 * (1 + results))) for row in observations.astype("<f4")
    )
    unproven = assembled(network, contract, origin, len(observations), empty)
    runner = parse_policy(unproven).runner
    examples = []
    for row in observations.astype("<f4"):
        trace, output = runner.trace(row)
        action = runner.run(row)[1]
        examples.append(
            row.tobytes() + struct.pack("<I", trace) + output.tobytes() + action.tobytes()
        )
    return assembled(network, contract, origin, len(observations), b"".join(examples))


def assembled(
    network: Network, contract: Contract, origin: Origin, count: int, examples: bytes
) -> bytes:
    names = list(activations())
    choices = choices_of(contract.actions)
    flags = (HAS_NORMALISER if network.normaliser else 0) | (HAS_CHOICES if choices else 0)
    parts = [
        *(
            LAYER.pack(*each.weights.shape, names.index(each.activation), bytes(3))
            for each in network.layers
        ),
        *(channel_record(each) for each in (*contract.observations, *contract.actions)),
        *(CHOICE.pack(name.encode()) for name in choices),
        *(np.asarray(part, "<f4").tobytes() for part in network.normaliser or ()),
        *(
            np.asarray(part, "<f4").tobytes()
            for each in network.layers
            for part in (each.weights, each.bias)
        ),
        examples,
    ]
    body = b"".join(parts)
    header = HEADER.pack(
        *(MAGIC, VERSION, HEADER.size, HEADER.size + len(body), 0),
        *(len(contract.observations), len(contract.actions), len(network.layers), count),
        *(flags, contract.step_interval_us),
        *(origin.step, origin.seed, origin.fingerprint, 0, bytes.fromhex(origin.state_sha256)),
        *(origin.experiment.encode(), origin.environment.encode()),
    )
    data = header + body
    checksum = image_crc32(data).to_bytes(4, "little")
    return data[: CRC32_PLACE.start] + checksum + data[CRC32_PLACE.stop :]


def sampled(contract: Contract, count: int, reach: float = math.inf) -> NDArray[np.float32]:
    """Observations spread evenly over the channels' ranges, of which `reach` to both sides of the
    middle counts; the same each time: multiples of the fractions of square roots of primes (Weyl
    1916)."""
    primes = first_primes(len(contract.observations))
    fractions = np.outer(np.arange(1, count + 1), np.sqrt(primes)) % 1.0
    low, high = ranges_of(contract.observations, np.float64)
    middle = (low + high) / 2
    low, high = np.maximum(low, middle - reach), np.minimum(high, middle + reach)
    observations: NDArray[np.float32] = (low + fractions * (high - low)).astype(np.float32)
    return observations


def first_primes(count: int) -> NDArray[np.float64]:
    found: list[int] = []
    number = 2
    while len(found) < count:
        if all(number % prime for prime in found if prime * prime <= number):
            found.append(number)
        number += 1
    return np.array(found, float)
