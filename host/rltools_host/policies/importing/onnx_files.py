"""Models of ONNX, read as stages: a chain of dense layers, activations, scaling and clipping.

The package onnx decodes the file, and onnxruntime computes the model's own actions for the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rltools_host.build import tools
from rltools_host.documents import shown
from rltools_host.policies.activations import ACTIVATIONS
from rltools_host.policies.importing.layers import affine, listed
from rltools_host.policies.importing.network import (
    WIDEST,
    Activate,
    Clip,
    Dense,
    ForeignPolicy,
    Normalize,
    Stage,
    ends_of,
)
from rltools_host.policies.importing.pickles import (
    MAX_DIMENSIONS,
    MAX_ELEMENTS,
    Array,
    UnreadableError,
)
from rltools_host.policies.onnx_model import runtime_session

GROUP = "onnx"
MAX_NODES, MAX_INPUTS = 10_000, 100
NUMBERS = {  # types of constants, each of which takes its bytes in the file
    *("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "BOOL"),
    *(f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)),
}
READ = {  # operators of ONNX
    each.read_onnx or each.onnx[0][0]: name
    for name, each in ACTIVATIONS.items()
    if each.read_onnx or len(each.onnx) == 1
}
RECURRENT = ("GRU", "LSTM", "RNN")
UNCHANGED = ("Identity", "Dropout")  # operators that keep the numbers
FULL, HALF = ("FLOAT", "DOUBLE"), ("FLOAT16", "BFLOAT16")  # types of numbers
SHAPES = ("Expand", "Reshape", "Squeeze", "Unsqueeze")  # that may keep a vector as it is
RANDOM = ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli")
STATED = ("value", "value_float", "value_floats", "value_int", "value_ints")  # of a Constant
OTHERS = (
    "export a chain of dense layers and activations, or import what the library itself saved: its "
    ".zip, or a state_dict()"
)
DEFAULTS = {"Elu": ("alpha", 1.0), "Swish": ("alpha", 1.0)}  # of the core's functions


@dataclass(frozen=True)
class Erf:
    """A part of GELU, x (1 + erf(x / sqrt 2)) / 2, whose factors may come in any order."""

    plus_one: bool = False
    times_x: bool = False
    halved: bool = False


Part = Stage | Erf
Chain = tuple[Part, ...]
Sizes = list[int | None] | None  # of a shape; None: not known


# Names of the action among other outputs, such as a value or a deviation.
ACTION_NAMES = {
    *("action", "actions", "mu", "mus", "mean", "means", "mean_actions", "action_mean"),
    *("actions_mean", "deterministic_actions", "deterministic_continuous_actions"),
}


def policy_in(content: bytes, output: str | None = None) -> ForeignPolicy:
    """Return the policy of the model's one output, or of the output with this name."""
    tools.ensure_group(GROUP)
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load_model_from_string(content)
        reader = _Reader(model.graph, output)
        stages = reader.read()
    except (
        DecodeError,
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        ArithmeticError,
        RuntimeError,
    ):
        raise UnreadableError("it is not an ONNX model, or it is damaged") from None
    own = [entry.value for entry in model.metadata_props if entry.key == "contract"]
    ends_in_tanh = stages[-1] == Activate("tanh")
    is_normalized = True if ends_in_tanh else False if own else None
    return ForeignPolicy(
        "ONNX",
        stages,
        is_normalized=is_normalized,
        is_scaling_assumed=ends_in_tanh,
        assumed=assumed_output(reader.names, reader.output, output),
        reference=runtime_of(content, reader.output),
        input_names=tuple(entry.name for entry in reader.inputs()),
        may_have_deviations=True,
        has_half_precision=reader.has_half_precision,
    )


RUNTIME_TYPES = {"tensor(float)": "f4", "tensor(double)": "f8", "tensor(float16)": "f2"}


