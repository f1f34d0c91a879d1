"""A policy as an ONNX model, which onnxruntime compares with it before it is written; what this and
the models of frameworks.py say of the policy, and what they cannot hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from rltools_host.build import experiments, tools
from rltools_host.build.description import Channel, channels, ranges_of
from rltools_host.errors import RefusedError, UsageError
from rltools_host.lines import aside
from rltools_host.policies.contract import (
    DENSE,
    GATES,
    GRU,
    RESET_AT_ACTIVATION,
    RESET_AT_FAULT,
    RESET_AT_PAUSE,
    RESET_AT_STALE_INPUT,
    Layer,
    Recurrence,
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
OPSET, IR_VERSION = 17, 10  # that runtimes have read for long
SAMPLES = 1000
COMPARED_STEPS = 8  # of a recurrent policy
EPISODES, SEED, MOST_PLAYED = 4, 0, 1000  # that are played, and steps of them
# Of an observation: how far from the middle of its range, as some ranges have no end; or where
# there is a normalizer, how many standard deviations from its mean.
REACHES, DEVIATIONS = (1.0, 1e1, 1e2, 1e3), 3
# Activations of the core's list, each as operators of ONNX that take what the one before gave, with
# a constant or x besides.
X = "x"
OPERATORS: dict[str, tuple[tuple[str, float | str | None], ...]] = {
    "identity": (),
    "relu": (("Relu", None),),
    "gelu": (("Mul", 0.5**0.5), ("Erf", None), ("Add", 1.0), ("Mul", X), ("Mul", 0.5)),
    "tanh": (("Tanh", None),),
    "sigmoid": (("Sigmoid", None),),
    "softplus": (("Softplus", None),),
    "elu": (("Elu", None),),
    "silu": (("Sigmoid", None), ("Mul", X)),
}


def require_no_masks(image: PolicyImage, framework: str) -> None:
    if any(mask is not None for mask in masks_of(image.observations, image.actions)):
        raise UsageError(
            f"no export for {framework} of a policy whose observations forbid choices is written "
            "yet: export it with --to c"
        )


def known(table: Mapping[str, T], activation: str, framework: str) -> T:
    if activation not in table:
        raise UsageError(f"no export for {framework} of a policy with {activation} is written yet")
    return table[activation]


def recurrence(of: Recurrence) -> dict[str, Any]:
    """When the hidden state moves on, and when it is zero."""
    return {
        "trained_interval_us": of.trained_interval_us,
        "most_pause_us": of.most_pause_us,
        "state_dim": of.state_dim,
        "reset_at": [name for bit, name in RESETS.items() if of.reset_at & bit],
    }


def contract(image: PolicyImage) -> dict[str, Any]:
    """What a user has to know of inputs and outputs."""

    def rows(of: Sequence[Channel]) -> list[dict[str, Any]]:
        return [
            {
                "name": c.name,
                "unit": "choice" if c.choices else c.unit,
                "minimum": c.minimum,
                "maximum": c.maximum,
                **({"choices": [*c.choices]} if c.choices else {}),
            }
            for c in of
        ]

    return {
        "experiment": image.experiment,
        "environment": image.environment,
        "state_sha256": image.state_sha256,
        "step_interval_us": image.step_interval_us,
        **({} if image.recurrence is None else {"recurrence": recurrence(image.recurrence)}),
        "observations": rows(image.observations),
        "actions": rows(image.actions),
    }


def sampled_observations(image: PolicyImage) -> Float32Array:
    """(SAMPLES, observations) in the ranges, and where policies act."""
    if image.normalizer is not None:
        mean, inverse_std = (part.astype(float) for part in image.normalizer)
        return sampled(image.inputs, SAMPLES, mean, DEVIATIONS / inverse_std)
    count = SAMPLES // len(REACHES)
    return np.concatenate([sampled(image.inputs, count, reach=reach) for reach in REACHES])


def played_observations(image: PolicyImage) -> Float32Array | None:
    """Of its episodes, (n, observations); None where the core does not simulate them."""
    if image.experiment not in experiments.list_experiments():
        return None
    environment = experiments.describe(image.experiment).environment
    here = environment["name"], channels(environment["observations"])
    if here != (image.environment, image.observations):
        return None
    episodes = core_episodes(image, EPISODES, SEED, {})
    return np.concatenate([episode.observations for episode in episodes])


class Graph:
    """Nodes one after another; each takes what the one before gave."""

    def __init__(self, first: str) -> None:
        from onnx import helper, numpy_helper

        self.helper, self.numpy_helper = helper, numpy_helper
        self.last = first
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.states: list[str] = []  # after the step, of each recurrent layer: parts in order

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
        """Of what the one before gave."""
        name = f"columns_{len(self.constants)}"
        numbers = np.arange(first, first + count, dtype=np.int64)
        self.constants.append(self.numpy_helper.from_array(numbers, name))
        return self.add("Gather", name, axis=1)

    def scale(self, low: Float32Array, high: Float32Array, to: str | None = None) -> str:
        """Outputs become actions, in their units."""
        self.add("Clip", self.constant(-1.0), self.constant(1.0))
        self.add("Mul", self.constant((high - low) / 2))
        self.add("Add", self.constant((high + low) / 2))
        self.add("Max", self.constant(low))
        return self.add("Min", self.constant(high), to=to)

    def choose(self, image: PolicyImage) -> None:
        """The number of each choice's largest output, of equal ones the first."""
        outputs, place, parts = self.last, 0, []
        low, high = ranges_of(image.actions)
        for index, action in enumerate(image.actions):
            self.last = outputs
            self.columns(place, len(action.choices) or 1)
            place += len(action.choices) or 1
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
        for operator, beside in known(OPERATORS, layer.activation, "ONNX"):
            more = () if beside is None else (x if beside == X else self.constant(beside),)
            self.add(operator, *more)

    def gru(self, layer: Layer, place: int) -> None:
        """PyTorch's GRU, of a state that begins at `place` of the policy's."""
        own, parts = self.products(layer, place)
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

    def lstm(self, layer: Layer, place: int) -> None:
        """PyTorch's LSTM, likewise: its outputs, and behind them its cells."""
        _, parts = self.products(layer, place)
        functions = ("Sigmoid", "Sigmoid", "Tanh", "Sigmoid")
        into, forget, candidate, out = (
            self.gate(function, *part) for function, part in zip(functions, parts, strict=True)
        )
        self.last = into
        added = self.add("Mul", candidate)
        self.last = "state"
        self.columns(place + layer.width, layer.width)
        self.add("Mul", forget)
        cells = self.add("Add", added)
        self.add("Tanh")
        self.states += [self.add("Mul", out), cells]

    def products(self, layer: Layer, place: int) -> tuple[str, list[tuple[str, str]]]:
        """The outputs of the step before, and for each gate its columns of the products of the
        input and of these."""
        width, weights = layer.width, [self.constant(each) for each in layer.tensors]
        sums = self.add("Gemm", *weights[:2])
        self.last = "state"
        own = self.columns(place, width)
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
    """The model: `observation` (batch, n) in its units to `action` (batch, m) in its units. Of a
    recurrent policy `state` (batch, k), zeros at first, to `next_state` besides, by a step of
    training."""
    require_no_masks(image, "ONNX")
    tools.ensure_group(GROUP)
    from onnx import TensorProto, checker

    graph = Graph("observation")
    if image.normalizer is not None:
        mean, inverse_std = image.normalizer
        graph.add("Sub", graph.constant(mean))
        graph.add("Mul", graph.constant(inverse_std))
    place = 0
    for layer in image.layers:
        if layer.kind == DENSE:
            graph.dense(layer)
        elif layer.kind == GRU:
            graph.gru(layer, place)
        else:
            graph.lstm(layer, place)
        place += layer.state_dim
    if choices_of(image.actions):
        graph.choose(image)
    else:
        graph.scale(*ranges_of(image.actions), to="action")
    make = graph.helper
    sizes = {"observation": len(image.observations), "action": len(image.actions)}
    if graph.states:
        graph.last = graph.states[0]
        graph.add("Concat", *graph.states[1:], to="next_state", axis=1)
        sizes |= {"state": place, "next_state": place}
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
    make.set_model_props(model, {"contract": json.dumps(contract(image))})
    checker.check_model(model, full_check=True)
    data: bytes = model.SerializeToString()
    require_same_actions(image, data)
    return data


