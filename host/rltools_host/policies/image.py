"""Policy images (docs/policy_image.md): parsing, checks, and evaluation with the bits of a board.

Parsing needs no compiler. Evaluation goes through the code that boards run, policy/runtime.h,
because NumPy has no fused multiply-add.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rltools_host.build.description import MAX_CHOICES, MAX_STEP_INTERVAL_US, Channel
from rltools_host.errors import DamagedFileError
from rltools_host.files import read_limited
from rltools_host.policies.contract import (
    ASSUMPTIONS,
    CHANNEL,
    CHOICE,
    CHOICE_UNIT,
    DENSE,
    ENTRY,
    GRU,
    HAS_CHOICES,
    HAS_ENTRY,
    HAS_NORMALIZER,
    LSTM,
    NOTHING_STATED,
    RESET_AT_ACTIVATION,
    RESET_AT_ALL,
    WORD,
    AddedInput,
    Contract,
    EntryEnvelope,
    Example,
    Layer,
    Recurrence,
    Shape,
    Statements,
    require_texts,
    statements_of,
)
from rltools_host.policies.core import LAYER, PolicyRunner, activations
from rltools_host.policies.core import DamagedPolicyError as DamagedPolicyError
from rltools_host.policies.core import Float32Array as Float32Array
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import LAST
from rltools_host.runs.saves import (
    HEADER,
    MAGIC,
    MAX_POLICY_BYTES,
    RECURRENCE,
    RECURRENT_VERSION,
    VERSION,
    header_bytes,
    image_crc32,
)

KIND_NAMES = {DENSE: "", GRU: "GRU", LSTM: "LSTM"}


@dataclass(frozen=True, eq=False)
class PolicyImage:
    """A parsed image. `data` is all of it, and `origin` its name in messages."""

    data: bytes
    origin: str
    step_interval_us: int
    step: int
    seed: int
    fingerprint: int
    state_sha256: str
    experiment: str
    environment: str
    observations: tuple[Channel, ...]
    actions: tuple[Channel, ...]
    normalizer: tuple[Float32Array, Float32Array] | None  # mean and inverse standard deviation
    layers: tuple[Layer, ...]
    examples: tuple[Example, ...]
    recurrence: Recurrence | None = None  # None: there is no hidden state
    entry: EntryEnvelope | None = None  # None: ENTRY_AT_REST
    stated: Statements = NOTHING_STATED  # on its contract; not in the image

    def __getstate__(self) -> dict[str, object]:
        """Return the fields; what runs the policy is of this process."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def parameter_count(self) -> int:
        return sum(tensor.size for layer in self.layers for tensor in layer.tensors)

    @property
    def shape(self) -> str:
        """Return the layers' widths, for example "3-64-64-1", or "2-32-GRU32-1"."""
        names = [f"{KIND_NAMES[each.kind]}{each.width}" for each in self.layers]
        return "-".join([str(len(self.observations)), *names])

    @cached_property
    def runner(self) -> PolicyRunner:
        return PolicyRunner(self.data, self.origin, self.stated.safe_action)

    @property
    def inputs(self) -> Contract:
        """Return the contract of all inputs of the network."""
        return Contract(self.observations, self.actions, self.step_interval_us)

    @property
    def contract(self) -> Contract:
        """Return the contract of a board or environment where the executor adds past actions and
        sums."""
        return self.inputs.without_added_inputs()

    @property
    def added_inputs(self) -> tuple[AddedInput, ...]:
        """Return what the executor adds to the contract's observations."""
        return self.inputs.added_inputs()

    def added_inputs_at(self, checksum: int) -> tuple[AddedInput, ...] | None:
        """Return what an executor with a contract of this checksum adds, or None where the policy
        is not made for that contract."""
        if self.inputs.checksum == checksum:
            return ()
        return self.added_inputs if self.contract.checksum == checksum else None

    def verify(self) -> None:
        """Run the examples on this machine.

        Raise RefusedError unless every bit is reproduced.
        """
        self.runner.check_examples()

    def evaluate(self, observation: ArrayLike) -> Float32Array:
        """Return actions in the channels' units: (action_dim,), or (n, action_dim) for n
        observations.

        With a hidden state, each observation is the first of an episode.
        """
        return self.runner.run(observation)[1]

    def output(self, observation: ArrayLike) -> Float32Array:
        """Return the network's outputs, shapes as in evaluate(): actions normalized to [-1, 1], or
        a number for each choice."""
        return self.runner.run(observation)[0]