def runtime_of(content: bytes, given: str) -> Callable[[NDArray[np.float32]], Array]:
    """Return a function that computes the model's own outputs, (n, out) for (n, in)."""

    def outputs(x: NDArray[np.float32]) -> Array:
        try:
            return computed(x)
        except Exception as error:  # onnxruntime has no base class for its own
            if isinstance(error, MemoryError):
                raise
            raise UnreadableError("onnxruntime cannot compute its model") from None

    def computed(x: NDArray[np.float32]) -> Array:
        session = runtime_session(part_of(content, given))
        taken = session.get_inputs()
        ends = np.cumsum([each.shape[-1] for each in taken])[:-1]

        def run(seen: NDArray[np.float32]) -> Array:
            kinds = [RUNTIME_TYPES[each.type] for each in taken]
            split = zip(np.split(seen, ends, axis=-1), kinds, strict=True)
            parts = [part.astype(kind) for part, kind in split]
            names = [each.name for each in taken]
            result: Array = session.run([given], dict(zip(names, parts, strict=True)))[0]
            return np.asarray(result, float)

        if len(taken[0].shape) == 1:  # one observation at a time
            found = np.array([run(row) for row in x])
        elif taken[0].shape[0] == 1:
            found = np.concatenate([run(row[None]) for row in x])
        else:
            found = run(x)
        return found.reshape(len(x), -1)

    return outputs


def part_of(content: bytes, output: str) -> bytes:
    """Return the model without what this output does not need, which onnxruntime would compute."""
    import onnx

    model = onnx.load_model_from_string(content)
    graph = model.graph
    nodes = needed_nodes(graph, output)
    taken = {name for node in nodes for name in node.input}
    given = {entry.name for entry in graph.initializer}
    part = onnx.GraphProto(
        name=graph.name,
        node=nodes,
        initializer=[entry for entry in graph.initializer if entry.name in taken],
        input=[entry for entry in graph.input if entry.name in taken or entry.name not in given],
        output=[entry for entry in graph.output if entry.name == output],
    )
    stated = {"ir_version": model.ir_version, "opset_import": model.opset_import}
    return bytes(onnx.ModelProto(graph=part, **stated).SerializeToString())


def needed_nodes(graph: Any, output: str, *, is_of_numbers: bool = False) -> list[Any]:
    """Return the nodes that this output needs, in their order.

    is_of_numbers: without those of which only the shape counts.
    """
    wanted, found = {output}, []
    for node in reversed(graph.node):
        if wanted & set(node.output):
            found.append(node)
            if not (is_of_numbers and node.op_type == "Shape"):
                wanted.update(node.input)
    return found[::-1]


