"""Writers of policy images (docs/policy_image.md) from layers that were not trained here.

The examples' numbers are those of the code that boards run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rltools_host.build.description import MAX_STEP_INTERVAL_US, ranges_of
from rltools_host.errors import UsageError
from rltools_host.policies.contract import (
    CHANNEL,
    CHOICE,
    ENTRY,
    HAS_CHOICES,
    HAS_ENTRY,
    HAS_NORMALIZER,
    SAFE_ACTION_ASSUMED,
    STEP_INTERVAL_ASSUMED,
    WORD,
    Contract,
    EntryEnvelope,
    Layer,
    Recurrence,
    SafeAction,
    channel_record,
    choices_of,
    output_dim,
)
from rltools_host.policies.core import LAYER, activations
from rltools_host.policies.image import PolicyImage, parse_policy
from rltools_host.policies.statements import stated_safe_action
from rltools_host.runs.saves import (
    CRC32_PLACE,
    HEADER,
    MAGIC,
    RECURRENCE,
    RECURRENT_VERSION,
    VERSION,
    header_bytes,
    image_crc32,
)

# The core's numbers.
EXAMPLES, RECURRENT_EXAMPLES, SECOND_SEQUENCE = 8, 16, 10
PAUSE_STEPS = 4
FLAGS_FIELD, INTERVAL_FIELD = 9, 10  # of the header


@dataclass(frozen=True)
class Origin:
    """The origin of a policy: everything of an image but network and contract."""

    experiment: str
    environment: str
    step: int
    seed: int
    state_sha256: str
    fingerprint: int = 0


@dataclass(frozen=True, eq=False)
class Network:
    """The computation of an image.

    normalizer: mean and inverse standard deviation, or None. ticks_per_step: a step of training,
    with which a hidden state moves on, in the contract's intervals.
    """

    normalizer: tuple[ArrayLike, ArrayLike] | None
    layers: Sequence[Layer]
    ticks_per_step: int = 1

    @property
    def state_dim(self) -> int:
        return sum(each.state_dim for each in self.layers)

    def recurrence(self, contract: Contract) -> Recurrence | None:
        if not self.state_dim:
            return None
        trained_us = self.ticks_per_step * contract.step_interval_us
        pause_us = min(PAUSE_STEPS * trained_us, MAX_STEP_INTERVAL_US)
        return Recurrence(trained_us, pause_us, self.state_dim)


def write_image(
    network: Network,
    contract: Contract,
    origin: Origin,
    observations: NDArray[np.float32],
    second: int = SECOND_SEQUENCE,
) -> bytes:
    """Return the image, with an example for each of the observations, (count, observation_dim).

    The examples of a recurrent policy are the steps of two sequences; second: the example with
    which the second one begins. Raise DamagedPolicyError where a board would refuse it, for example
    because a number is not finite.
    """
    results = output_dim(contract.actions) + len(contract.actions)
    rows = observations.astype("<f4")
    begins = [WORD.pack(index in (0, second)) for index in range(len(rows))]
    if not network.state_dim:
        begins = [b""] * len(rows)
    empty = b"".join(
        word + row.tobytes() + bytes(4 * (1 + results))
        for word, row in zip(begins, rows, strict=True)
    )
    unproven = assembled(network, contract, origin, len(observations), empty)
    runner = parse_policy(unproven).runner
    examples = []
    state = runner.begin()
    for word, row in zip(begins, rows, strict=True):
        if word != WORD.pack(0):
            state = runner.begin()
        before = state.copy()
        trace, output = runner.trace(row, state)
        action = runner.run(row, before)[1]
        examples.append(
            word + row.tobytes() + WORD.pack(trace) + output.tobytes() + action.tobytes()
        )
    return assembled(network, contract, origin, len(observations), b"".join(examples))


def assembled(
    network: Network, contract: Contract, origin: Origin, count: int, examples: bytes
) -> bytes:
    names = list(activations())
    choices = choices_of(contract.actions)
    flags = (HAS_NORMALIZER if network.normalizer else 0) | (HAS_CHOICES if choices else 0)
    flags |= contract.assumed
    parts = [
        *(
            LAYER.pack(
                len(each.weights),
                each.width,
                names.index(each.activation),
                each.kind,
                bytes(2),
            )
            for each in network.layers
        ),
        *(channel_record(each) for each in (*contract.observations, *contract.actions)),
        *(CHOICE.pack(name.encode()) for name in choices),
        *(np.asarray(part, "<f4").tobytes() for part in network.normalizer or ()),
        *(np.asarray(part, "<f4").tobytes() for each in network.layers for part in each.tensors),
        examples,
    ]
    recurrence = network.recurrence(contract)
    version = VERSION if recurrence is None else RECURRENT_VERSION
    if recurrence is not None:
        fields = (recurrence.trained_interval_us, recurrence.max_pause_us)
        parts.insert(0, RECURRENCE.pack(*fields, recurrence.state_dim, recurrence.reset_at, 0))
    body = b"".join(parts)
    header = HEADER.pack(
        *(MAGIC, version, header_bytes(version), HEADER.size + len(body), 0),
        *(len(contract.observations), len(contract.actions), len(network.layers), count),
        *(flags, contract.step_interval_us),
        *(origin.step, origin.seed, origin.fingerprint, 0, bytes.fromhex(origin.state_sha256)),
        *(origin.experiment.encode(), origin.environment.encode()),
    )
    return with_checksum(header + body)


def restated(
    image: PolicyImage, safe_action: SafeAction = (), step_interval_us: int | None = None
) -> PolicyImage:
    """Return the policy with what a user states of its contract: a safe action in place of the
    known one, or the time of a step that was assumed.

    Raise UsageError where the contract states another time of a step.
    """
    fields = list(HEADER.unpack_from(image.data))
    parts = image.data[HEADER.size :]
    stated, assumed = stated_safe_action(image, safe_action), image.stated.assumed
    if None not in stated:
        assumed &= ~SAFE_ACTION_ASSUMED
        fields[FLAGS_FIELD] &= ~SAFE_ACTION_ASSUMED
    if step_interval_us is not None:
        require_interval(step_interval_us)
        interval_us = image.step_interval_us
        if not assumed & STEP_INTERVAL_ASSUMED and step_interval_us != interval_us:
            raise UsageError(
                f"--step-interval-us {step_interval_us}: its contract states {interval_us:,} us"
            )
        assumed &= ~STEP_INTERVAL_ASSUMED
        fields[FLAGS_FIELD] &= ~STEP_INTERVAL_ASSUMED
        fields[INTERVAL_FIELD] = step_interval_us
        if image.recurrence is not None:
            ticks = image.recurrence.trained_interval_us // interval_us
            require_interval(trained_us := ticks * step_interval_us)
            pause_us = min(PAUSE_STEPS * trained_us, MAX_STEP_INTERVAL_US)
            rest = (image.recurrence.state_dim, image.recurrence.reset_at, 0)
            parts = RECURRENCE.pack(trained_us, pause_us, *rest) + parts[RECURRENCE.size :]
    data = with_checksum(HEADER.pack(*fields) + parts)
    statements = replace(image.stated, safe_action=stated, assumed=assumed)
    return replace(parse_policy(data, image.origin), stated=statements)


def require_interval(step_interval_us: int) -> None:
    if not 1 <= step_interval_us <= MAX_STEP_INTERVAL_US:
        raise UsageError(
            f"--step-interval-us {step_interval_us}: a step of a policy takes 1 to "
            f"{MAX_STEP_INTERVAL_US:,} us, and a longer one is asked for by a clock of your own"
        )


def with_checksum(data: bytes) -> bytes:
    checksum = image_crc32(data).to_bytes(4, "little")
    return data[: CRC32_PLACE.start] + checksum + data[CRC32_PLACE.stop :]


def with_entry(image: PolicyImage, entry: EntryEnvelope) -> PolicyImage:
    """Return the image with this entry envelope in place of an earlier one.

    Everything else stays.
    """
    fields = list(HEADER.unpack_from(image.data))
    channels = len(image.observations) + len(image.actions)
    offset = header_bytes(fields[1]) + len(image.layers) * LAYER.size + channels * CHANNEL.size
    offset += len(choices_of(image.actions)) * CHOICE.size
    rest = offset if image.entry is None else offset + ENTRY.size
    tables, numbers = image.data[HEADER.size : offset], image.data[rest:]
    fields[3] = offset + ENTRY.size + len(numbers)
    fields[9] |= HAS_ENTRY
    data = HEADER.pack(*fields) + tables + entry.record + numbers
    return replace(parse_policy(with_checksum(data), image.origin), stated=image.stated)


def sampled(
    contract: Contract,
    count: int,
    middle: ArrayLike | None = None,
    reach: ArrayLike = math.inf,
) -> NDArray[np.float32]:
    """Return observations spread evenly over the channels' ranges, the same each time.

    Only `reach` to both sides of the middle counts. They are multiples of the fractions of square
    roots of primes (Weyl 1916).
    """
    primes = first_primes(len(contract.observations))
    fractions = np.outer(np.arange(1, count + 1), np.sqrt(primes)) % 1.0
    low, high = ranges_of(contract.observations, np.float64)
    middle = np.asarray((low + high) / 2 if middle is None else middle)
    low, high = np.clip(middle - reach, low, high), np.clip(middle + reach, low, high)
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
