"""emlearn: the C that it generates from a scikit-learn network, compiled for this machine.

It has no batches: a batch is one sample after another.
"""

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import emlearn
import inference_run
import numpy as np
from sklearn.neural_network import MLPRegressor

PASSES = 1000
LOOPS = """
#include "policy.h"
// Each pass takes a first input that depends on the last output, so that passes do not overlap.
void repeat(float *input, int inputs, float *output, int outputs, int passes) {
  const float first = input[0];
  for (int pass = 0; pass < passes; pass++) {
    input[0] = first + 1e-30f * output[outputs - 1];
    eml_net_regress(&policy, input, inputs, output, outputs);
  }
  input[0] = first;
}
void batch(const float *input, int inputs, float *output, int outputs, int rows) {
  for (int row = 0; row < rows; row++) {
    eml_net_regress(&policy, input + row * inputs, inputs, output + row * outputs, outputs);
  }
}
"""


def library(case: inference_run.Case) -> Any:
    network = MLPRegressor(hidden_layer_sizes=inference_run.WIDTHS[1:-1], max_iter=1)
    targets = np.zeros((len(case.inputs), inference_run.WIDTHS[-1]))
    network.fit(case.inputs, targets)  # makes the shapes; then come our weights
    network.coefs_ = [weights.copy() for weights, _ in case.layers]
    network.intercepts_ = [bias.copy() for _, bias in case.layers]
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        converted = emlearn.convert(network, method="loadable", return_type="regressor")
        converted.save(file=str(folder / "policy.h"), name="policy")
        source = folder / "loops.c"
        source.write_text(LOOPS)
        command = ["cc", "-O3", "-march=native", "-shared", "-fPIC", "-w"]
        include = f"-I{emlearn.includedir}"
        output = folder / "policy.so"
        subprocess.run([*command, include, str(source), "-o", str(output), "-lm"], check=True)
        return ctypes.CDLL(str(output))


def prepare(case: inference_run.Case) -> tuple[Callable[[], Any], Callable[[], Any]]:
    loops = library(case)
    inputs, outputs = inference_run.WIDTHS[0], inference_run.WIDTHS[-1]
    one, result = case.inputs[0].copy(), np.zeros(outputs, np.float32)
    rows, results = case.inputs.copy(), np.zeros((len(case.inputs), outputs), np.float32)

    def single() -> None:
        pointers = one.ctypes.data_as(ctypes.c_void_p), result.ctypes.data_as(ctypes.c_void_p)
        loops.repeat(pointers[0], inputs, pointers[1], outputs, PASSES)

    def batched() -> Any:
        pointers = rows.ctypes.data_as(ctypes.c_void_p), results.ctypes.data_as(ctypes.c_void_p)
        loops.batch(pointers[0], inputs, pointers[1], outputs, len(rows))
        return results

    return single, batched


if __name__ == "__main__":
    inference_run.run("emlearn", prepare, "generated C", PASSES)