def read_policy(path: Path, within: Path | None = None) -> PolicyImage:
    """Read a policy image. Raise DamagedFileError, which names what is wrong with it.

    within: the folder of the run that it belongs to.
    """
    try:
        data = read_limited(path, MAX_POLICY_BYTES, within)
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise DamagedFileError(f"{path} is damaged: {error}") from None
    return parse_foreign_policy(data, str(path))


def read_run_policy(run: str | Path | RunFolder, which: str = LAST) -> PolicyImage:
    """Read the policy of a run, by its name, path or folder.

    which: LAST, which must belong to the run's last state, or BEST by evaluations in training.
    """
    folder = run if isinstance(run, RunFolder) else RunFolder.open(run)
    image = read_policy(folder.existing_policy(which), folder.path)
    folder.require_state(image.state_sha256, which)
    assumed = image.stated.assumed
    stated = statements_of(folder.content, image.actions, assumed, image.origin)
    return replace(image, stated=stated)


def parse_policy(data: bytes, origin: str = "the policy image") -> PolicyImage:
    """Parse an image, with checks in the order of docs/policy_image.md.

    Raise DamagedPolicyError at the first that fails.
    """
    return ImageReader(data, origin).read()


def parse_foreign_policy(data: bytes, origin: str) -> PolicyImage:
    """Parse an image that somebody else may have written.

    Its names are shown and go into headers, so they must be plain text (build/description.py). A
    board does not look at names.
    """
    image = parse_policy(data, origin)
    channels = (*image.observations, *image.actions)
    require_texts(origin, channels, image.experiment, name=image.environment)
    return image


