"""LiteRT (TensorFlow Lite) with one thread: invoke() alone, inputs are set before.

The model is written here, with the package's own schema of the format.
"""

from collections.abc import Callable
from typing import Any

import flatbuffers
import inference_run
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter


def make_tensor(name: str, shape: tuple[int, ...], buffer: int) -> Any:
    tensor = schema.TensorT()
    tensor.name = name.encode()
    tensor.shape = list(shape)
    tensor.type = schema.TensorType.FLOAT32
    tensor.buffer = buffer
    return tensor


def make_buffer(values: Any = None) -> Any:
    buffer = schema.BufferT()
    if values is not None:
        buffer.data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
    return buffer


def make_layer(inputs: list[int], output: int, relu: bool) -> Any:
    options = schema.FullyConnectedOptionsT()
    activation = schema.ActivationFunctionType
    options.fusedActivationFunction = activation.RELU if relu else activation.NONE
    operator = schema.OperatorT()
    operator.opcodeIndex = 0
    operator.inputs, operator.outputs = inputs, [output]
    operator.builtinOptionsType = schema.BuiltinOptions.FullyConnectedOptions
    operator.builtinOptions = options
    return operator


def model(case: inference_run.Case, rows: int) -> bytes:
    buffers = [make_buffer()]  # the format's buffer 0 is empty
    tensors = [make_tensor("input", (rows, inference_run.WIDTHS[0]), 0)]
    operators = []
    previous = 0
    for index, (weights, bias) in enumerate(case.layers):
        buffers += [make_buffer(weights.T), make_buffer(bias)]
        first = len(tensors)
        tensors += [
            make_tensor(f"weights{index}", weights.T.shape, len(buffers) - 2),
            make_tensor(f"bias{index}", bias.shape, len(buffers) - 1),
            make_tensor(f"dense{index}", (rows, len(bias)), 0),
        ]
        relu = index != len(case.layers) - 1
        operators.append(make_layer([previous, first, first + 1], first + 2, relu))
        previous = first + 2
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.FULLY_CONNECTED
    code.version = 1
    graph = schema.SubGraphT()
    graph.name = b"policy"
    graph.tensors, graph.operators = tensors, operators
    graph.inputs, graph.outputs = [0], [previous]
    whole = schema.ModelT()
    whole.version = 3
    whole.operatorCodes, whole.subgraphs, whole.buffers = [code], [graph], buffers
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(whole.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def ready(case: inference_run.Case, inputs: Any) -> Any:
    interpreter = Interpreter(model_content=model(case, len(inputs)), num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], inputs)
    return interpreter


def prepare(case: inference_run.Case) -> tuple[Callable[[], Any], Callable[[], Any]]:
    single, batched = ready(case, case.inputs[:1].copy()), ready(case, case.inputs.copy())
    output = batched.get_output_details()[0]["index"]

    def all_outputs() -> Any:
        batched.invoke()
        return batched.get_tensor(output)

    return single.invoke, all_outputs


if __name__ == "__main__":
    inference_run.run("ai-edge-litert", prepare, "Python")