def runtime_session(model: bytes) -> Any:
    """onnxruntime's, with one thread, which keeps its warnings to itself."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def require_same_actions(image: PolicyImage, model: bytes) -> None:
    """onnxruntime's actions are this machine's, but for what rounding makes of them."""
    session = runtime_session(model)
    examples = np.array([example.observation for example in image.examples], np.float32)
    inputs, where = np.concatenate([sampled_observations(image), examples]), "of its ranges"
    played = played_observations(image)
    if played is not None:
        inputs, where = np.concatenate([inputs, played[:MOST_PLAYED]]), "of its episodes and ranges"
    steps = COMPARED_STEPS if image.recurrence is not None else 1
    rows = inputs[: len(inputs) // steps * steps].reshape(-1, steps, inputs.shape[1])
    half = np.subtract(*ranges_of(image.actions, np.float64)[::-1]) / 2
    states = image.runner.begin(len(rows))
    differences, limits = [], []
    for step in range(steps):
        given = {"observation": np.ascontiguousarray(rows[:, step])}
        if image.recurrence is not None:
            given["state"] = states.copy()
        most = allowed(image, given["observation"], states)
        actions, *after = session.run(None, given)
        outputs, ours = image.runner.run(given["observation"], states)
        decided = ~most.is_close_choice(image, outputs)
        differences += [(np.abs(actions - ours.astype(float)) / half)[decided]]
        limits += [most.actions[decided]]
        differences += [np.abs(each - states.astype(float)).ravel() for each in after]
        limits += [most.states.ravel() for _ in after]
    difference, limit = np.concatenate(differences), np.concatenate(limits)
    if not (difference <= limit).all():
        worst = (difference / limit).argmax()
        raise RefusedError(
            f"{image.origin}: onnxruntime's actions are off by {difference[worst]:.1e} of half "
            f"their range, and rounding allows {limit[worst]:.1e}: nothing was written"
        )
    most_off = difference.argmax()
    aside(
        f"onnxruntime's actions for {rows.shape[0] * steps:,} observations {where} are within "
        f"{difference[most_off]:.1e} of half their range, rounding allows {limit[most_off]:.1e}"
    )
