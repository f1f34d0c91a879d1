"""onnxruntime with one thread, through its Python interface."""

from collections.abc import Callable
from typing import Any

import inference_run
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

NEWEST_IR = 10  # that onnxruntime has read for long


def model(case: inference_run.Case) -> bytes:
    nodes, initializers = [], []
    previous = "input"
    last = len(case.layers) - 1
    for index, (weights, bias) in enumerate(case.layers):
        initializers.append(numpy_helper.from_array(weights.copy(), f"weights{index}"))
        initializers.append(numpy_helper.from_array(bias.copy(), f"bias{index}"))
        result = "output" if index == last else f"dense{index}"
        names = [previous, f"weights{index}", f"bias{index}"]
        nodes.append(helper.make_node("Gemm", names, [result]))
        previous = result
        if index != last:
            previous = f"relu{index}"
            nodes.append(helper.make_node("Relu", [result], [previous]))
    widths = inference_run.WIDTHS
    graph = helper.make_graph(
        nodes,
        "policy",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["batch", widths[0]])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", widths[-1]])],
        initializers,
    )
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=NEWEST_IR).SerializeToString()


def prepare(case: inference_run.Case) -> tuple[Callable[[], Any], Callable[[], Any]]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model(case), options, providers=["CPUExecutionProvider"])
    one, all_inputs = {"input": case.inputs[:1].copy()}, {"input": case.inputs.copy()}
    return (lambda: session.run(None, one)), (lambda: session.run(None, all_inputs)[0])


if __name__ == "__main__":
    inference_run.run("onnxruntime", prepare, "Python")
