"""A policy as an ONNX model, which is compared with the policy in onnxruntime before it is written,
and the contract that all models of frameworks.py state."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np

from rltools_host.build import experiments, tools
from rltools_host.build.description import MAX_STEP_INTERVAL_US, Channel, channels, ranges_of
from rltools_host.errors import RefusedError, UsageError
from rltools_host.lines import aside
from rltools_host.policies.activations import X, activation_named
from rltools_host.policies.contract import (
    DENSE,
    GATES,
    GRU,
    RESET_AT_ACTIVATION,
    RESET_AT_FAULT,
    RESET_AT_PAUSE,
    RESET_AT_STALE_INPUT,
    Layer,
    choices_of,
    masks_of,
)
from rltools_host.policies.double_precision import allowed
from rltools_host.policies.episodes import core_episodes
from rltools_host.policies.image import Float32Array, PolicyImage
from rltools_host.policies.image_writing import sampled

T = TypeVar("T")
RESETS = {
    RESET_AT_ACTIVATION: "activation",
    RESET_AT_FAULT: "fault",
    RESET_AT_STALE_INPUT: "stale input",
    RESET_AT_PAUSE: "pause",
}
GROUP = "onnx"
OPSET, IR_VERSION = 17, 10  # old enough for most runtimes
SAMPLES = 1000
COMPARED_STEPS = 8  # of a recurrent policy
EPISODES, SEED, MAX_PLAYED = 4, 0, 1000  # of the comparison
# Distances of sampled observations from the middle of their range, as some ranges are huge; with a
# normalizer, standard deviations from its mean.
REACHES, DEVIATIONS = (1.0, 1e1, 1e2, 1e3), 3


def require_no_masks(image: PolicyImage, framework: str) -> None:
    if any(mask is not None for mask in masks_of(image.observations, image.actions)):
        raise UsageError(
            f"no export for {framework} of a policy whose observations forbid choices is written "
            "yet: export it with --to c"
        )


Interval = Annotated[int, msgspec.Meta(ge=1, le=MAX_STEP_INTERVAL_US)]


class ExportedChannel(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A channel in an exported contract."""

    name: str
    unit: str
    minimum: float
    maximum: float
    choices: tuple[str, ...] = ()


class ExportedRecurrence(msgspec.Struct):
    """The step with which the hidden state moves on, and when it is zero."""

    trained_interval_us: Interval
    max_pause_us: int = msgspec.field(name="most_pause_us")  # the key of files of today
    state_dim: int
    reset_at: list[str]