class _Reader:
    """A reader of the nodes that the output needs.

    The output is the one that is asked for, the only one, or the only one with the name of an
    action.
    """

    def __init__(self, graph: Any, asked: str | None) -> None:
        self.graph = graph
        self.names = [str(entry.name) for entry in graph.output]
        is_sb3 = any(".mlp_extractor." in entry.name for entry in graph.initializer)
        self.output = chosen_output(self.names, asked, SB3 if is_sb3 else "")
        self.given = frozenset(entry.name for entry in graph.initializer)
        self.constants: dict[str, Array] = {}
        self.elements = 0  # of all constants, and of what scales with them
        self.chains: dict[str, Chain] = {}
        self.lanes: dict[str, tuple[int, Chain]] = {}  # of several inputs, before they are joined
        self.shapes: dict[str, Sizes] = {}  # values that are shapes, or numbers of one
        kinds = {type_of(entry.type.tensor_type.elem_type) for entry in self.inputs()}
        self.has_half_precision = not kinds.isdisjoint(HALF)

    def read(self) -> tuple[Stage, ...]:
        inputs = self.inputs()
        if not 1 <= len(inputs) <= MAX_INPUTS:
            raise UnreadableError(
                f"its model has {len(inputs)} inputs: 1 to {MAX_INPUTS} vectors are supported"
            )
        if len(self.graph.node) > MAX_NODES:
            raise UnreadableError(f"its model has more than {MAX_NODES:,} nodes")
        if any(node.op_type in RECURRENT for node in self.graph.node):
            raise UnreadableError(
                "it has a recurrent layer, which is not supported in a model of ONNX: import the "
                "state_dict(), or what the library saved"
            )
        self.widths = [width_of_input(entry) for entry in inputs]
        self.width = sum(self.widths)
        self.rank = len(inputs[0].type.tensor_type.shape.dim)
        if len(inputs) == 1:
            self.chains[inputs[0].name] = ()
        else:
            self.lanes = {entry.name: (index, ()) for index, entry in enumerate(inputs)}
        nodes = needed_nodes(self.graph, self.output, is_of_numbers=True)
        taken = {name for node in nodes for name in node.input}
        for entry in self.graph.initializer:
            if entry.name in taken:
                self.constants[entry.name] = self.array(entry)
        for node in nodes:
            self.follow(node)
        parts = self.chains.get(self.output)
        if parts is None or any(isinstance(part, Erf) for part in parts):
            raise UnreadableError(f"its output {shown(self.output)} does not follow from its input")
        return tuple(part for part in parts if not isinstance(part, Erf))

    def inputs(self) -> list[Any]:
        """Return the inputs in the order in which an observation has them."""
        return [entry for entry in self.graph.input if entry.name not in self.given]

    def array(self, entry: Any) -> Array:
        if any(size < 0 for size in entry.dims) or len(entry.dims) > MAX_DIMENSIONS:
            raise UnreadableError("a constant of it has an impossible size")
        self.count(math.prod(entry.dims))
        self.has_half_precision |= type_of(entry.data_type) in HALF
        return _array(entry)

    def constant(self, attributes: Mapping[str, Any]) -> Array:
        """Return the numbers of a Constant, however it states them."""
        name = next((each for each in STATED if each in attributes), None)
        if name is None:
            raise UnreadableError("a constant of it is not of numbers")
        value = attributes[name]
        return self.array(value) if name == "value" else np.asarray(value, float)

    def count(self, elements: int) -> None:
        """Count numbers before there is memory for them."""
        self.elements += elements
        if self.elements > MAX_ELEMENTS:
            raise UnreadableError(f"its model has more than {MAX_ELEMENTS:,} numbers")

    def follow(self, node: Any) -> None:
        operator = node.op_type
        if node.domain not in ("", "ai.onnx"):
            raise UnreadableError(
                f"it has an operator of {shown(node.domain)}, which is not supported"
            )
        if operator in RANDOM:
            raise UnreadableError(
                f"it draws its action at random, by {operator}: export the action without noise, "
                "its mean, or name the output that is it by --output-name NAME"
            )
        if operator == "Constant":
            self.constants[node.output[0]] = self.constant(_attributes(node))
            return
        if self.is_of_shape(node):
            self.follow_shape(node)
            return
        if operator in ("Identity", "Cast") and node.input[0] in self.constants:
            self.constants[node.output[0]] = self.constants[node.input[0]]
            return
        if operator in SHAPES and node.input[0] in self.chains:
            self.chains[node.output[0]] = self.chains[node.input[0]]
            return
        if operator in ("Split", "Slice", "Gather") and node.input[0] in self.chains:
            self.select(node)
            return
        if operator == "Cast":
            self.take_cast(type_of(_attributes(node).get("to", 0)))
            operator = "Identity"
        if operator == "Concat":
            self.chains[node.output[0]] = self.joined(list(node.input), _attributes(node))
            return
        lanes = [name for name in node.input if name in self.lanes]
        if len(lanes) == 1:
            index, before = self.lanes[lanes[0]]
            if operator not in (*UNCHANGED, *ELEMENTWISE):
                raise UnreadableError("it takes its inputs one by one, and they are to be joined")
            width, self.width = self.width, self.widths[index]
            others = self.constants_of(node, lanes)
            stages = self.after(before, operator, others, _attributes(node))
            self.lanes[node.output[0]] = index, stages
            self.width = width
            return
        data = [name for name in node.input if name in self.chains]
        if len(data) == 2 and operator == "Mul":
            self.chains[node.output[0]] = self.product(*data)
            return
        if len(data) > 1:
            raise UnreadableError(
                f"it joins two values by {shown(operator)}, and only a chain, with no layer past "
                f"another, is supported: {OTHERS}"
            )
        if len(data) != 1 or data[0] not in node.input[: 2 if operator in COMMUTING else 1]:
            raise UnreadableError(f"its operator {shown(operator)} does not take the one before")
        chain = self.chains[data[0]]
        others = self.constants_of(node, data)
        self.chains[node.output[0]] = self.after(chain, operator, others, _attributes(node))

    def is_of_shape(self, node: Any) -> bool:
        """Return whether the node computes with shapes alone, and with constants."""
        if node.op_type == "Shape":
            return True
        names = [name for name in node.input if name]
        are_known = all(name in self.shapes or name in self.constants for name in names)
        return are_known and any(name in self.shapes for name in names)

    def follow_shape(self, node: Any) -> None:
        """Compute with a shape, whose number of rows is not known, as of half of a vector."""
        operator, name = node.op_type, node.output[0]
        if operator == "Shape":
            chain = self.chains.get(node.input[0])
            rows = [None] * (self.rank - 1)
            found: Sizes = None if chain is None else [*rows, width_of(chain, self.width)]
        else:
            found = computed_shape(operator, [self.sizes_of(each) for each in node.input if each])
        if found is not None and all(size is not None for size in found):
            self.constants[name] = np.array(found, float)
        is_number = operator == "Cast" and type_of(_attributes(node).get("to", 0)) in FULL
        if not is_number:  # whose quotient may be no whole number
            self.shapes[name] = found

    def sizes_of(self, name: str) -> Sizes:
        if name in self.shapes:
            return self.shapes[name]
        return [int(number) for number in self.constants[name].ravel()[:MAX_DIMENSIONS]]

    def constants_of(self, node: Any, data: Sequence[str]) -> list[Array | None]:
        """Return the constants that a node takes; of a Clip, None for an end that is left out."""
        if node.op_type == "Clip":
            return [self.constants[name] if name else None for name in node.input[1:]]
        return [self.constants[name] for name in node.input if name and name not in data]

    def take_cast(self, kind: str) -> None:
        """Take note of half precision. Raise UnreadableError for a type that loses more."""
        if kind in HALF:
            self.has_half_precision = True
        elif kind not in FULL:
            raise UnreadableError(
                f"it makes its numbers {kind}, by a Cast, and the core computes in single "
                "precision: export it without this Cast"
            )

    def select(self, node: Any) -> None:
        """Follow the columns that a Split, a Slice or a Gather takes."""
        chain, attributes = self.chains[node.input[0]], _attributes(node)
        width = width_of(chain, self.width)
        given = [self.constants[name] for name in node.input[1:] if name]
        for name, columns in zip(
            node.output, columns_of(node, given, attributes, width), strict=True
        ):
            self.count(width * width)
            unit = np.eye(width)[:, columns]
            self.chains[name] = (*chain, Dense(unit, np.zeros(len(columns))))

    def joined(self, names: list[str], attributes: Mapping[str, Any]) -> Chain:
        """Return the inputs one behind the other, each with its own scaling.

        An observation has them in the order in which the model states them.
        """
        lanes = [self.lanes.get(name) for name in names]
        if None in lanes or attributes.get("axis") not in (-1, 1, 0):
            raise UnreadableError("it joins other values than its inputs")
        parts = [lane for lane in lanes if lane is not None]
        if sorted(index for index, _ in parts) != list(range(len(self.widths))):
            raise UnreadableError("it does not take each of its inputs once")
        mean, scale = np.zeros(self.width), np.ones(self.width)
        starts = np.cumsum([0, *self.widths])
        order: list[int] = []
        for index, chain in parts:
            part = slice(starts[index], starts[index + 1])
            order += range(starts[index], starts[index + 1])
            for stage in chain:
                if not isinstance(stage, Normalize):
                    raise UnreadableError("it does more to an input than scale it")
                mean[part] += stage.mean / scale[part]
                scale[part] *= stage.inverse_std
        joined = Dense(np.eye(self.width)[:, order], np.zeros(self.width))
        is_plain = not mean.any() and (scale == 1).all()
        front: Chain = () if is_plain else (Normalize(mean, scale),)
        return front if order == sorted(order) else (*front, joined)

    def product(self, first: str, second: str) -> Chain:
        """Return x times a function of x: SiLU, or a part of GELU."""
        for x, function in ((first, second), (second, first)):
            before, behind = self.chains[x], self.chains[function]
            if behind == (*before, Activate("sigmoid")):
                return (*before, Activate("silu"))
            last = behind[-1] if behind else None
            if not isinstance(last, Erf) or not last.plus_one or last.times_x:
                continue
            if behind[:-1] == before:
                return whole_gelu(behind[:-1], replace(last, times_x=True))
            if behind[:-1] == before[:-1] and is_half(before[-1]) and not last.halved:
                return whole_gelu(behind[:-1], replace(last, times_x=True, halved=True))
        raise UnreadableError(
            f"it multiplies two values that together are not an activation read here: {OTHERS}"
        )

    def after(
        self,
        chain: Chain,
        operator: str,
        others: Sequence[Array | None],
        attributes: Mapping[str, Any],
    ) -> Chain:
        if operator in UNCHANGED or (operator == "Flatten" and attributes.get("axis", 1) == 1):
            return chain
        if operator in READ:
            name, usual = DEFAULTS.get(operator, ("approximate", b"none"))
            if attributes.get(name, usual) != usual:
                known = usual.decode() if isinstance(usual, bytes) else usual
                raise UnreadableError(
                    f"its {operator} has another {name} than {known}, which is not supported"
                )
            return (*chain, Activate(READ[operator]))
        if operator == "Erf":
            last = chain[-1] if chain else None
            if not isinstance(last, Normalize) or last.mean.any():
                raise UnreadableError("it has an Erf that is not part of GELU")
            apart = 1e-3 if self.has_half_precision else 1e-6
            if not np.allclose(last.inverse_std, math.sqrt(0.5), rtol=apart):
                raise UnreadableError("it has an Erf that is not part of GELU")
            return (*chain[:-1], Erf())
        if chain and isinstance(chain[-1], Erf):
            return self.of_gelu(chain, operator, others)
        if operator == "Clip" and not others:  # before version 11 of the operators
            others = [
                None if key not in attributes else np.asarray(attributes[key], float)
                for key in ("min", "max")
            ]
        if operator in ("Gemm", "MatMul"):
            return (*chain, dense(operator, [x for x in others if x is not None], attributes))
        if operator in ELEMENTWISE and len(others) <= 2:
            width = width_of(chain, self.width)
            self.count(width * width if operator in ("Mul", "Div") else width)  # a matrix at most
            return (*chain, ELEMENTWISE[operator](width, *others))
        raise UnreadableError(
            f"it has the operator {shown(operator)}, which is not supported: {OTHERS}"
        )

    def of_gelu(self, chain: Chain, operator: str, others: Sequence[Array | None]) -> Chain:
        last = chain[-1]
        assert isinstance(last, Erf)
        first = others[0] if len(others) == 1 else None
        number = first.item() if first is not None and first.size == 1 else None
        if operator == "Add" and number == 1 and not last.plus_one:
            return (*chain[:-1], replace(last, plus_one=True))
        is_halving = (operator, number) in (("Mul", 0.5), ("Div", 2.0))
        if is_halving and last.plus_one and not last.halved:
            return whole_gelu(chain[:-1], replace(last, halved=True))
        raise UnreadableError("it has an Erf that is not part of GELU")