class ImageReader:
    """A reader of section after section, from the front of an image."""

    def __init__(self, data: bytes, origin: str) -> None:
        self.data = data
        self.origin = origin
        self.position = 0

    def refuse(self, reason: str, detail: str) -> DamagedPolicyError:
        return DamagedPolicyError(self.origin, reason, detail)

    def read(self) -> PolicyImage:
        header = self.read_envelope()
        self.position = HEADER.size
        observation_dim, action_dim, layer_count, example_count, flags = header[5:10]
        counts = (observation_dim, action_dim, layer_count, example_count)
        known = HAS_NORMALIZER | HAS_CHOICES | HAS_ENTRY | ASSUMPTIONS
        if 0 in counts or flags & ~known or header[14]:
            raise self.refuse(
                "malformed", "a count of its header is zero, or a reserved field is not"
            )
        if not 1 <= header[10] <= MAX_STEP_INTERVAL_US:
            raise self.refuse(
                "malformed",
                f"a step takes {header[10]:,} us, not 1 to {MAX_STEP_INTERVAL_US:,}",
            )
        experiment = self.text(header[16], "experiment")
        environment = self.text(header[17], "environment")
        recurrence = self.read_recurrence(header) if header[1] == RECURRENT_VERSION else None
        tables_bytes = layer_count * LAYER.size + (observation_dim + action_dim) * CHANNEL.size
        if self.position + tables_bytes > len(self.data):
            raise self.refuse("malformed", "its tables do not fit into it")
        first = self.position
        choices = self.choice_counts(counts) if flags & HAS_CHOICES else [0] * action_dim
        width = sum(count or 1 for count in choices)
        tables_bytes += sum(choices) * CHOICE.size + (ENTRY.size if flags & HAS_ENTRY else 0)
        shapes = self.read_layer_table(observation_dim, width, layer_count, recurrence)
        parameters = sum(shape.parameters for shape in shapes)
        floats = (2 * observation_dim if flags & HAS_NORMALIZER else 0) + parameters
        words = (0 if recurrence is None else 1) + observation_dim + 1 + width + action_dim
        if first + tables_bytes + 4 * (floats + example_count * words) != len(self.data):
            raise self.refuse("malformed", "its sections do not add up to its length")
        channels = [self.read_channel(index) for index in range(observation_dim + action_dim)]
        actions = [
            self.read_choices(channel, count)
            for channel, count in zip(channels[observation_dim:], choices, strict=True)
        ]
        entry = self.read_entry() if flags & HAS_ENTRY else None
        normalizer = None
        if flags & HAS_NORMALIZER:
            mean = self.read_floats(observation_dim, "normalizer")
            normalizer = (mean, self.read_floats(observation_dim, "normalizer"))
        layers = tuple(self.read_layer(index, shape) for index, shape in enumerate(shapes))
        examples = tuple(
            self.read_example(index, (observation_dim, width, action_dim), recurrence is not None)
            for index in range(example_count)
        )
        return PolicyImage(
            data=self.data,
            origin=self.origin,
            step_interval_us=header[10],
            step=header[11],
            seed=header[12],
            fingerprint=header[13],
            state_sha256=header[15].hex(),
            experiment=experiment,
            environment=environment,
            observations=tuple(channels[:observation_dim]),
            actions=tuple(actions),
            normalizer=normalizer,
            layers=layers,
            examples=examples,
            recurrence=recurrence,
            entry=entry,
            stated=Statements(assumed=flags & ASSUMPTIONS),
        )

    def read_envelope(self) -> tuple[Any, ...]:
        """Check length, magic, version and checksum, and return the header's fields."""
        data = self.data
        if len(data) < HEADER.size:
            raise self.refuse("too_short", f"{len(data)} bytes, a header alone has {HEADER.size}")
        header = HEADER.unpack_from(data)
        magic, version, stated_bytes, total_bytes, crc32 = header[:5]
        if magic != MAGIC:
            raise self.refuse("bad_magic", "it does not begin with RLTP")
        if version not in (VERSION, RECURRENT_VERSION):
            known = f"this program reads {VERSION} and {RECURRENT_VERSION}"
            raise self.refuse("unknown_version", f"version {version}, {known}")
        needed = header_bytes(version)
        if stated_bytes != needed or total_bytes != len(data) or len(data) < needed:
            raise self.refuse(
                "wrong_size", f"{len(data):,} bytes, but its header says {total_bytes:,}"
            )
        if image_crc32(data) != crc32:
            raise self.refuse("wrong_crc", "its checksum does not match, fetch it again")
        return header

    def read_recurrence(self, header: tuple[Any, ...]) -> Recurrence:
        *fields, reserved = self.take(RECURRENCE)
        found = Recurrence(*fields)
        interval = header[10]
        if (
            reserved
            or not 1 <= found.trained_interval_us <= MAX_STEP_INTERVAL_US
            or found.trained_interval_us % interval
            or not interval <= found.max_pause_us <= MAX_STEP_INTERVAL_US
            or not found.state_dim
            or not found.reset_at & RESET_AT_ACTIVATION
            or found.reset_at > RESET_AT_ALL
        ):
            raise self.refuse("malformed", "what it says of its hidden state contradicts itself")
        return found

    def text(self, field: bytes, what: str) -> str:
        value, _, rest = field.partition(b"\0")
        if not value or len(value) == len(field) or rest.strip(b"\0"):
            raise self.refuse("malformed", f"a text of its {what} is empty or not ended by a zero")
        return value.decode("utf-8", "replace")

    def take(self, record: struct.Struct) -> tuple[Any, ...]:
        fields = record.unpack_from(self.data, self.position)
        self.position += record.size
        return fields

    def choice_counts(self, counts: tuple[int, int, int, int]) -> list[int]:
        """Return how many choices each action has, 0 for a continuous one."""
        observation_dim, action_dim, layer_count, _ = counts
        found = []
        for index in range(observation_dim, observation_dim + action_dim):
            position = self.position + layer_count * LAYER.size + index * CHANNEL.size
            _, unit, minimum, maximum = CHANNEL.unpack_from(self.data, position)
            is_choice = unit.partition(b"\0")[0] == CHOICE_UNIT.encode()
            if is_choice and not (
                minimum == 0 and 1 <= maximum < MAX_CHOICES and maximum == int(maximum)
            ):
                raise self.refuse("malformed", f"channel {index} is not a choice of 2 to 256 names")
            found.append(int(maximum) + 1 if is_choice else 0)
        if not any(found):
            raise self.refuse("malformed", "it says that an action is a choice, and none is")
        return found

    def read_choices(self, channel: Channel, count: int) -> Channel:
        """Return the action with the names of its `count` choices; unchanged where that is 0."""
        if not count:
            return channel
        what = f'choice of "{channel.name}"'
        names = [self.text(self.take(CHOICE)[0], what) for _ in range(count)]
        if any("|" in name for name in names):
            raise self.refuse("malformed", f"a name of a {what} has a bar")
        return replace(channel, unit="|".join(names))

    def read_entry(self) -> EntryEnvelope:
        *bounds, reserved = self.take(ENTRY)
        if not np.isfinite(bounds).all():
            raise self.refuse("not_finite", "what it may be handed has a bound that is not finite")
        if min(bounds) < 0 or reserved:
            raise self.refuse("malformed", "what it may be handed contradicts itself")
        return EntryEnvelope(*bounds)

    def read_layer_table(
        self, observation_dim: int, width: int, layer_count: int, recurrence: Recurrence | None
    ) -> list[Shape]:
        """Return each layer's record. They lead from the observations to the outputs."""
        shapes = []
        present = observation_dim
        for index in range(layer_count):
            shape = Shape(*self.take(LAYER))
            if shape.in_dim != present or not shape.is_known(recurrence is not None):
                raise self.refuse("malformed", f"layer {index} does not fit the one before")
            shapes.append(shape)
            present = shape.out_dim
        if present != width:
            raise self.refuse("malformed", "the last layer's width is not that of the actions")
        state_dim = sum(shape.state_dim for shape in shapes)
        if state_dim != (0 if recurrence is None else recurrence.state_dim):
            raise self.refuse("malformed", "its hidden state is not that of its layers")
        return shapes

    def read_channel(self, index: int) -> Channel:
        name, unit, minimum, maximum = self.take(CHANNEL)
        if b"|" in unit:
            raise self.refuse("malformed", f"the unit of channel {index} has a bar")
        channel = Channel(
            self.text(name, f"channel {index}"),
            self.text(unit, f"channel {index}"),
            minimum,
            maximum,
        )
        with np.errstate(over="ignore", invalid="ignore"):
            span = np.float32(maximum) - np.float32(minimum)
        if not np.isfinite([minimum, maximum, span]).all():
            raise self.refuse("not_finite", f"the range of channel {index} is not finite")
        if not minimum < maximum:
            raise self.refuse("malformed", f"the range of channel {index} is empty")
        return channel

    def read_floats(self, count: int, what: str) -> Float32Array:
        values = np.frombuffer(self.data, "<f4", count, self.position).astype(np.float32)
        self.position += 4 * count
        if not np.isfinite(values).all():
            raise self.refuse("not_finite", f"a number of {what} is infinite or not a number")
        return values

    def read_layer(self, index: int, shape: Shape) -> Layer:
        name = list(activations())[shape.activation]
        product = self.read_product(index, shape.in_dim, shape.columns)
        if shape.kind == DENSE:
            return Layer(name, *product)
        return Layer(name, *product, self.read_product(index, shape.out_dim, shape.columns))

    def read_product(
        self, index: int, rows: int, columns: int
    ) -> tuple[Float32Array, Float32Array]:
        weights = self.read_floats(rows * columns, f"layer {index}").reshape(rows, columns)
        return weights, self.read_floats(columns, f"layer {index}")

    def read_example(self, index: int, dims: tuple[int, int, int], is_step: bool) -> Example:
        observation_dim, width, action_dim = dims
        (begins,) = self.take(WORD) if is_step else (1,)
        if begins > 1 or (index == 0 and not begins):
            raise self.refuse("malformed", f"example {index} neither begins a sequence nor goes on")
        observation = self.read_floats(observation_dim, f"example {index}")
        (trace,) = self.take(WORD)
        output = self.read_floats(width, f"example {index}")
        action = self.read_floats(action_dim, f"example {index}")
        return Example(observation, trace, output, action, bool(begins))
