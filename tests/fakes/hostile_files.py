"""Small files that take memory or time without bound where nothing bounds them."""

from __future__ import annotations

import json
import pickle
import struct
from collections.abc import Callable
from typing import Any

WIDE = 4096


def safetensors(header: dict[str, Any], payload: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + payload


def overlapping() -> bytes:
    """50 tensors that are the same 9 MB."""
    count = 9_000_000
    entry = {"dtype": "I8", "shape": [count], "data_offsets": [0, count]}
    return safetensors({f"{i}.weight": entry for i in range(50)}, bytes(count))


def many_factors() -> bytes:
    entry = {"dtype": "F32", "shape": [1] * 300_000, "data_offsets": [0, 4]}
    return safetensors({"0.weight": entry}, bytes(4))


def model(nodes: list[Any], constants: list[Any], outputs: list[str], width: int = 3) -> bytes:
    from onnx import TensorProto, helper

    def vector(name: str) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, width])

    graph = helper.make_graph(
        nodes, "policy", [vector("obs")], [vector(name) for name in outputs], constants
    )
    opset = [helper.make_opsetid("", 17)]
    made = helper.make_model(graph, opset_imports=opset, ir_version=10)
    return bytes(made.SerializeToString())


def layer(output: str) -> tuple[Any, Any]:
    """A node and its constant: a dense layer of 3 outputs."""
    from onnx import TensorProto, helper

    numbers = helper.make_tensor("w", TensorProto.FLOAT, [3, 3], [0.1] * 9)
    return helper.make_node("MatMul", ["obs", "w"], [output]), numbers


def loop_beside() -> bytes:
    """A loop of 2**62 rounds in an output that is not the action."""
    from onnx import TensorProto, helper

    node, weights = layer("action")
    count = helper.make_tensor("count", TensorProto.INT64, [], [2**62])
    true = helper.make_tensor("true", TensorProto.BOOL, [], [True])

    def value(name: str, kind: int, shape: list[Any]) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["still"]),
            helper.make_node("Add", ["x", "x"], ["y"]),
        ],
        "body",
        [
            value("round", TensorProto.INT64, []),
            value("going", TensorProto.BOOL, []),
            value("x", TensorProto.FLOAT, [None, 3]),
        ],
        [value("still", TensorProto.BOOL, []), value("y", TensorProto.FLOAT, [None, 3])],
    )
    loop = helper.make_node("Loop", ["count", "true", "obs"], ["value"], body=body)
    return model([node, loop], [weights, count, true], ["action", "value"])


def large_beside() -> bytes:
    """2e9 zeros in an output that is not the action, which are folded as the model is loaded."""
    from onnx import TensorProto, helper

    node, weights = layer("action")
    size = helper.make_tensor("size", TensorProto.INT64, [1], [2_000_000_000])
    zeros = helper.make_node("ConstantOfShape", ["size"], ["zeros"])
    total = helper.make_node("ReduceSum", ["zeros"], ["sum"], keepdims=0)
    other = helper.make_node("Add", ["obs", "sum"], ["value"])
    return model([node, zeros, total, other], [weights, size], ["action", "value"])


def many_products() -> bytes:
    """20 products with -1 at width 4,096, each of which is a matrix."""
    from onnx import TensorProto, helper

    minus = helper.make_tensor("minus", TensorProto.FLOAT, [1], [-1.0])
    names = ["obs", *(f"x{i}" for i in range(20))]
    nodes = [helper.make_node("Mul", [names[i], "minus"], [names[i + 1]]) for i in range(20)]
    return model(nodes, [minus], [names[-1]], WIDE)


def packed_numbers(kind: str) -> Callable[[], bytes]:
    """Eight constants of 49,000,000 numbers each."""

    def made() -> bytes:
        from onnx import TensorProto, helper

        constants = [
            TensorProto(
                name=f"c{i}",
                dims=[49_000_000],
                data_type=TensorProto.DataType.Value(kind),
                raw_data=bytes(24_500_000 if i == 0 and kind == "INT4" else 0),
            )
            for i in range(8)
        ]
        names = ["obs", *(f"x{i}" for i in range(8))]
        nodes = [helper.make_node("Add", [names[i], f"c{i}"], [names[i + 1]]) for i in range(8)]
        return model(nodes, constants, [names[-1]])

    return made


def merged_tables() -> bytes:
    """Tables merged seven deep, 40 times each."""
    lines = ["a0: &a0 {x: 1}"]
    for level in range(7):
        ten = ", ".join([f"*a{level}"] * 40)
        lines.append(f"a{level + 1}: &a{level + 1} {{<<: [{ten}]}}")
    return "\n".join(lines).encode()


def base_60() -> bytes:
    return b"n: 1" + b":1" * 100_000


def slow_yaml() -> bytes:
    """A list that the package takes many seconds for."""
    return b"models: [" + b"[]," * 300_000 + b"]"


class Named:
    """What pickles as a call of a function by its name."""

    def __init__(self, name: str, *arguments: Any) -> None:
        self.name, self.arguments = name, arguments


def pickled(value: Any) -> bytes:
    """A pickle of lists, texts and Named."""
    if isinstance(value, Named):
        module, _, name = value.name.rpartition(".")
        inner = b"".join(pickled(each) for each in value.arguments)
        return f"c{module}\n{name}\n(".encode() + inner + b"tR"
    return pickle.dumps(value, 2)[2:-1]


def vec_normalize(content: bytes) -> bytes:
    """A pickle of VecNormalize whose mean has this content, itself pickled."""
    dtype = pickled(Named("numpy.dtype", "f8"))
    scalar = b"cnumpy.core.multiarray\nscalar\n(" + dtype + content + b"tR"
    statistics = b"cx\nRunningMeanStd\n)R}(" + pickled("mean") + scalar + b"ub"
    table = b"}(" + pickled("norm_obs") + b"\x88" + pickled("obs_rms") + statistics + b"ub"
    return b"\x80\x02cx\nVecNormalize\n)R" + table + b"."


def shared_lists() -> bytes:
    """A text for `_codecs.encode` that is a list of 40 levels of two times the same."""
    lists = b"]q\x00" + b"".join(
        b"]q" + bytes([level]) + b"(h" + bytes([level - 1]) + b"h" + bytes([level - 1]) + b"e"
        for level in range(1, 41)
    )
    # The list of the last level is the argument; the others stay on the stack below a mark.
    return vec_normalize(
        b"(" + lists + b"1" + b"c_codecs\nencode\n(h\x28" + pickled("latin1") + b"tR"
    )


def nested_bytes() -> bytes:
    call = b"c__builtin__\nbytearray\n("
    return vec_normalize(call * 20_000 + pickled(b"x" * 8) + b"tR" * 20_000)