def whole_gelu(before: Chain, part: Erf) -> Chain:
    is_whole = part == Erf(plus_one=True, times_x=True, halved=True)
    return (*before, Activate("gelu") if is_whole else part)


def is_half(part: Part) -> bool:
    """Return whether the stage halves its numbers."""
    is_scaling = isinstance(part, Normalize) and not part.mean.any()
    return is_scaling and bool((part.inverse_std == 0.5).all())  # type: ignore[union-attr]


WHOLE: Mapping[str, Callable[[int, int], int]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": lambda a, b: int(a / b),  # ONNX's rounds towards zero
}


def computed_shape(name: str, taken: Sequence[Sizes]) -> Sizes:
    """Return what an operator makes of shapes; None where that is not known, or is no shape."""
    found = shape_of(name, taken)
    if found is None or len(found) > MAX_DIMENSIONS:
        return None
    return found if all(size is None or abs(size) <= MAX_ELEMENTS for size in found) else None


def shape_of(name: str, taken: Sequence[Sizes]) -> Sizes:
    if any(sizes is None for sizes in taken):
        return None
    first, *others = [sizes or [] for sizes in taken]
    if name in ("Cast", "Identity", "Squeeze", "Unsqueeze"):
        return first
    if name == "Concat":
        return [size for sizes in (first, *others) for size in sizes]
    if name == "Gather":
        return [first[index] for index in others[0] if index is not None]
    if name in WHOLE and len(first) == len(others[0]):
        pairs = list(zip(first, others[0], strict=True))
        return [None if a is None or b is None else WHOLE[name](a, b) for a, b in pairs]
    return None


