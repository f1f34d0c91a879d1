"""The core's activations, for whatever computes, exports or reads a network on the host."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rltools_host.errors import UsageError

Array = NDArray[np.float64]
X = "x"


def identity(x: Array) -> Array:
    return x


def erf(x: Array) -> Array:
    values: Array = np.vectorize(math.erf, otypes=[float])(x)
    return values


def logistic(x: Array) -> Array:
    return np.exp(-np.logaddexp(0.0, -x))


class Activation(NamedTuple):
    """An activation in double precision and in other libraries.

    `onnx` are the operators of ONNX, each of which takes the last value, and a constant or x. An
    activation of one operator has its name in models that are read, and so has `read_onnx`.
    """

    value: Callable[[Array], Array]
    torch_class: str  # of torch.nn, with its default arguments
    torch: str  # the function in PyTorch, for generated code
    onnx: tuple[tuple[str, float | str | None], ...]
    read_onnx: str | None = None
    is_exact: bool = False  # its result is not rounded


# By the names of RLT_ACTIVATION_LIST (nn/activation.h).
ACTIVATIONS = {
    "identity": Activation(identity, "Identity", "torch.nn.Identity()", (), is_exact=True),
    "relu": Activation(
        lambda x: np.maximum(x, 0.0), "ReLU", "torch.relu", (("Relu", None),), is_exact=True
    ),
    "gelu": Activation(
        lambda x: 0.5 * x * (1.0 + erf(x / math.sqrt(2.0))),
        "GELU",
        "functional.gelu",
        (("Mul", 0.5**0.5), ("Erf", None), ("Add", 1.0), ("Mul", X), ("Mul", 0.5)),
        "Gelu",
    ),
    "tanh": Activation(np.tanh, "Tanh", "torch.tanh", (("Tanh", None),)),
    "sigmoid": Activation(logistic, "Sigmoid", "torch.sigmoid", (("Sigmoid", None),)),
    "softplus": Activation(
        lambda x: np.logaddexp(0.0, x), "Softplus", "functional.softplus", (("Softplus", None),)
    ),
    "elu": Activation(
        lambda x: np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0))),
        "ELU",
        "functional.elu",
        (("Elu", None),),
    ),
    "silu": Activation(
        lambda x: x * logistic(x),
        "SiLU",
        "functional.silu",
        (("Sigmoid", None), ("Mul", X)),
        "Swish",
    ),
    "hardtanh": Activation(
        lambda x: np.clip(x, -1.0, 1.0),
        "Hardtanh",
        "functional.hardtanh",
        (("Max", -1.0), ("Min", 1.0)),
        is_exact=True,
    ),
}


def activation_named(name: str) -> Activation:
    """Return the activation of an image's layer. Raise UsageError if only the core has it."""
    if name not in ACTIVATIONS:
        raise UsageError(f"no export for other libraries of a policy with {name} is written yet")
    return ACTIVATIONS[name]