class ExportedContract(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The inputs and outputs of an exported policy, as its metadata states them."""

    experiment: str
    environment: str
    state_sha256: str
    step_interval_us: Interval
    recurrence: ExportedRecurrence | None = None
    observations: list[ExportedChannel]
    actions: list[ExportedChannel]


def contract_text(image: PolicyImage) -> str:
    """Return the contract as JSON, for the metadata of models."""

    def exported(channels: Sequence[Channel]) -> list[ExportedChannel]:
        return [
            ExportedChannel(
                name=channel.name,
                unit="choice" if channel.choices else channel.unit,
                minimum=channel.minimum,
                maximum=channel.maximum,
                choices=channel.choices,
            )
            for channel in channels
        ]

    recurrence = None
    if image.recurrence is not None:
        recurrence = ExportedRecurrence(
            image.recurrence.trained_interval_us,
            image.recurrence.max_pause_us,
            image.recurrence.state_dim,
            [name for bit, name in RESETS.items() if image.recurrence.reset_at & bit],
        )
    contract = ExportedContract(
        experiment=image.experiment,
        environment=image.environment,
        state_sha256=image.state_sha256,
        step_interval_us=image.step_interval_us,
        recurrence=recurrence,
        observations=exported(image.observations),
        actions=exported(image.actions),
    )
    return json.dumps(msgspec.to_builtins(contract))


def sampled_observations(image: PolicyImage) -> Float32Array:
    """Return observations (SAMPLES, observations) in the ranges, and where policies act."""
    if image.normalizer is not None:
        mean, inverse_std = (part.astype(float) for part in image.normalizer)
        return sampled(image.inputs, SAMPLES, mean, DEVIATIONS / inverse_std)
    count = SAMPLES // len(REACHES)
    return np.concatenate([sampled(image.inputs, count, reach=reach) for reach in REACHES])


def played_observations(image: PolicyImage) -> Float32Array | None:
    """Return observations of the policy's episodes, (n, observations), or None where the core does
    not simulate them."""
    if image.experiment not in experiments.list_experiments():
        return None
    environment = experiments.describe(image.experiment).environment
    here = environment["name"], channels(environment["observations"])
    if here != (image.environment, image.observations):
        return None
    episodes = core_episodes(image, EPISODES, SEED, {})
    return np.concatenate([episode.observations for episode in episodes])


class Graph:
    """Nodes one after another, each of which takes the last value."""

    def __init__(self, first: str) -> None:
        from onnx import helper, numpy_helper

        self.helper, self.numpy_helper = helper, numpy_helper
        self.last = first
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.states: list[str] = []  # after the step, of each recurrent layer

    def constant(self, value: Any) -> str:
        name = f"constant_{len(self.constants)}"
        array = np.ascontiguousarray(value, np.float32)
        self.constants.append(self.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, to: str | None = None, **attributes: Any) -> str:
        name = to or f"value_{len(self.nodes)}"
        given = [self.last, *inputs]
        self.nodes.append(self.helper.make_node(operator, given, [name], **attributes))
        self.last = name
        return name

    def columns(self, first: int, count: int) -> str:
        """Add a selection of columns of the last value."""
        name = f"columns_{len(self.constants)}"
        numbers = np.arange(first, first + count, dtype=np.int64)
        self.constants.append(self.numpy_helper.from_array(numbers, name))
        return self.add("Gather", name, axis=1)

    def scale(self, low: Float32Array, high: Float32Array, to: str | None = None) -> str:
        """Add the scaling of outputs to actions in their units."""
        self.add("Clip", self.constant(-1.0), self.constant(1.0))
        self.add("Mul", self.constant((high - low) / 2))
        self.add("Add", self.constant((high + low) / 2))
        self.add("Max", self.constant(low))
        return self.add("Min", self.constant(high), to=to)

    def choose(self, image: PolicyImage) -> None:
        """Add the number of each discrete action's largest output, of equal ones the first."""
        outputs, offset, parts = self.last, 0, []
        low, high = ranges_of(image.actions)
        for index, action in enumerate(image.actions):
            self.last = outputs
            self.columns(offset, len(action.choices) or 1)
            offset += len(action.choices) or 1
            if action.choices:
                self.add("ArgMax", axis=1, keepdims=1)
                parts.append(self.add("CastLike", self.constant(0.0)))
            else:
                parts.append(self.scale(low[index : index + 1], high[index : index + 1]))
        self.last = parts[0]
        self.add("Concat", *parts[1:], to="action", axis=1)

    def dense(self, layer: Layer) -> None:
        self.add("Gemm", self.constant(layer.weights), self.constant(layer.bias))
        x = self.last
        for operator, beside in activation_named(layer.activation).onnx:
            more = () if beside is None else (x if beside == X else self.constant(beside),)
            self.add(operator, *more)

    def gru(self, layer: Layer, offset: int) -> None:
        """Add PyTorch's GRU, whose state begins at this offset of the policy's."""
        own, parts = self.products(layer, offset)
        (reset_x, reset_h), (keep_x, keep_h), (candidate_x, candidate_h) = parts
        reset = self.gate("Sigmoid", reset_x, reset_h)
        keep = self.gate("Sigmoid", keep_x, keep_h)
        self.last = candidate_h
        self.add("Mul", reset)
        self.add("Add", candidate_x)
        candidate = self.add("Tanh")
        self.last = own
        self.add("Sub", candidate)
        self.add("Mul", keep)
        self.states.append(self.add("Add", candidate))

    def lstm(self, layer: Layer, offset: int) -> None:
        """Add PyTorch's LSTM, whose outputs, and behind them cells, begin at this offset of the
        policy's state."""
        _, parts = self.products(layer, offset)
        functions = ("Sigmoid", "Sigmoid", "Tanh", "Sigmoid")
        into, forget, candidate, out = (
            self.gate(function, *part) for function, part in zip(functions, parts, strict=True)
        )
        self.last = into
        added = self.add("Mul", candidate)
        self.last = "state"
        self.columns(offset + layer.width, layer.width)
        self.add("Mul", forget)
        cells = self.add("Add", added)
        self.add("Tanh")
        self.states += [self.add("Mul", out), cells]

    def products(self, layer: Layer, offset: int) -> tuple[str, list[tuple[str, str]]]:
        """Return the outputs of the step before, and for each gate its columns of the products of
        the input and of these outputs."""
        width, weights = layer.width, [self.constant(each) for each in layer.tensors]
        sums = self.add("Gemm", *weights[:2])
        self.last = "state"
        own = self.columns(offset, width)
        hidden = self.add("Gemm", *weights[2:])

        def part(product: str, gate: int) -> str:
            self.last = product
            return self.columns(gate * width, width)

        gates = range(GATES[layer.kind])
        return own, [(part(sums, gate), part(hidden, gate)) for gate in gates]

    def gate(self, function: str, x: str, h: str) -> str:
        self.last = x
        self.add("Add", h)
        return self.add(function)


def encode_onnx(image: PolicyImage) -> bytes:
    """Return the model: `observation` (batch, n) in its units to `action` (batch, m) in its units.

    A recurrent policy also takes `state` (batch, k), zeros at first, and gives `next_state`, by a
    step of training.
    """
    require_no_masks(image, "ONNX")
    tools.ensure_group(GROUP)
    from onnx import TensorProto, checker

    graph = Graph("observation")
    if image.normalizer is not None:
        mean, inverse_std = image.normalizer
        graph.add("Sub", graph.constant(mean))
        graph.add("Mul", graph.constant(inverse_std))
    offset = 0
    for layer in image.layers:
        if layer.kind == DENSE:
            graph.dense(layer)
        elif layer.kind == GRU:
            graph.gru(layer, offset)
        else:
            graph.lstm(layer, offset)
        offset += layer.state_dim
    if choices_of(image.actions):
        graph.choose(image)
    else:
        graph.scale(*ranges_of(image.actions), to="action")
    make = graph.helper
    sizes = {"observation": len(image.observations), "action": len(image.actions)}
    if graph.states:
        graph.last = graph.states[0]
        graph.add("Concat", *graph.states[1:], to="next_state", axis=1)
        sizes |= {"state": offset, "next_state": offset}
    values = {
        name: make.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", size])
        for name, size in sizes.items()
    }
    given = [values[name] for name in ("observation", "state") if name in values]
    found = [values[name] for name in ("action", "next_state") if name in values]
    model = make.make_model(
        make.make_graph(graph.nodes, "policy", given, found, graph.constants),
        opset_imports=[make.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="rltools",
    )
    make.set_model_props(model, {"contract": contract_text(image)})
    checker.check_model(model, full_check=True)
    data: bytes = model.SerializeToString()
    require_same_actions(image, data)
    return data


def runtime_session(model: bytes) -> Any:
    """Return a session of onnxruntime with one thread, which prints no warnings."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def require_same_actions(image: PolicyImage, model: bytes) -> None:
    """Raise RefusedError unless onnxruntime's actions are this machine's within rounding."""
    session = runtime_session(model)
    examples = np.array([example.observation for example in image.examples], np.float32)
    inputs, where = np.concatenate([sampled_observations(image), examples]), "of its ranges"
    played = played_observations(image)
    if played is not None:
        inputs, where = np.concatenate([inputs, played[:MAX_PLAYED]]), "of its episodes and ranges"
    steps = COMPARED_STEPS if image.recurrence is not None else 1
    rows = inputs[: len(inputs) // steps * steps].reshape(-1, steps, inputs.shape[1])
    half = np.subtract(*ranges_of(image.actions, np.float64)[::-1]) / 2
    states = image.runner.begin(len(rows))
    differences, limits = [], []
    for step in range(steps):
        given = {"observation": np.ascontiguousarray(rows[:, step])}
        if image.recurrence is not None:
            given["state"] = states.copy()
        tolerances = allowed(image, given["observation"], states)
        actions, *after = session.run(None, given)
        outputs, ours = image.runner.run(given["observation"], states)
        decided = ~tolerances.is_close_choice(image, outputs)
        differences += [(np.abs(actions - ours.astype(float)) / half)[decided]]
        limits += [tolerances.actions[decided]]
        differences += [np.abs(each - states.astype(float)).ravel() for each in after]
        limits += [tolerances.states.ravel() for _ in after]
    difference, limit = np.concatenate(differences), np.concatenate(limits)
    if not (difference <= limit).all():
        worst = (difference / limit).argmax()
        raise RefusedError(
            f"{image.origin}: onnxruntime's actions are off by {difference[worst]:.1e} of half "
            f"their range, and rounding allows {limit[worst]:.1e}: nothing was written"
        )
    largest = difference.argmax()
    aside(
        f"onnxruntime's actions for {rows.shape[0] * steps:,} observations {where} are within "
        f"{difference[largest]:.1e} of half their range, rounding allows {limit[largest]:.1e}"
    )