def columns_of(
    node: Any, given: Sequence[Array], attributes: Mapping[str, Any], width: int
) -> list[list[int]]:
    """Return the columns of each output of a Split, a Slice or a Gather along the last axis.

    given: the constants behind its data.
    """

    def whole(key: str, index: int, usual: Any) -> list[int]:
        value = given[index] if len(given) > index else attributes.get(key, usual)
        return [int(number) for number in np.ravel(value)]

    operator = node.op_type
    every = range(width)
    if operator == "Split":
        axes, count = [attributes.get("axis", 0)], len(node.output)
        sizes = whole("split", 0, [-(-width // count)] * (count - 1) + [width])
        ends = np.cumsum([0, *sizes]).tolist()
        found = [list(every[low:high]) for low, high in pairwise(ends)]
    elif operator == "Slice":
        starts, ends = whole("starts", 0, []), whole("ends", 1, [])
        axes, steps = whole("axes", 2, range(len(starts))), whole("steps", 3, [1])
        if not len(starts) == len(ends) == len(axes) == len(steps) == 1:
            raise UnreadableError("it takes a part of more than its columns, by a Slice")
        found = [list(every[starts[0] : ends[0] : steps[0]])]
    else:
        axes, found = [attributes.get("axis", 0)], [[every[i] for i in whole("", 0, [])]]
    if axes[0] not in (-1, 1) or not all(found):
        raise UnreadableError(f"it takes a part of more than its columns, by a {operator}")
    return found


def type_of(number: int) -> str:
    from onnx import TensorProto

    try:
        return str(TensorProto.DataType.Name(number))
    except ValueError:
        return "?"


SB3 = " (the first, of Stable-Baselines3's recipe), or import the .zip that its save() wrote"


def chosen_output(names: Sequence[str], asked: str | None, more: str = "") -> str:
    """Return the output that is the action.

    more: words behind the message. Raise UnreadableError where nothing says which of several it
    is.
    """
    if asked is not None and names.count(asked) != 1:
        raise UnreadableError(f"it has no output {shown(asked)}: its outputs are {listed(names)}")
    called = [name for name in names if name.lower() in ACTION_NAMES]
    if asked is None and len(names) > 1 and len(called) != 1:
        raise UnreadableError(
            f"it has several outputs, {listed(names)}: name the one that is the action by "
            f"--output-name NAME{more}"
        )
    if not names:
        raise UnreadableError("its model has no output")
    return asked or (names[0] if len(names) == 1 else called[0])


def assumed_output(names: Sequence[str], chosen: str, asked: str | None) -> tuple[str, ...]:
    """Return the assumption where only its name says that an output is the action."""
    if asked is not None or len(names) == 1:
        return ()
    left = listed([name for name in names if name != chosen])
    return (
        f"its output {shown(chosen)} is the action (by its name), and left out is {left}, state it "
        "by --output-name NAME",
    )


COMMUTING = ("Add", "Mul", "Max", "Min")


def width_of_input(entry: Any) -> int:
    sizes = entry.type.tensor_type.shape.dim
    width = sizes[-1].dim_value if 1 <= len(sizes) <= 2 else 0
    if not 1 <= width <= WIDEST:
        raise UnreadableError("an input of its model is not a vector of a stated size")
    return int(width)


def width_of(chain: Chain, first: int) -> int:
    """Return the width of what an operator takes; `first` is that of the model's input."""
    for part in reversed(chain):
        if isinstance(part, Dense):
            return part.bias.size
        if isinstance(part, Normalize | Clip):
            return ends_of(part)[0]
    return first


def row(values: Array, width: int) -> Array:
    """Return one number for each element."""
    if values.size not in (1, width):
        raise UnreadableError(f"an operator takes {values.size} constants for {width} elements")
    return np.broadcast_to(values.ravel(), (width,)).astype(float)


def scaled(scale: Array, offset: Array) -> Stage:
    """Return the stage scale x + offset."""
    if not np.isfinite(scale).all() or (scale == 0).any():
        raise UnreadableError("it multiplies by 0, or by something that is not a number")
    return affine(scale, offset)


def clip(width: int, low: Array | None, high: Array | None) -> Stage:
    ends = (np.full(width, -np.inf), np.full(width, np.inf))
    return Clip(
        ends[0] if low is None else row(low, width), ends[1] if high is None else row(high, width)
    )


ELEMENTWISE: Mapping[str, Callable[..., Stage]] = {
    "Add": lambda n, c: scaled(np.ones(n), row(c, n)),
    "Sub": lambda n, c: scaled(np.ones(n), -row(c, n)),
    "Mul": lambda n, c: scaled(row(c, n), np.zeros(n)),
    "Div": lambda n, c: scaled(1.0 / row(c, n), np.zeros(n)),
    "Max": lambda n, c: clip(n, c, None),
    "Min": lambda n, c: clip(n, None, c),
    "Clip": lambda n, low=None, high=None: clip(n, low, high),
}


def dense(operator: str, others: list[Array], attributes: Mapping[str, Any]) -> Dense:
    """Return the layer of Gemm(x, weights, bias), or of MatMul(x, weights)."""
    weights = others[0]
    if attributes.get("transA", 0) or weights.ndim != 2:
        raise UnreadableError(f"its {operator} is not a dense layer")
    if attributes.get("transB", 0):
        weights = weights.T
    weights = weights * attributes.get("alpha", 1.0)
    bias = np.zeros(weights.shape[1])
    if len(others) > 1:
        bias = row(others[1], weights.shape[1]) * attributes.get("beta", 1.0)
    return Dense(weights, bias)


def _array(entry: Any) -> Array:
    from onnx import TensorProto, numpy_helper

    if entry.data_location == TensorProto.EXTERNAL or entry.external_data:
        raise UnreadableError(
            "its numbers lie in another file: export it with external_data=False, or save them in "
            "it by onnx.save(onnx.load(FILE), FILE)"
        )
    if TensorProto.DataType.Name(entry.data_type) not in NUMBERS:
        raise UnreadableError("a constant of it has a type that is not supported")
    return np.asarray(numpy_helper.to_array(entry), float)


def _attributes(node: Any) -> dict[str, Any]:
    from onnx import helper

    return {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
